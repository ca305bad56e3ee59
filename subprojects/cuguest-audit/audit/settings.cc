// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/settings.h"

#include <utility>

#include "audit/call_rule.h"

namespace cuguest::audit {
void Settings::Set(ContextId context, const Event& event, const Cause& cause,
                   std::uint64_t activation) {
  const ContextFacts* facts = contexts_->Find(context);
  const PartyId party = cause.party();
  if (facts == nullptr || facts->made == nullptr || party == 0) {
    return;
  }
  const Key key{context, SettingOf(event.name), event.setting};
  const auto known = changes_.find(key);
  if (known != changes_.end()) {
    const bool is_own = known->second.culprit == party;
    const bool is_back =
        known->second.finding.old_value == event.value && event.value != kUnknownValue;
    if (is_own && !is_back) {
      return;
    }
    if (!is_own) {
      ledger_->Add({known->second.finding, {}});
    }
    changes_.erase(known);
    if (is_back) {
      return;
    }
  }
  // Who made the context, and who had that done, may set what they like.
  if (facts->made->party() == 0 || facts->made->Has(party) || event.value == event.old_value) {
    return;
  }
  Finding finding = FindingOf(FindingKind::kChangedSetting, cause);
  finding.before = contexts_->NoteOf(context);
  finding.after = finding.before;
  finding.setting = event.setting;
  finding.value = event.value;
  finding.old_value = event.old_value;
  SetVictim(*facts->made, cause, &finding);
  changes_.insert({key, {std::move(finding), party, activation}});
}

}  // namespace cuguest::audit
