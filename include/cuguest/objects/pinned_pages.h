// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `PinnedPages` page-locks memory that is the user's, for as long as a library works with it, and
/// leaves it as it was: pages that somebody else has pinned stay pinned.
///
///   absl::StatusOr<PinnedPages> pages = PinnedPages::Pin(context, address, bytes);
///   if (!pages.ok()) return pages.status();
///   absl::StatusOr<DeviceView<char>> view =
///       DeviceView<char>::Borrow(static_cast<char*>(pages->data()), bytes);   // for a kernel

#ifndef CUGUEST_OBJECTS_PINNED_PAGES_H_
#define CUGUEST_OBJECTS_PINNED_PAGES_H_

#include <cuda.h>

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

namespace internal {
struct PagePin;
}  // namespace internal

/// The objects of one range, and of parts of it, in this copy of cuguest share one pin, which lasts
/// until the last of them is destroyed, in any order, or its context is. Other copies, and the
/// host, are somebody else: what they have pinned is used and never unpinned, and ends when they
/// say. What the user unpins while an object has it is plain again: a view of it is refused by
/// copies, as far as the driver notices, and nothing is unpinned twice.
/// Requires: the memory outlives the objects.
/// Stack:   as it was.
/// Count:   none; it keeps no context alive.
/// Threads: distinct; threads take turns at having the driver pin. In a tool's callback, which the
///          driver makes out of such a call, Pin() is refused with CUDA_ERROR_ILLEGAL_STATE. Not
///          from a stream callback (kPermissionDenied). In both, Release() is refused with
///          CUDA_ERROR_NOT_PERMITTED, and the destructor owes (docs/limits.md). Not from a static
///          or thread_local destructor: see Note [No driver calls after main].
/// Captures: invalidates none: it pins and unpins in relaxed mode.
/// Source:  CUDA Driver API, cuMemHostRegister, cuMemHostUnregister; docs/guarantees.md.
class CUGUEST_API PinnedPages {
 public:
  /// Pins `bytes` bytes from `pages` on, which need not be whole pages, in `context`. `flags` of
  /// cuMemHostRegister; they are without effect on what is pinned already. No bytes: empty, and
  /// nothing is asked.
  /// Errors: those of ObjectDriver::Get(), and as follows; nothing has changed then.
  ///         kInvalidArgument     null; memory of CUDA's that is not on the host; addresses that
  ///                              there are not; other flags; pages that are mapped read-only, or
  ///                              shared from a file, without CU_MEMHOSTREGISTER_READ_ONLY: the
  ///                              text has how they are mapped
  ///         kAlreadyExists       CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: part of it is pinned
  ///                              already; the driver can neither use that part for the whole
  ///                              nor pin the whole
  ///         kFailedPrecondition  the context was destroyed or reset, or the ref is empty; in a
  ///                              tool's callback (CUDA_ERROR_ILLEGAL_STATE)
  ///         kResourceExhausted   more than can be locked
  ///         kUnimplemented       an adopted driver (Driver::Adopt) without cuMemHostRegister;
  ///                              CU_MEMHOSTREGISTER_READ_ONLY on a device that does not support
  ///                              it: the text has the attribute, and copies from pages that are
  ///                              not pinned work
  ///         kDataLoss            an earlier sticky error
  /// Cost:   eleven driver calls if the context is current, else thirteen; three fewer for what is
  ///         pinned already. To pin takes longer than to allocate device memory.
  /// Needs:  CUDA 10.2; below that what is pinned already is kUnimplemented, as a driver does not
  ///         report where it begins and ends.
  [[nodiscard]] static absl::StatusOr<PinnedPages> Pin(const ContextRef& context, void* pages,
                                                       std::size_t bytes, unsigned flags = 0);

  CUGUEST_HIDE PinnedPages() noexcept = default;  // empty
  CUGUEST_HIDE PinnedPages(PinnedPages&& other) noexcept
      : pages_(std::exchange(other.pages_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        context_(std::exchange(other.context_, ContextRef())),
        pin_(std::exchange(other.pin_, nullptr)) {}
  CUGUEST_HIDE PinnedPages& operator=(PinnedPages other) noexcept {
    std::swap(pages_, other.pages_);
    std::swap(bytes_, other.bytes_);
    std::swap(context_, other.context_);
    std::swap(pin_, other.pin_);
    return *this;
  }

  /// As Release(), its result dropped; allocates nothing.
  ~PinnedPages();

  /// What was given; nullptr and 0 if empty.
  [[nodiscard]] CUGUEST_HIDE void* data() const noexcept { return pages_; }
  [[nodiscard]] CUGUEST_HIDE std::size_t size_bytes() const noexcept { return bytes_; }

  /// The incarnation of the context that the pin belongs to, and ends with: not the one that was
  /// given, if somebody else has pinned it, or that is a green context.
  [[nodiscard]] CUGUEST_HIDE const ContextRef& context() const noexcept { return context_; }

  /// Whether code other than this copy's PinnedPages had pinned it, which then has to unpin it.
  [[nodiscard]] CUGUEST_HIDE bool was_pinned() const noexcept {
    return bytes_ != 0 && pin_ == nullptr;
  }

  /// Unpins it, unless another object shares it or other code had pinned it. Success too if its
  /// context was destroyed or other code has unpinned it; then nothing of anybody's is unpinned.
  /// Requires: a device's work with the pages is done.
  /// Errors: the driver's code; it is still pinned, and Release() may be tried again.
  /// Cost:   eight driver calls if its context is current, else ten; none if it was pinned.
  absl::Status Release();

  /// Gives up the duty to unpin it, without a driver call: no other object unpins it either.
  CUGUEST_HIDE void Leak() noexcept {
    pages_ = nullptr;
    bytes_ = 0;
    context_ = ContextRef();
    pin_ = nullptr;
  }

 private:
  CUresult End() noexcept;

  void* pages_ = nullptr;
  std::size_t bytes_ = 0;
  ContextRef context_;
  internal::PagePin* pin_ = nullptr;  // nullptr: somebody else's
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_PINNED_PAGES_H_
