// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of stream.h share.

#ifndef CUGUEST_TEST_OBJECTS_STREAM_STREAMS_H_
#define CUGUEST_TEST_OBJECTS_STREAM_STREAMS_H_

#include <string>

#include "cuguest/objects/stream.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/support/capture.h"

namespace cuguest_streams {

using namespace cuguest_test;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Event;
using cuguest::PrimaryContext;
using cuguest::Stream;
using cuguest::StreamRef;

inline const CUstream kSpecial[] = {nullptr, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};

// The driver's code in a status, for OK() and IS().
inline CUresult Said(const absl::Status& status) {
  return cuguest::CodeOf(status).value_or(CUDA_ERROR_UNKNOWN);
}
template <typename T>
CUresult Said(const absl::StatusOr<T>& result) {
  return Said(result.status());
}

inline bool Mentions(const absl::Status& status, const std::string& text) {
  return status.message().find(text) != absl::string_view::npos;
}

inline ContextRef RefTo(const OwnContext& context) { return ContextRef::Borrow(context.get()); }

inline Stream MakeStream(const ContextRef& context, unsigned flags = CU_STREAM_NON_BLOCKING) {
  return Stream::Create(context, flags).value();
}
inline Event MakeEvent(const ContextRef& context, unsigned flags = CU_EVENT_DISABLE_TIMING) {
  return Event::Create(context, flags).value();
}

// A context that dies when told, and whose handle can be asked for until the object goes,
// because it stays an entry of this thread's stack.
class Mortal {
 public:
  Mortal() { SetStack({context_.get()}); }
  ~Mortal() { SetStack({}); }
  ContextRef ref() const { return RefTo(context_); }
  void Die() {
    const CUcontext context = context_.release();
    OnAnotherThread([=] { OK(RAW(cuCtxDestroy)(context)); });
  }

 private:
  OwnContext context_;
};

// A green context of the whole device, which holds the primary one.
class Green {
 public:
  Green() {
    OK(RAW(cuGreenCtxCreate)(&green_, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    OK(RAW(cuCtxFromGreenCtx)(&context_, green_));
  }
  Green(const Green&) = delete;
  Green& operator=(const Green&) = delete;
  ~Green() {
    if (green_ != nullptr) Destroy();
  }
  void Destroy() {
    OK(RAW(cuGreenCtxDestroy)(green_));
    green_ = nullptr;
  }
  CUcontext get() const { return context_; }
  ContextRef ref() const { return ContextRef::Borrow(context_); }

 private:
  CUgreenCtx green_ = nullptr;
  CUcontext context_ = nullptr;
};

inline boost::unit_test::precondition NeedsGreenContexts() {
  return cuguest_test::OnlyIf(
      [] { return cuguest_test::FindRawSymbol("cuGreenCtxCreate") != nullptr; },
      "needs a driver with green contexts");
}

}  // namespace cuguest_streams

#endif  // CUGUEST_TEST_OBJECTS_STREAM_STREAMS_H_
