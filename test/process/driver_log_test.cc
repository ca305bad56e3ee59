// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's log where the process matters: drivers without it, what a driver may say, a fork,
// libraries that are unloaded, the end.

#include "cuguest/objects/driver_log.h"

#include <cuda.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "cudasim/sim.h"
#include "cuguest/driver.h"
#include "cuguest/objects/c_driver_log.h"
#include "cuguest/status.h"
#include "test/process/plugin.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::Driver;
using cuguest::DriverLog;
using cuguest_test::Fork;
using cuguest_test::Plugin;

bool Has(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

std::string WhyNoLog() {
  int version = 0;
  CHECK(RAW(cuDriverGetVersion)(&version) == CUDA_SUCCESS);
  return version >= 12090 ? "" : "the driver is older than CUDA 12.9";
}

CUresult FailOurs() {
  CUdevice device = 0;
  return (*Driver::Get())->CtxGetDevice(&device);
}

void CheckRefused(const absl::Status& status) {
  CHECK(cuguest::ProblemOf(status) == Driver::Problem::kEntryMissing);
  CHECK(status.code() == absl::StatusCode::kUnimplemented);
  CHECK(Has(std::string(status.message()), "cuLogsRegisterCallback"));
}

void AnOlderDriverIsRefused() {
  Sim::SetDriverVersion(12080);
  const absl::Status status = DriverLog::Open().status();
  CheckRefused(status);
  CHECK(Has(std::string(status.message()), "575.51.03"));
  CHECK(cuguest_driver_log_open() == 36);
  // Where it would not help, it is not recommended.
  const absl::Status failed = cuguest::ToStatus(CUDA_ERROR_INVALID_VALUE, "do something");
  CHECK(!Has(std::string(failed.message()), "DriverLog"));
}

void ADriverWithoutItIsRefused() {
  Sim::HideEntry("cuLogsRegisterCallback");
  CheckRefused(DriverLog::Open().status());
  CHECK(cuguest_driver_log_open() == 36);
  CHECK(cuguest_driver_log_close() == CUDA_ERROR_ILLEGAL_STATE);
}

// A driver that says what the test wants. Otherwise it is the simulation.
struct Talker {
  CUlogsCallback callback = nullptr;
  void* user = nullptr;
  std::string lines[4];  // of a call of cuCtxGetDevice, which fails
  bool says_null = false;
};
Talker g_talker;

CUresult CUDAAPI TalkersRegister(CUlogsCallback callback, void* user,
                                 CUlogsCallbackHandle* handle) {
  g_talker.callback = callback;
  g_talker.user = user;
  *handle = reinterpret_cast<CUlogsCallbackHandle>(&g_talker);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI TalkersUnregister(CUlogsCallbackHandle) {
  g_talker.callback = nullptr;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI TalkersGetDevice(CUdevice*) {
  if (g_talker.callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (g_talker.says_null) g_talker.callback(g_talker.user, CU_LOG_LEVEL_ERROR, nullptr, 5);
  for (std::string& line : g_talker.lines) {
    if (!line.empty())
      g_talker.callback(g_talker.user, CU_LOG_LEVEL_ERROR, line.data(), line.size());
  }
  return CUDA_ERROR_INVALID_VALUE;
}
void* LookUp(const char* name, int version, void*) {
  if (std::strcmp(name, "cuLogsRegisterCallback") == 0)
    return reinterpret_cast<void*>(&TalkersRegister);
  if (std::strcmp(name, "cuLogsUnregisterCallback") == 0)
    return reinterpret_cast<void*>(&TalkersUnregister);
  if (std::strcmp(name, "cuCtxGetDevice") == 0 && version < 13000)
    return reinterpret_cast<void*>(&TalkersGetDevice);
  void* function = nullptr;
  CUdriverProcAddressQueryResult found = {};
  const CUresult code = RAW(cuGetProcAddress)(name, &function, version, 0, &found);
  return code == CUDA_SUCCESS ? function : nullptr;
}

std::string ReasonOf(const char* first, const char* second = "", const char* third = "") {
  g_talker.lines[0] = first;
  g_talker.lines[1] = second;
  g_talker.lines[2] = third;
  return DriverLog::Reason(FailOurs());
}

constexpr char kLast[] = "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuCtxGetDevice";

void TheReasonIsOnePrintableLine() {
  CHECK(Driver::Adopt(&LookUp, nullptr).ok());
  const absl::StatusOr<DriverLog> log = DriverLog::Open();
  CHECK(log.ok());
  CHECK(ReasonOf("why", kLast) == "cuCtxGetDevice: why");
  CHECK(ReasonOf("why", "and\twhere", kLast) == "cuCtxGetDevice: why; and where");
  CHECK(ReasonOf("a\nb\x1b[31m\xff", kLast) == "cuCtxGetDevice: a b?[31m?");
  CHECK(ReasonOf("why\n", (std::string(kLast) + "\n").c_str()) == "cuCtxGetDevice: why");
  CHECK(ReasonOf("[12:30:00.000][4711][CUDA][E] why",
                 ("[12:30:00.001][4711][CUDA][E] " + std::string(kLast)).c_str()) ==
        "cuCtxGetDevice: why");
  CHECK(ReasonOf("[", kLast) == "cuCtxGetDevice: [");
  // A twin, whose name says more.
  CHECK(ReasonOf("why", (std::string(kLast) + "_v2").c_str()) == "cuCtxGetDevice_v2: why");
  const std::string much = ReasonOf(std::string(3000, 'x').c_str(), kLast);
  CHECK(much.size() <= 500);
  CHECK(much.substr(much.size() - 4) == "x...");
  const std::string name = "cuCtxGetDevice_" + std::string(300, 'y');
  CHECK(ReasonOf("why", ("Returning 1 (X) from " + name).c_str()).size() <= 500);
}

void OtherLinesAreNoReason() {
  CHECK(Driver::Adopt(&LookUp, nullptr).ok());
  const absl::StatusOr<DriverLog> log = DriverLog::Open();
  CHECK(log.ok());
  CHECK(ReasonOf(kLast) == "");                                           // gives no reason
  CHECK(ReasonOf("why") == "");                                           // no last line
  CHECK(ReasonOf("why", "Returning 2 (X) from cuCtxGetDevice") == "");    // another code
  CHECK(ReasonOf("why", "Returning 1 (X) from cuCtxGetDeviceOf") == "");  // another function
  CHECK(ReasonOf("why", "Returning from") == "");
  CHECK(ReasonOf("why", "Returning one (X) from cuCtxGetDevice") == "");
  // Of a call that somebody makes in a callback inside ours.
  CHECK(ReasonOf("theirs", "Returning 1 (X) from cuMemFree_v2", kLast) == "");
  // The last group of lines is the call's.
  CHECK(ReasonOf(kLast, "why", kLast) == "cuCtxGetDevice: why");
  g_talker.says_null = true;
  CHECK(ReasonOf("why", kLast) == "cuCtxGetDevice: why");
}

void AChildTouchesNothingRegistered() {
  CHECK(Driver::GetInitialized().ok());
  absl::StatusOr<DriverLog> log = DriverLog::Open();
  CHECK(log.ok());
  CHECK(cuguest_driver_log_open() == CUDA_SUCCESS);
  Fork([&] {
    Sim::ResetCalls();
    CHECK(cuguest_driver_log_close() == CUDA_ERROR_ILLEGAL_STATE);
    CHECK(log->Close().ok());
    CHECK(Sim::Calls("cuLogsUnregisterCallback") == 0);
    const absl::Status refused = DriverLog::Open().status();
    CHECK(cuguest::ProblemOf(refused) == Driver::Problem::kForkedChild);
    CHECK(cuguest_driver_log_open() == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(DriverLog::Reason(FailOurs()) == "");
  });
  CHECK(!DriverLog::Reason(FailOurs()).empty());
  CHECK(cuguest_driver_log_close() == CUDA_SUCCESS);
  CHECK(!DriverLog::Reason(FailOurs()).empty());
  CHECK(log->Close().ok());
}

void AChildBeforeCuinitOpensOne() {
  absl::StatusOr<DriverLog> log = DriverLog::Open();  // needs no cuInit
  CHECK(log.ok());
  Fork([&] {
    const absl::StatusOr<DriverLog> own = DriverLog::Open();
    CHECK(own.ok());
    CHECK(!DriverLog::Reason(FailOurs()).empty());
    CHECK(log->Close().ok());  // the parent's
    CHECK(!DriverLog::Reason(FailOurs()).empty());
  });
}

std::string ReasonIn(const Plugin& plugin) {
  char text[501] = {};
  plugin.Call<void (*)(char*, size_t)>("PluginReason")(text, sizeof(text));
  return text;
}

void TwoLibrariesAreApart() {
  CHECK(Driver::GetInitialized().ok());
  const Plugin first("log_plugin_a");
  const Plugin second("log_plugin_b");
  CHECK(first.Call<bool (*)()>("PluginOpen")());
  CHECK(!ReasonIn(first).empty());
  CHECK(ReasonIn(second).empty());
  CHECK(second.Call<bool (*)()>("PluginOpen")());
  CHECK(first.Call<bool (*)()>("PluginClose")());
  CHECK(ReasonIn(first).empty());
  CHECK(!ReasonIn(second).empty());
  CHECK(second.Call<bool (*)()>("PluginClose")());
}

void UnloadedWhileCallsFail() {
  CHECK(Driver::GetInitialized().ok());
  std::atomic<bool> ends{false};
  std::thread host([&] {
    CUdevice device = 0;
    while (!ends) CHECK(RAW(cuCtxGetDevice)(&device) == CUDA_ERROR_INVALID_CONTEXT);
  });
  for (int time = 0; time < 200; ++time) {
    const Plugin plugin("log_plugin_a");
    CHECK(plugin.Call<bool (*)()>("PluginOpen")());
    CHECK(!ReasonIn(plugin).empty());
    CHECK(plugin.Call<bool (*)()>("PluginClose")());
  }
  ends = true;
  host.join();
  CHECK(!Plugin::IsLoaded("log_plugin_a"));
}

void OneIsOpenAtExit() {
  static const absl::StatusOr<DriverLog> s_log = DriverLog::Open();
  CHECK(s_log.ok());
  CHECK(Driver::GetInitialized().ok());
}

cuguest_test::Scenario WithLog(const char* name, void (*run)()) {
  cuguest_test::Scenario scenario = {name, run};
  scenario.skip = &WhyNoLog;
  return scenario;
}

cuguest_test::Scenario OnSim(const char* name, void (*run)()) {
  cuguest_test::Scenario scenario = WithLog(name, run);
  scenario.on = cuguest_test::On::kSimulation;
  return scenario;
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          OnSim("an_older_driver_is_refused", &AnOlderDriverIsRefused),
          OnSim("a_driver_without_it_is_refused", &ADriverWithoutItIsRefused),
          OnSim("the_reason_is_one_printable_line", &TheReasonIsOnePrintableLine),
          OnSim("other_lines_are_no_reason", &OtherLinesAreNoReason),
          WithLog("a_child_touches_nothing_registered", &AChildTouchesNothingRegistered),
          WithLog("a_child_before_cuinit_opens_one", &AChildBeforeCuinitOpensOne),
          WithLog("two_libraries_are_apart", &TwoLibrariesAreApart),
          WithLog("unloaded_while_calls_fail", &UnloadedWhileCallsFail),
          WithLog("one_is_open_at_exit", &OneIsOpenAtExit),
      });
}
