// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of cuguest_push() and cuguest_pop(): scopes that no object stands for.

#include "cuguest/internal/scope.h"

#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/records.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

CUresult CloseUnowned(unsigned slot) {
  const Record& record = records::At(slot);
  const Location place{record.file, record.line};
  const nesting::FirstLook look = nesting::Look(record);
  if (look.is_clean) return nesting::CloseAfter(slot, look, place);
  // A pop by hand in between has done what this one was meant for, and this one what an older one
  // was meant for, whose entry it has taken off.
  CUcontext now = nullptr;
  if (look.code == CUDA_SUCCESS && stack::Current(&now) == CUDA_SUCCESS && now != record.caller) {
    for (unsigned i = slot; i-- > 0;) {
      const Record& older = records::At(i);
      if (!records::IsOpen(older) || older.kind == Record::Kind::kCaptureMode) continue;
      if (older.owner != Record::Owner::kNobody) break;
      if (older.caller != now || older.ours.context != look.popped) continue;
      for (unsigned closed = slot + 1; closed-- > i;) {
        if (closed >= records::Depth()) continue;
        if (records::At(closed).owner == Record::Owner::kNobody) records::Free(closed);
      }
      return CUDA_SUCCESS;
    }
  }
  return nesting::CloseAfter(slot, look, place);
}

// Where pushes pile up of which one at least may be gone: what it left was not current when the
// next one began, or is what it found. Now and then, so that a pair costs what it did.
void ForgetNowAndThen() {
  constexpr unsigned kNowAndThen = 16;
  const unsigned depth = records::Depth();
  if (depth == 0 || depth % kNowAndThen != 0) return;
  for (unsigned slot = depth - kNowAndThen; slot < depth; ++slot) {
    const Record& push = records::At(slot);
    if (!nesting::IsPush(push)) continue;
    const bool is_last = slot + 1 == depth;
    const bool is_sure = push.ours.context != push.caller &&
                         (is_last || records::At(slot + 1).caller == push.ours.context);
    if (!is_sure) return nesting::ForgetPopped(depth);
  }
}

}  // namespace

CUresult Scope::PushUnowned(CUcontext context) noexcept {
  ForgetNowAndThen();
  Scope scope;
  scope.Enter(context, /*always_pushes=*/true, {"(cuguest_push)", 0});
  if (scope.IsInside()) records::At(scope.slot_).owner = Record::Owner::kNobody;
  scope.serial_ = 0;  // nobody's from now on
  return scope.result();
}

CUresult Scope::PopUnowned() noexcept {
  nesting::CloseEnded();
  for (unsigned slot = records::Depth(); slot-- > 0;) {
    Record& record = records::At(slot);
    if (record.owner != Record::Owner::kNobody || record.state == State::kFree ||
        record.state == State::kEnded) {
      continue;
    }
    if (record.state != State::kLive) {  // a HostScope has it, or had
      records::Free(slot);
      return CUDA_SUCCESS;
    }
    if (slot != records::Top(records::Resource::kContextStack)) {
      records::MarkEnded(&record);
      return kEndsLater;
    }
    const CUresult code = CloseUnowned(slot);
    nesting::CloseEnded();
    return code;
  }
  return CUDA_ERROR_ILLEGAL_STATE;
}

CUGUEST_END_INTERNAL_NAMESPACE
