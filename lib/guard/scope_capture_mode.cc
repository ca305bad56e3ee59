// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of CaptureModeGuard.

#include "cuguest/internal/scope.h"

#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/records.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

// cuThreadExchangeStreamCaptureMode, where the driver has it.
CUresult ExchangeCaptureMode(CUstreamCaptureMode* mode) {
  const auto exchange = ResolvedDriver().ThreadExchangeStreamCaptureMode;
  return exchange != nullptr ? exchange(mode) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult CloseCaptureMode(unsigned slot, Location where) {
  const Record::CaptureModes modes = records::At(slot).modes;
  records::Free(slot);
  return RestoreCaptureMode(modes.ours, modes.callers, where);
}

CUresult ReassertCaptureMode(unsigned slot) {
  const Record record = records::At(slot);
  const CUresult code =
      RestoreCaptureMode(record.modes.ours, record.modes.ours, {record.file, record.line});
  const bool is_there = records::Find(slot, record.serial) != nullptr;  // or a listener has left it
  return code != CUDA_SUCCESS || is_there ? code : CUDA_ERROR_ILLEGAL_STATE;
}

constexpr nesting::KindCalls kCaptureModeCalls = {nullptr, nullptr, nullptr, &CloseCaptureMode,
                                                  &ReassertCaptureMode};

}  // namespace

CUresult RestoreCaptureMode(CUstreamCaptureMode ours, CUstreamCaptureMode callers,
                            Location where) noexcept {
  CUstreamCaptureMode mode = callers;
  const CUresult code = ExchangeCaptureMode(&mode);
  if (code == CUDA_SUCCESS && mode == ours) return CUDA_SUCCESS;
  const Incident::Repair repair =
      code == CUDA_SUCCESS ? Incident::Repair::kRepaired : Incident::Repair::kUnrepaired;
  return Report({true, Incident::Kind::kCaptureMode, repair, code, nullptr}, nullptr, where);
}

void Scope::EnterCaptureMode(CUstreamCaptureMode mode, Location where) noexcept {
  const Incarnation none = Incarnation::Unknown(nullptr);
  Prepare(nullptr, false, where);
  callers_mode_ = 0;
  CUresult code = CUDA_ERROR_INVALID_VALUE;
  const bool is_mode =
      mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
  if (!is_mode || TryDriver(&code) == nullptr) return SetFailed(code);
  nesting::Register(Kind::kCaptureMode, kCaptureModeCalls);
  if (Rarely(ThisThread::HasMail())) nesting::CloseEnded();
  ThisThread* const here = CallingThread();
  Record* record = nullptr;
  if (Mostly(here->IsReady())) {
    record = &SetInside(here, none, nullptr, where, Kind::kCaptureMode, false);
  } else {
    record = Begin(none.id);
    if (record == nullptr) return;
    record->SetLive(where.line, Kind::kCaptureMode, false);
    result_ = CUDA_SUCCESS;
  }
  ++here->capture_modes;
  CUstreamCaptureMode callers = mode;
  code = ExchangeCaptureMode(&callers);
  if (Rarely(code != CUDA_SUCCESS)) return Conclude(code);
  record->modes = {mode, callers};
  callers_mode_ = static_cast<unsigned char>(callers);
}

CUresult Scope::LeaveCaptureMode(Reported end) noexcept {
  ThisThread* const here = CallingThread();
  const Record& record = PlaceIn(*here);
  const bool is_last = serial_ != 0 && record.serial == serial_ && calls_ == &kCalls &&
                       here->depth == slot_ + 1 && record.state == State::kLive &&
                       here->IsOfProcess() && !ThisThread::HasMail();
  if (Rarely(!is_last)) return LeaveSpecially(end);
  serial_ = 0;
  const CUresult code = RestoreCaptureMode(record.modes.ours, record.modes.callers, where());
  --here->capture_modes;
  Leave(here);
  // One that has ended may be below scopes of the other resource, which Leave() looks at alone.
  if (Rarely(here->capture_modes != 0)) CloseEnded();
  return code;
}

CUGUEST_END_INTERNAL_NAMESPACE
