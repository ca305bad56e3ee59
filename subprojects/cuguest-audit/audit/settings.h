// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The flags, limits and configurations of contexts, and who changes those of another party's.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_SETTINGS_H_
#define CUGUEST_AUDIT_SETTINGS_H_

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "audit/cause.h"
#include "audit/contexts.h"
#include "audit/event.h"
#include "audit/ledger.h"

namespace cuguest::audit {

class Settings {
 public:
  // Both must outlive it.
  Settings(const Contexts* contexts, Ledger* ledger) : contexts_(contexts), ledger_(ledger) {}

  // A setting of `context` was set, within `activation` of the thread. A change that the same party
  // takes back, now or later, is none.
  void Set(ContextId context, const Event& event, const Cause& cause, std::uint64_t activation);
  // The context is gone. `is_open(thread, activation)`: whether that has not returned yet.
  template <typename IsOpen>
  void Forget(ContextId context, const IsOpen& is_open) {
    auto i = changes_.lower_bound({context, "", kLowest});
    while (i != changes_.end() && std::get<0>(i->first) == context) {
      if (!is_open(i->second.finding.thread, i->second.activation)) {
        ledger_->Add({i->second.finding, {}});
      }
      i = changes_.erase(i);
    }
  }
  // Adds the changes whose authors have returned.
  template <typename IsOpen>
  void AddCharges(const IsOpen& is_open, Ledger* ledger) const {
    for (const auto& [key, change] : changes_) {
      if (!is_open(change.finding.thread, change.activation)) {
        ledger->Add({change.finding, {}});
      }
    }
  }

 private:
  struct Change {
    Finding finding;
    PartyId culprit;
    std::uint64_t activation;
  };
  using Key = std::tuple<ContextId, std::string_view, int>;  // what SettingOf() says, the setting
  static constexpr int kLowest = -0x7fffffff;

  const Contexts* const contexts_;
  Ledger* const ledger_;
  std::map<Key, Change> changes_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_SETTINGS_H_
