// SPDX-License-Identifier: Apache-2.0

#include "lib/core/resolver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "cuguest/internal/stack_calls.h"
#include "lib/core/context_id.h"
#include "lib/core/publish_once.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

std::atomic<const DriverTable*> g_driver{nullptr};

StackCalls g_stack_calls = {
    [](CUcontext*) { return kNotResolved; },
    [](CUcontext) { return kNotResolved; },
    [](CUcontext*) { return kNotResolved; },
    [](CUcontext, unsigned long long*) { return kNotResolved; },
};

namespace {

constexpr DriverEntry kEntries[] = {
#define CUGUEST_ROW(is_required, Name, version, symbol) \
  {"cu" #Name, version, symbol, offsetof(DriverTable, Name), is_required},
#define CUGUEST_REQUIRED_ROW(Name, version, symbol, parameters) \
  CUGUEST_ROW(true, Name, version, symbol)
#define CUGUEST_OPTIONAL_ROW(Name, version, symbol, parameters) \
  CUGUEST_ROW(false, Name, version, symbol)
    CUGUEST_REQUIRED_ENTRIES(CUGUEST_REQUIRED_ROW) CUGUEST_OPTIONAL_ENTRIES(CUGUEST_OPTIONAL_ROW)
#undef CUGUEST_OPTIONAL_ROW
#undef CUGUEST_REQUIRED_ROW
#undef CUGUEST_ROW
};

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
  const CUresult code =
      reinterpret_cast<GetProcAddressV2>(user)(name, &function, version, kLegacyStream, &status);
  return code == CUDA_SUCCESS ? function : nullptr;
}

void* LookUpByVersion(const char* name, int version, void* user) {
  void* function = nullptr;
  const CUresult code =
      reinterpret_cast<GetProcAddress>(user)(name, &function, version, kLegacyStream);
  return code == CUDA_SUCCESS ? function : nullptr;
}

// Only what the table lists: of another name, the signature behind the symbol is not known.
void* LookUpBySymbol(const char* name, int version, void* library) {
  for (const DriverEntry& entry : kEntries) {
    if (entry.version == version && std::strcmp(entry.name, name) == 0) {
      return dlsym(library, entry.symbol);
    }
  }
  return nullptr;
}

struct Source {
  DriverLookup lookup;
  void* user;
};

Source SourceOf(void* library) {
  if (void* const function = dlsym(library, "cuGetProcAddress_v2")) {
    return {&LookUpByVersionV2, function};
  }
  if (void* const function = dlsym(library, "cuGetProcAddress")) {
    return {&LookUpByVersion, function};
  }
  return {&LookUpBySymbol, library};
}

// The toolkit's stub exports cuGetProcAddress, which answers as all of its functions do.
bool IsStub(const Source& source) {
  void* function = nullptr;
  int status = 0;
  CUresult code = CUDA_SUCCESS;
  if (source.lookup == &LookUpByVersionV2) {
    code = reinterpret_cast<GetProcAddressV2>(source.user)("cuDriverGetVersion", &function, 2020,
                                                           kLegacyStream, &status);
  } else if (source.lookup == &LookUpByVersion) {
    code = reinterpret_cast<GetProcAddress>(source.user)("cuDriverGetVersion", &function, 2020,
                                                         kLegacyStream);
  }
  return code == CUDA_ERROR_STUB_LIBRARY;
}

void Fail(DriverProblem problem, CUresult code, const char* text, DriverFailure* failure) {
  failure->problem = problem;
  failure->code = code;
  std::snprintf(failure->text, sizeof(failure->text), "%s", text);
}

// The first required entry that is missing; nullptr if none is.
const DriverEntry* FillEntries(DriverTable* table) {
  const DriverEntry* missing = nullptr;
  for (const DriverEntry& entry : kEntries) {
    void* const function = table->lookup(entry.name, entry.version, table->lookup_user);
    if (function == nullptr && entry.is_required && missing == nullptr) missing = &entry;
    std::memcpy(reinterpret_cast<char*>(table) + entry.offset, &function, sizeof(function));
  }
  return missing;
}

// Fills the outcome from `source`, which messages call `name`.
void Fill(const Source& source, const char* name, DriverOutcome* outcome) {
  DriverFailure* const failure = &outcome->failure;
  DriverTable* const table = &outcome->table;
  table->lookup = source.lookup;
  table->lookup_user = source.user;
  const DriverEntry* const missing = FillEntries(table);
  const CUresult code = table->DriverGetVersion == nullptr
                            ? CUDA_ERROR_NOT_FOUND
                            : table->DriverGetVersion(&table->version);
  if (code == CUDA_ERROR_STUB_LIBRARY) {
    Fail(DriverProblem::kStub, code, name, failure);
  } else if (missing != nullptr) {
    Fail(DriverProblem::kTooOld, kCallRequiresNewerDriver, name, failure);
    failure->missing = missing;
    failure->version = table->version;
  }
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

constexpr DriverFailure kNoMemory = {DriverProblem::kOther, CUDA_ERROR_OUT_OF_MEMORY, nullptr, 0,
                                     "the table"};
constexpr DriverOutcome kNoMemoryOutcome = {{}, kNoMemory, 0};

}  // namespace

const DriverEntry* EntryAt(std::size_t offset) noexcept {
  for (const DriverEntry& entry : kEntries) {
    if (entry.offset == offset) return &entry;
  }
  return nullptr;
}

DriverOutcome LoadDriver(const char* path) noexcept {
  DriverOutcome outcome;
  outcome.process = getpid();
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const reason = dlerror();
    Fail(DriverProblem::kNoLibrary, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
         reason != nullptr ? reason : path, &outcome.failure);
    return outcome;
  }
  const Source source = SourceOf(library);
  if (IsStub(source)) {
    Fail(DriverProblem::kStub, CUDA_ERROR_STUB_LIBRARY, path, &outcome.failure);
  } else {
    Fill(source, path, &outcome);
  }
  return outcome;
}

const DriverOutcome& ProcessDriver() noexcept {
  const DriverOutcome* outcome = g_outcome.Get();
  if (outcome == nullptr) outcome = g_outcome.Offer(LoadDriver("libcuda.so.1"));
  return outcome != nullptr ? Install(*outcome) : kNoMemoryOutcome;
}

DriverFailure AdoptDriver(DriverLookup lookup, void* user) noexcept {
  DriverFailure in_use;
  in_use.problem = DriverProblem::kInUse;
  if (g_outcome.Get() != nullptr) return in_use;
  DriverOutcome outcome;
  outcome.process = getpid();
  Fill({lookup, user}, "the lookup", &outcome);
  if (!outcome.ok()) return outcome.failure;
  bool won = false;
  const DriverOutcome* const kept = g_outcome.Offer(outcome, &won);
  if (kept == nullptr) return kNoMemory;
  Install(*kept);
  return won ? DriverFailure() : in_use;
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

}  // namespace internal
CUGUEST_END_NAMESPACE
