// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library in somebody else's process: functions in C, with kernels of their own, and one that
// ends what they have loaded. No code runs when the library is loaded or unloaded, or at exit.

#include "scale.h"

#include <cstdio>

#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/scratch_buffer.h"
#include "cuguest/status.h"

namespace {

// extern "C" __global__ void scale(size_t count, float factor, float* values) {
//   size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
//   if (i < count) values[i] *= factor;
// }
// extern "C" __global__ void smooth(size_t count, const float* from, float* to) {
//   size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
//   if (i >= count) return;
//   to[i] = (from[max(i, 1) - 1] + from[i] + from[min(i + 1, count - 1)]) / 3;
// }
constexpr char kPtx[] = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry scale(.param .u64 count, .param .f32 factor, .param .u64 values) {
  .reg .pred %outside;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  cvt.u64.u32 %rd1, %r3;
  mad.wide.u32 %rd1, %r1, %r2, %rd1;
  ld.param.u64 %rd2, [count];
  setp.ge.u64 %outside, %rd1, %rd2;
  @%outside ret;
  ld.param.u64 %rd3, [values];
  shl.b64 %rd4, %rd1, 2;
  add.s64 %rd4, %rd3, %rd4;
  ld.param.f32 %f1, [factor];
  ld.global.f32 %f2, [%rd4];
  mul.f32 %f3, %f2, %f1;
  st.global.f32 [%rd4], %f3;
  ret;
}
.visible .entry smooth(.param .u64 count, .param .u64 from, .param .u64 to) {
  .reg .pred %outside;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<6>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  cvt.u64.u32 %rd1, %r3;
  mad.wide.u32 %rd1, %r1, %r2, %rd1;
  ld.param.u64 %rd2, [count];
  setp.ge.u64 %outside, %rd1, %rd2;
  @%outside ret;
  ld.param.u64 %rd3, [from];
  max.u64 %rd4, %rd1, 1;
  sub.u64 %rd4, %rd4, 1;
  mad.lo.u64 %rd4, %rd4, 4, %rd3;
  ld.global.f32 %f1, [%rd4];
  mad.lo.u64 %rd4, %rd1, 4, %rd3;
  ld.global.f32 %f2, [%rd4];
  add.f32 %f1, %f1, %f2;
  sub.u64 %rd2, %rd2, 1;
  add.u64 %rd4, %rd1, 1;
  min.u64 %rd4, %rd4, %rd2;
  mad.lo.u64 %rd4, %rd4, 4, %rd3;
  ld.global.f32 %f2, [%rd4];
  add.f32 %f1, %f1, %f2;
  div.rn.f32 %f1, %f1, 0f40400000;
  ld.param.u64 %rd5, [to];
  mad.lo.u64 %rd5, %rd1, 4, %rd5;
  st.global.f32 [%rd5], %f1;
  ret;
})";

// Loaded for the process by the first call that needs it, for every context.
cuguest::Module::Once g_code(kPtx, "acme_scale");
cuguest::Kernel::Once g_scale(g_code, "scale");
cuguest::Kernel::Once g_smooth(g_code, "smooth");

absl::Status Scale(CUstream callers, float* values, size_t count, float factor) {
  CUGUEST_ASSIGN_OR_RETURN(const auto* const scale, g_scale.Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto view, cuguest::DeviceView<float>::Borrow(values, count));
  return cuguest::LaunchForElements(*scale, count, callers, count, factor, view);
}

absl::Status Smooth(CUstream callers, float* values, size_t count) {
  CUGUEST_ASSIGN_OR_RETURN(const auto* const smooth, g_smooth.Get());
  CUGUEST_ASSIGN_OR_RETURN(const auto view, cuguest::DeviceView<float>::Borrow(values, count));
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::StreamRef::Borrow(callers));
  CUGUEST_ASSIGN_OR_RETURN(auto copy, cuguest::ScratchBuffer<float>::Allocate(stream, count));
  CUGUEST_RETURN_IF_ERROR(cuguest::CopyAsync(copy.view(), view, stream));
  CUGUEST_RETURN_IF_ERROR(cuguest::LaunchForElements(*smooth, count, stream, count, copy, view));
  return copy.Release();
}

int Returned(const absl::Status& status, char* text, size_t size) {
  if (status.ok()) return CUDA_SUCCESS;
  std::snprintf(text, size, "%s", status.ToString().c_str());
  return cuguest::ResultOf(status);
}

}  // namespace

int acme_scale(CUstream stream, float* values, size_t count, float factor, char* text,
               size_t size) {
  return Returned(Scale(stream, values, count, factor), text, size);
}

int acme_smooth(CUstream stream, float* values, size_t count, char* text, size_t size) {
  return Returned(Smooth(stream, values, count), text, size);
}

int acme_scale_close() { return cuguest::ResultOf(g_code.Close()); }
