// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the audit of a process has found: which code left what behind for whom.
//
// Thread-safe: no; these are values.

#ifndef CUGUEST_AUDIT_FINDING_H_
#define CUGUEST_AUDIT_FINDING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "audit/event.h"

namespace cuguest::audit {

enum class FindingKind : std::uint8_t {
  kLeakedPush,            // contexts are on the stack that were not when the culprit was called
  kExtraPop,              // contexts that were there are not
  kReplacedContext,       // another context is current
  kLeftContext,           // nothing was current, and something is
  kCreatedPrimary,        // by a call that needs one: an allocation, a launch, a retain
  kQueryCreatedPrimary,   // by a call that only asks or chooses
  kTouchedDeviceZero,     // its primary context was created, and nothing was ever done in it
  kResetPrimary,          // while the victim holds it
  kOverReleasedPrimary,   // a reference of the victim's was released
  kDestroyedContext,      // one that the victim counts on
  kDestroyedWork,         // of the victim's, with the culprit's context
  kDestroyedInUse,        // one that is on the stack of a thread of the victim's
  kUsedDestroyedContext,  // a destroyed context's handle was pushed or made current
  kChangedSetting,        // a flag, limit or configuration of a context of the victim's
  kLeftError,             // as the runtime's last error
  kBrokeCapture,          // a capture in progress of the victim's is lost
  kForkedChild,           // a call in a process forked after CUDA's start
  kAfterShutdown,         // a call after the driver was shut down
  kLeakedReference,       // a primary context was retained and never released
  kLeakedContext,         // a context of a library that was unloaded was never destroyed
  kForbidden,             // what the user forbids
  kNoisy,                 // a call that failed
  kUsedAfterContext,      // an object of a context that is over was given to a call
};
inline constexpr std::size_t kFindingKinds = 23;

// For people: "leaked push".
const char* Name(FindingKind kind);
// For files: "leaked-push".
const char* Identifier(FindingKind kind);

// A place in the code: what a frame returns to.
struct Place {
  std::uint32_t object = 0;  // as Frame has it; 0: none is known
  std::uint64_t offset = 0;
};

// A context, as a report names it.
struct ContextNote {
  ContextId id = 0;  // 0: none, and the rest says nothing
  int device = -1;   // -1: not known
  bool primary = false;
  Place creator;  // what called the creating function
};

// An object of a context that is over, of Finding::before, and how that ended.
struct ObjectNote {
  ObjectKind kind = ObjectKind::kNone;  // kNone: the finding is about no object
  Place maker;                          // what made the call that made it; object 0: not known
  std::string ended_by;                 // the call that ended the context; empty: not known
  Place ender;                          // what made that call
  std::uint32_t ended_on = 0;           // thread
  std::uint64_t ended_ns = 0;
};

// For people: "stream".
const char* Name(ObjectKind kind);

// What tells one finding of a process from the others of the same victim.
struct FindingRef {
  FindingKind kind = FindingKind::kLeakedPush;
  std::string call;  // empty: no finding is meant
  Place culprit;
};

struct Finding {
  FindingKind kind = FindingKind::kLeakedPush;
  std::string call;  // that did it, as the caller wrote it: "cudaSetDevice"
  Place culprit;     // the culprit's innermost frame: what made the call
  Place victim;      // the victim's frame that called, retained, made, ...; object 0: no one in
                     // particular
  std::uint64_t count = 0;  // times that the same culprit did this to the same victim
  // Of the first time:
  std::uint32_t thread = 0;
  std::shared_ptr<const OsThread> os_thread;  // null: not known
  std::uint64_t time_ns = 0;
  int result = 0;      // of the call
  ContextNote before;  // what the victim had current, or the context that it is about
  ContextNote after;   // what was left current
  int device = -1;
  std::int64_t depth = 0;  // of the stack, now less before: leaked pushes are > 0, extra pops < 0
  int setting = -1;        // as Event has them
  std::uint64_t value = 0;
  std::uint64_t old_value = 0;
  ObjectNote object;
  // Never null. `chain` is that of the call, and `victim_frame` the victim's frame in it, or its
  // size if the victim was not among the callers; then `victim_chain` is of the call that made the
  // victim one: the push of the context, the retain, the beginning of the capture.
  std::shared_ptr<const Chain> chain;
  std::size_t culprit_frame = 0;   // index in `chain`
  std::size_t returned_frame = 0;  // of the culprit's function that another party had called
  std::size_t victim_frame = 0;
  std::shared_ptr<const Chain> victim_chain;
  // What the culprit suffered itself, from whom it had called, before it returned: without that
  // there might be no finding.
  FindingRef cause;
};

// "thread 1 (tid 4711, "worker")", of the first time.
std::string ThreadText(const Finding& finding);

// The finding as text of several lines, ending with a newline; the same for the same findings of
// the same process. `objects` are those that frames have the indices of.
std::string Text(const Finding& finding, const std::vector<Object>& objects);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_FINDING_H_
