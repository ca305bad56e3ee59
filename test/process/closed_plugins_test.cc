// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library of examples/template as a plugin that its host loads, uses, closes and unloads again
// and again: whatever its host does meanwhile, nothing of it stays.

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/driver.h"
#include "cuguest/testing/stack_probe.h"
#include "test/process/plugin.h"
#include "test/support/leaks_on_purpose.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::testing::UndisturbedScope;
using cuguest_test::MakeContext;
using cuguest_test::On;
using cuguest_test::Plugin;

constexpr size_t kCount = 16;

#define CHECK_OK(call) CHECK((call) == CUDA_SUCCESS)

// What the simulation runs in place of the kernel.
CUresult HostScale(const cudasim::SimLaunch& launch) {
  const size_t count = *static_cast<const size_t*>(launch.parameters[0]);
  const float factor = *static_cast<const float*>(launch.parameters[1]);
  float* const values = *static_cast<float* const*>(launch.parameters[2]);
  for (size_t i = 0; i < count; ++i) values[i] *= factor;
  return CUDA_SUCCESS;
}

void Initialize() {
  CHECK(cuguest::Driver::GetInitialized().ok());
  Sim::RegisterKernel("scale", &HostScale);
}

class Current {
 public:
  explicit Current(CUcontext context) { CHECK_OK(RAW(cuCtxPushCurrent)(context)); }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    CUcontext popped = nullptr;
    CHECK_OK(RAW(cuCtxPopCurrent)(&popped));
  }
};

// The host's, in one context.
class Values {
 public:
  explicit Values(CUcontext context) : context_(context) {
    const Current current(context);
    CHECK_OK(RAW(cuMemAlloc)(&memory_, kCount * sizeof(float)));
    CHECK_OK(RAW(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING));
  }
  [[nodiscard]] CUcontext context() const { return context_; }
  [[nodiscard]] CUstream stream() const { return stream_; }
  [[nodiscard]] float* data() const { return reinterpret_cast<float*>(memory_); }

  void Fill(float value) const {
    const Current current(context_);
    const std::vector<float> values(kCount, value);
    CHECK_OK(RAW(cuMemcpyHtoD)(memory_, values.data(), kCount * sizeof(float)));
  }
  [[nodiscard]] bool Are(float value) const {
    const Current current(context_);
    std::vector<float> values(kCount);
    CHECK_OK(RAW(cuStreamSynchronize)(stream_));
    CHECK_OK(RAW(cuMemcpyDtoH)(values.data(), memory_, kCount * sizeof(float)));
    return std::count(values.begin(), values.end(), value) == static_cast<long>(kCount);
  }

 private:
  const CUcontext context_;
  CUdeviceptr memory_ = 0;
  CUstream stream_ = nullptr;
};

class ScalePlugin : public Plugin {
 public:
  ScalePlugin()
      : Plugin("acme_scale"),
        scale_(Call<ScaleCall*>("acme_scale")),
        close_(Call<int (*)()>("acme_scale_close")) {}

  [[nodiscard]] int Submit(const Values& values) const {
    char text[400] = "";
    const UndisturbedScope scope;
    const int code = scale_(values.stream(), values.data(), kCount, 2, text, sizeof text);
    if (code != CUDA_SUCCESS) std::printf("%s\n", text);
    return code;
  }
  void Double(const Values& values) const {
    values.Fill(3);
    CHECK_OK(Submit(values));
    CHECK(values.Are(6));
  }
  [[nodiscard]] int Close() const {
    const UndisturbedScope scope;
    return close_();
  }
  // Where the stack cannot be asked about.
  [[nodiscard]] int CloseAsItIs() const { return close_(); }

 private:
  using ScaleCall = int(CUstream, float*, size_t, float, char*, size_t);

  ScaleCall* const scale_;
  int (*const close_)();
};

bool IsUnloaded() { return !Plugin::IsLoaded("acme_scale"); }

void LoadUseCloseUnload(const std::vector<Values>& everywhere) {
  {
    const ScalePlugin plugin;
    for (const Values& values : everywhere) plugin.Double(values);
    CHECK_OK(plugin.Close());
  }
  CHECK(IsUnloaded());
}

size_t FreeMemory(CUcontext context) {
  const Current current(context);
  size_t free = 0;
  size_t total = 0;
  CHECK_OK(RAW(cuMemGetInfo)(&free, &total));
  return free;
}

// The first rounds are those in which the driver and the C library grow.
void AThousandLoadsLeaveNothing() {
  constexpr int kLoads = 1000;
  Initialize();
  const std::vector<Values> everywhere = {Values(MakeContext()), Values(MakeContext())};
  for (int i = 0; i < 100; ++i) LoadUseCloseUnload(everywhere);
  const auto live = Sim::Live();
  const size_t device = FreeMemory(everywhere[0].context());
  const size_t host = mallinfo2().uordblks;
  for (int i = 0; i < kLoads; ++i) LoadUseCloseUnload(everywhere);
  CHECK(Sim::Live() == live);
  const size_t device_after = FreeMemory(everywhere[0].context());
  const size_t host_after = mallinfo2().uordblks;
  std::printf("device %zu %zu, host %zu %zu\n", device, device_after, host, host_after);
  CHECK(device_after == device);
  // One block of the C library's takes 32 bytes.
  if (Sim::IsActive()) CHECK(host_after < host + 16 * kLoads);
}

void WithoutCloseTheCodeStays() {
  Initialize();
  const Values values(MakeContext());
  const auto live = Sim::Live();
  {
    const cuguest_test::LeaksOnPurpose its_code;
    const ScalePlugin plugin;
    plugin.Double(values);
  }
  CHECK(IsUnloaded());
  CHECK(Sim::Live().libraries == live.libraries + 1);
}

void ClosedTwiceUnusedAndUsedAgain() {
  Initialize();
  const Values values(MakeContext());
  const auto live = Sim::Live();
  const ScalePlugin plugin;
  CHECK_OK(plugin.Close());
  for (int i = 0; i < 3; ++i) {
    plugin.Double(values);
    CHECK_OK(plugin.Close());
    CHECK_OK(plugin.Close());
    CHECK(Sim::Live() == live);
  }
}

void WhereContextsHaveEnded() {
  Initialize();
  const auto live = Sim::Live();
  const CUcontext destroyed = MakeContext();
  CUcontext primary = nullptr;
  CHECK_OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  const ScalePlugin plugin;
  plugin.Double(Values(destroyed));
  plugin.Double(Values(primary));
  CHECK_OK(RAW(cuCtxDestroy)(destroyed));
  CHECK_OK(RAW(cuDevicePrimaryCtxReset)(0));
  CHECK_OK(plugin.Close());
  CHECK_OK(RAW(cuDevicePrimaryCtxRelease)(0));
  CHECK(Sim::Live() == live);
  const Values values(MakeContext());
  plugin.Double(values);
  CHECK_OK(plugin.Close());
}

// The caller's is one in which the code was never used.
void InsideAnotherContext() {
  Initialize();
  const Values values(MakeContext());
  const Current callers(MakeContext());
  const auto live = Sim::Live();
  LoadUseCloseUnload({values});
  CHECK(Sim::Live() == live);
}

void WhileStreamsAreCaptured() {
  Initialize();
  const Values values(MakeContext());
  const ScalePlugin plugin;
  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        CU_STREAM_CAPTURE_MODE_RELAXED}) {
    plugin.Double(values);
    const Values captured(values.context());
    CHECK_OK(RAW(cuStreamBeginCapture)(captured.stream(), mode));
    CHECK_OK(plugin.CloseAsItIs());
    CUgraph graph = nullptr;
    CHECK_OK(RAW(cuStreamEndCapture)(captured.stream(), &graph));
    CHECK_OK(RAW(cuGraphDestroy)(graph));
  }
}

struct Closing {
  const ScalePlugin& plugin;
  int code = CUDA_SUCCESS;
};
void CUDA_CB CloseIt(void* data) {
  auto* const closing = static_cast<Closing*>(data);
  closing->code = closing->plugin.CloseAsItIs();
}

// Refused, and nothing is lost.
void InAHostFunction() {
  Initialize();
  const Values values(MakeContext());
  const auto live = Sim::Live();
  const ScalePlugin plugin;
  plugin.Double(values);
  Closing closing{plugin};
  CHECK_OK(RAW(cuLaunchHostFunc)(values.stream(), &CloseIt, &closing));
  CHECK_OK(RAW(cuStreamSynchronize)(values.stream()));
  CHECK(closing.code == CUDA_ERROR_NOT_PERMITTED);
  plugin.Double(values);
  CHECK_OK(plugin.Close());
  CHECK(Sim::Live() == live);
}

void InAForkedChild() {
  Initialize();
  const Values values(MakeContext());
  const auto live = Sim::Live();
  const ScalePlugin plugin;
  plugin.Double(values);
  cuguest_test::Fork([&] {
    CHECK_OK(plugin.CloseAsItIs());
    CHECK_OK(plugin.CloseAsItIs());
    char text[400] = "";
    const auto scale =
        plugin.Call<int (*)(CUstream, float*, size_t, float, char*, size_t)>("acme_scale");
    CHECK(scale(values.stream(), values.data(), kCount, 2, text, sizeof text) ==
          CUDA_ERROR_NOT_INITIALIZED);
  });
  plugin.Double(values);
  CHECK_OK(plugin.Close());
  CHECK(Sim::Live() == live);
}

void ARefusedCloseIsRepeated() {
  Initialize();
  const Values values(MakeContext());
  const auto live = Sim::Live();
  const ScalePlugin plugin;
  plugin.Double(values);
  Sim::FailCall("cuLibraryUnload", 1, CUDA_ERROR_UNKNOWN);
  CHECK(plugin.Close() == CUDA_ERROR_UNKNOWN);
  plugin.Double(values);
  CHECK_OK(plugin.Close());
  CHECK(Sim::Live() == live);
}

// It has modules, and no ids: what a created context has ends with that.
void BelowCuda12() {
  Sim::SetDriverVersion(11040);
  Initialize();
  CUcontext primary = nullptr;
  CHECK_OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  const CUcontext created = MakeContext();
  const CUcontext destroyed = MakeContext();
  const CUcontext current = MakeContext();
  const cuguest_test::LeaksOnPurpose what_is_not_closed;
  const ScalePlugin plugin;
  for (const CUcontext context : {primary, created, destroyed, current}) {
    plugin.Double(Values(context));
  }
  CHECK(Sim::Live().modules == 4);
  CHECK_OK(RAW(cuCtxDestroy)(destroyed));
  {
    const Current callers(current);
    CHECK_OK(plugin.Close());
  }
  CHECK(Sim::Live().modules == 1);
  CHECK_OK(RAW(cuCtxDestroy)(created));
  CHECK(Sim::Live().modules == 0);
  plugin.Double(Values(current));
}

// No code of the plugin runs at exit.
void TheProcessEndsWithoutClose() {
  Initialize();
  const cuguest_test::LeaksOnPurpose its_code;
  static const ScalePlugin s_plugin;
  static const Values s_values(MakeContext());
  s_plugin.Double(s_values);
}

int Run(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"a_thousand_loads_leave_nothing", &AThousandLoadsLeaveNothing},
          {"without_close_the_code_stays", &WithoutCloseTheCodeStays, {}, 0, On::kSimulation},
          {"closed_twice_unused_and_used_again", &ClosedTwiceUnusedAndUsedAgain},
          {"where_contexts_have_ended", &WhereContextsHaveEnded},
          {"inside_another_context", &InsideAnotherContext},
          {"while_streams_are_captured", &WhileStreamsAreCaptured},
          {"in_a_host_function", &InAHostFunction},
          {"in_a_forked_child", &InAForkedChild},
          {"a_refused_close_is_repeated", &ARefusedCloseIsRepeated, {}, 0, On::kSimulation},
          {"below_cuda_12", &BelowCuda12, {}, 0, On::kSimulation},
          {"the_process_ends_without_close", &TheProcessEndsWithoutClose},
      });
}

}  // namespace

int main(int argc, char** argv) { return Run(argc, argv); }
