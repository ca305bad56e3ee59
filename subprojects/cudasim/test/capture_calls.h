// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call in every situation that captures make: what it must answer, and whether it invalidates the
// capture.

#ifndef CUDASIM_TEST_CAPTURE_CALLS_H_
#define CUDASIM_TEST_CAPTURE_CALLS_H_

#include <functional>
#include <vector>

#include "test/capture.h"

namespace cudasim_facts {

struct Situation {
  CUstreamCaptureMode mode;
  bool other_thread;
  bool relaxed;   // the thread, at the time of the call
  bool blocking;  // the capturing stream
};

struct Outcome {
  CUresult code;
  bool lost;
};

inline Outcome Refused(bool refused) {
  return {refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS, refused};
}

// What is expected of a call, by kind.
inline Outcome Fine(const Situation&) { return Refused(false); }
inline Outcome Always(const Situation&) { return Refused(true); }
inline Outcome Unsafe(const Situation& in) {
  if (in.relaxed || in.mode == kRelaxed) return Refused(false);
  return Refused(in.mode == kGlobal || !in.other_thread);
}
inline Outcome OnLegacy(const Situation& in) {
  return {in.blocking ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS, in.blocking};
}
inline Outcome WaitOnLegacy(const Situation& in) { return in.blocking ? OnLegacy(in) : Unsafe(in); }
inline Outcome LookOnLegacy(const Situation& in) { return {OnLegacy(in).code, false}; }
inline Outcome Captured(const Situation&) { return {CUDA_ERROR_CAPTURED_EVENT, true}; }
inline Outcome CapturedTime(const Situation&) { return {CUDA_ERROR_CAPTURED_EVENT, false}; }
inline Outcome Isolated(const Situation&) { return {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, true}; }
inline Outcome Illegal(const Situation&) { return {CUDA_ERROR_ILLEGAL_STATE, false}; }
inline Outcome NoHandle(const Situation&) { return {CUDA_ERROR_INVALID_HANDLE, false}; }
inline Outcome BeginOnLegacy(const Situation& in) {
  return in.blocking ? OnLegacy(in) : Outcome{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false};
}
inline Outcome EndOnLegacy(const Situation& in) { return in.blocking ? OnLegacy(in) : Illegal(in); }
inline Outcome DestroyOnLegacy(const Situation& in) {
  return in.blocking ? OnLegacy(in) : NoHandle(in);
}
inline Outcome LosesNoHandle(const Situation&) { return {CUDA_ERROR_INVALID_HANDLE, true}; }
inline Outcome NoValue(const Situation&) { return {CUDA_ERROR_INVALID_VALUE, false}; }
inline Outcome UnsafeNoValue(const Situation& in) {
  return Unsafe(in).lost ? Unsafe(in) : NoValue(in);
}

struct Call {
  const char* name;
  Outcome (*expected)(const Situation&);
  std::function<CUresult(const Guest&)> call;
};

inline CUresult TryIn(const Guest& guest, const Call& call, const Situation& in) {
  CUresult code = CUDA_ERROR_UNKNOWN;
  const auto body = [&] {
    code = InMode(in.relaxed ? kRelaxed : kGlobal, [&] { return call.call(guest); });
  };
  if (!in.other_thread) {
    body();
    return code;
  }
  OnAnotherThread([&] {
    OK(RAW(cuCtxPushCurrent)(guest.context.get()));
    body();
    OK(RAW(cuCtxPopCurrent)(nullptr));
  });
  return code;
}

// NOT_READY is for the query of work that a real device has not done yet.
inline bool IsCode(CUresult code, CUresult expected) {
  return code == expected || (expected == CUDA_SUCCESS && code == CUDA_ERROR_NOT_READY);
}

inline void Check(const Guest& guest, const Call& call, const Situation& in) {
  OK(RAW(cuEventRecord)(guest.recorded, guest.second));
  OK(Begin(guest.stream, in.mode));
  OK(guest.Fill(guest.stream));
  OK(guest.Record(guest.captured, guest.stream));
  const CUresult code = TryIn(guest, call, in);
  const Outcome expected = call.expected(in);
  BOOST_TEST_CONTEXT(call.name << ", mode " << in.mode << (in.other_thread ? ", other thread" : "")
                               << (in.relaxed ? ", relaxed" : "")
                               << (in.blocking ? ", blocking" : "")) {
    BOOST_CHECK_MESSAGE(IsCode(code, expected.code), code << " is not " << expected.code);
    BOOST_CHECK_EQUAL(StatusOf(guest.stream), expected.lost ? kLost : kActive);
    const auto end = expected.lost ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    BOOST_CHECK_EQUAL(End(guest.stream), end);
  }
}

// `device`: where the guest's other context is.
inline void CheckEverywhere(const std::vector<Call>& calls, CUdevice device = 0) {
  for (const bool blocking : {false, true}) {
    const Guest guest(blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING, device);
    for (const Call& call : calls) {
      for (const CUstreamCaptureMode mode : kModes) {
        for (const bool other_thread : {false, true}) {
          for (const bool relaxed : {false, true}) {
            Check(guest, call, {mode, other_thread, relaxed, blocking});
          }
        }
      }
    }
  }
}

template <typename Function>
CUresult InOther(const Guest& guest, const Function& function) {
  OK(RAW(cuCtxPushCurrent)(guest.other.get()));
  const CUresult code = function();
  OK(RAW(cuCtxPopCurrent)(nullptr));
  return code;
}

}  // namespace cudasim_facts

#endif  // CUDASIM_TEST_CAPTURE_CALLS_H_
