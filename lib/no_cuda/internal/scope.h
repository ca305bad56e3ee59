// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A scope that is always entered, remembers what it was given, and has no effect. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_INTERNAL_SCOPE_H_
#define CUGUEST_LIB_NO_CUDA_INTERNAL_SCOPE_H_

#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/incident.h"
#include "cuguest/internal/current_context.h"
#include "cuguest/internal/incarnation.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

enum class Reported : unsigned char { kByResult, kByIncident };

class Scope {
 public:
  CUGUEST_HIDE static constexpr int kMaxExactDepth = 32;
  enum NotSet : unsigned char { kNotSet };
  CUGUEST_HIDE explicit Scope(NotSet) noexcept {}
  CUGUEST_HIDE explicit Scope(bool /*always_pushes*/ = false) noexcept {}
  CUGUEST_HIDE Scope(Scope&& other) noexcept
      : context_(other.context_), is_inside_(other.is_inside_) {
    other.context_ = nullptr;
    other.is_inside_ = false;
  }
  Scope& operator=(Scope&&) = delete;
  CUGUEST_HIDE ~Scope() = default;

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return true; }
  [[nodiscard]] CUGUEST_HIDE CUresult result() const noexcept { return CUDA_SUCCESS; }
  [[nodiscard]] CUGUEST_HIDE CUresult Unasked() const noexcept { return CUDA_SUCCESS; }
  [[nodiscard]] CUGUEST_HIDE const char* advice() const noexcept { return ""; }
  [[nodiscard]] CUGUEST_HIDE bool IsInside() const noexcept { return is_inside_; }
  [[nodiscard]] CUGUEST_HIDE CUcontext context() const noexcept { return context_; }
  [[nodiscard]] CUGUEST_HIDE ContextRef Ref() const noexcept { return ContextRef::Of(context_, 0); }
  [[nodiscard]] CUGUEST_HIDE CUcontext caller() const noexcept { return nullptr; }
  [[nodiscard]] CUGUEST_HIDE bool elided() const noexcept { return is_inside_; }
  [[nodiscard]] CUGUEST_HIDE CUstreamCaptureMode callers_mode() const noexcept {
    return CU_STREAM_CAPTURE_MODE_GLOBAL;
  }

  CUGUEST_HIDE void Enter(CUcontext context, bool /*always_pushes*/, Location /*where*/) noexcept {
    context_ = context;
    is_inside_ = true;
  }
  CUGUEST_HIDE void Enter(const ContextRef& context, bool always_pushes, Location where) noexcept {
    Enter(context.get(), always_pushes, where);
  }
  CUGUEST_HIDE void Enter(const CurrentContext& /*current*/, Location where) noexcept {
    Enter(CUcontext(), false, where);
  }
  CUGUEST_HIDE void EnterExactly(const Incarnation* context, Location where) noexcept {
    Enter(context != nullptr ? context->context : CUcontext(), true, where);
  }
  CUGUEST_HIDE void EnterHost(const Scope* /*guard*/, Location where) noexcept {
    Enter(CUcontext(), false, where);
  }
  CUGUEST_HIDE CUresult MoveTo(const Incarnation& to, Location /*where*/) noexcept {
    context_ = to.context;
    return CUDA_SUCCESS;
  }
  CUGUEST_HIDE CUresult Reassert() noexcept { return CUDA_SUCCESS; }
  CUGUEST_HIDE CUresult Leave(Reported /*end*/) noexcept {
    is_inside_ = false;
    return CUDA_SUCCESS;
  }
  CUGUEST_HIDE CUresult LeaveCaptureMode(Reported end) noexcept { return Leave(end); }

 private:
  CUcontext context_ = nullptr;
  bool is_inside_ = false;
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_INTERNAL_SCOPE_H_
