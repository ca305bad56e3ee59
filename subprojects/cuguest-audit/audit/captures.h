// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stream captures in progress in a process, and who breaks them.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_CAPTURES_H_
#define CUGUEST_AUDIT_CAPTURES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "audit/cause.h"
#include "audit/event.h"
#include "audit/ledger.h"

namespace cuguest::audit {

// Captures that are followed at one time.
inline constexpr std::size_t kCaptureLimit = 256;

class Captures {
 public:
  explicit Captures(Ledger* ledger) : ledger_(ledger) {}

  // The stream is the event's value, the mode its setting, where they are known.
  void Begin(const Event& event, std::shared_ptr<const Cause> cause);
  void End(const Event& event);
  // A call that a capture forbids, and which it does not survive, by another party than the
  // capture's.
  void Fail(const Cause& cause);

 private:
  struct Capture {
    std::uint64_t stream;
    int mode;
    std::shared_ptr<const Cause> begin;
    bool broken = false;
  };

  std::vector<Capture> captures_;  // the last begun last
  Ledger* const ledger_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_CAPTURES_H_
