// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How short is a library that launches, computes in a context of its choosing, and calls cuBLAS?
//
// Three functions. None of them changes what its caller has current, and each returns an error in
// an absl::Status. docs/three_jobs.md counts their statements, and those of other libraries.
//
//      Scale                         [X]<            1000 numbers of A, right
//      ScaleVector                   [X]<            1000 numbers, right, in P
//      Multiply                      [X]<            64 x 64 in A, right

#include <cstddef>
#include <string>
#include <vector>

#include "cuguest/libraries/cublas.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/stream.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "examples/libraries/product.h"
#include "examples/support/stage.h"

namespace library {

// The kernel of examples/template/scale.cc, with its bounds check.
constexpr char kPtx[] = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry scale(.param .u64 count, .param .f32 factor, .param .u64 values) {
  .reg .pred %outside;
  .reg .b32 %r<4>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  cvt.u64.u32 %rd1, %r3;
  mad.wide.u32 %rd1, %r1, %r2, %rd1;
  ld.param.u64 %rd2, [count];
  setp.ge.u64 %outside, %rd1, %rd2;
  @%outside ret;
  ld.param.u64 %rd3, [values];
  shl.b64 %rd1, %rd1, 2;
  add.s64 %rd3, %rd3, %rd1;
  ld.param.f32 %f1, [factor];
  ld.global.f32 %f2, [%rd3];
  mul.f32 %f2, %f2, %f1;
  st.global.f32 [%rd3], %f2;
  ret;
})";

cuguest::Module::Once g_code(kPtx, "three_jobs");
cuguest::Kernel::Once g_scale(g_code, "scale");

absl::Status Scale(CUstream stream, float* values, std::size_t n, float factor) {
  CUGUEST_ASSIGN_OR_RETURN(const auto* const scale, g_scale.Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto view, cuguest::DeviceView<float>::Borrow(values, n));
  return cuguest::LaunchForElements(*scale, n, stream, n, factor, view);
}

absl::StatusOr<std::vector<float>> ScaleVector(const std::vector<float>& values, float factor) {
  CUGUEST_ASSIGN_OR_RETURN(const auto* const scale, g_scale.Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto primary,
                           cuguest::PrimaryContext::Retain(cuguest::Device::Borrow(0)));
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(primary));
  CUGUEST_ASSIGN_OR_RETURN(auto x, cuguest::DeviceBuffer<float>::CopyOfAsync(stream, values));
  CUGUEST_RETURN_IF_ERROR(
      cuguest::LaunchForElements(*scale, x.size(), stream, x.size(), factor, x));
  return cuguest::Download(x.view(), stream);
}

absl::Status Multiply(CUstream stream, int n, const float* a, const float* b, float* c) {
  constexpr float kOne = 1, kZero = 0;
  static auto& handles = *new cuguest::runtime::CublasHandles;  // of every context
  const cuguest::runtime::CublasScope blas(handles, stream);
  CUGUEST_RETURN_IF_ERROR(blas);
  return cuguest::runtime::ToStatus(cublasSgemm(blas.handle(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n,
                                                &kOne, a, n, b, n, &kZero, c, n),
                                    "multiply");
}

}  // namespace library

// A program whose stream and memory are in A.
namespace host {

using Buffer = cuguest::DeviceBuffer<float>;
using support::Has;
using support::Ramp;

absl::Status CallAll(const support::Stage& stage, CUcontext a, const char* stack) {
  const support::Undisturbed undisturbed;
  const auto context = cuguest::ContextRef::Borrow(a);
  const support::Product product(64, /*seed=*/1);
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(context));
  CUGUEST_ASSIGN_OR_RETURN(auto x, Buffer::CopyOf(context, Ramp(1)));
  CUGUEST_ASSIGN_OR_RETURN(const auto left, Buffer::CopyOf(context, product.a()));
  CUGUEST_ASSIGN_OR_RETURN(const auto right, Buffer::CopyOf(context, product.b()));
  CUGUEST_ASSIGN_OR_RETURN(auto result, Buffer::Allocate(context, product.a().size()));

  CHECK_OK(library::Scale(stream.get(), x.data(), x.size(), 3));
  CHECK(stage.Shows("Scale", stack, "1000 numbers of A, right"));
  CHECK(Has(cuguest::Download(x.view(), stream), Ramp(3)));

  const auto scaled = library::ScaleVector(Ramp(1), 3);
  CHECK(stage.Shows("ScaleVector", stack, "1000 numbers, right, in P"));
  CHECK(Has(scaled, Ramp(3)));
  CHECK(Has(library::ScaleVector({}, 3), {}));

  CHECK_OK(library::Multiply(stream.get(), product.n(), left.data(), right.data(), result.data()));
  CHECK(stage.Shows("Multiply", stack, "64 x 64 in A, right"));
  const auto products = cuguest::Download(result.view(), stream);
  if (CHECK_OK(products.status())) CHECK(product.IsRight(*products));

  const auto refused = library::Scale(stream.get(), x.data(), x.size() + 1, 3);
  CHECK(support::IsRefused("Scale, of more than there is", refused,
                           absl::StatusCode::kInvalidArgument));
  CHECK(Has(cuguest::Download(x.view(), stream), Ramp(3)));
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device /*device*/) {
  support::Stage stage(driver, cuguest::Device::Borrow(0), {"A", "X"});
  support::PrintScene("The caller has X current");
  stage.Set({"X"});
  CUGUEST_RETURN_IF_ERROR(CallAll(stage, stage["A"], "[X]<"));
  support::PrintScene("The caller has nothing current");
  stage.Set({});
  return CallAll(stage, stage["A"], "(empty)");
}

}  // namespace host

int main() {
  return support::RunExample(
      "How short is a library that launches, computes in a context of its choosing, and calls "
      "cuBLAS?",
      &host::Demonstrate);
}
