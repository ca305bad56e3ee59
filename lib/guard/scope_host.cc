// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of HostScope, which takes out the scopes around it, and enters them again.

#include "cuguest/internal/scope.h"

#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/records.h"

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

// For the HostScope at `host`: takes out the records below it, the innermost first, down to
// `wanted` at least (kAny: as far as can be).
CUresult TakeOut(unsigned host, unsigned wanted) {
  CUresult result = CUDA_SUCCESS;
  bool is_innermost = true;
  bool has_wanted = wanted == kAny;
  for (unsigned slot = host; slot-- > 0;) {
    Record& record = records::At(slot);
    if (!records::IsOpen(record) || record.kind > Record::Kind::kExact) continue;
    const bool has_ended = record.state == Record::State::kEnded;
    if (is_innermost) {
      static_cast<void>(Identify(&record));  // if it fails, BringBack() tries once more
      result = LeaveFor(slot, Look(record), host);
      is_innermost = false;
    } else {
      bool is_out = false;
      const CUresult code = TakeOutIfOnTop(slot, host, &is_out);
      if (result == CUDA_SUCCESS) result = code;
      if (!is_out) break;
    }
    if (has_ended) records::Free(slot);
    has_wanted = has_wanted || slot == wanted;
  }
  return has_wanted || result != CUDA_SUCCESS ? result : CUDA_ERROR_ILLEGAL_STATE;
}

// Enters again what TakeOut() took, the outermost first.
void BringBack(unsigned host) {
  for (unsigned slot = 0; slot < host; ++slot) {
    Record& record = records::At(slot);
    if (record.state != Record::State::kOut || record.extra != host) continue;
    record.result = nesting::EnterAgain(&record);
    if (record.result != CUDA_SUCCESS) record.state = Record::State::kGone;
  }
}

CUresult CloseHost(unsigned slot, Location /*where*/) {
  BringBack(slot);
  records::Free(slot);
  return CUDA_SUCCESS;
}

constexpr nesting::KindCalls kHostCalls = {nullptr, nullptr, nullptr, &CloseHost};

}  // namespace

void Scope::EnterHost(const Scope* guard, Location where) noexcept {
  Prepare(nullptr, false, where);
  SetOutside();
  nesting::Bring(Kind::kHost, kHostCalls);
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
  const CUresult code = TakeOut(slot_, wanted);
  if (code != CUDA_SUCCESS) BringBack(slot_);
  Conclude(code);
}

CUGUEST_END_INTERNAL_NAMESPACE
