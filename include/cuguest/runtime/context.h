// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// The runtime has no handle for a context: it works in the current one, and where none is, it
/// makes the primary context of device 0 current for good. `RuntimeContext` says in which context
/// the runtime would work, without asking the runtime, which might create it. For the runtime to
/// work in a context of the driver, make it current (ContextGuard): there is nothing to convert.
///
///   absl::StatusOr<RuntimeContext> next = runtime::RuntimeContext::Query();
///   if (!next.ok()) return next.status();
///   if (next->kind == RuntimeContext::Kind::kCreates) return TheCallerMustChooseAContext();

#ifndef CUGUEST_RUNTIME_CONTEXT_H_
#define CUGUEST_RUNTIME_CONTEXT_H_

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/internal/primary.h"
#include "cuguest/primary_context.h"
#include "cuguest/runtime/binding.h"
#include "cuguest/status.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// What the calling thread's next runtime call works in, if it needs a context.
/// Threads: value. It describes the thread that asked, at that time.
struct RuntimeContext {
  enum class Kind : unsigned char {
    kUser,       ///< a context that somebody made is current, a green one too
    kPrimary,    ///< the primary context of `device` is current
    kBinds,      ///< none is: the call makes the active primary context of `device` current
    kCreates,    ///< the same, and creates it first
    kDestroyed,  ///< the current one is destroyed: the call creates a primary context again (after
                 ///< a reset); with any other it fails: cudaErrorDeviceUninitialized
  };

  Kind kind;
  /// Empty for the last three. Not owned.
  ContextRef context;
  /// The current context's, or device 0 where there is none. A thread that has called
  /// cudaSetValidDevices, and never cudaSetDevice, takes the first device of that list instead: no
  /// call reports it, and `kind` and `device` describe device 0 (Note [What cudaGetDevice says]).
  Device device;

  /// Whether the runtime works in a primary context, or will.
  [[nodiscard]] bool is_primary() const {
    return kind == Kind::kPrimary || kind == Kind::kBinds || kind == Kind::kCreates;
  }

  /// "works in the primary context of device 0, which is current", ...
  [[nodiscard]] std::string ToString() const {
    const std::string on = std::to_string(device.get());
    switch (kind) {
      case Kind::kUser:
        return "works in the current context, which is not the primary one of device " + on;
      case Kind::kPrimary:
        return "works in the primary context of device " + on + ", which is current";
      case Kind::kBinds:
        return "makes the primary context of device " + on + " current, which is active";
      case Kind::kCreates:
        return "creates the primary context of device " + on + " and makes it current";
      case Kind::kDestroyed:
        return "finds the current context, on device " + on + ", destroyed";
    }
    return "";
  }

  /// Stack, last error: not touched. Creates no context, but for the race under Count.
  /// Count:   where SharedContext::Create did not create the current context, and this copy of
  ///          cuguest never had a reference to its device's primary, an active one is retained and
  ///          released, once: only a retain returns its handle. If the last holder releases it at
  ///          that very moment, the driver creates the context, and the release destroys it.
  /// Errors:  those of Driver::GetInitialized(), and the driver's.
  /// Cost:    3 driver calls with nothing current; 3 or 4 with a context, that once 5, or 7 if the
  ///          primary is active. Those about the primary take the driver's lock: not for hot paths.
  [[nodiscard]] static absl::StatusOr<RuntimeContext> Query();
};

namespace impl {

inline absl::StatusOr<RuntimeContext> WithNothingCurrent() {
  const absl::StatusOr<Device> first = DeviceAt(Device::Ordinal{0});
  if (!first.ok()) return first.status();
  const PrimaryContext::State state = PrimaryContext::Query(*first);
  CUGUEST_RETURN_IF_ERROR(state);
  using Kind = RuntimeContext::Kind;
  return RuntimeContext{state.active ? Kind::kBinds : Kind::kCreates, ContextRef(), *first};
}

}  // namespace impl

inline absl::StatusOr<RuntimeContext> RuntimeContext::Query() {
  const absl::StatusOr<const Driver*> driver = Driver::GetInitialized();
  if (!driver.ok()) return driver.status();
  CUcontext current = nullptr;
  const CUresult code = (*driver)->CtxGetCurrent(&current);
  if (code != CUDA_SUCCESS) return ToStatus(code, "look at the current context");
  if (current == nullptr) return impl::WithNothingCurrent();
  const absl::StatusOr<Device> device = CurrentDevice();
  if (!device.ok()) return device.status();
  const ContextRef context = ContextRef::Borrow(current);
  if (context.result() == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    return RuntimeContext{Kind::kDestroyed, ContextRef(), *device};
  }
  if (!context.ok()) return ToStatus(context);
  bool is_primary = false;
  const CUresult asked = internal::AskIfPrimary(context, &is_primary);
  if (asked != CUDA_SUCCESS) return ToStatus(asked, "ask whether the current context is primary");
  return RuntimeContext{is_primary ? Kind::kPrimary : Kind::kUser, context, *device};
}

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_CONTEXT_H_
