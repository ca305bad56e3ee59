// SPDX-License-Identifier: Apache-2.0
//
// What a launch costs beside cuLaunchKernel of the same kernel with the same parameters, in
// one run. The sides take turns, batch by batch, and each batch is compared with the bare one
// of its own turn, so that what drifts meanwhile (clocks, the driver's queues) does not
// decide; nor does what a side finds in the caches, since it comes behind every other as often.
// The kernel has hardly anything to do: its launch is what is waited for.
//
// With --check it fails if a launch costs more than it promises (on a real driver; the
// simulation's times mean nothing).

#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "cuguest/code_image.h"
#include "cuguest/context_guard.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/stream.h"
#include "cuguest/testing/sim.h"
#include "cuguest/typed_kernel.h"
#include "kernels/launch.h"
#include "test/benchmark/harness.h"

namespace {

using cuguest::CodeImage;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::LaunchShape;
using cuguest::Module;
using cuguest::PackedParams;
using cuguest::Stream;
using cuguest::TypedKernel;
using cuguest::testing::Sim;

using CountUp = TypedKernel<void(unsigned, unsigned, DevicePtr<unsigned>)>;

// count_up(1, 1, counts) with one thread.
struct World {
  World(const cuguest::Driver& the_driver, CUcontext context)
      : driver(the_driver),
        ref(ContextRef::Borrow(context)),
        stream(Stream::Create(ref).value()),
        module(Module::LoadIn(ref, CodeImage::Borrow({cuguest_kernels::launch_fatbin,
                                                      cuguest_kernels::launch_fatbin_size},
                                                     "launch.fatbin")
                                       .value())
                   .value()),
        counts(DeviceBuffer<unsigned>::Allocate(ref, 1).value()),
        kernel(module.GetKernel("count_up").value()),
        typed(CountUp::Of(kernel)),
        function(kernel.FunctionIn(ref).value()),
        pointer(counts.view()),
        packed(1U, 1U, pointer) {}

  const cuguest::Driver& driver;
  ContextRef ref;
  Stream stream;
  Module module;
  DeviceBuffer<unsigned> counts;
  Kernel kernel;
  CountUp typed;
  CUfunction function;
  DevicePtr<unsigned> pointer;
  PackedParams<unsigned, unsigned, DevicePtr<unsigned>> packed;
  LaunchShape shape;
};

CUresult RawLaunch(World& world, void** each, void** extra) {
  return world.driver.LaunchKernel(world.function, 1, 1, 1, 1, 1, 1, 0, world.stream.get(), each,
                                   extra);
}

bool RawValues(World& world) {
  unsigned n = 1;
  unsigned value = 1;
  CUdeviceptr counts = world.pointer.get();
  void* each[] = {&n, &value, &counts};
  return RawLaunch(world, each, nullptr) == CUDA_SUCCESS;
}

bool RawPacked(World& world) {
  std::size_t bytes = world.packed.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<unsigned char*>(world.packed.data()),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  return RawLaunch(world, nullptr, extra) == CUDA_SUCCESS;
}

bool Values(World& world) {
  return Launch(world.kernel, world.shape, world.stream.ref(), 1U, 1U, world.pointer).ok();
}

bool Packed(World& world) {
  return Launch(world.kernel, world.shape, world.stream.ref(), world.packed).ok();
}

bool Typed(World& world) {
  return world.typed.Launch(world.shape, world.stream.ref(), 1, 1, world.pointer).ok();
}

struct Side {
  const char* name;
  bool (*launch)(World& world);
  int bare;  // the side that it is compared with
  bool is_promised;
};
constexpr Side kSides[] = {
    {"cuLaunchKernel, values", &RawValues, 0, false},
    {"cuLaunchKernel, packed", &RawPacked, 1, false},
    {"Launch, values", &Values, 0, true},
    {"Launch, PackedParams", &Packed, 1, true},
    {"TypedKernel::Launch", &Typed, 0, true},
    {"cuLaunchKernel, values, again", &RawValues, 0, false},
};
constexpr int kSideCount = sizeof(kSides) / sizeof(kSides[0]);
// Shifted by 0 to 5 it has each side in each place once, and once behind each other side (a
// Williams square).
constexpr int kOrder[kSideCount] = {0, 1, 5, 2, 4, 3};
constexpr double kMostRatio = 1.03;
constexpr int kBatch = 200;  // fewer than the driver queues before it waits

// Nanoseconds a launch, of one batch that begins and ends with nothing running. Negative if a
// launch failed.
double TimeBatch(World& world, const Side& side) {
  bool ok = true;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kBatch; ++i) ok = side.launch(world) && ok;
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  ok = world.stream.ref().Synchronize().ok() && ok;
  return ok ? took.count() / kBatch : -1;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Measured {
  std::vector<double> times[kSideCount];
  std::vector<double> ratios[kSideCount];
};

bool MeasureTurn(World& world, int turn, Measured* measured) {
  double times[kSideCount];
  for (int i = 0; i < kSideCount; ++i) {
    const int side = (kOrder[i] + turn) % kSideCount;
    times[side] = TimeBatch(world, kSides[side]);
    if (times[side] < 0) return false;
  }
  for (int side = 0; side < kSideCount; ++side) {
    measured->times[side].push_back(times[side]);
    measured->ratios[side].push_back(times[side] / times[kSides[side].bare]);
  }
  return true;
}

// Whether every promise is kept.
bool Report(const Measured& measured) {
  std::printf("\n| launch | ns, median | ratio to the bare one |\n|:--|--:|--:|\n");
  bool kept = true;
  for (int side = 0; side < kSideCount; ++side) {
    const double ratio = Median(measured.ratios[side]);
    std::printf("| %s | %.0f | %.3f |\n", kSides[side].name, Median(measured.times[side]), ratio);
    kept = kept && (!kSides[side].is_promised || ratio <= kMostRatio);
  }
  std::printf("\n%s: at most %.2f of cuLaunchKernel, median of %zu batches of %d launches\n",
              kept ? "kept" : "BROKEN", kMostRatio, measured.times[0].size(), kBatch);
  return kept;
}

bool Measure(const cuguest::Driver& driver, CUcontext context, bool smoke, Measured* measured) {
  World world(driver, context);
  const int turns = smoke ? 2 : 100 * kSideCount;
  for (int turn = -5; turn < turns; ++turn) {
    if (turn == 0) *measured = Measured();  // what came before was for warmth
    if (!MeasureTurn(world, turn + kSideCount, measured)) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const cuguest_benchmark::Options options = cuguest_benchmark::Parse(argc, argv);
  const cuguest::Driver* const driver = cuguest_benchmark::FindDriver();
  if (driver == nullptr) return 77;
  Sim::RegisterKernel("count_up", [](const cuguest::testing::SimLaunch&) { return CUDA_SUCCESS; });
  const CUcontext context = cuguest_benchmark::MakeContext(*driver);
  if (context == nullptr) return 1;
  Measured measured;
  const bool ran = Measure(*driver, context, options.smoke, &measured);
  driver->CtxDestroy(context);
  if (!ran) {
    std::printf("a launch failed\n");
    return 1;
  }
  const bool kept = Report(measured);
  return kept || !options.check || Sim::IsActive() ? 0 : 1;
}
