// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A matrix product on a device, for programs that are linked with cuBLAS.

#ifndef CUGUEST_EXAMPLES_LIBRARIES_MULTIPLY_H_
#define CUGUEST_EXAMPLES_LIBRARIES_MULTIPLY_H_

#include <cublas_v2.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device_buffer.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "examples/libraries/product.h"
#include "examples/support/check.h"

namespace support {

// C = A B. In single precision throughout: the math mode of a new handle uses no TF32.
inline cublasStatus_t Multiply(cublasHandle_t handle, int n, const float* a, const float* b,
                               float* c) {
  const float one = 1;
  const float zero = 0;
  return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c, n);
}

// The matrices of a product in memory of one context, and a stream.
class DeviceProduct {
 public:
  // C is zero. `product` must outlive this.
  [[nodiscard]] static absl::StatusOr<DeviceProduct> Upload(const cuguest::ContextRef& context,
                                                            const Product& product) {
    absl::StatusOr<cuguest::DeviceBuffer<float>> a =
        cuguest::DeviceBuffer<float>::CopyOf(context, product.a());
    CUGUEST_RETURN_IF_ERROR(a);
    absl::StatusOr<cuguest::DeviceBuffer<float>> b =
        cuguest::DeviceBuffer<float>::CopyOf(context, product.b());
    CUGUEST_RETURN_IF_ERROR(b);
    absl::StatusOr<cuguest::DeviceBuffer<float>> c =
        cuguest::DeviceBuffer<float>::CopyOf(context, std::vector<float>(product.a().size()));
    CUGUEST_RETURN_IF_ERROR(c);
    absl::StatusOr<cuguest::Stream> stream = cuguest::Stream::Create(context);
    CUGUEST_RETURN_IF_ERROR(stream);
    return DeviceProduct(&product, *std::move(a), *std::move(b), *std::move(c), *std::move(stream));
  }

  [[nodiscard]] const cuguest::StreamRef& stream() const { return stream_.ref(); }

  // Calls cuBLAS, on the handle's stream; does not wait.
  cublasStatus_t Multiply(cublasHandle_t handle) {
    return support::Multiply(handle, product_->n(), a_.data(), b_.data(), c_.data());
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
    if (!CHECK_OK(stream().Synchronize())) return false;
    const absl::StatusOr<std::vector<float>> c = Download(c_.view());
    return CHECK_OK(c.status()) && CHECK(product_->IsRight(*c)) &&
           CHECK_OK(cuguest::Zero(c_.view()));
  }

 private:
  DeviceProduct(const Product* product, cuguest::DeviceBuffer<float> a,
                cuguest::DeviceBuffer<float> b, cuguest::DeviceBuffer<float> c,
                cuguest::Stream stream)
      : product_(product),
        a_(std::move(a)),
        b_(std::move(b)),
        c_(std::move(c)),
        stream_(std::move(stream)) {}

  const Product* product_;
  cuguest::DeviceBuffer<float> a_;
  cuguest::DeviceBuffer<float> b_;
  cuguest::DeviceBuffer<float> c_;
  cuguest::Stream stream_;
};

}  // namespace support

#endif  // CUGUEST_EXAMPLES_LIBRARIES_MULTIPLY_H_
