// SPDX-License-Identifier: Apache-2.0
//
// How is the guide's first program of the driver API written with cuguest?
//
//   the guide's vector addition        | here
//   -----------------------------------+-------------------------------------------------
//   cuInit, cuDeviceGet                | Device::At, which RunExample has called
//   cuCtxCreate, current from then on  | SharedContext::Create, current nowhere
//   cuModuleLoad, cuModuleGetFunction  | CodeImage, Module::LoadIn, Module::GetKernel
//   cuMemAlloc, cuMemcpyHtoD           | DeviceBuffer, Copy
//   (N + 255) / 256 blocks             | LaunchShape::ForElements
//   cuLaunchKernel, on stream 0        | Launch, on a stream, which names the context
//   nothing is checked, or freed       | a Status of every step; all is freed where it was
//                                      | made, whatever is current then
//
// The parameters are given in each way that there is: the driver takes an array of pointers
// to them, or one buffer in which they lie as the kernel reads them. Both come with types, and
// then the compiler makes the array or the buffer; and both without, for programs that learn
// at run time what they launch (generate_code_at_run_time.cc).
//
//   1. An array of pointers
//
//      values                        right           Launch(..., n, a, b, c)
//      the guide's args[]            right           Launch(..., args)
//      a typed kernel                right           VectorAdd::Launch converts

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/code_image.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/param_buffer.h"
#include "cuguest/shared_context.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "cuguest/typed_kernel.h"
#include "examples/support/check.h"
#include "examples/support/code.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/vector_add.h"

namespace {

using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::LaunchShape;
using cuguest::Module;
using cuguest::PackedParams;
using cuguest::ParamBuffer;
using cuguest::SharedContext;
using cuguest::Stream;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;
using support::Upload;

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
  const absl::StatusOr<CodeImage> image = CodeImage::Borrow(
      {cuguest_kernels::vector_add_fatbin, cuguest_kernels::vector_add_fatbin_size},
      "vector_add.fatbin");
  if (!image.ok()) return image.status();
  const absl::StatusOr<Module> module = Module::LoadIn(context, *image);
  if (!module.ok()) return module.status();
  return module->GetKernel("vector_add");  // which keeps the module loaded
}

absl::StatusOr<Program> Prepare(const ContextRef& context) {
  absl::StatusOr<Kernel> kernel = LoadVectorAdd(context);
  if (!kernel.ok()) return kernel.status();
  absl::StatusOr<Stream> stream = Stream::Create(context);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<DeviceBuffer<float>> a = Upload(context, Ramp(1));
  if (!a.ok()) return a.status();
  absl::StatusOr<DeviceBuffer<float>> b = Upload(context, Ramp(2));
  if (!b.ok()) return b.status();
  absl::StatusOr<DeviceBuffer<float>> c = DeviceBuffer<float>::Allocate(context, a->size());
  if (!c.ok()) return c.status();
  const auto n = static_cast<unsigned>(a->size());
  return Program{*std::move(kernel), *std::move(stream), *std::move(a),
                 *std::move(b),      *std::move(c),      n};
}

void LaunchAndCheck(const char* how, const char* call, Program* program,
                    const std::function<absl::Status(const LaunchShape&)>& launch) {
  CHECK_OK(cuguest::Zero(program->c.view()));
  const absl::StatusOr<LaunchShape> shape = LaunchShape::ForElements(program->n, 256);
  if (!CHECK_OK(shape.status()) || !CHECK_OK(launch(*shape))) return;
  CHECK_OK(program->stream.ref().Synchronize());
  const absl::StatusOr<std::vector<float>> sum = support::Download(program->c.view());
  const bool right = CHECK_OK(sum.status()) && CHECK(*sum == Ramp(3));
  PrintRow(how, right ? "right" : "wrong", call);
}

void ByPointers(Program* p) {
  PrintScene("An array of pointers");
  LaunchAndCheck("values", "Launch(..., n, a, b, c)", p, [p](const LaunchShape& shape) {
    return cuguest::Launch(p->kernel, shape, p->stream.ref(), p->n, DevicePtr(p->a.view()),
                           DevicePtr(p->b.view()), DevicePtr(p->c.view()));
  });
  LaunchAndCheck("the guide's args[]", "Launch(..., args)", p, [p](const LaunchShape& shape) {
    CUdeviceptr a = p->a.get();
    CUdeviceptr b = p->b.get();
    CUdeviceptr c = p->c.get();
    void* const args[] = {&p->n, &a, &b, &c};
    return cuguest::Launch(p->kernel, shape, p->stream.ref(), cuguest::HostSpan<void* const>(args));
  });
  LaunchAndCheck("a typed kernel", "VectorAdd::Launch converts", p, [p](const LaunchShape& shape) {
    return VectorAdd::Of(p->kernel).Launch(shape, p->stream.ref(), p->n, p->a.view(), p->b.view(),
                                           p->c.view());
  });
}

void InOneBuffer(Program* p) {
  PrintScene("One buffer, laid out as the kernel reads it");
  LaunchAndCheck("types known to the compiler", "PackedParams", p, [p](const LaunchShape& shape) {
    const PackedParams params(p->n, DevicePtr(p->a.view()), DevicePtr(p->b.view()),
                              DevicePtr(p->c.view()));
    return cuguest::Launch(p->kernel, shape, p->stream.ref(), params);
  });
  LaunchAndCheck("types known at run time", "ParamBuffer", p, [p](const LaunchShape& shape) {
    ParamBuffer params;
    CHECK_OK(params.Add(p->n));
    for (const CUdeviceptr vector : {p->a.get(), p->b.get(), p->c.get()}) {
      CHECK_OK(params.Add(vector));
    }
    return cuguest::Launch(p->kernel, shape, p->stream.ref(), params);
  });
}

absl::Status Demonstrate(const cuguest::Driver&, cuguest::Device device) {
  const cuguest::testing::UndisturbedScope undisturbed(&support::ReportDisturbance);
  const absl::StatusOr<SharedContext> context = SharedContext::Create(device);
  if (!context.ok()) return context.status();
  absl::StatusOr<Program> program = Prepare(context->incarnation());
  if (!program.ok()) return program.status();
  ByPointers(&*program);
  InOneBuffer(&*program);
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample(
      "How is the guide's first program of the driver API written with cuguest?", &Demonstrate);
}
