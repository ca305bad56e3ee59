// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/call_table.h"

#include <cstring>
#include <new>
#include <string_view>

#include "audit/text.h"

namespace cuguest::audit {
namespace {

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

}  // namespace

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

const CallInfo* CallTable::Make(std::size_t index, const char* name) {
  const std::string_view base_name = NameAsWritten(name);
  char* base = new (std::nothrow) char[base_name.size() + 1];
  auto* info = new (std::nothrow) CallInfo;
  if (base == nullptr || info == nullptr) return nullptr;
  std::memcpy(base, base_name.data(), base_name.size());
  base[base_name.size()] = '\0';
  info->name = base;
  info->domain = domain_;
  info->rule = &RuleOf(base);
  info->is_of_primary = StartsWith(base, "cuDevicePrimaryCtx");
  const CallKind kind = info->rule->kind;
  info->counts = kind == CallKind::kRetainPrimary || kind == CallKind::kReleasePrimary;
  info->creates = kind == CallKind::kCreate;
  info->makes_current = kind == CallKind::kPush || kind == CallKind::kSetCurrent;
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
