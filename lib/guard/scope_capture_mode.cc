// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of CaptureModeGuard.

#include "cuguest/internal/scope.h"

#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"
#include "lib/guard/records.h"
#include "lib/guard/relaxed_scope.h"
#include "lib/guard/scope_relaxed.h"
#include "lib/stack/stack_repair.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

constexpr bool IsMode(CUstreamCaptureMode mode) {
  return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
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

}  // namespace

const nesting::KindCalls kCaptureModeCalls = {nullptr, nullptr, nullptr, &CloseCaptureMode,
                                              &ReassertCaptureMode};

CUresult ReportCaptureMode(CUresult code, Location where) noexcept {
  const Incident::Repair repair =
      code == CUDA_SUCCESS ? Incident::Repair::kRepaired : Incident::Repair::kUnrepaired;
  return Report({true, Incident::Kind::kCaptureMode, repair, code, nullptr}, nullptr, where);
}

CUresult RestoreCaptureMode(CUstreamCaptureMode ours, CUstreamCaptureMode callers,
                            Location where) noexcept {
  CUresult code;
  if (RestoreCaptureMode(ResolvedDriver(), {ours, callers}, &code)) return CUDA_SUCCESS;
  return ReportCaptureMode(code, where);
}

void Scope::EnterCaptureMode(CUstreamCaptureMode mode, Location where) noexcept {
  Prepare(nullptr, false, where);
  callers_mode_ = 0;
  const DriverTable* const driver = g_driver.load(std::memory_order_acquire);
  ThisThread* const here = CallingThread();
  if (Rarely(!IsMode(mode) || driver == nullptr || !here->IsReady())) {
    return EnterCaptureModeResolving(mode);
  }
  EnterCaptureModeOn(here, *driver, mode, where);
}

// As EnterResolving().
void Scope::EnterCaptureModeResolving(CUstreamCaptureMode mode) noexcept {
  CUresult code = CUDA_ERROR_INVALID_VALUE;
  const DriverTable* const driver = IsMode(mode) ? TryDriver(&code) : nullptr;
  if (driver == nullptr) return SetFailed(code);
  nesting::Register(Kind::kCaptureMode, kCaptureModeCalls);
  nesting::CloseEnded();
  Record* const record = Begin(Incarnation::kUnknownId);
  if (record == nullptr) return;
  record->SetLive(line_, Kind::kCaptureMode, false);
  result_ = CUDA_SUCCESS;
  ++CallingThread()->capture_modes;
  CUstreamCaptureMode callers = mode;
  code = ExchangeCaptureMode(*driver, &callers);
  SetModes(record, code, {mode, callers});
}

CUresult Scope::LeaveCaptureMode(Reported end) noexcept {
  ThisThread* const here = CallingThread();
  if (Rarely(!IsLastMode(*here))) return LeaveSpecially(end);
  serial_ = 0;
  CUresult code;
  if (!RestoreCaptureMode(ResolvedDriver(), PlaceIn(*here).modes, &code)) {
    code = ReportCaptureMode(code, where());
  }
  --here->capture_modes;
  Leave(here);
  // One that has ended may be below scopes of the other resource, which Leave() looks at alone.
  if (Rarely(here->capture_modes != 0)) CloseEnded();
  return code;
}

// The rest of EnterRelaxed(), with `code` of asking what is current.
[[gnu::noinline]] void Scope::EnterApart(Incarnation ours, CUcontext caller, CUresult code,
                                         Scope* guard, Scope* mode) noexcept {
  if (code == CUDA_SUCCESS && CallingThread()->IsReady()) {
    return EnterChecked(ours, caller, CheckIncarnation(ours), guard, mode);
  }
  guard->EnterResolving(ours.id, caller, code);
  guard->RelaxInside(mode);
}

// The same, with `code` of looking at `ours`.
[[gnu::noinline]] void Scope::EnterChecked(Incarnation ours, CUcontext caller, CUresult code,
                                           Scope* guard, Scope* mode) noexcept {
  guard->EnterOn(CallingThread(), ours, caller, code, /*always_pushes=*/false, guard->where());
  guard->RelaxInside(mode);
}

// Where `this` has entered, or failed to.
void Scope::RelaxInside(Scope* mode) const noexcept {
  if (result_ != CUDA_SUCCESS) return mode->StayOutside(/*always_pushes=*/false);
  mode->EnterCaptureMode(CU_STREAM_CAPTURE_MODE_RELAXED, where());
}

CUGUEST_END_INTERNAL_NAMESPACE
