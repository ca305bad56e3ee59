// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/call_rule.h"

#include <cctype>
#include <cstring>
#include <initializer_list>
#include <new>

#include "audit/text.h"

namespace cuguest::audit {
namespace {

enum Family : std::uint8_t {
  kNone,
  kLimit,
  kCacheConfig,
  kSharedConfig,
  kContextFlags,
  kPrimaryFlags,
};

constexpr CallRule kDriverRules[] = {
    {"cuCtxPushCurrent", CallClass::kStack, "C", kNone},
    {"cuCtxPopCurrent", CallClass::kStack, "", kNone},
    {"cuCtxSetCurrent", CallClass::kStack, "C", kNone},
    {"cuCtxCreate", CallClass::kStack, "", kNone},
    {"cuCtxDestroy", CallClass::kStack, "C", kNone},
    {"cuCtxAttach", CallClass::kStack, "", kNone},
    {"cuCtxDetach", CallClass::kStack, "C", kNone},
    {"cuGreenCtxCreate", CallClass::kChange, "", kNone},
    {"cuGreenCtxDestroy", CallClass::kStack, "C", kNone},
    {"cuDevicePrimaryCtxRetain", CallClass::kChange, "cD", kNone},
    {"cuDevicePrimaryCtxRelease", CallClass::kChange, "D", kNone},
    {"cuDevicePrimaryCtxReset", CallClass::kChange, "D", kNone},
    {"cuDevicePrimaryCtxSetFlags", CallClass::kChange, "Dv", kPrimaryFlags},
    {"cuDevicePrimaryCtxGetState", CallClass::kAsk, "Dqp", kPrimaryFlags},
    {"cuCtxSetFlags", CallClass::kChange, "v", kContextFlags},
    {"cuCtxGetFlags", CallClass::kAsk, "q", kContextFlags},
    {"cuCtxSetLimit", CallClass::kChange, "SV", kLimit},
    {"cuCtxGetLimit", CallClass::kAsk, "QS", kLimit},
    {"cuCtxSetCacheConfig", CallClass::kChange, "v", kCacheConfig},
    {"cuCtxGetCacheConfig", CallClass::kAsk, "q", kCacheConfig},
    {"cuCtxSetSharedMemConfig", CallClass::kChange, "v", kSharedConfig},
    {"cuCtxGetSharedMemConfig", CallClass::kAsk, "q", kSharedConfig},
    {"cuCtxResetPersistingL2Cache", CallClass::kChange, "", kNone},
    {"cuCtxEnablePeerAccess", CallClass::kChange, "C", kNone},
    {"cuCtxDisablePeerAccess", CallClass::kChange, "C", kNone},
    {"cuDeviceSetMemPool", CallClass::kChange, "D", kNone},
    {"cuThreadExchangeStreamCaptureMode", CallClass::kCaptureMode, "M", kNone},
    {"cuStreamBeginCapture", CallClass::kChange, "", kNone},
    {"cuStreamBeginCaptureToGraph", CallClass::kChange, "", kNone},
    {"cuStreamEndCapture", CallClass::kChange, "", kNone},
};

constexpr CallRule kRuntimeRules[] = {
    {"cudaSetDevice", CallClass::kRuntimeChoice, "D", kNone},
    {"cudaInitDevice", CallClass::kRuntimeChoice, "D", kNone},
    {"cudaSetValidDevices", CallClass::kRuntimeChoice, "", kNone},
    {"cudaExecutionCtxDestroy", CallClass::kStack, "C", kNone},  // the handle is the driver's
    {"cudaDeviceReset", CallClass::kChange, "", kNone},
    {"cudaThreadExit", CallClass::kChange, "", kNone},
    {"cudaSetDeviceFlags", CallClass::kChange, "v", kContextFlags},
    {"cudaGetDeviceFlags", CallClass::kAsk, "q", kContextFlags},
    {"cudaDeviceSetLimit", CallClass::kChange, "SV", kLimit},
    {"cudaDeviceGetLimit", CallClass::kAsk, "QS", kLimit},
    {"cudaThreadSetLimit", CallClass::kChange, "SV", kLimit},
    {"cudaDeviceSetCacheConfig", CallClass::kChange, "v", kCacheConfig},
    {"cudaDeviceGetCacheConfig", CallClass::kAsk, "q", kCacheConfig},
    {"cudaDeviceSetSharedMemConfig", CallClass::kChange, "v", kSharedConfig},
    {"cudaDeviceGetSharedMemConfig", CallClass::kAsk, "q", kSharedConfig},
    {"cudaCtxResetPersistingL2Cache", CallClass::kChange, "", kNone},
    {"cudaDeviceEnablePeerAccess", CallClass::kChange, "D", kNone},
    {"cudaDeviceDisablePeerAccess", CallClass::kChange, "D", kNone},
    {"cudaDeviceSetMemPool", CallClass::kChange, "D", kNone},
    {"cudaThreadExchangeStreamCaptureMode", CallClass::kCaptureMode, "M", kNone},
    {"cudaStreamBeginCapture", CallClass::kChange, "", kNone},
    {"cudaStreamBeginCaptureToGraph", CallClass::kChange, "", kNone},
    {"cudaStreamEndCapture", CallClass::kChange, "", kNone},
    {"cudaGetLastError", CallClass::kClearError, "", kNone},
    {"cudaPeekAtLastError", CallClass::kPeekError, "", kNone},
};

// Beginnings of the names of what works in a context, without "cu" or "cuda".
constexpr const char* kWork[] = {
    "Launch",           "Memcpy",      "Memset",         "LinkCreate",
    "GraphLaunch",      "EventCreate", "MemPoolCreate",  "MemAllocAsync",
    "MemAllocFromPool", "MallocAsync", "MallocFromPool",
};
// Of what stays in it, and goes with it.
constexpr const char* kMake[] = {
    "Malloc",     "MemAlloc",    "MemHostAlloc", "HostAlloc",        "StreamCreate",
    "ModuleLoad", "LibraryLoad", "ArrayCreate",  "GraphInstantiate",
};
constexpr const char* kFree[] = {
    "Free",          "MemFree",      "StreamDestroy",    "ModuleUnload",
    "LibraryUnload", "ArrayDestroy", "GraphExecDestroy",
};
// Which kFree has the beginning of.
constexpr const char* kOfPools[] = {"FreeAsync", "MemFreeAsync"};

std::atomic<std::uint32_t> next_number{1};
const char* watched_calls = "";

// The pattern ends with a comma or the text's end.
bool Matches(const char* pattern, const char* text) {
  if (*pattern == '\0' || *pattern == ',') return *text == '\0';
  if (*pattern == '*') {
    return Matches(pattern + 1, text) || (*text != '\0' && Matches(pattern, text + 1));
  }
  return *text != '\0' && (*pattern == '?' || *pattern == *text) && Matches(pattern + 1, text + 1);
}

constexpr CallRule kCommon = {"", CallClass::kCommon, "", kNone};
constexpr CallRule kWorkRule = {"", CallClass::kWork, "", kNone};
constexpr CallRule kMakeRule = {"", CallClass::kMake, "", kNone};
constexpr CallRule kFreeRule = {"", CallClass::kFree, "", kNone};

template <std::size_t count>
bool StartsWithOneOf(const char* name, const char* const (&beginnings)[count]) {
  for (const char* beginning : beginnings) {
    if (StartsWith(name, beginning)) return true;
  }
  return false;
}

// Of what no rule names.
const CallRule* RuleOfWork(const char* name) {
  if (StartsWithOneOf(name, kOfPools)) return &kCommon;
  if (StartsWithOneOf(name, kWork)) return &kWorkRule;
  if (StartsWithOneOf(name, kMake)) return &kMakeRule;
  return StartsWithOneOf(name, kFree) ? &kFreeRule : &kCommon;
}

template <std::size_t count>
const CallRule* FindIn(const CallRule (&rules)[count], const char* name) {
  for (const CallRule& rule : rules) {
    if (std::strcmp(rule.name, name) == 0) return &rule;
  }
  return nullptr;
}

bool EndsWith(const char* name, std::size_t length, const char* end) {
  const std::size_t size = std::strlen(end);
  return length > size && std::strncmp(name + length - size, end, size) == 0;
}

// "StreamQuery" of "cudaStreamQuery".
const char* WithoutPrefix(Domain domain, const char* name) {
  const std::size_t prefix = domain == Domain::kDriver ? 2 : 4;
  return std::strlen(name) > prefix ? name + prefix : "";
}

bool MakesOrFrees(const ObjectRule& rule) {
  bool makes = false;
  for (const char* letter = rule.arguments; *letter != '\0'; ++letter) {
    makes = makes || (IsMadeAt(*letter) && HasKnownOwner(*letter));
  }
  return makes || rule.frees;
}

// "_v2", "_v12000".
std::size_t LengthOfVersion(const char* name, std::size_t length) {
  std::size_t digits = 0;
  while (digits < length && std::isdigit(static_cast<unsigned char>(name[length - 1 - digits]))) {
    ++digits;
  }
  const bool is_version = digits > 0 && EndsWith(name, length - digits, "_v");
  return is_version ? digits + 2 : 0;
}

}  // namespace

const CallRule* FindRule(Domain domain, const char* name) {
  const bool is_driver = domain == Domain::kDriver;
  const CallRule* rule = is_driver ? FindIn(kDriverRules, name) : FindIn(kRuntimeRules, name);
  if (rule != nullptr) return rule;
  return RuleOfWork(WithoutPrefix(domain, name));
}

bool MatchesOneOf(const char* patterns, const char* text) {
  while (*patterns != '\0') {
    if (Matches(patterns, text)) return true;
    patterns += std::strcspn(patterns, ",");
    patterns += *patterns == ',' ? 1 : 0;
  }
  return false;
}

void WatchCalls(const char* patterns) {
  const char* copy = strdup(patterns);  // of the environment, which the program may change
  if (copy != nullptr) watched_calls = copy;
}

std::size_t LengthOfBaseName(const char* name) {
  std::size_t length = std::strlen(name);
  for (std::size_t before = 0; before != length;) {
    before = length;
    for (const char* twin : {"_ptsz", "_ptds"}) {
      if (EndsWith(name, length, twin)) length -= std::strlen(twin);
    }
    length -= LengthOfVersion(name, length);
  }
  return length;
}

const CallInfo* CallTable::Make(std::size_t index, const char* name) {
  const std::size_t length = LengthOfBaseName(name);
  char* base = new (std::nothrow) char[length + 1];
  auto* info = new (std::nothrow) CallInfo;
  if (base == nullptr || info == nullptr) return nullptr;
  std::memcpy(base, name, length);
  base[length] = '\0';
  info->name = base;
  info->domain = domain_;
  info->rule = FindRule(domain_, base);
  info->is_of_primary = StartsWith(base, "cuDevicePrimaryCtx");
  info->counts = std::strcmp(base, "cuDevicePrimaryCtxRetain") == 0 ||
                 std::strcmp(base, "cuDevicePrimaryCtxRelease") == 0;
  info->creates = StartsWith(base, "cuCtxCreate");
  info->makes_current =
      std::strcmp(base, "cuCtxPushCurrent") == 0 || std::strcmp(base, "cuCtxSetCurrent") == 0;
  info->objects = FindObjectRule(domain_ == Domain::kDriver, WithoutPrefix(domain_, base));
  info->makes_or_frees = info->objects != nullptr && MakesOrFrees(*info->objects);
  info->is_watched = MatchesOneOf(watched_calls, base);
  info->number = next_number.fetch_add(1, std::memory_order_relaxed);
  const CallInfo* winner = nullptr;
  if (infos_[index].compare_exchange_strong(winner, info, std::memory_order_acq_rel)) return info;
  delete info;
  delete[] base;
  return winner;
}

}  // namespace cuguest::audit
