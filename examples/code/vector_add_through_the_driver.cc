// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How is the programming guide's first program of the driver API written with cuguest?
//
//   the guide's vector addition        | here
//   -----------------------------------+-------------------------------------------------
//   cuInit, cuDeviceGet                | DeviceAt, which RunExample has called
//   cuCtxCreate, current from then on  | SharedContext::Create, current nowhere
//   cuModuleLoad, cuModuleGetFunction  | Module::LoadIn, Module::GetKernel
//   cuMemAlloc, cuMemcpyHtoD           | DeviceBuffer::CopyOf
//   (N + 255) / 256 blocks             | LaunchForElements
//   cuLaunchKernel, on stream 0        | a launch on a stream, which names the context
//   cuMemcpyDtoH                       | Download
//   no error is checked, nothing freed | every step returns a Status; everything is freed in
//                                      | its own context, whatever is current then
//
// cuLaunchKernel takes the parameters as an array of pointers, or in one buffer in which they lie
// as the kernel reads them. cuguest has both forms with types, where the compiler makes the array
// or the buffer, and without, for programs that learn at run time what they launch
// (generate_code_at_run_time.cc).
//
//   1. An array of pointers
//
//      values                        right           LaunchForElements(..., n, a, b, c)
//      the guide's args[]            right           LaunchForElements(..., args)
//      a typed kernel                right           VectorAdd converts as a function does

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/host_span.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/param_buffer.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "cuguest/typed_kernel.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/vector_add.h"

namespace {

using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::HostSpan;
using cuguest::Kernel;
using cuguest::LaunchForElements;
using cuguest::Module;
using cuguest::ParamBuffer;
using cuguest::SharedContext;
using cuguest::Stream;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;
using Numbers = std::vector<float>;

using VectorAdd = cuguest::TypedKernel<void(unsigned n, DevicePtr<const float> a,
                                            DevicePtr<const float> b, DevicePtr<float> c)>;

// The guide's variables.
struct Program {
  Kernel kernel;
  Stream stream;
  DeviceBuffer<float> a;
  DeviceBuffer<float> b;
  DeviceBuffer<float> c;
  unsigned n;
};

absl::StatusOr<Kernel> LoadVectorAdd(const ContextRef& context) {
  CUGUEST_ASSIGN_OR_RETURN(
      const Module module,
      Module::LoadIn(context,
                     {cuguest_kernels::vector_add_fatbin, cuguest_kernels::vector_add_fatbin_size},
                     "vector_add.fatbin"));
  return module.GetKernel("vector_add");  // which keeps the module loaded
}

absl::StatusOr<Program> Prepare(const ContextRef& context, const Numbers& x, const Numbers& y) {
  absl::StatusOr<Kernel> kernel = LoadVectorAdd(context);
  CUGUEST_RETURN_IF_ERROR(kernel);
  absl::StatusOr<Stream> stream = Stream::Create(context);
  CUGUEST_RETURN_IF_ERROR(stream);
  absl::StatusOr<DeviceBuffer<float>> a = DeviceBuffer<float>::CopyOf(context, x);
  CUGUEST_RETURN_IF_ERROR(a);
  absl::StatusOr<DeviceBuffer<float>> b = DeviceBuffer<float>::CopyOf(context, y);
  CUGUEST_RETURN_IF_ERROR(b);
  absl::StatusOr<DeviceBuffer<float>> c = DeviceBuffer<float>::Allocate(context, x.size());
  CUGUEST_RETURN_IF_ERROR(c);
  const auto n = static_cast<unsigned>(x.size());
  return Program{*std::move(kernel), *std::move(stream), *std::move(a),
                 *std::move(b),      *std::move(c),      n};
}

// `launch` adds Ramp(1) and Ramp(2).
void LaunchAndCheck(const char* how, const char* call, Program* program,
                    const std::function<absl::Status()>& launch) {
  CHECK_OK(cuguest::Zero(program->c.view()));
  if (!CHECK_OK(launch())) return;
  CHECK_OK(program->stream.ref().Synchronize());
  const absl::StatusOr<Numbers> sum = cuguest::Download(program->c.view());
  const bool right = CHECK_OK(sum.status()) && CHECK(*sum == Ramp(3));
  PrintRow(how, right ? "right" : "wrong", call);
}

void ByPointers(Program* p) {
  PrintScene("An array of pointers");
  LaunchAndCheck("values", "LaunchForElements(..., n, a, b, c)", p, [p] {
    return LaunchForElements(p->kernel, p->n, p->stream.ref(), p->n, DevicePtr(p->a.view()),
                             DevicePtr(p->b.view()), DevicePtr(p->c.view()));
  });
  LaunchAndCheck("the guide's args[]", "LaunchForElements(..., args)", p, [p] {
    CUdeviceptr a = p->a.get();
    CUdeviceptr b = p->b.get();
    CUdeviceptr c = p->c.get();
    void* const args[] = {&p->n, &a, &b, &c};
    return LaunchForElements(p->kernel, p->n, p->stream.ref(), HostSpan<void* const>(args));
  });
  LaunchAndCheck("a typed kernel", "VectorAdd converts as a function does", p, [p] {
    return VectorAdd::Of(p->kernel).LaunchForElements(p->n, p->stream.ref(), p->n, p->a.view(),
                                                      p->b.view(), p->c.view());
  });
}

void InOneBuffer(Program* p) {
  PrintScene("One buffer, laid out as the kernel reads it");
  LaunchAndCheck("the guide's paramBuffer", "ParamBuffer", p, [p] {
    ParamBuffer params;
    absl::Status status = params.Add(p->n);
    for (const CUdeviceptr vector : {p->a.get(), p->b.get(), p->c.get()}) {
      status.Update(params.Add(vector));
    }
    if (!status.ok()) return status;
    return LaunchForElements(p->kernel, p->n, p->stream.ref(), params);
  });
}

absl::Status Demonstrate(const cuguest::Driver&, cuguest::Device device) {
  const cuguest::testing::UndisturbedScope undisturbed(&support::ReportDisturbance);
  CUGUEST_ASSIGN_OR_RETURN(const SharedContext context, SharedContext::Create(device));
  CUGUEST_ASSIGN_OR_RETURN(Program program, Prepare(context.context(), Ramp(1), Ramp(2)));
  ByPointers(&program);
  InOneBuffer(&program);
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample(
      "How is the programming guide's first program of the driver API written with cuguest?",
      &Demonstrate);
}
