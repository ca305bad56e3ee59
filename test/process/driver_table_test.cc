// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recipe of docs/recipes/driver_table.md: a driver by names, of which entries are missing.

#include "examples/recipes/driver_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/c.h"
#include "cuguest/driver.h"
#include "cuguest/objects/driver.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

constexpr int kTooOld = CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER;

// The host's table, less the functions of one name.
struct Host {
  void* library = nullptr;
  const char* lacks = "";
  int asked = 0;
};

void* LookUp(const char* name, int version, void* user) {
  Host& host = *static_cast<Host*>(user);
  ++host.asked;
  return std::strcmp(name, host.lacks) == 0 ? nullptr : driver_lookup(name, version, host.library);
}

Host& TheHost() {
  static Host s_host;
  s_host.library = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(s_host.library != nullptr);
  return s_host;
}

// What a host does with cuguest, of its contexts a and b, of which a is current.
struct Caller {
  CUcontext a;
  CUcontext b;
};

int Enter(const Caller& caller) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  int code = cuguest_guard_enter(&guard, caller.b, CUGUEST_ELIDE, CUGUEST_HERE);
  if (code != 0) return code;
  code = cuguest_guard_move_to(&guard, caller.a, CUGUEST_HERE);
  if (code == 0) code = cuguest_guard_reassert(&guard);
  const int left = cuguest_guard_leave(&guard);
  return code != 0 ? code : left;
}

int Repair(const Caller& caller) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  const int code = cuguest_guard_enter(&guard, caller.b, CUGUEST_ELIDE, CUGUEST_HERE);
  if (code != 0) return code;
  RAW(cuCtxPushCurrent)(caller.a);
  return cuguest_guard_leave(&guard);
}

int PushAndPop(const Caller& caller) {
  const int code = cuguest_push(caller.b);
  return code != 0 ? code : cuguest_pop();
}

int EnterByReference(const Caller& caller) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  cuguest_ref ref = CUGUEST_REF_INIT;
  int code = cuguest_ref_borrow(&ref, caller.b);
  if (code == 0) code = cuguest_ref_check(&ref);
  if (code == 0) code = cuguest_guard_enter_ref(&guard, &ref, CUGUEST_ELIDE, CUGUEST_HERE);
  return code != 0 ? code : cuguest_guard_leave(&guard);
}

int WithoutContext(const Caller&) {
  CUGUEST_SCOPE(cuguest_no_context_guard, guard);
  const int code = cuguest_no_context_guard_enter(&guard, CUGUEST_HERE);
  return code != 0 ? code : cuguest_no_context_guard_leave(&guard);
}

int CallTheHost(const Caller& caller) {
  CUGUEST_SCOPE(cuguest_guard, guard);
  CUGUEST_SCOPE(cuguest_host_scope, host);
  int code = cuguest_guard_enter(&guard, caller.b, CUGUEST_ELIDE, CUGUEST_HERE);
  if (code == 0) code = cuguest_host_scope_enter(&host, CUGUEST_HERE);
  return code != 0 ? code : cuguest_host_scope_leave(&host);
}

int KeepAThread(const Caller& caller) {
  CUGUEST_SCOPE(cuguest_thread_home, home);
  cuguest_ref ref = CUGUEST_REF_INIT;
  int code = cuguest_ref_borrow(&ref, caller.b);
  if (code == 0) code = cuguest_thread_home_enter_ref(&home, &ref, 0, CUGUEST_HERE);
  if (code == 0) code = cuguest_thread_home_check(&home);
  return code != 0 ? code : cuguest_thread_home_leave(&home);
}

int RelaxCaptures(const Caller&) {
  CUGUEST_SCOPE(cuguest_capture_guard, guard);
  const int code = cuguest_capture_guard_enter(&guard, CUGUEST_CAPTURE_RELAXED, CUGUEST_HERE);
  return code != 0 ? code : cuguest_capture_guard_leave(&guard);
}

int RetainThePrimary(const Caller&) {
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary);
  const int code = cuguest_primary_retain(&primary, 0);
  return code != 0 ? code : cuguest_primary_release(&primary);
}

template <typename Acquire>
int Acquired(const Acquire& acquire) {
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  const int code = acquire(&acquired);
  return code != 0 ? code : cuguest_acquired_release(&acquired);
}

int AcquireOnADevice(const Caller&) {
  return Acquired([](cuguest_acquired* of) { return cuguest_acquire_on(of, 0, CUGUEST_CREATE); });
}

int AcquireOnADeviceOfNothing(const Caller&) {
  CUcontext popped = nullptr;
  RAW(cuCtxPopCurrent)(&popped);
  const int code =
      Acquired([](cuguest_acquired* of) { return cuguest_acquire_on(of, 0, CUGUEST_CREATE); });
  RAW(cuCtxPushCurrent)(popped);
  return code;
}

int AcquireFromAPointer(const Caller&) {
  CUdeviceptr memory = 0;
  CHECK(RAW(cuMemAlloc)(&memory, 64) == CUDA_SUCCESS);
  const int code = Acquired([memory](cuguest_acquired* of) {
    return cuguest_acquire_from_pointer(of, memory, CUGUEST_REFUSE);
  });
  CHECK(RAW(cuMemFree)(memory) == CUDA_SUCCESS);
  return code;
}

int AcquireFromAStream(const Caller&) {
  CUstream stream = nullptr;
  CHECK(RAW(cuStreamCreate)(&stream, 0) == CUDA_SUCCESS);
  const int code = Acquired([stream](cuguest_acquired* of) {
    return cuguest_acquire_from_stream(of, stream, CUGUEST_NO_DEVICE, CUGUEST_REFUSE);
  });
  CHECK(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
  return code;
}

int CreateAContext(const Caller&) {
  cuguest_shared_context shared = CUGUEST_INIT(cuguest_shared_context);
  const int code = cuguest_shared_context_create(&shared, 0, 0);
  return code != 0 ? code : cuguest_shared_context_detach(&shared);
}

// To a context of somebody else's, and to a primary context.
int AttachTo(CUcontext context) {
  cuguest_shared_context shared = CUGUEST_INIT(cuguest_shared_context);
  cuguest_shared_context again = CUGUEST_INIT(cuguest_shared_context);
  int code = cuguest_shared_context_attach(&shared, context);
  if (code == 0) code = cuguest_shared_context_attach(&again, context);
  if (code == 0) code = cuguest_shared_context_detach(&again);
  return code;  // the last one would destroy it
}

int AttachToAContext(const Caller& caller) { return AttachTo(caller.b); }

int FreeMemory(const Caller&) {
  std::size_t free = 0;
  return cuguest_free_memory(0, CUGUEST_CREATE, &free, nullptr);
}

int CanAccessAPeer(const Caller&) {
  const int code = cuguest_peer_access_check(0, 0);
  return code == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED ? 0 : code;  // a device has no link to itself
}

int IsInitialized(const Caller&) { return cuguest_is_initialized() == 1 ? 0 : -1; }

struct Feature {
  const char* name;
  int (*use)(const Caller&);
};
constexpr Feature kFeatures[] = {
    {"is_initialized", &IsInitialized},
    {"guard", &Enter},
    {"guard repairs", &Repair},
    {"push and pop", &PushAndPop},
    {"guard by reference", &EnterByReference},
    {"no_context_guard", &WithoutContext},
    {"host_scope", &CallTheHost},
    {"thread home", &KeepAThread},
    {"capture_guard", &RelaxCaptures},
    // Before a primary context is known, which need not be asked about then.
    {"shared_context_create", &CreateAContext},
    {"shared_context_attach", &AttachToAContext},
    {"primary", &RetainThePrimary},
    {"acquire_on", &AcquireOnADevice},
    {"acquire_on with nothing current", &AcquireOnADeviceOfNothing},
    {"acquire_from_pointer", &AcquireFromAPointer},
    {"acquire_from_stream", &AcquireFromAStream},
    {"free_memory", &FreeMemory},
    {"peer_access_check", &CanAccessAPeer},
};
constexpr std::size_t kCount = std::size(kFeatures);

// What is without each function. docs/recipes/driver_table.md has the rows, which
// test/docs/recipes_test.py compares.
struct Need {
  const char* function;
  const char* features;  // that return 36 without it, or "adopt"
};
constexpr Need kNeeds[] = {
    {"cuCtxGetCurrent", "adopt"},
    {"cuCtxPushCurrent", "adopt"},
    {"cuCtxPopCurrent", "adopt"},
    {"cuInit",
     "shared_context_create, shared_context_attach, primary, acquire_on, "
     "acquire_on with nothing current, free_memory, peer_access_check"},
    {"cuDeviceGetCount", "shared_context_attach"},
    {"cuDeviceCanAccessPeer", "peer_access_check"},
    {"cuCtxCreate", "shared_context_create"},
    {"cuCtxDestroy", "shared_context_create"},
    {"cuCtxGetDevice", "acquire_on, free_memory"},
    {"cuDevicePrimaryCtxRetain", "primary, acquire_on with nothing current"},
    {"cuDevicePrimaryCtxRelease", "primary, acquire_on with nothing current"},
    {"cuDevicePrimaryCtxGetState", "shared_context_attach, acquire_on with nothing current"},
    {"cuMemGetInfo", "free_memory"},
    {"cuPointerGetAttribute", "acquire_from_pointer"},
    {"cuStreamGetCtx", "acquire_from_stream"},
    {"cuThreadExchangeStreamCaptureMode", "capture_guard"},  // 801, as of a driver without it
};

struct Outcome {
  int adopted = -1;
  int codes[kCount] = {};
};

// What runs in a child, which has used nothing of cuguest yet.
template <typename Result, typename Run>
Result InChild(const Run& run) {
  void* const shared =
      mmap(nullptr, sizeof(Result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  auto* const result = new (shared) Result();
  cuguest_test::Fork([&] { run(result); });
  return *result;
}

// The caller's stack is as it was after each.
void UseAll(cuguest_driver_lookup lookup, Outcome* outcome) {
  outcome->adopted = cuguest_driver_adopt(lookup, &TheHost());
  if (outcome->adopted != 0) return;
  const Caller caller = {cuguest_test::MakeContext(), cuguest_test::MakeContext()};
  CHECK(RAW(cuCtxPushCurrent)(caller.a) == CUDA_SUCCESS);
  for (std::size_t i = 0; i < kCount; ++i) {
    outcome->codes[i] = kFeatures[i].use(caller);
    CUcontext popped = nullptr;
    CUcontext below = nullptr;
    CHECK(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS && popped == caller.a);
    CHECK(RAW(cuCtxGetCurrent)(&below) == CUDA_SUCCESS && below == nullptr);
    CHECK(RAW(cuCtxPushCurrent)(caller.a) == CUDA_SUCCESS);
  }
}

Outcome Without(const char* name) {
  return InChild<Outcome>([name](Outcome* outcome) {
    TheHost().lacks = name;
    UseAll(&LookUp, outcome);
  });
}

std::string Missing(const Outcome& outcome) {
  if (outcome.adopted == kTooOld) return "adopt";
  CHECK(outcome.adopted == 0);
  std::string features;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (outcome.codes[i] == 0) continue;
    const bool is_of_captures = kFeatures[i].use == &RelaxCaptures;
    CHECK(outcome.codes[i] == (is_of_captures ? CUDA_ERROR_NOT_SUPPORTED : kTooOld));
    features += (features.empty() ? "" : ", ") + std::string(kFeatures[i].name);
  }
  return features;
}

void EachFunctionIsMissing() {
  CHECK(Missing(Without("")).empty());
  for (const driver_function& function : driver_functions) {
    const auto is_of_it = [&](const Need& need) {
      return std::strcmp(need.function, function.name) == 0;
    };
    const Need* const need = std::find_if(std::begin(kNeeds), std::end(kNeeds), is_of_it);
    const std::string missing = Missing(Without(function.name));
    std::printf("%s: %s\n", function.name, missing.c_str());
    CHECK(missing == (need != std::end(kNeeds) ? need->features : ""));
  }
}

// The same of cuCtxGetId and cuCtxGetApiVersion: one is enough, and none is not.
void NothingTellsADestroyedContext() {
  const int adopted = InChild<int>([](int* code) {
    const auto lookup = [](const char* name, int version, void* user) -> void* {
      const bool tells =
          std::strcmp(name, "cuCtxGetId") == 0 || std::strcmp(name, "cuCtxGetApiVersion") == 0;
      return tells ? nullptr : LookUp(name, version, user);
    };
    *code = cuguest_driver_adopt(lookup, &TheHost());
  });
  CHECK(adopted == kTooOld);
}

using Entry = std::pair<std::string, int>;
#define ENTRY(Name, version, suffix, parameters) {"cu" #Name, version},

// The recipe has each function that cuguest may ask for, at its version, but for those of C++'s
// green contexts; under the symbol that cuguest itself takes where it finds them by symbols.
void TheRecipeListsWhatIsAskedFor() {
  std::vector<Entry> asked = {CUGUEST_REQUIRED_ENTRIES(ENTRY) CUGUEST_OPTIONAL_ENTRIES(ENTRY)};
  CHECK(asked.size() == 41);
  asked.emplace_back("cuCtxGetDevice", 13000);
  asked.emplace_back("cuDevicePrimaryCtxRelease", 7000);
  std::vector<Entry> listed;
  for (const driver_function& function : driver_functions) {
    listed.emplace_back(function.name, function.version);
    CHECK(dlsym(TheHost().library, function.symbol) != nullptr);
    void* by_version = nullptr;
    CHECK(RAW(cuGetProcAddress)(function.name, &by_version, function.version,
                                CU_GET_PROC_ADDRESS_LEGACY_STREAM, nullptr) == CUDA_SUCCESS);
    CHECK(by_version == dlsym(TheHost().library, function.symbol));
  }
  std::vector<std::string> not_listed;
  for (const Entry& entry : asked) {
    if (std::find(listed.begin(), listed.end(), entry) == listed.end()) {
      not_listed.push_back(entry.first);
    }
  }
  CHECK((not_listed == std::vector<std::string>{
                           "cuCtxGetExecAffinity", "cuCtxGetDevResource", "cuDeviceGetDevResource",
                           "cuDevSmResourceSplitByCount", "cuDevSmResourceSplit",
                           "cuDevResourceGenerateDesc", "cuGreenCtxCreate", "cuGreenCtxDestroy",
                           "cuCtxFromGreenCtx", "cuStreamGetGreenCtx"}));
  CHECK(listed.size() + not_listed.size() == asked.size());
}

// 41 with a driver of 13.0: one is newer, and cuCtxGetDevice is asked for twice.
constexpr int kLookUps = 41;
constexpr int kLookUpsOfObjects = 92;

void AFirstUseLooksUp() {
  Host& host = TheHost();
  CHECK(cuguest_driver_adopt(&LookUp, &host) == 0);
  const Caller caller = {cuguest_test::MakeContext(), cuguest_test::MakeContext()};
  CHECK(RAW(cuCtxPushCurrent)(caller.a) == CUDA_SUCCESS);
  for (const Feature& feature : kFeatures) CHECK(feature.use(caller) == 0);
  CHECK(host.asked == kLookUps);
  // What works with the objects of a context, in C++ alone.
  CHECK(cuguest::ProblemOf(cuguest::ObjectDriver::Get().status()) ==
        cuguest::Driver::Problem::kTooOld);
  CHECK(host.asked == kLookUps + kLookUpsOfObjects);
}

// What KvikIO finds by name, of what cuguest asks for; and of GStreamer. Each has a table without
// what tells a destroyed context.
const std::vector<std::string> kFileReader = {"cuCtxPushCurrent",
                                              "cuCtxPopCurrent",
                                              "cuCtxGetCurrent",
                                              "cuCtxGetDevice",
                                              "cuDeviceGet",
                                              "cuDeviceGetCount",
                                              "cuDeviceGetAttribute",
                                              "cuDriverGetVersion",
                                              "cuDevicePrimaryCtxRetain",
                                              "cuDevicePrimaryCtxRelease",
                                              "cuPointerGetAttribute",
                                              "cuPointerGetAttributes",
                                              "cuStreamCreate",
                                              "cuStreamDestroy"};
const std::vector<std::string> kMediaFramework = {
    "cuInit",          "cuCtxCreate",          "cuCtxDestroy",          "cuCtxPushCurrent",
    "cuCtxPopCurrent", "cuCtxSynchronize",     "cuDeviceGet",           "cuDeviceGetCount",
    "cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceCanAccessPeer", "cuDriverGetVersion",
    "cuStreamCreate",  "cuStreamDestroy"};

std::string MissingOf(std::vector<std::string> has, const std::vector<std::string>& added) {
  has.insert(has.end(), added.begin(), added.end());
  return Missing(InChild<Outcome>([&has](Outcome* outcome) {
    static const std::vector<std::string>& s_has = has;
    const auto lookup = [](const char* name, int version, void* user) {
      const bool is_there = std::find(s_has.begin(), s_has.end(), name) != s_has.end();
      return is_there ? LookUp(name, version, user) : nullptr;
    };
    CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
    UseAll(lookup, outcome);
  }));
}

void TablesOfOthers() {
  CHECK(MissingOf(kFileReader, {}) == "adopt");
  CHECK(MissingOf(kFileReader, {"cuCtxGetId"}) ==
        "capture_guard, shared_context_create, shared_context_attach, primary, acquire_on, "
        "acquire_on with nothing current, acquire_from_stream, free_memory, peer_access_check");
  CHECK(MissingOf(kMediaFramework, {"cuCtxGetId"}) == "adopt");
  CHECK(MissingOf(kMediaFramework, {"cuCtxGetCurrent", "cuCtxGetId"}) ==
        "capture_guard, shared_context_attach, primary, acquire_on, "
        "acquire_on with nothing current, acquire_from_pointer, acquire_from_stream, free_memory");
}

// A context with options has a signature of its own, which the recipe does not list.
void OtherSignaturesAreNotThere() {
  CHECK(driver_lookup("cuCtxCreate", 11040, TheHost().library) == nullptr);
  CHECK(driver_lookup("cuCtxGetDevice", 12000, TheHost().library) == nullptr);
  CHECK(driver_lookup("cuNothing", 2000, TheHost().library) == nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  using cuguest_test::On;
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"each_function_is_missing", &EachFunctionIsMissing},
          {"nothing_tells_a_destroyed_context", &NothingTellsADestroyedContext},
          {"the_recipe_lists_what_is_asked_for", &TheRecipeListsWhatIsAskedFor},
          {"a_first_use_looks_up", &AFirstUseLooksUp, {}, 0, On::kSimulation},
          {"tables_of_others", &TablesOfOthers},
          {"other_signatures_are_not_there", &OtherSignaturesAreNotThere},
      });
}
