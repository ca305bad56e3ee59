// SPDX-License-Identifier: Apache-2.0

#include "lib/core/driver_access.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "cuguest/internal/stack_calls.h"
#include "lib/core/publish_once.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

std::atomic<const DriverTable*> g_driver{nullptr};

StackCalls g_stack_calls = {
    [](CUcontext*) { return kNotResolved; },
    [](CUcontext) { return kNotResolved; },
    [](CUcontext*) { return kNotResolved; },
    [](CUcontext, unsigned long long*) { return kNotResolved; },
};

namespace {

constexpr DriverEntry kEntries[] = {
#define CUGUEST_ROW(Name, version, suffix, parameters) \
  {"cu" #Name "\0" suffix, version, offsetof(DriverTable, Name)},
    CUGUEST_REQUIRED_ENTRIES(CUGUEST_ROW) CUGUEST_OPTIONAL_ENTRIES(CUGUEST_ROW)
#undef CUGUEST_ROW
};
// The first ones.
#define CUGUEST_ONE(Name, version, suffix, parameters) +1
constexpr int kRequiredEntries = CUGUEST_REQUIRED_ENTRIES(CUGUEST_ONE);
#undef CUGUEST_ONE

// CU_GET_PROC_ADDRESS_LEGACY_STREAM: stream 0 must not change its meaning with the macros with
// which this file is compiled.
constexpr unsigned long long kLegacyStream = 1;

using GetProcAddressV2 = CUresult(CUDAAPI*)(const char*, void**, int, unsigned long long, int*);
using GetProcAddress = CUresult(CUDAAPI*)(const char*, void**, int, unsigned long long);

// The three lookups of a library that was loaded: by cuGetProcAddress, which is the only way to
// be given the signature that was asked for, and by exported name where the driver has none
// (before CUDA 11.3). `user` is the function's address, or the library.
void* LookUpByVersionV2(const char* name, int version, void* user) {
  void* function = nullptr;
  int status = 0;
  const auto get = reinterpret_cast<GetProcAddressV2>(user);
  return get(name, &function, version, kLegacyStream, &status) == CUDA_SUCCESS ? function : nullptr;
}

void* LookUpByVersion(const char* name, int version, void* user) {
  void* function = nullptr;
  const auto get = reinterpret_cast<GetProcAddress>(user);
  return get(name, &function, version, kLegacyStream) == CUDA_SUCCESS ? function : nullptr;
}

// Only what the table lists: of another name, the signature behind the symbol is not known.
void* LookUpBySymbol(const char* name, int version, void* library) {
  for (const DriverEntry& entry : kEntries) {
    if (entry.version == version && std::strcmp(entry.name, name) == 0) {
      // The one behind the other: in `entry` there is a zero in between.
      const char* const parts[] = {entry.name, entry.name + std::strlen(entry.name) + 1};
      char symbol[sizeof(entry.name)] = {};
      std::size_t length = 0;
      for (const char* part : parts) {
        for (; *part != '\0'; ++part) symbol[length++] = *part;
      }
      return dlsym(library, symbol);
    }
  }
  return nullptr;
}

struct Source {
  DriverLookup lookup;
  void* user;
};

Source SourceOf(void* library) {
  if (void* const get = dlsym(library, "cuGetProcAddress_v2")) return {&LookUpByVersionV2, get};
  if (void* const get = dlsym(library, "cuGetProcAddress")) return {&LookUpByVersion, get};
  return {&LookUpBySymbol, library};
}

// The toolkit's stub exports every function, and all of them answer that it is the stub.
bool IsStub(void* library) {
  int version = 0;
  void* const get = dlsym(library, "cuDriverGetVersion");
  return get != nullptr && reinterpret_cast<decltype(DriverTable::DriverGetVersion)>(get)(
                               &version) == CUDA_ERROR_STUB_LIBRARY;
}

DriverOutcome Outcome(DriverProblem problem, CUresult code, const char* text) {
  DriverOutcome outcome;
  outcome.problem = problem;
  outcome.code = code;
  std::snprintf(outcome.text, sizeof(outcome.text), "%s", text);
  outcome.process = getpid();
  return outcome;
}

// What `source` gives, which messages call `name`.
DriverOutcome Resolve(const Source& source, const char* name) {
  DriverOutcome outcome = Outcome(DriverProblem::kNone, CUDA_SUCCESS, name);
  DriverTable& table = outcome.table;
  table.lookup = source.lookup;
  table.lookup_user = source.user;
  for (const DriverEntry& entry : kEntries) {
    void* const function = source.lookup(entry.name, entry.version, source.user);
    const bool fails = function == nullptr && &entry < kEntries + kRequiredEntries;
    if (fails && outcome.missing == nullptr) outcome.missing = &entry;
    std::memcpy(reinterpret_cast<char*>(&table) + entry.offset, &function, sizeof(function));
  }
  const CUresult code = table.DriverGetVersion == nullptr ? CUDA_ERROR_NOT_FOUND
                                                          : table.DriverGetVersion(&table.version);
  if (code == CUDA_ERROR_STUB_LIBRARY) return Outcome(DriverProblem::kStub, code, name);
  if (outcome.missing != nullptr) {
    outcome.problem = DriverProblem::kTooOld;
    outcome.code = kCallRequiresNewerDriver;
  }
  return outcome;
}

PublishOnce<DriverOutcome> g_outcome;
std::atomic<pid_t> g_initialized_in{0};

CUresult CUDAAPI IdWithoutIds(CUcontext context, unsigned long long* id) {
  return ReadId(*g_driver.load(std::memory_order_acquire), context, id);
}

// Called by every thread that reads the outcome, with the same values. `get_current` is last: a
// thread with an answer from it has a driver table.
const DriverOutcome& Install(const DriverOutcome& outcome) {
  if (!outcome.ok()) return outcome;
  const DriverTable& table = outcome.table;
  g_driver.store(&table, std::memory_order_release);
  __atomic_store_n(&g_stack_calls.push, table.CtxPushCurrent, __ATOMIC_RELAXED);
  __atomic_store_n(&g_stack_calls.pop, table.CtxPopCurrent, __ATOMIC_RELAXED);
  __atomic_store_n(&g_stack_calls.get_id,
                   table.CtxGetId != nullptr ? table.CtxGetId : &IdWithoutIds, __ATOMIC_RELAXED);
  __atomic_store_n(&g_stack_calls.get_current, table.CtxGetCurrent, __ATOMIC_RELEASE);
  return outcome;
}

constexpr DriverOutcome kNoMemory = {{},      DriverProblem::kOther, CUDA_ERROR_OUT_OF_MEMORY,
                                     nullptr, "the table",           0};

}  // namespace

const DriverEntry* EntryAt(std::size_t offset) noexcept {
  for (const DriverEntry& entry : kEntries) {
    if (entry.offset == offset) return &entry;
  }
  return nullptr;
}

DriverOutcome LoadDriver(const char* path) noexcept {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const reason = dlerror();
    return Outcome(DriverProblem::kNoLibrary, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
                   reason != nullptr ? reason : path);
  }
  if (IsStub(library)) return Outcome(DriverProblem::kStub, CUDA_ERROR_STUB_LIBRARY, path);
  return Resolve(SourceOf(library), path);
}

const DriverOutcome& ProcessDriver() noexcept {
  const DriverOutcome* outcome = g_outcome.Get();
  if (outcome == nullptr) outcome = g_outcome.Offer(LoadDriver("libcuda.so.1"));
  return outcome != nullptr ? Install(*outcome) : kNoMemory;
}

const DriverTable* ResolveDriver(CUresult* code) noexcept {
  const DriverOutcome& outcome = ProcessDriver();
  *code = outcome.code;
  return outcome.ok() ? &outcome.table : nullptr;
}

DriverOutcome AdoptDriver(DriverLookup lookup, void* user) noexcept {
  DriverOutcome in_use;
  in_use.problem = DriverProblem::kInUse;
  if (g_outcome.Get() != nullptr) return in_use;
  const DriverOutcome outcome = Resolve({lookup, user}, "the lookup");
  if (!outcome.ok()) return outcome;
  bool won = false;
  const DriverOutcome* const kept = g_outcome.Offer(outcome, &won);
  if (kept == nullptr) return kNoMemory;
  Install(*kept);
  return won ? outcome : in_use;
}

CUresult InitializeDriver(const DriverTable& driver) noexcept {
  const pid_t self = getpid();
  if (g_initialized_in.load(std::memory_order_acquire) == self) return CUDA_SUCCESS;
  const CUresult code = driver.Init(0);
  if (code == CUDA_SUCCESS) g_initialized_in.store(self, std::memory_order_release);
  return code;
}

bool IsForkedChild() noexcept {
  const DriverOutcome* const outcome = g_outcome.Get();
  return outcome != nullptr && outcome->process != getpid();
}

CUGUEST_END_INTERNAL_NAMESPACE
