// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a lend of a library's handle does in line (libraries/handle_pool.cc): a context that is
// entered, and captures that are relaxed in it, again and again.                       tier: 2

#ifndef CUGUEST_LIB_GUARD_SCOPE_RELAXED_H_
#define CUGUEST_LIB_GUARD_SCOPE_RELAXED_H_

#include <cuda.h>

#include <atomic>

#include "cuguest/internal/scope.h"
#include "lib/core/driver_access.h"
#include "lib/guard/nesting.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

extern const nesting::KindCalls kCaptureModeCalls;

// cuThreadExchangeStreamCaptureMode, where the driver has it.
inline CUresult ExchangeCaptureMode(const DriverTable& driver, CUstreamCaptureMode* mode) {
  const auto exchange = driver.ThreadExchangeStreamCaptureMode;
  return Mostly(exchange != nullptr) ? exchange(mode) : CUDA_ERROR_NOT_SUPPORTED;
}

// The thread had another mode than the scope's when it was to be restored, or `code` says why that
// failed: an incident.
[[gnu::cold]] CUresult ReportCaptureMode(CUresult code, Location where) noexcept;

// Whether the thread had the scope's mode, and has its caller's now; `code` is what the driver
// said.
inline bool RestoreCaptureMode(const DriverTable& driver, const Record::CaptureModes& modes,
                               CUresult* code) {
  CUstreamCaptureMode mode = modes.callers;
  *code = ExchangeCaptureMode(driver, &mode);
  return Mostly(*code == CUDA_SUCCESS && mode == modes.ours);
}

// Needs Prepare(), and room for a record.
void Scope::EnterCaptureModeOn(ThisThread* here, const DriverTable& driver,
                               CUstreamCaptureMode mode, Location where) noexcept {
  nesting::Register(Kind::kCaptureMode, kCaptureModeCalls);
  Record& record = SetInside(here, Incarnation::Unknown(nullptr), nullptr, where,
                             Kind::kCaptureMode, /*always_pushes=*/false);
  ++here->capture_modes;
  CUstreamCaptureMode callers = mode;
  const CUresult code = ExchangeCaptureMode(driver, &callers);
  SetModes(&record, code, {mode, callers});
}

// At once where the context is current already, with the thread looked up and looked at once; else
// one after the other.
void Scope::EnterRelaxed(Incarnation ours, Scope* guard, Scope* mode, Location where) noexcept {
  guard->Prepare(ours.context, /*always_pushes=*/false, where);
  CUcontext caller = nullptr;
  CUresult code = CUDA_ERROR_INVALID_CONTEXT;
  if (Mostly(ours.context != nullptr)) code = GetCurrent(&caller);
  const DriverTable* const driver = g_driver.load(std::memory_order_acquire);
  ThisThread* const here = CallingThread();
  if (Rarely(code != CUDA_SUCCESS || caller != ours.context || driver == nullptr ||
             !here->IsReady())) {
    return EnterApart(ours, caller, code, guard, mode);
  }
  code = CheckIncarnation(ours);
  if (Rarely(code != CUDA_SUCCESS || !here->HasRoom() || !here->HasRoomForTwo())) {
    return EnterChecked(ours, caller, code, guard, mode);
  }
  guard->SetInside(here, ours, caller, where, Kind::kElided, /*always_pushes=*/false);
  mode->Prepare(nullptr, /*always_pushes=*/false, where);
  mode->EnterCaptureModeOn(here, *driver, CU_STREAM_CAPTURE_MODE_RELAXED, where);
}

CUresult Scope::LeaveRelaxedSeen(Scope* guard, Scope* mode) noexcept {
  ThisThread* const here = CallingThread();
  const Record& record = mode->PlaceIn(*here);
  const Record& below = guard->PlaceIn(*here);
  if (Rarely(!mode->IsLastMode(*here) || guard->slot_ + 1 != mode->slot_ ||
             below.serial != guard->serial_ || !below.IsAsEntered() ||
             below.kind != Kind::kElided)) {
    const CUresult code = mode->LeaveCaptureMode(Reported::kByResult);
    guard->LeaveSeen();
    return code;
  }
  mode->serial_ = 0;
  CUresult code;
  if (!RestoreCaptureMode(ResolvedDriver(), record.modes, &code)) {
    code = ReportCaptureMode(code, mode->where());
  }
  --here->capture_modes;
  guard->Leave(here);
  if (Rarely(here->capture_modes != 0)) CloseEnded();
  return code;
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_GUARD_SCOPE_RELAXED_H_
