// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/pinned_pages.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/internal/memory_range.h"
#include "cuguest/objects/memory.h"
#include "cuguest/status.h"
#include "lib/acquire/pointer_attributes.h"
#include "lib/core/driver_access.h"
#include "lib/objects/memory/host_mapping.h"
#include "lib/objects/memory/in_context.h"
#include "lib/objects/memory/one_at_a_time.h"
#include "lib/objects/object_driver.h"
#include "lib/share/ending.h"
#include "lib/share/owed.h"
#include "lib/status/error_status.h"
#include "lib/status/object_text.h"
#include "lib/status/status_macros.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// What the driver says of an address, as far as it tells one pin from another.
struct PinnedRange {
  bool is_known = false;
  bool is_pinned_host = false;
  CUcontext context = nullptr;
  MemoryExtent extent;
  // Of a pin that was made again at the same address it differs. 0 where the driver has none.
  unsigned long long id = 0;

  bool Holds(CUdeviceptr pointer, std::size_t bytes) const noexcept {
    return extent.size != 0 && bytes <= extent.base + extent.size - pointer;
  }
};

// What the objects of one range share.
struct PagePin {
  void* pages = nullptr;  // as they were registered
  PinnedRange range;
  ContextRef context;
  unsigned objects = 0;
  PagePin* next = nullptr;

  bool Is(const PinnedRange& found, const ContextRef& of) const noexcept {
    return range.extent.base == found.extent.base && range.extent.size == found.extent.size &&
           range.id == found.id && context == of;
  }
};

namespace {

PagePin* g_first_pin = nullptr;  // of the thread that has the turn

std::string PinText(const void* pages, std::size_t bytes) {
  return absl::StrCat("pin ", bytes, " bytes at ", PointerText(AddressOf(pages)));
}

CUresult Look(const ObjectDriver& driver, CUdeviceptr pointer, PinnedRange* range) noexcept {
  PointerAttributes read;
  const CUresult code = ReadAttributes(driver, pointer, &read);
  *range = PinnedRange();
  range->is_known = read.IsKnown();
  range->is_pinned_host =
      read.type == CU_MEMORYTYPE_HOST && read.context != nullptr && read.is_managed == 0;
  range->context = read.context;
  range->extent = read.Extent();
  return code == CUDA_SUCCESS ? ReadBufferId(driver, pointer, &range->id) : code;
}

PagePin* FindPin(const PinnedRange& range, const ContextRef& context) noexcept {
  PagePin* pin = g_first_pin;
  while (pin != nullptr && !pin->Is(range, context)) pin = pin->next;
  return pin;
}

void DeletePin(const PagePin* pin) noexcept {
  PagePin** place = &g_first_pin;
  while (*place != pin) place = &(*place)->next;
  *place = pin->next;
  delete pin;
}

// `found` is what the driver says of the first byte.
absl::Status RefusePart(const PinnedRange& found, const void* pages, std::size_t bytes) {
  const std::string what =
      found.is_known
          ? absl::StrCat("the first ", found.extent.base + found.extent.size - AddressOf(pages))
          : std::string("some, but not the first,");
  return internal::RefusalStatus(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, PinText(pages, bytes),
                                 absl::StrCat("of which ", what, " are pinned already"));
}

// Of memory that CUDA knows: what has it pinned, or why it cannot be.
absl::StatusOr<PagePin*> JoinPin(const PinnedRange& found, const void* pages, std::size_t bytes,
                                 ContextRef* owner) {
  if (!found.is_pinned_host) {
    CUGUEST_ASSIGN_OR_RETURN(const MemoryDescription memory, Describe(pages));
    return absl::InvalidArgumentError(
        absl::StrCat(PinText(pages, bytes), ": that is ", memory.ToString()));
  }
  if (found.extent.size == 0) {
    return internal::RefusalStatus(
        kCallRequiresNewerDriver, PinText(pages, bytes),
        "pinned already, and where that begins and ends this driver does not say");
  }
  if (!found.Holds(AddressOf(pages), bytes)) return RefusePart(found, pages, bytes);
  *owner = ContextRef::Borrow(found.context);
  CUGUEST_RETURN_IF_CUDA_ERROR(owner->result(), PinText(pages, bytes), ContextText(found.context));
  PagePin* const pin = FindPin(found, *owner);
  if (pin != nullptr) ++pin->objects;
  return pin;
}

// Why the driver did not pin pages with `flags`, as far as their mapping tells it.
std::string RefusalText(CUresult code, unsigned flags, const void* pages, std::size_t bytes) {
  std::string text = absl::StrCat("flags ", flags);
  const bool is_read_only = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
  if (code == CUDA_ERROR_NOT_SUPPORTED && is_read_only) {
    return text +
           ", which the device does not support: its CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_"
           "SUPPORTED is 0; copy from read-only pages as they are, not pinned";
  }
  if (code != CUDA_ERROR_INVALID_VALUE) return text;
  const HostMapping mapping = FindMapping(AddressOf(pages), AddressOf(pages) + bytes);
  if (mapping.permissions.empty()) return text;
  absl::StrAppend(&text, ", pages mapped ", mapping.permissions,
                  mapping.file.empty() ? "" : " from ", mapping.file);
  if (is_read_only || (mapping.IsWritable() && !mapping.IsShared())) return text;
  return text + (mapping.IsWritable() ? ", a shared file" : ", which are read-only") +
         ": pin them with CU_MEMHOSTREGISTER_READ_ONLY, where the device's "
         "CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED is 1";
}

// Of memory that CUDA did not know; nullptr if somebody was faster.
absl::StatusOr<PagePin*> MakePin(const ObjectDriver& driver, void* pages, std::size_t bytes,
                                 unsigned flags, PinnedRange* found) {
  auto pin = std::make_unique<PagePin>();
  CUresult code = driver.MemHostRegister(pages, bytes, flags);
  const bool is_ours = code == CUDA_SUCCESS;
  if (is_ours || code == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) {
    code = Look(driver, AddressOf(pages), found);
    if (!is_ours && code == CUDA_SUCCESS) {
      if (!found->is_known) return RefusePart(*found, pages, bytes);
      return nullptr;
    }
  }
  if (is_ours && code == CUDA_SUCCESS) {
    pin->context = ContextRef::Borrow(found->context);
    code = pin->context.result();
  }
  if (is_ours && code != CUDA_SUCCESS) static_cast<void>(driver.MemHostUnregister(pages));
  CUGUEST_RETURN_IF_CUDA_ERROR(code, PinText(pages, bytes), RefusalText(code, flags, pages, bytes));
  pin->pages = pages;
  pin->range = *found;
  pin->objects = 1;
  pin->next = g_first_pin;
  g_first_pin = pin.get();
  return pin.release();
}

// `*owner` becomes the incarnation that the pin belongs to; nullptr: it is somebody else's.
absl::StatusOr<PagePin*> MakeOrJoinPin(const ObjectDriver& driver, void* pages, std::size_t bytes,
                                       unsigned flags, ContextRef* owner) {
  PinnedRange found;
  CUGUEST_RETURN_IF_CUDA_ERROR(Look(driver, AddressOf(pages), &found), PinText(pages, bytes));
  if (!found.is_known) {
    CUGUEST_ASSIGN_OR_RETURN(PagePin* const made, MakePin(driver, pages, bytes, flags, &found));
    if (made != nullptr) {
      *owner = made->context;
      return made;
    }
  }
  return JoinPin(found, pages, bytes, owner);
}

// One object less; `is_over` if its context is.
CUresult LeavePin(const ObjectDriver* driver, PagePin* pin, void* pages, bool is_over) noexcept {
  const OneAtATime<PagePin> turn;
  if (!turn.ok()) return kStillHeld;
  if (pin->objects == 1 && !is_over) {
    PinnedRange now;
    CUresult code = Look(*driver, AddressOf(pages), &now);
    const bool is_still = code == CUDA_SUCCESS && now.is_pinned_host &&
                          now.context == pin->context.get() && pin->Is(now, pin->context);
    if (is_still) code = driver->MemHostUnregister(pin->pages);
    if (code != CUDA_SUCCESS) return code;
  }
  if (--pin->objects == 0) DeletePin(pin);
  return CUDA_SUCCESS;
}

}  // namespace
CUGUEST_END_INTERNAL_NAMESPACE

CUGUEST_BEGIN_NAMESPACE

absl::StatusOr<PinnedPages> PinnedPages::Pin(const ContextRef& context, void* pages,
                                             std::size_t bytes, unsigned flags) {
  PinnedPages pinned;
  if (bytes == 0) return pinned;
  CUdeviceptr end = 0;
  if (pages == nullptr || __builtin_add_overflow(internal::AddressOf(pages), bytes, &end)) {
    return absl::InvalidArgumentError(absl::StrCat(
        internal::PinText(pages, bytes),
        pages == nullptr ? ": it is null" : ": that is more than there are addresses"));
  }
  CUGUEST_ASSIGN_OR_RETURN(const ObjectDriver* const driver, ObjectDriver::Get());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::MemHostRegister).status());
  CUGUEST_RETURN_IF_ERROR(driver->Require(&ObjectDriver::MemHostUnregister).status());
  const ContextGuard guard(context);
  CUGUEST_RETURN_IF_CUDA_ERROR(guard.result(), internal::PinText(pages, bytes), guard.advice());
  const internal::RelaxedScope relaxed;
  CUGUEST_RETURN_IF_CUDA_ERROR(relaxed.result(), internal::PinText(pages, bytes));
  const internal::OneAtATime<internal::PagePin> turn;
  if (!turn.ok()) {
    return internal::RefusalStatus(CUDA_ERROR_ILLEGAL_STATE, internal::PinText(pages, bytes),
                                   "in a callback");
  }
  CUGUEST_ASSIGN_OR_RETURN(pinned.pin_,
                           internal::MakeOrJoinPin(*driver, pages, bytes, flags, &pinned.context_));
  pinned.pages_ = pages;
  pinned.bytes_ = bytes;
  return pinned;
}

PinnedPages::~PinnedPages() {
  internal::EndOrOwe(*this, "a PinnedPages", &PinnedPages::End, &PinnedPages::Leak);
}

absl::Status PinnedPages::Release() {
  CUGUEST_RETURN_IF_CUDA_ERROR(End(), absl::StrCat("un", internal::PinText(pages_, bytes_)),
                               internal::ContextText(context_.get()));
  return absl::OkStatus();
}

// Without a text, for the destructor: it must not need memory.
CUresult PinnedPages::End() noexcept {
  CUresult code = CUDA_SUCCESS;
  if (pin_ != nullptr) {
    const ObjectDriver* const driver = internal::TryObjectDriver(&code);
    if (driver == nullptr) return code;
    code = internal::EndIn(context_, [&] {
             return internal::LeavePin(driver, pin_, pages_, false);
           }).code;
    if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED || code == CUDA_ERROR_DEINITIALIZED) {
      code = internal::LeavePin(driver, pin_, pages_, true);
    }
  }
  if (code == CUDA_SUCCESS) Leak();
  return code;
}

CUGUEST_END_NAMESPACE
