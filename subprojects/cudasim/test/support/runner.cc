// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/support/runner.h"

#include <boost/test/results_collector.hpp>
#include <boost/test/tree/traverse.hpp>
#include <boost/test/tree/visitor.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "cudasim/sim.h"
#include "cudasim/stack_probe.h"
#include "test/support/own_context.h"
#include "test/support/raw_driver.h"

namespace cudasim_test {
namespace {

namespace ut = boost::unit_test;
using cudasim::Sim;

constexpr int kSkip = 77;

std::map<std::string, std::string> g_skip_reasons;
const char* g_needs_real_driver = nullptr;
int g_needs_version = 0;
const char* g_needs_version_why = nullptr;
void (*g_before)() = nullptr;
void (*g_after)() = nullptr;
int g_passed = 0;
int g_failed = 0;
int g_skipped = 0;

int DriverVersion() {
  int version = 0;
  Require(RAW(cuDriverGetVersion)(&version), "ask for the driver's version");
  return version;
}

int DeviceCount() {
  int count = 0;
  return RAW(cuDeviceGetCount)(&count) == CUDA_SUCCESS ? count : 0;
}

bool CanReach(CUdevice from, CUdevice to) {
  int can = 0;
  return RAW(cuDeviceCanAccessPeer)(&can, from, to) == CUDA_SUCCESS && can != 0;
}

template <typename Applies>
ut::precondition SkipUnless(Applies applies, std::string reason) {
  return ut::precondition([=](ut::test_unit_id id) -> boost::test_tools::assertion_result {
    if (applies()) return true;
    g_skip_reasons[ut::framework::get(id, ut::TUT_ANY).full_name()] = reason;
    boost::test_tools::assertion_result no(false);
    no.message() << reason;
    return no;
  });
}

std::string CudaText(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string NeedsText(int version, const char* why) {
  return "needs a driver of " + CudaText(version) + ": " + why;
}

struct EmptyStackBeforeAndAfter {
  EmptyStackBeforeAndAfter() {
    SetStack({});
    if (g_before != nullptr) g_before();
  }
  ~EmptyStackBeforeAndAfter() {
    BOOST_CHECK_MESSAGE(GetStack().empty(), "the case left contexts on its thread's stack");
    SetStack({});
    if (g_after != nullptr) g_after();
  }
};

struct AddFixture : ut::test_tree_visitor {
  void visit(const ut::test_case& test_case) override {
    auto& fixtures = const_cast<ut::test_case&>(test_case).p_fixtures.value;
    fixtures.insert(fixtures.begin(), ut::test_unit_fixture_ptr(
                                          new ut::class_based_fixture<EmptyStackBeforeAndAfter>()));
  }
};

// The cases that ran to their end, which is not all of those that did not fail.
std::set<ut::test_unit_id> g_finished;

// The case itself, or the suite around it, that a decorator or SayIsSkipped() skipped; empty if
// none was.
std::string SkippedUnit(ut::test_unit_id id) {
  while (id != ut::INV_TEST_UNIT_ID) {
    const ut::test_unit& unit = ut::framework::get(id, ut::TUT_ANY);
    if (g_skip_reasons.count(unit.full_name()) != 0) return unit.full_name();
    id = unit.p_parent_id;
  }
  return "";
}

struct CountCases : ut::test_tree_visitor {
  void visit(const ut::test_case& test_case) override {
    if (!test_case.is_enabled()) return;
    const bool finished = g_finished.count(test_case.p_id) != 0;
    const bool passed = finished && ut::results_collector.results(test_case.p_id).passed();
    const std::string skipped = finished && !passed ? "" : SkippedUnit(test_case.p_id);
    if (!skipped.empty()) {
      ++g_skipped;
      std::printf("skipped: %s: %s\n", test_case.full_name().c_str(),
                  g_skip_reasons[skipped].c_str());
    } else if (passed) {
      ++g_passed;
    } else {
      ++g_failed;
    }
  }
};

class Runner : public ut::test_observer {
 public:
  // After the framework's own observers: with the default priority the order is by
  // address, and in some of these Boost 1.74 gives up with an empty "Test setup error".
  int priority() override { return 10; }
  // Not in Init(): the cases of a data test exist only from here on.
  void test_start(ut::counter_t, ut::test_unit_id) override {
    AddFixture add;
    ut::traverse_test_tree(ut::framework::master_test_suite(), add, true);
  }
  void test_unit_finish(const ut::test_unit& unit, unsigned long) override {
    g_finished.insert(unit.p_id);
  }
  void test_finish() override {
    CountCases count;
    ut::traverse_test_tree(ut::framework::master_test_suite(), count, true);
    std::printf("cases: %d passed, %d failed, %d skipped\n", g_passed, g_failed, g_skipped);
    std::fflush(stdout);
  }
};

bool Init() {
  static Runner runner;
  ut::framework::register_observer(runner);
  return true;
}

// 0, or the exit code with which to end at once.
int SettleDriver() {
  const char* wanted = std::getenv("CUDASIM_TEST_DRIVER");
  const bool found = FindRawSymbol("cuInit") != nullptr;
  const CUresult code = found ? RAW(cuInit)(0) : CUDA_ERROR_NOT_FOUND;
  if (code != CUDA_SUCCESS) {
    std::printf(
        "no driver to test on: %s\n",
        found ? ("cuInit returns " + std::to_string(code)).c_str() : "there is no libcuda.so.1");
    return wanted == nullptr ? kSkip : 1;
  }
  const bool sim = Sim::IsActive();
  if (wanted != nullptr && sim != (std::string(wanted) == "sim")) {
    std::printf("the driver is %s, and CUDASIM_TEST_DRIVER asks for %s\n",
                sim ? "simulated" : "real", wanted);
    return 1;
  }
  if (sim && g_needs_real_driver != nullptr) {
    std::printf("skipped: %s\n", g_needs_real_driver);
    return kSkip;
  }
  const int version = DriverVersion();
  std::printf("driver: %s, %s, %d devices\n", sim ? "simulated" : "real", CudaText(version).c_str(),
              DeviceCount());
  if (version < g_needs_version) {
    std::printf("skipped: %s\n", NeedsText(g_needs_version, g_needs_version_why).c_str());
    return kSkip;
  }
  return 0;
}

}  // namespace

ut::precondition OnlyIf(bool (*applies)(), const char* reason) {
  return SkipUnless(applies, reason);
}

ut::precondition OnlySim() { return OnlyIf(&Sim::IsActive, "needs the simulated driver"); }

ut::precondition OnlyReal() {
  return OnlyIf([] { return !Sim::IsActive(); }, "needs a real driver");
}

bool NeedRealDriver(const char* reason) {
  g_needs_real_driver = reason;
  return true;
}

bool NeedDriver(int version, const char* why) {
  if (version <= g_needs_version) return true;
  g_needs_version = version;
  g_needs_version_why = why;
  return true;
}

bool HasDriver(int version) { return DriverVersion() >= version; }

void SayIsSkipped(const std::string& reason) {
  g_skip_reasons[ut::framework::current_test_case().full_name()] = reason;
}

ut::precondition NeedsDriver(int version, const char* why) {
  return SkipUnless([version] { return HasDriver(version); }, NeedsText(version, why));
}

ut::precondition NeedsDriverBefore(int version, const char* why) {
  return SkipUnless([version] { return !HasDriver(version); },
                    "needs a driver older than " + CudaText(version) + ": " + why);
}

ut::precondition NeedsDevices(int count) {
  return SkipUnless([count] { return DeviceCount() >= count; },
                    "needs " + std::to_string(count) + " devices");
}

ut::precondition NeedsPeers() {
  return OnlyIf([] { return CanReach(0, 1) && CanReach(1, 0); },
                "needs two devices that reach each other");
}

CUresult CreateHostPool(CUmemoryPool* pool) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  return RAW(cuMemPoolCreate)(pool, &properties);
}

ut::precondition NeedsHostPools() {
  const auto has_them = [] {
    CUmemoryPool pool = nullptr;
    return CreateHostPool(&pool) == CUDA_SUCCESS && RAW(cuMemPoolDestroy)(pool) == CUDA_SUCCESS;
  };
  return OnlyIf(has_them, "needs a driver that has memory pools of the host");
}

void Require(CUresult code, const char* doing) {
  if (code != CUDA_SUCCESS) throw std::runtime_error(std::string("a test could not ") + doing);
}

void SetStack(const std::vector<CUcontext>& entries) {
  CUcontext popped = nullptr;
  while (RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS) {
  }
  for (const CUcontext entry : entries) {
    Require(RAW(cuCtxPushCurrent)(entry), "push a context");
  }
}

std::vector<CUcontext> GetStack() {
  const auto probe = cudasim::StackProbe::Take();
  std::vector<CUcontext> contexts;
  for (const auto& entry : probe.stack()) contexts.push_back(entry.context);
  return contexts;
}

int RunCases(int argc, char** argv, void (*before)(), void (*after)()) {
  if (const int code = SettleDriver(); code != 0) return code;
  g_before = before;
  g_after = after;
  const int code = ut::unit_test_main(&Init, argc, argv);
  OwnContext::DestroyIdle();
  return code == 0 && g_passed == 0 && g_skipped > 0 ? kSkip : code;
}

}  // namespace cudasim_test
