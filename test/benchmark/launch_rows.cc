// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches, beside cuLaunchKernel of the same kernel with the same parameters. The kernel has
// hardly anything to do: its launch is what is waited for.

#include <cuda.h>

#include <memory>

#include "cudasim/sim.h"
#include "cuguest/context_ref.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_ptr.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/stream.h"
#include "cuguest/objects/typed_kernel.h"
#include "kernels/launch.h"
#include "test/benchmark/table.h"

namespace cuguest_benchmark {
namespace {

using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Driver;
using cuguest::Kernel;
using cuguest::LaunchShape;
using cuguest::Module;
using cuguest::ObjectDriver;
using cuguest::ParamBuffer;
using cuguest::Stream;
using cuguest::TypedKernel;

using CountUp = TypedKernel<void(unsigned, unsigned, DevicePtr<unsigned>)>;

// count_up(1, 1, counts) with one thread, in the user's context.
struct Objects {
  const ObjectDriver& driver = *TheWorld().driver;
  ContextRef ref = TheWorld().user_ref;
  Stream stream = Take(Stream::Create(ref));
  Module module = Take(Module::LoadIn(
      ref,
      Take(CodeImage::Borrow({cuguest_kernels::launch_fatbin, cuguest_kernels::launch_fatbin_size},
                             "launch.fatbin"))));
  DeviceBuffer<unsigned> counts = Take(DeviceBuffer<unsigned>::Allocate(ref, 1));
  Kernel kernel = Take(module.GetKernel("count_up"));
  CountUp typed = CountUp::Of(kernel);
  CUfunction function = Take(kernel.FunctionIn(ref));
  DevicePtr<unsigned> pointer{counts.view()};
  ParamBuffer packed = Packed();
  LaunchShape shape;

 private:
  [[nodiscard]] ParamBuffer Packed() const {
    ParamBuffer params;
    REQUIRE(params.Add(1U).ok() && params.Add(1U).ok() && params.Add(pointer).ok());
    return params;
  }
};

void LaunchRaw(const Objects& objects, void** each, void** extra) {
  REQUIRE(objects.driver.LaunchKernel(objects.function, 1, 1, 1, 1, 1, 1, 0, objects.stream.get(),
                                      each, extra) == CUDA_SUCCESS);
}

void LaunchValues(const Objects& objects) {
  unsigned n = 1;
  unsigned value = 1;
  CUdeviceptr counts = objects.pointer.get();
  void* each[] = {&n, &value, &counts};
  LaunchRaw(objects, each, nullptr);
}

void LaunchPacked(const Objects& objects) {
  std::size_t bytes = objects.packed.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER,
                   const_cast<unsigned char*>(objects.packed.data()), CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &bytes, CU_LAUNCH_PARAM_END};
  LaunchRaw(objects, nullptr, extra);
}

Rows Make() {
  cudasim::Sim::RegisterKernel("count_up", [](const cudasim::SimLaunch&) { return CUDA_SUCCESS; });
  const auto objects = std::make_shared<Objects>();
  const Objects& all = *objects;
  // A batch is fewer than the driver queues before it waits.
  Group group = {"a launch of a kernel with three parameters", TheWorld().user, {1}, 200, {}};
  group.settle = [&all] { REQUIRE(all.stream.ref().Synchronize().ok()); };
  group.Add("`cuLaunchKernel`", [&all](std::size_t) { LaunchValues(all); });
  group.Add("`cuLaunchKernel`, again", [&all](std::size_t) { LaunchValues(all); });
  group.Add("`cuLaunchKernel`, a buffer of parameters", [&all](std::size_t) { LaunchPacked(all); });
  group.Add("what `Launch` calls", [&all](std::size_t) {  // on a device with clusters
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    AskForId(all.ref.get());
    all.driver.StreamIsCapturing(all.stream.get(), &status);
    LaunchValues(all);
  });
  group.Add("`Launch`, values", [&all](std::size_t) {
    REQUIRE(Launch(all.kernel, all.shape, all.stream.ref(), 1U, 1U, all.pointer).ok());
  });
  group.Add("`Launch`, `ParamBuffer`", [&all](std::size_t) {
    REQUIRE(Launch(all.kernel, all.shape, all.stream.ref(), all.packed).ok());
  });
  group.Add("`TypedKernel::Launch`", [&all](std::size_t) {
    REQUIRE(all.typed.Launch(all.shape, all.stream.ref(), 1, 1, all.pointer).ok());
  });
  Rows rows;
  for (const char* row : {"`Launch`, values", "`Launch`, `ParamBuffer`", "`TypedKernel::Launch`"}) {
    Promise promise = {group.title, row, 1, 1.06};
    promise.or_nanoseconds_more = 150;
    rows.promises.push_back(promise);
  }
  rows.promises[1].beside = "`cuLaunchKernel`, a buffer of parameters";
  rows.groups = {group};
  rows.needs = objects;
  return rows;
}

const RowsOf g_rows(6, &Make);

}  // namespace
}  // namespace cuguest_benchmark
