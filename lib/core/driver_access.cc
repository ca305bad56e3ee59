// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/driver_access.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <iterator>

#include "cuguest/internal/stack_calls.h"
#include "lib/core/library.h"
#include "lib/core/publish_once.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

std::atomic<const DriverTable*> g_driver{nullptr};

namespace {

CUresult CUDAAPI GivesNothing(CUcontext*) { return kNotResolved; }

constexpr StackCalls kNoCalls = {
    &GivesNothing,
    [](CUcontext) { return kNotResolved; },
    &GivesNothing,
    [](CUcontext, unsigned long long*) { return kNotResolved; },
};

}  // namespace

StackCalls g_stack_calls = kNoCalls;

namespace {

constexpr NamedEntry kRows[] = {CUGUEST_REQUIRED_ENTRIES(CUGUEST_NAMED_ENTRY)
                                    CUGUEST_OPTIONAL_ENTRIES(CUGUEST_NAMED_ENTRY)};
static_assert(offsetof(DriverTable, version) == std::size(kRows) * sizeof(void*));
constexpr PackedEntries<std::size(kRows), BytesOfNames(kRows)> kPackedEntries(kRows);

const char* Behind(const char* string) { return string + std::strlen(string) + 1; }

DriverEntry Entry(const DriverEntries& entries, const char* name, std::size_t index) {
  const unsigned version = entries.versions[index];
  const bool has_suffix = (version & DriverEntries::kHasSuffix) != 0;
  return {name, has_suffix ? Behind(name) : "", entries.offset + index * sizeof(void*),
          static_cast<int>(version & ~unsigned{DriverEntries::kHasSuffix})};
}

// CU_GET_PROC_ADDRESS_LEGACY_STREAM: stream 0 must not change its meaning with the macros with
// which this file is compiled.
constexpr unsigned long long kLegacyStream = 1;

// From which on cuCtxGetDevice takes the context.
constexpr int kDeviceOfVersion = 13000;

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

void* FindBySymbol(void* library, const DriverEntry& entry) {
  constexpr std::size_t kLongest = 64;
  char symbol[kLongest];
  const int length = std::snprintf(symbol, sizeof(symbol), "%s%s", entry.name, entry.suffix);
  return length < static_cast<int>(sizeof(symbol)) ? FindSymbol(library, symbol) : nullptr;
}

// Only what the table lists: of another name, the signature behind the symbol is not known.
void* LookUpBySymbol(const char* name, int version, void* library) {
  for (DriverEntry entry = kDriverEntries.First(); entry.name != nullptr;
       entry = kDriverEntries.Next(entry)) {
    if (entry.version == version && std::strcmp(entry.name, name) == 0) {
      return FindBySymbol(library, entry);
    }
  }
  return nullptr;
}

// Note [A lookup that ignores versions]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A library in front of the driver may answer cuGetProcAddress by the name alone: with its newest
// function (HAMi-core#57 and #320: cuCtxCreate of CUDA 11.4 for that of 3.2), or with the only one
// that it has (HAMi-core#233: cuCtxGetDevice of CUDA 2.0 for that of 13.0). Called with the
// signature that was asked for, either reads what was not passed. One address for two signatures of
// a name shows it. Then the entries are taken by their symbols, each of which has one signature.
struct TwoSignatures {
  const char* name;
  int first;
  int second;
};
constexpr TwoSignatures kTwoSignatures[] = {
    {"cuCtxCreate", 3020, 11040},
    {"cuStreamGetCtx", 9020, 12050},
    {"cuCtxGetDevice", 2000, kDeviceOfVersion},
};

// Of a driver of `version`: asked for what is newer than itself, it fails, and logs it.
bool IgnoresVersions(const DriverSource& source, int version) {
  for (const TwoSignatures& two : kTwoSignatures) {
    if (two.second > version) continue;
    void* const first = source.lookup(two.name, two.first, source.user);
    if (first != nullptr && first == source.lookup(two.name, two.second, source.user)) return true;
  }
  return false;
}

DriverSource SourceOf(void* library, int version) {
  const DriverSource by_symbol = {&LookUpBySymbol, library};
  DriverSource source = by_symbol;
  if (void* const get_v2 = FindSymbol(library, "cuGetProcAddress_v2")) {
    source = {&LookUpByVersionV2, get_v2};
  } else if (void* const get = FindSymbol(library, "cuGetProcAddress")) {
    source = {&LookUpByVersion, get};
  }
  return IgnoresVersions(source, version) ? by_symbol : source;
}

// The version that the library says it has, 0 where it says none. The toolkit's stub exports every
// function, and all of them answer that it is the stub.
CUresult AskVersion(void* library, int* version) {
  *version = 0;
  void* const get = FindSymbol(library, "cuDriverGetVersion");
  if (get == nullptr) return CUDA_ERROR_NOT_FOUND;
  return reinterpret_cast<decltype(DriverTable::DriverGetVersion)>(get)(version);
}

DriverOutcome Outcome(DriverTable::Problem problem, CUresult code, const char* text) {
  DriverOutcome outcome;
  outcome.problem = problem;
  outcome.code = code;
  std::snprintf(outcome.text, sizeof(outcome.text), "%s", text);
  outcome.process = getpid();
  return outcome;
}

}  // namespace

const DriverEntries kDriverEntries = {kPackedEntries.names.Known(0), kPackedEntries.versions,
                                      std::size(kRows), CUGUEST_REQUIRED_ENTRIES(CUGUEST_ONE_ENTRY),
                                      0};

DriverEntry DriverEntries::First() const noexcept { return Entry(*this, names, 0); }

DriverEntry DriverEntries::Next(const DriverEntry& entry) const noexcept {
  const std::size_t index = (entry.offset - offset) / sizeof(void*) + 1;
  if (index == count) return {};
  return Entry(*this, Behind(entry.suffix[0] != '\0' ? entry.suffix : entry.name), index);
}

DriverEntry DriverEntries::At(std::size_t wanted) const noexcept {
  DriverEntry entry = First();
  while (entry.name != nullptr && entry.offset != wanted) entry = Next(entry);
  return entry;
}

void* FindEntry(const DriverTable& driver, const DriverEntry& entry) noexcept {
  if (driver.lookup == &LookUpBySymbol) return FindBySymbol(driver.lookup_user, entry);
  return driver.lookup(entry.name, entry.version, driver.lookup_user);
}

DriverOutcome ReadDriver(const DriverSource& source, const char* name,
                         void* (*instead_of)(const DriverSource&, const DriverEntry&)) noexcept {
  DriverOutcome outcome = Outcome(DriverTable::Problem::kNone, CUDA_SUCCESS, name);
  DriverTable& table = outcome.table;
  table.lookup = source.lookup;
  table.lookup_user = source.user;
  CUresult code = CUDA_ERROR_NOT_FOUND;
  for (DriverEntry entry = kDriverEntries.First(); entry.name != nullptr;
       entry = kDriverEntries.Next(entry)) {
    const bool is_required = kDriverEntries.IsRequired(entry);
    // Asked for what is newer than itself, a driver fails, and logs it.
    const bool may_be_there = is_required || table.version == 0 || entry.version <= table.version;
    void* function = may_be_there ? source.lookup(entry.name, entry.version, source.user) : nullptr;
    if (function == nullptr && is_required) {
      if (instead_of != nullptr) function = instead_of(source, entry);
      if (function == nullptr && outcome.missing.name == nullptr) outcome.missing = entry;
    }
    std::memcpy(reinterpret_cast<char*>(&table) + entry.offset, &function, sizeof(function));
    if (function != nullptr && entry.offset == offsetof(DriverTable, DriverGetVersion)) {
      code = table.DriverGetVersion(&table.version);
    }
  }
  if (code == CUDA_ERROR_STUB_LIBRARY) return Outcome(DriverTable::Problem::kStub, code, name);
  if (table.version >= kDeviceOfVersion) {  // see above
    void* const of = source.lookup("cuCtxGetDevice", kDeviceOfVersion, source.user);
    // See Note [A lookup that ignores versions]; an adopted one is not checked further.
    const bool is_other = of != reinterpret_cast<void*>(table.CtxGetDevice);
    if (is_other) table.CtxGetDeviceOf = reinterpret_cast<decltype(table.CtxGetDeviceOf)>(of);
  }
  if (outcome.missing.name != nullptr) {
    outcome.problem = DriverTable::Problem::kTooOld;
    outcome.code = kCallRequiresNewerDriver;
  }
  return outcome;
}

namespace {

PublishOnce<DriverOutcome> g_outcome;

CUresult CUDAAPI IdWithoutIds(CUcontext context, unsigned long long* id) {
  return ReadId(*g_driver.load(std::memory_order_acquire), context, id);
}

StackCalls CallsOf(const DriverTable& table) {
  return {table.CtxGetCurrent, table.CtxPushCurrent, table.CtxPopCurrent,
          table.CtxGetId != nullptr ? table.CtxGetId : &IdWithoutIds};
}

// Called by every thread that reads the outcome.
const DriverOutcome* Install(const DriverOutcome* outcome) {
  if (outcome == nullptr || !outcome->ok()) return outcome;
  if (LoadAcquire(&g_stack_calls.get_current) == kNoCalls.get_current) {
    CallFirstThrough(&outcome->table);
  }
  return outcome;
}

}  // namespace

// In both, `get_current` is last: a thread with an answer from it has a driver table.
void CallFirstThrough(const DriverTable* table) noexcept {
  const DriverTable* none = nullptr;
  g_driver.compare_exchange_strong(none, table, std::memory_order_acq_rel);
  const StackCalls calls = CallsOf(*table);
  Replace(&g_stack_calls.push, kNoCalls.push, calls.push);
  Replace(&g_stack_calls.pop, kNoCalls.pop, calls.pop);
  Replace(&g_stack_calls.get_id, kNoCalls.get_id, calls.get_id);
  Replace(&g_stack_calls.get_current, kNoCalls.get_current, calls.get_current);
}

void CallThrough(const DriverTable* table) noexcept {
  const StackCalls calls = CallsOf(*table);
  g_driver.store(table, std::memory_order_release);
  StoreRelaxed(&g_stack_calls.push, calls.push);
  StoreRelaxed(&g_stack_calls.pop, calls.pop);
  StoreRelaxed(&g_stack_calls.get_id, calls.get_id);
  StoreRelease(&g_stack_calls.get_current, calls.get_current);
}

DriverOutcome LoadDriver(const char* path) noexcept {
  char why[sizeof(DriverOutcome::text)];
  void* const library = LoadForGood(path, why, sizeof(why));
  if (library == nullptr) {
    return Outcome(DriverTable::Problem::kNoLibrary, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, why);
  }
  int version = 0;
  const CUresult code = AskVersion(library, &version);
  if (code == CUDA_ERROR_STUB_LIBRARY) return Outcome(DriverTable::Problem::kStub, code, path);
  return ReadDriver(SourceOf(library, version), path, nullptr);
}

const DriverOutcome* ProcessDriver(DriverOutcome* refused) noexcept {
  if (const DriverOutcome* const outcome = g_outcome.Get()) return Install(outcome);
  *refused = LoadDriver(kDriverFile);
  // Another may have been adopted meanwhile.
  if (refused->problem == DriverTable::Problem::kNoLibrary) return Install(g_outcome.Get());
  const DriverOutcome* const kept = KeepDriver(*refused, nullptr);
  if (kept == nullptr) {
    *refused = Outcome(DriverTable::Problem::kOther, CUDA_ERROR_OUT_OF_MEMORY, "the table");
  }
  return kept;
}

const DriverOutcome* DecidedDriver() noexcept { return g_outcome.Get(); }

const DriverOutcome* KeepDriver(const DriverOutcome& outcome, bool* won) noexcept {
  return Install(g_outcome.Offer(outcome, won));
}

namespace {

// Note [A driver that comes later]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A program may ask something of cuguest, which finds no driver, and load the driver afterwards, by
// a path that the loader does not search; or the driver is installed while it runs. So that there
// is none is not kept. But to look for it takes microseconds and the loader's lock, and a program
// on a machine without a GPU may ask for each message that it sends. So while LoaderMoment() stays,
// ResolveDriver() repeats what its last look gave, from the third call on: the first look is not
// preceded by it, so that a driver that is there costs nothing more. Driver::Get() looks each time,
// for the loader's words, and so does a forked child of a process that has looked.
std::atomic<std::uint64_t> g_absent_at{0};
std::atomic<pid_t> g_absent_in{0};

// 0: what is found is not to be remembered for it.
std::uint64_t MomentOfLook() {
  return g_absent_in.load(std::memory_order_relaxed) == getpid() ? LoaderMoment() : 0;
}

// `moment` is that of before the look, so that what is loaded during it has another.
void RememberAbsent(std::uint64_t moment) {
  if (moment != 0) return g_absent_at.store(moment, std::memory_order_relaxed);
  pid_t nobody = 0;
  g_absent_in.compare_exchange_strong(nobody, getpid(), std::memory_order_relaxed);
}

const DriverOutcome* Look(CUresult* code) {
  const std::uint64_t moment = MomentOfLook();
  *code = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  if (moment != 0 && moment == g_absent_at.load(std::memory_order_relaxed)) return nullptr;
  DriverOutcome refused;
  const DriverOutcome* const found = ProcessDriver(&refused);
  if (found != nullptr) return found;
  *code = refused.code;
  const bool is_absent = refused.problem == DriverTable::Problem::kNoLibrary;
  if (is_absent && !MayPass(refused.text)) RememberAbsent(moment);
  return nullptr;
}

}  // namespace

const DriverTable* ResolveDriver(CUresult* code) noexcept {
  const DriverOutcome* outcome = Install(g_outcome.Get());
  if (outcome == nullptr) outcome = Look(code);
  if (outcome == nullptr) return nullptr;
  *code = outcome->code;
  return outcome->ok() ? &outcome->table : nullptr;
}

CUGUEST_END_INTERNAL_NAMESPACE
