// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `PeerAccess` lets kernels of one context use the memory of another device's, for a scope.
/// Copies do not need it (copy.h), but are faster with it.
///
///   absl::StatusOr<PeerAccess> access = PeerAccess::Enable(mine, theirs);
///   if (access.ok() || absl::IsUnimplemented(access.status())) ...

#ifndef CUGUEST_OBJECTS_PEER_ACCESS_H_
#define CUGUEST_OBJECTS_PEER_ACCESS_H_

#include <cuda.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// The objects of one pair in this copy of cuguest share one access, which lasts until the last of
/// them is destroyed, in any order. Other copies, and the host, are not counted: see Note [What the
/// driver does not tell].
/// Stack:   as it was. Count: none; it keeps neither context alive.
/// Threads: distinct; threads take turns at having the driver switch. In a tool's callback, which
///          the driver makes out of such a call, Enable() is refused with CUDA_ERROR_ILLEGAL_STATE.
///          There, as in a stream callback, Release() is with CUDA_ERROR_NOT_PERMITTED, and the
///          destructor owes (docs/limits.md).
/// Captures: invalidates none: it is enabled and disabled in relaxed mode, because the driver
///           otherwise ends captures for it, as for an allocation (docs/guarantees.md).
/// Source:  CUDA Driver API, "Peer Context Memory Access"; CUDA Programming Guide, "Peer-to-Peer
///          Memory Copy"; docs/guarantees.md.
class CUGUEST_API PeerAccess {
 public:
  /// What the link from one device to another can do, enabled or not.
  struct Link {
    bool access;        ///< kernels may use the other's memory, once that is enabled
    bool atomics;       ///< with native atomic operations over the whole link
    bool arrays;        ///< CUDA arrays too
    int relative_rank;  ///< 0 is the fastest link of this machine; undefined without access
  };

  /// From `device` to the memory of `peer`. A device has no link to itself: all false.
  /// Errors: those of Driver::GetInitialized(), and kNotFound: no such device.
  /// Cost:   four driver calls; no context.
  /// Needs:  for more than `access`: CUDA 8.0; below that the rest is false and 0.
  [[nodiscard]] static absl::StatusOr<Link> Query(Device device, Device peer);

  /// Whether Enable() from a context on `device` to one on `peer` can do it, and why not. Enables
  /// nothing.
  /// Errors: those of Driver::GetInitialized(), and
  ///         kNotFound       no such device
  ///         kUnimplemented  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, and why: it is the same device;
  ///                         one is an instance of a device in MIG mode; or the driver denies the
  ///                         link, without a reason, and then the text has both PCI ids and what
  ///                         usually is: the topology, an IOMMU that translates, PCIe ACS
  /// Cost:   one driver call; no context. At most seven more for the reason.
  [[nodiscard]] static absl::Status Check(Device device, Device peer);

  /// Lets `context` use the memory of `peer`; not the other way round. If that is enabled already,
  /// a driver call fails with 704; there is no other way to know.
  /// Errors: those of ObjectDriver::Get(), and as follows; nothing has changed then.
  ///         kFailedPrecondition  one of them was destroyed or reset, or a ref is empty; in a
  ///                              tool's callback (CUDA_ERROR_ILLEGAL_STATE)
  ///         kUnimplemented       the devices have no link, or are the same one: see Check()
  ///         kResourceExhausted   the device has as many peers as it can
  ///         kDataLoss            an earlier sticky error
  /// Cost:   seven driver calls if `context` is current, else nine.
  [[nodiscard]] static absl::StatusOr<PeerAccess> Enable(const ContextRef& context,
                                                         const ContextRef& peer);

  CUGUEST_HIDE PeerAccess() noexcept = default;  // of nobody
  CUGUEST_HIDE PeerAccess(PeerAccess&& other) noexcept
      : context_(std::exchange(other.context_, ContextRef())),
        peer_(std::exchange(other.peer_, ContextRef())),
        was_enabled_(other.was_enabled_) {}
  CUGUEST_HIDE PeerAccess& operator=(PeerAccess other) noexcept {
    std::swap(context_, other.context_);
    std::swap(peer_, other.peer_);
    std::swap(was_enabled_, other.was_enabled_);
    return *this;
  }

  /// As Release(), its result dropped; allocates nothing.
  ~PeerAccess();

  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept { return context_; }
  [[nodiscard]] CUGUEST_HIDE const ContextRef& peer() const noexcept { return peer_; }

  /// Whether code other than this copy's PeerAccess had enabled it, which then has to disable it.
  [[nodiscard]] CUGUEST_HIDE bool was_enabled() const noexcept { return was_enabled_; }

  /// Disables the access, unless another object shares it or other code had enabled it. Success too
  /// if a context was destroyed, and the access with it, or if other code has disabled it.
  /// Errors: the driver's code; it is still enabled, and Release() may be tried again.
  /// Cost:   as Enable().
  absl::Status Release();

  /// Gives up the duty to disable it, without a driver call: no other object disables it either.
  CUGUEST_HIDE void Leak() noexcept { context_ = peer_ = ContextRef(); }

 private:
  CUGUEST_HIDE PeerAccess(const ContextRef& context, const ContextRef& peer,
                          bool was_enabled) noexcept
      : context_(context), peer_(peer), was_enabled_(was_enabled) {}

  CUresult End() noexcept;

  ContextRef context_;
  ContextRef peer_;
  bool was_enabled_ = false;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_PEER_ACCESS_H_
