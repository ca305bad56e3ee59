// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A matrix product on a device, for programs that are linked with cuBLAS.

#ifndef CUGUEST_EXAMPLES_LIBRARIES_MULTIPLY_H_
#define CUGUEST_EXAMPLES_LIBRARIES_MULTIPLY_H_

#include <cublas_v2.h>

#include <vector>

#include "cuguest/context_ref.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/stream.h"
#include "cuguest/status.h"
#include "examples/libraries/product.h"
#include "examples/support/check.h"

namespace support {

// The matrices of a product in memory of one context, and a stream.
class DeviceProduct {
 public:
  // C is zero. `product` must outlive this.
  [[nodiscard]] static absl::StatusOr<DeviceProduct> Upload(const cuguest::ContextRef& context,
                                                            const Product& product) {
    DeviceProduct made;
    CUGUEST_ASSIGN_OR_RETURN(made.stream_, cuguest::Stream::Create(context));
    for (cuguest::DeviceBuffer<float>* matrix : {&made.a_, &made.b_, &made.c_}) {
      CUGUEST_ASSIGN_OR_RETURN(*matrix,
                               cuguest::DeviceBuffer<float>::Allocate(context, product.a().size()));
    }
    CUGUEST_RETURN_IF_ERROR(made.Change(product));
    return made;
  }

  [[nodiscard]] const cuguest::StreamRef& stream() const { return stream_.ref(); }

  // C = A B: calls cuBLAS, on the handle's stream; does not wait. In single precision throughout:
  // the math mode of a new handle uses no TF32.
  cublasStatus_t Multiply(cublasHandle_t handle) {
    const float one = 1;
    const float zero = 0;
    const int n = product_->n();
    return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a_.data(), n, b_.data(), n,
                       &zero, c_.data(), n);
  }

  // Replaces the matrices by others of the same size; C becomes zero.
  [[nodiscard]] absl::Status Change(const Product& product) {
    product_ = &product;
    CUGUEST_RETURN_IF_ERROR(cuguest::Upload(a_.view(), product.a()));
    CUGUEST_RETURN_IF_ERROR(cuguest::Upload(b_.view(), product.b()));
    return cuguest::Zero(c_.view());
  }

  // Waits for the stream and checks C, which then becomes zero again.
  bool IsRight() {
    const absl::StatusOr<std::vector<float>> c = cuguest::Download(c_.view(), stream_);
    return CHECK_OK(c.status()) && CHECK(product_->IsRight(*c)) &&
           CHECK_OK(cuguest::Zero(c_.view()));
  }

 private:
  DeviceProduct() = default;

  const Product* product_ = nullptr;
  cuguest::DeviceBuffer<float> a_;
  cuguest::DeviceBuffer<float> b_;
  cuguest::DeviceBuffer<float> c_;
  cuguest::Stream stream_;
};

}  // namespace support

#endif  // CUGUEST_EXAMPLES_LIBRARIES_MULTIPLY_H_
