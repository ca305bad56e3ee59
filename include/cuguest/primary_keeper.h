// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// `PrimaryKeeper` keeps, for the object that has it, the primary contexts that its work has
/// created, so that the next call finds them active: one reference for each device, until they are
/// given back by name or the keeper ends.
///
///   const Acquired acquired = AcquireFromPointer(target, IfInactive::kCreate);
///   const Error kept = keeper_.Keep(acquired);   // a member of the library's handle
///
/// For the process it is done by IfInactive::kCreateAndKeep (acquire.h, Note [Kept for the
/// process]), and given back by ReleaseKeptPrimary().

#ifndef CUGUEST_PRIMARY_KEEPER_H_
#define CUGUEST_PRIMARY_KEEPER_H_

#include <cuda.h>

#include "cuguest/acquire.h"
#include "cuguest/device.h"
#include "cuguest/error.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// Stack:   never touched.
/// Count:   at most one reference to each primary context, however often it is kept. A reset of the
///          context takes none away.
/// Threads: any; the destructor not at the same time as another member.
/// Fork:    a child gives nothing back: its parent's references are not its own.
class CUGUEST_API PrimaryKeeper {
 public:
  /// Keeps nothing. No driver call.
  CUGUEST_HIDE constexpr PrimaryKeeper() noexcept = default;
  PrimaryKeeper(const PrimaryKeeper&) = delete;
  PrimaryKeeper& operator=(const PrimaryKeeper&) = delete;
  /// As ReleaseAll(), whose result nobody gets. What cannot be given back is as
  /// Incident::Kind::kOwed says. Not from a static destructor: see Note [No driver calls after
  /// main].
  ~PrimaryKeeper();

  /// Keeps the primary context that `acquired` holds, by a reference of its own; does nothing where
  /// it holds none (holds()), or that device's is kept already.
  /// Errors: nothing more is kept then.
  ///         CUDA_ERROR_NOT_SUPPORTED  the device's number is over 63
  ///         that of acquired.error(), if it is empty, and those of PrimaryContext::Retain
  /// Cost:   none where there is nothing to do; else two driver calls.
  Error Keep(const Acquired& acquired) noexcept;

  /// Whether a reference to the primary context of `device` is kept. No driver call.
  [[nodiscard]] bool Keeps(Device device) const noexcept;

  /// Gives it back. The context goes on until the last of the others is released; what was kept is
  /// created and kept anew by the next call that asks for that. Nothing to do if none is kept.
  /// Errors: those of PrimaryContext::Release: nothing is kept all the same, unless it is
  ///         CUDA_ERROR_NOT_PERMITTED, in a stream callback: it is kept as before then.
  /// Cost:   one driver call.
  Error Release(Device device) noexcept;

  /// The same of all devices; the first error.
  Error ReleaseAll() noexcept;

 private:
  unsigned long long kept_ = 0;  // a bit for each device; atomic
};

/// Gives back what IfInactive::kCreateAndKeep has kept on `device` for this copy of cuguest.
/// Stack:   never touched.
/// Threads: any.
/// Errors:  those of PrimaryKeeper::Release.
/// Cost:    one driver call where one is kept.
CUGUEST_API Error ReleaseKeptPrimary(Device device) noexcept;

/// The same of all devices: for a library that is about to be unloaded.
/// Stack:   never touched.
/// Threads: any.
/// Errors:  the first of those of ReleaseKeptPrimary.
/// Cost:    one driver call for each that is kept.
CUGUEST_API Error ReleaseKeptPrimaries() noexcept;

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_PRIMARY_KEEPER_H_
