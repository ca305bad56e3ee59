// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of HostScope, which takes out the scopes around it, capture guards among them, and enters them
// again.

#include <utility>

#include "cuguest/internal/scope.h"

#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/records.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

using nesting::Identify;
using nesting::LeaveFor;
using nesting::Look;
using nesting::PutOut;

constexpr unsigned kAny = ~0U;

// Takes out one that another was above; unless something of somebody else's lies above what it left
// on the stack: then nothing is done, and `is_out` is false.
CUresult TakeOutIfOnTop(unsigned slot, unsigned host, bool* is_out) {
  Record& record = records::At(slot);
  *is_out = false;
  CUcontext top = nullptr;
  CUresult code = GetCurrent(&top);
  if (code != CUDA_SUCCESS || top != record.ours.context) return code;
  static_cast<void>(Identify(&record));
  if (record.kind == Record::Kind::kExact) {
    if (!nesting::CallsOf(record).is_on_top(record)) return CUDA_SUCCESS;
    *is_out = true;
    return LeaveFor(slot, Look(record), host);
  }
  if (record.kind == Record::Kind::kPushed) {
    code = Pop(&top);
    if (code != CUDA_SUCCESS) return code;
    CUcontext now = nullptr;
    code = GetCurrent(&now);
    if (code != CUDA_SUCCESS || now != record.caller) {
      static_cast<void>(stack::Push(record.ours));
      return code;
    }
  }
  PutOut(&record, {}, host);
  *is_out = true;
  return CUDA_SUCCESS;
}

// The place of the outermost scope below `host` that is inside a context: a push below it is the
// host's own, which it has asked a library for. `host` if there is none.
unsigned Outermost(unsigned host) {
  unsigned slot = 0;
  while (slot < host) {
    const Record& record = records::At(slot);
    const bool is_inside = records::IsOpen(record) && record.kind <= Record::Kind::kExact;
    if (is_inside && record.owner != Record::Owner::kNobody) break;
    ++slot;
  }
  return slot;
}

// Whether it is a push that can look as if it were there when somebody else has popped it: one of
// what was current, or one whose predecessor was popped as well.
bool CanLookAsIfThere(unsigned slot) {
  const Record& record = records::At(slot);
  if (!nesting::IsPush(record)) return false;
  bool can = record.ours.context == record.caller;
  for (unsigned i = 0; i < slot; ++i) can = can || nesting::IsPush(records::At(i));
  return can;
}

// What somebody else has popped is found before anything is taken out, by one look at the stack for
// all pushes from `outermost` on.
void ForgetWhatLooksAsIfThere(unsigned outermost, unsigned host) {
  for (unsigned slot = outermost < host ? outermost : 0; slot < host; ++slot) {
    if (CanLookAsIfThere(slot)) return nesting::ForgetPopped();
  }
}

// As Look(), of the innermost one. Of a push that somebody else has popped it is undone, and the
// push given back; an entry whose context is over is lost by it.
nesting::FirstLook LookAtInnermost(unsigned slot, bool* has_lost) {
  const Record& record = records::At(slot);
  const nesting::FirstLook look = Look(record);
  if (look.is_clean || !nesting::IsPush(record)) return look;
  if (look.code == CUDA_SUCCESS) {
    *has_lost = stack::Push(Incarnation::Unknown(look.popped)) == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  nesting::ForgetPopped();
  return nesting::IsPush(records::At(slot)) ? Look(records::At(slot)) : look;
}

// For the HostScope at `host`: takes out the records of the stack below it, the innermost first,
// down to `wanted` at least (kAny: as far as can be). `lowest`: the place above the first one that
// stays, which somebody else's entry lies above.
CUresult TakeOut(unsigned host, unsigned wanted, unsigned* lowest) {
  *lowest = 0;
  CUresult result = CUDA_SUCCESS;
  bool is_innermost = true;
  bool has_lost = false;
  bool has_wanted = wanted == kAny;
  const unsigned outermost = Outermost(host);
  ForgetWhatLooksAsIfThere(outermost, host);
  for (unsigned slot = host; slot-- > 0;) {
    Record& record = records::At(slot);
    if (!records::IsOpen(record) || record.kind > Record::Kind::kExact) continue;
    if (nesting::IsPush(record) && outermost < host && slot < outermost) break;
    const bool has_ended = record.state == Record::State::kEnded;
    if (is_innermost) {
      static_cast<void>(Identify(&record));  // if it fails, BringBack() tries once more
      const nesting::FirstLook look = LookAtInnermost(slot, &has_lost);
      if (!records::IsOpen(record)) continue;
      result = LeaveFor(slot, look, host);
      is_innermost = false;
    } else {
      bool is_out = false;
      const CUresult code = TakeOutIfOnTop(slot, host, &is_out);
      if (!is_out && nesting::IsPush(record)) nesting::ForgetPopped();
      if (!records::IsOpen(record) && !is_out) continue;
      if (result == CUDA_SUCCESS) result = code;
      if (!is_out) {
        *lowest = slot + 1;
        break;
      }
    }
    if (has_ended) records::Free(slot);
    has_wanted = has_wanted || slot == wanted;
  }
  if (is_innermost && has_lost) return CUDA_ERROR_CONTEXT_IS_DESTROYED;  // the host's own
  return has_wanted || result != CUDA_SUCCESS ? result : CUDA_ERROR_ILLEGAL_STATE;
}

bool IsOpenMode(const Record& record) {
  return record.kind == Record::Kind::kCaptureMode && records::IsOpen(record);
}

// Makes `mode` the thread's where the HostScope at `host` lies, and `found` what it was there. A
// capture guard above it, which that has outlasted, restores it then; the thread keeps its own.
CUresult ExchangeMode(unsigned host, CUstreamCaptureMode mode, CUstreamCaptureMode* found) {
  for (unsigned slot = host + 1; slot < records::Depth(); ++slot) {
    Record& above = records::At(slot);
    if (!IsOpenMode(above)) continue;
    *found = std::exchange(above.modes.callers, mode);
    return CUDA_SUCCESS;
  }
  *found = mode;
  return ResolvedDriver().ThreadExchangeStreamCaptureMode(found);
}

// Takes out the capture guards from `lowest` on: the thread has the mode that the outermost found.
CUresult TakeOutModes(unsigned host, unsigned lowest) {
  const Record* outermost = nullptr;
  Record innermost = {};
  for (unsigned slot = lowest; slot < host && CallingThread()->capture_modes != 0; ++slot) {
    const Record& record = records::At(slot);
    if (!IsOpenMode(record)) continue;
    if (outermost == nullptr) outermost = &record;
    innermost = record;
  }
  if (outermost == nullptr) return CUDA_SUCCESS;
  CUstreamCaptureMode found;
  const CUresult code = ExchangeMode(host, outermost->modes.callers, &found);
  if (code != CUDA_SUCCESS) return Finding::Failed(code, nullptr).Code();
  for (unsigned slot = lowest; slot < host; ++slot) {
    Record& record = records::At(slot);
    if (!IsOpenMode(record)) continue;
    const bool has_ended = record.state == Record::State::kEnded;
    record.state = Record::State::kOut;
    record.host_slot = host;
    if (has_ended) records::Free(slot);
  }
  if (found == innermost.modes.ours) return CUDA_SUCCESS;
  return Report(Finding::Of(Incident::Kind::kCaptureMode, Incident::Repair::kRepaired, nullptr),
                nullptr, {innermost.file, innermost.line});
}

bool IsOut(const Record& record, unsigned host) {
  return record.state == Record::State::kOut && record.host_slot == host;
}

// Makes the innermost one's mode the thread's again; what was found is the outermost's to restore.
void BringBackModes(unsigned host) {
  const auto is_out = [host](const Record& record) {
    return record.kind == Record::Kind::kCaptureMode && IsOut(record, host);
  };
  unsigned end = host;
  while (end > 0 && !is_out(records::At(end - 1))) --end;
  if (end == 0) return;
  CUstreamCaptureMode below;
  const CUresult code = ExchangeMode(host, records::At(end - 1).modes.ours, &below);
  for (unsigned slot = 0; slot < end; ++slot) {
    Record& record = records::At(slot);
    if (!is_out(record)) continue;
    record.state = code == CUDA_SUCCESS ? Record::State::kLive : Record::State::kGone;
    record.result = code;
    record.modes.callers = std::exchange(below, record.modes.ours);
  }
}

// Enters again what was taken out, the outermost first.
void BringBack(unsigned host) {
  BringBackModes(host);
  for (unsigned slot = 0; slot < host; ++slot) {
    Record& record = records::At(slot);
    if (!IsOut(record, host)) continue;
    record.result = nesting::EnterAgain(&record);
    if (record.result != CUDA_SUCCESS) record.state = Record::State::kGone;
  }
}

CUresult CloseHost(unsigned slot, Location /*where*/) {
  BringBack(slot);
  records::Free(slot);
  return CUDA_SUCCESS;
}

constexpr nesting::KindCalls kHostCalls = {nullptr, nullptr, nullptr, &CloseHost, nullptr};

}  // namespace

void Scope::EnterHost(const Scope* guard, Location where) noexcept {
  Prepare(nullptr, false, where);
  SetOutside();
  nesting::Register(Kind::kHost, kHostCalls);
  nesting::CloseEnded();
  unsigned wanted = kAny;
  if (guard != nullptr && guard->IsInside()) {
    const Record* const record = guard->calls_ == &kCalls ? guard->Own() : nullptr;
    result_ = record != nullptr ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
    if (record == nullptr) return;
    if (record->state == State::kLive) wanted = guard->slot_;
  }
  Record* const record = Begin(Incarnation::kUnknownId);
  if (record == nullptr) return;
  record->kind = Kind::kHost;
  record->state = State::kLive;
  unsigned lowest = 0;
  CUresult code = TakeOut(slot_, wanted, &lowest);
  if (code == CUDA_SUCCESS) code = TakeOutModes(slot_, lowest);
  if (code != CUDA_SUCCESS) BringBack(slot_);
  Conclude(code);
}

CUGUEST_END_INTERNAL_NAMESPACE
