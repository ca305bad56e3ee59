// SPDX-License-Identifier: Apache-2.0

#include "cuguest/shared_context.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/primary_context.h"
#include "lib/context/object_text.h"
#include "lib/context/registry.h"
#include "lib/context/thread_stack.h"
#include "lib/core/driver_access.h"
#include "lib/core/status_macros.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::ContextText;
using internal::Ending;
using internal::Reference;
using internal::Registry;

// Whether a context can be at this address, as far as that is seen without reading it.
bool CanBeContext(CUcontext context) {
  const auto address = reinterpret_cast<std::uintptr_t>(context);
  const auto page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t page = address & ~(page_size - 1);
  if (address % alignof(void*) != 0 || page == 0) return false;
  unsigned char resident = 0;
  // ENOMEM: the page is not mapped, or no page can be there. Any other error, such as a system
  // call filter's EPERM, says nothing of the address.
  return mincore(reinterpret_cast<void*>(page), 1, &resident) == 0 || errno != ENOMEM;
}

// A reference to the primary context that `context` is; an empty one if it is none. Asks each
// device for its primary context, because entering `context` to ask for its device would race
// with its destruction.
absl::StatusOr<PrimaryContext> RetainIfPrimary(const ContextRef& context) {
  CUGUEST_ASSIGN_OR_RETURN(const int count, Device::Count());
  absl::Status failure;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const Device device = Device::Borrow(ordinal);
    const absl::StatusOr<PrimaryContext::State> state = PrimaryContext::Query(device);
    failure.Update(state.status());
    if (!state.ok() || !state->active) continue;
    absl::StatusOr<PrimaryContext> primary = PrimaryContext::Retain(device);
    failure.Update(primary.status());
    if (primary.ok() && primary->incarnation() == context) return primary;
  }
  if (!failure.ok()) return failure;
  return PrimaryContext();
}

std::string NameOf(const internal::EmbeddedCopy& copy) {
  return copy.path.empty() ? "the main program" : copy.path;
}

absl::Status NoMemory(CUcontext context) {
  return absl::ResourceExhaustedError(
      absl::StrCat("attach ", ContextText(context), ": no memory to count it"));
}

}  // namespace

absl::StatusOr<SharedContext> SharedContext::Create(Device device, unsigned flags) {
  CUGUEST_ASSIGN_OR_RETURN(const Driver* const driver, Driver::GetInitialized());
  const std::string object = absl::StrCat("device ", device.get(), ", flags 0x", absl::Hex(flags));
  CUcontext context = nullptr;
  CUGUEST_RETURN_IF_CUDA_ERROR(driver->CtxCreate(&context, flags, device.get()),
                               "create a shared context", object);
  // While it is current this takes it off the stack as well.
  absl::Cleanup destroy = [&] { static_cast<void>(driver->CtxDestroy(context)); };
  CUcontext popped = nullptr;
  CUGUEST_RETURN_IF_CUDA_ERROR(driver->CtxPopCurrent(&popped),
                               "take a new shared context off the stack", object);
  const ContextRef incarnation = ContextRef::Borrow(context);
  CUGUEST_RETURN_IF_CUDA_ERROR(incarnation.result(), "identify a new shared context", object);
  Reference reference;
  const Registry::Outcome outcome =
      Registry::OfProcess().JoinOrOpen(incarnation, Ending::kDestroy, device.get(), &reference);
  if (outcome != Registry::Outcome::kOpened) return NoMemory(context);
  std::move(destroy).Cancel();
  return SharedContext(incarnation, reference);
}

absl::StatusOr<SharedContext> SharedContext::Attach(CUcontext context) {
  CUGUEST_RETURN_IF_ERROR(Driver::Get().status());
  if (context == nullptr) return absl::InvalidArgumentError("attach a context: it is null");
  Registry& registry = Registry::OfProcess();
  if (!registry.Knows(context) && !CanBeContext(context)) {
    return absl::InvalidArgumentError(
        absl::StrCat("attach ", ContextText(context), ": there is no context at this address"));
  }
  // With a reference, so that no holder destroys it while it is asked which one it is.
  const Reference reference = registry.JoinLatest(context);
  const ContextRef incarnation = ContextRef::Borrow(context);
  const bool is_it =
      reference.slot != nullptr && incarnation.ok() && reference.slot->IsFor(incarnation);
  if (is_it) return SharedContext(incarnation, reference);
  if (reference.slot != nullptr) static_cast<void>(Registry::Leave(reference));
  CUGUEST_RETURN_IF_CUDA_ERROR(incarnation.result(), "attach", ContextText(context));
  return AttachFirst(incarnation);
}

absl::StatusOr<SharedContext> SharedContext::Attach(const ContextRef& context) {
  SharedContext attached(context, Registry::OfProcess().Join(context));
  CUGUEST_RETURN_IF_CUDA_ERROR(context.Check(), "attach", ContextText(context.get()));
  if (attached.slot_ != nullptr) return attached;
  return AttachFirst(context);
}

absl::StatusOr<SharedContext> SharedContext::AttachFirst(const ContextRef& context) {
  CUGUEST_ASSIGN_OR_RETURN(PrimaryContext primary, RetainIfPrimary(context));
  const Ending ending = primary.get() != nullptr ? Ending::kReleasePrimary : Ending::kNothing;
  Reference reference;
  const Registry::Outcome outcome =
      Registry::OfProcess().JoinOrOpen(context, ending, primary.device().get(), &reference);
  if (outcome == Registry::Outcome::kNoMemory) return NoMemory(context.get());
  if (outcome == Registry::Outcome::kClosing) {
    return absl::FailedPreconditionError(
        absl::StrCat("attach ", ContextText(context.get()),
                     ": its last holder is destroying it. Keep a SharedContext of your own for "
                     "as long as the context is needed"));
  }
  if (outcome == Registry::Outcome::kOpened) static_cast<void>(primary.Leak());  // now the slot's
  SharedContext attached(context, reference);
  // Meanwhile its last holder may have destroyed it and freed its slot.
  CUGUEST_RETURN_IF_CUDA_ERROR(context.Check(), "attach", ContextText(context.get()));
  return attached;
}

SharedContext::SharedContext(const ContextRef& incarnation, const Reference& reference) noexcept
    : incarnation_(incarnation), slot_(reference.slot), stripe_(reference.stripe) {}

SharedContext::SharedContext(const SharedContext& other) noexcept
    : SharedContext(other.incarnation_,
                    other.slot_ != nullptr ? Registry::Copy(other.slot_) : Reference()) {}

SharedContext& SharedContext::operator=(SharedContext other) noexcept {
  std::swap(incarnation_, other.incarnation_);
  std::swap(slot_, other.slot_);
  std::swap(stripe_, other.stripe_);
  return *this;
}

SharedContext::~SharedContext() { static_cast<void>(Leave()); }

CUresult SharedContext::Leave() noexcept {
  incarnation_ = ContextRef();
  const Reference reference{std::exchange(slot_, nullptr), stripe_};
  return reference.slot != nullptr ? Registry::Leave(reference) : CUDA_SUCCESS;
}

SharedContext::Owner SharedContext::owner() const noexcept {
  if (slot_ == nullptr) return Owner::kNobody;
  const Ending ending = slot_->GetEnding();
  if (ending == Ending::kDestroy) return Owner::kShared;
  return ending == Ending::kReleasePrimary ? Owner::kPrimary : Owner::kOther;
}

std::uint64_t SharedContext::use_count() const noexcept {
  return slot_ != nullptr ? Registry::Count(*slot_) : 0;
}

absl::Status SharedContext::Detach() {
  if (slot_ == nullptr) {
    return absl::FailedPreconditionError("detach a shared context: it is attached to nothing");
  }
  const CUcontext context = get();
  const CUresult life = incarnation_.Check();
  const CUresult code = Leave();
  if (life == CUDA_ERROR_CONTEXT_IS_DESTROYED || code == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    return ToStatus(
        CUDA_ERROR_CONTEXT_IS_DESTROYED, "detach",
        absl::StrCat(ContextText(context), ", which was destroyed or reset while it was attached"));
  }
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  return ToStatus(code, "detach the last reference to", ContextText(context));
}

absl::Status SharedContext::CheckSharing() {
  const Registry* ours = &Registry::OfProcess();
  const std::vector<internal::EmbeddedCopy> copies = internal::FindCopies();
  const internal::EmbeddedCopy this_copy = internal::ThisCopy();
  const internal::EmbeddedCopy* home = internal::FindHomeOf(this_copy, copies);
  std::vector<std::string> apart;
  for (const internal::EmbeddedCopy& copy : copies) {
    const std::string object = NameOf(copy);
    const internal::EmbeddedCopy* used = internal::FindHomeOf(copy, copies);
    if (copy.registry == nullptr) {
      apart.push_back(absl::StrCat(object, " has a registry that cannot be read, of layout ",
                                   copy.minimal_reader));
    } else if (used != home) {
      apart.push_back(absl::StrCat(object, ", of registry layout ", copy.numbers.layout,
                                   ", counts in the registry of ",
                                   used != nullptr ? NameOf(*used) : "none"));
    } else if (&copy == home && copy.registry != ours) {
      apart.push_back(absl::StrCat(object, " could not be kept from being unloaded"));
    }
  }
  if (apart.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("share one count of attached contexts: ", absl::StrJoin(apart, "; "),
                   "; this copy, of registry layout ", this_copy.numbers.layout,
                   ", counts in the registry of ", NameOf(home != nullptr ? *home : this_copy),
                   ". Build all with the same minor version of cuguest"));
}

namespace internal {
namespace {

struct Destruction {
  const Driver* driver;
  CUcontext context;
  CUresult code;
};

void* Destroy(void* data) {
  auto* const destruction = static_cast<Destruction*>(data);
  destruction->code = destruction->driver->CtxDestroy(destruction->context);
  return nullptr;
}

}  // namespace

CUresult DestroyLife(CUcontext context, unsigned long long id) noexcept {
  Destruction destruction{nullptr, context, CUDA_SUCCESS};
  CUresult& code = destruction.code;
  destruction.driver = TryDriver(&code);
  if (destruction.driver != nullptr) code = CheckIncarnation(*destruction.driver, {context, id});
  if (code == CUDA_ERROR_DEINITIALIZED) return CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) return code;
  CUcontext current = nullptr;
  static_cast<void>(destruction.driver->CtxGetCurrent(&current));
  // cuCtxDestroy takes the entry of a context that is current off the calling thread's
  // stack, which would make something else current behind the caller's back. A thread of
  // its own has an empty stack, and an entry that stays behind may be popped safely
  // (cudasim/test/destroyed_facts_test.cc).
  pthread_t thread;
  if (current == context && pthread_create(&thread, nullptr, &Destroy, &destruction) == 0) {
    pthread_join(thread, nullptr);
  } else {
    Destroy(&destruction);  // of what is current: better a popped entry than a leak
  }
  return code == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : code;
}

CUresult ReleasePrimary(CUdevice device) noexcept {
  CUresult code = CUDA_SUCCESS;
  const Driver* driver = TryDriver(&code);
  if (driver != nullptr) code = driver->DevicePrimaryCtxRelease(device);
  return code == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : code;
}

}  // namespace internal
CUGUEST_END_NAMESPACE
