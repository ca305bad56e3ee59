// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/shared_context.h"

#include <utility>

#include "cuguest/primary_context.h"
#include "lib/core/failure.h"
#include "lib/share/context_hold.h"
#include "lib/share/ending.h"
#include "lib/share/owed.h"
#include "lib/share/registry.h"
#include "lib/share/system.h"
#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::Ending;
using internal::Failure;
using internal::GetInitializedDriver;
using internal::OfContext;
using internal::Reference;
using internal::Registry;
using Reason = Error::Reason;

constexpr char kAttach[] = "attach";
constexpr char kCreate[] = "create a shared context";

// Whether a context can be at this address, as far as that is seen without reading it.
bool CanBeContext(CUcontext context) {
  const auto address = reinterpret_cast<std::uintptr_t>(context);
  return address % alignof(void*) == 0 && internal::MayHaveMemoryAt(address);
}

Error CountDevices(int* count) {
  const DriverTable* driver = nullptr;
  const Error found = GetInitializedDriver(&driver);
  if (found.reason == Reason::kNotInitialized && found.code == CUDA_ERROR_NO_DEVICE) return {};
  if (!found.ok()) return found;
  return Failure(driver->DeviceGetCount(count), "count the devices");
}

// A reference to the primary context that `context` is; an empty one if it is none. Asks each
// device for its primary context, because entering `context` to ask for its device would race
// with its destruction.
PrimaryContext RetainIfPrimary(const ContextRef& context, Error* failure) {
  int count = 0;
  *failure = CountDevices(&count);
  for (CUdevice device = 0; device < count; ++device) {
    if (!internal::CanBePrimary(context.get(), device)) continue;
    PrimaryContext primary = PrimaryContext::RetainIfActive(Device::Borrow(device));
    if (primary.ok() && primary.context() == context) {
      *failure = {};
      return primary;
    }
    const Error error = primary.error();
    if (failure->ok() && !primary.ok() && error.reason != Reason::kNobodyHolds) *failure = error;
  }
  return PrimaryContext();
}

CUresult LeaveOne(Reference& reference) noexcept {
  return internal::OfReference(Registry::Leave(reference));
}

void LeaveOrOwe(Reference reference) {
  internal::GiveBackOrOwe(reference, "a SharedContext", &LeaveOne);
}

Error NoMemory(const char* doing) {
  return Failure(Reason::kNoMemory, CUDA_ERROR_OUT_OF_MEMORY, doing);
}

// The registry, which this copy's first use looks for where the driver works: see ForEachCopy().
Error GetRegistry(const DriverTable& driver, Registry** registry) {
  *registry = Registry::IfFound();
  if (*registry != nullptr) return {};
  int count = 0;
  const CUresult code = driver.DeviceGetCount(&count);
  if (code == CUDA_ERROR_NOT_INITIALIZED) return Failure(Reason::kNotInitialized, code, kAttach);
  *registry = Registry::OfProcess();
  return *registry != nullptr ? Error() : NoMemory(kAttach);
}

Error Closing(CUcontext context) {
  return OfContext(Failure(Reason::kClosing, CUDA_ERROR_CONTEXT_IS_DESTROYED, kAttach), context);
}

// `context` has not been attached by anybody, as far as is known.
[[gnu::cold]] Error AttachFirst(Registry* registry, const ContextRef& context,
                                Reference* reference) {
  Error failure;
  PrimaryContext primary = RetainIfPrimary(context, &failure);
  if (!failure.ok()) return failure;
  const Registry::Outcome outcome =
      registry->JoinOrOpen(context, primary.ok() ? Ending::kReleasePrimary : Ending::kNothing,
                           primary.device().get(), reference);
  if (outcome == Registry::Outcome::kOpened) static_cast<void>(primary.Leak());  // the slot's now
  if (outcome == Registry::Outcome::kNoMemory) return OfContext(NoMemory(kAttach), context.get());
  if (outcome == Registry::Outcome::kOver) {
    return OfContext(Failure(CUDA_ERROR_CONTEXT_IS_DESTROYED, kAttach), context.get());
  }
  if (outcome == Registry::Outcome::kClosing) return Closing(context.get());
  // Meanwhile its last holder may have destroyed it and freed its slot.
  const CUresult alive = context.Check();
  if (alive == CUDA_SUCCESS) return {};
  LeaveOrOwe(*reference);
  return OfContext(Failure(alive, kAttach), context.get());
}

// `reference` is to what had the handle, if anybody is attached to that: taken before the driver
// was asked for `alive`, which reads the context's memory, so that no holder destroyed it
// meanwhile.
Error AttachAsked(Registry* registry, CUcontext context, const ContextRef& incarnation,
                  CUresult alive, Reference* reference) {
  const bool has_joined = reference->slot != nullptr;
  if (alive == CUDA_SUCCESS && has_joined && reference->slot->IsFor(incarnation)) return {};
  if (has_joined) LeaveOrOwe(*reference);
  if (alive != CUDA_SUCCESS) return OfContext(Failure(alive, kAttach), context);
  return AttachFirst(registry, incarnation, reference);
}

Error AttachHandle(CUcontext context, ContextRef* incarnation, Reference* reference) {
  const DriverTable* driver = nullptr;
  const Error found = internal::GetDriver(&driver);
  if (!found.ok()) return found;
  if (context == nullptr) {
    return Failure(Reason::kEmpty, CUDA_ERROR_INVALID_VALUE, "attach a context");
  }
  Registry* registry = nullptr;
  const Error none = GetRegistry(*driver, &registry);
  if (!none.ok()) return OfContext(none, context);
  const Registry::Outcome outcome = registry->Join(context, nullptr, reference);
  if (outcome == Registry::Outcome::kClosing) return Closing(context);
  if (outcome == Registry::Outcome::kUnknown && !registry->Knows(context) &&
      !CanBeContext(context)) {
    return OfContext(Failure(Reason::kNoContext, CUDA_ERROR_INVALID_VALUE, kAttach), context);
  }
  *incarnation = ContextRef::Borrow(context);
  return AttachAsked(registry, context, *incarnation, incarnation->result(), reference);
}

Error AttachIncarnation(const ContextRef& context, Reference* reference) {
  CUresult code = CUDA_SUCCESS;
  const DriverTable* const driver = internal::TryDriver(&code);
  Registry* registry = nullptr;
  Error none;
  if (driver == nullptr || context.get() == nullptr) {
    none = Failure(context.Check(), kAttach);
  } else {
    none = GetRegistry(*driver, &registry);
  }
  if (!none.ok()) return OfContext(none, context.get());
  const unsigned long long id = context.id();
  if (registry->Join(context.get(), &id, reference) == Registry::Outcome::kClosing) {
    return Closing(context.get());
  }
  return AttachAsked(registry, context.get(), context, context.Check(), reference);
}

// The table has the first signature of cuCtxCreate alone; later ones are looked up.
template <typename Function>
Function FindCreate(const DriverTable& driver, int version) {
  return reinterpret_cast<Function>(driver.lookup("cuCtxCreate", version, driver.lookup_user));
}

// A new context, which is current then. `has_entry` becomes false where the driver lacks the
// signature.
CUresult CreateContext(const DriverTable& driver, CUdevice device,
                       const SharedContext::Options& options, CUcontext* context, bool* has_entry) {
  using WithAffinity =
      CUresult(CUDAAPI*)(CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice);
  using WithParameters = CUresult(CUDAAPI*)(CUcontext*, CUctxCreateParams*, unsigned, CUdevice);
  if (options.cig != nullptr) {
    const auto create = FindCreate<WithParameters>(driver, internal::kCigVersion);
    CUctxCigParam cig = *options.cig;
    CUctxCreateParams all = {nullptr, 0, &cig};
    if (create != nullptr) return create(context, &all, options.flags, device);
  } else if (options.execution_affinity.has_value()) {
    const auto create = FindCreate<WithAffinity>(driver, internal::kAffinityVersion);
    CUexecAffinityParam affinity = {};
    affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
    affinity.param.smCount.val = static_cast<unsigned>(*options.execution_affinity);
    if (create != nullptr) return create(context, &affinity, 1, options.flags, device);
  } else {
    return driver.CtxCreate(context, options.flags, device);
  }
  *has_entry = false;
  return internal::kCallRequiresNewerDriver;
}

Error OfCreation(Error error, Device device, const SharedContext::Options& options) {
  error = internal::OfDevice(error, Error::Subject::kCreation, device.get());
  error.handle = options.flags;
  error.bytes = static_cast<unsigned>(options.execution_affinity.value_or(SmCount{0}));
  if (options.cig != nullptr) {
    error.cig_type = static_cast<unsigned short>(options.cig->sharedDataType + 1);
  }
  return error;
}

Error CheckOptions(const SharedContext::Options& options) {
  const auto refused = [](Reason reason) {
    return Failure(reason, CUDA_ERROR_INVALID_VALUE, kCreate);
  };
  const bool has_affinity = options.execution_affinity.has_value();
  if (has_affinity && options.cig != nullptr) return refused(Reason::kBothOptions);
  if (has_affinity && *options.execution_affinity == SmCount{0}) return refused(Reason::kNoSms);
  if (options.cig != nullptr && options.cig->sharedData == nullptr) return refused(Reason::kNoData);
  return {};
}

// A new context, which is on no stack and has one reference.
[[gnu::cold]] Error MakeShared(Device device, const SharedContext::Options& options,
                               ContextRef* incarnation, Reference* reference) {
  const DriverTable* driver = nullptr;
  Error error = CheckOptions(options);
  if (error.ok()) error = GetInitializedDriver(&driver);
  if (!error.ok()) return error;
  internal::EndOwed();
  Registry* const registry = Registry::OfProcess();
  if (registry == nullptr) return NoMemory(kCreate);
  CUcontext context = nullptr;
  bool has_entry = true;
  CUresult code = internal::AskOf(device.get(), [&] {
    return CreateContext(*driver, device.get(), options, &context, &has_entry);
  });
  if (!has_entry) return Failure(Reason::kTooOld, code, kCreate);
  if (code != CUDA_SUCCESS) return Failure(code, kCreate);
  // While it is current, destroying it takes it off the stack as well.
  const auto destroy_after = [&](const Error& failure) {
    static_cast<void>(driver->CtxDestroy(context));
    return failure;
  };
  CUcontext popped = nullptr;
  code = driver->CtxPopCurrent(&popped);
  if (code != CUDA_SUCCESS) {
    return destroy_after(Failure(code, "take a new shared context off the stack"));
  }
  *incarnation = ContextRef::Borrow(context);
  if (!incarnation->ok()) {
    return destroy_after(Failure(incarnation->result(), "identify a new shared context"));
  }
  const Registry::Outcome outcome =
      registry->JoinOrOpen(*incarnation, Ending::kDestroy, device.get(), reference);
  if (outcome == Registry::Outcome::kOpened || outcome == Registry::Outcome::kJoined) return {};
  if (outcome == Registry::Outcome::kOver) {  // and what has the handle is not ours
    return Failure(CUDA_ERROR_CONTEXT_IS_DESTROYED, kCreate);
  }
  return destroy_after(NoMemory(kCreate));
}

}  // namespace

SharedContext SharedContext::Create(Device device, unsigned flags) noexcept {
  Options options;
  options.flags = flags;
  return Create(device, options);
}

SharedContext SharedContext::Create(Device device, const Options& options) noexcept {
  ContextRef incarnation;
  Reference reference;
  const Error error = MakeShared(device, options, &incarnation, &reference);
  const bool is_of_driver =
      error.reason == Reason::kNoDriver || error.reason == Reason::kNotInitialized;
  return SharedContext(is_of_driver ? error : OfCreation(error, device, options), incarnation,
                       reference);
}

SharedContext SharedContext::Attach(CUcontext context) noexcept {
  ContextRef incarnation;
  Reference reference;
  const Error error = AttachHandle(context, &incarnation, &reference);
  return SharedContext(error, incarnation, reference);
}

SharedContext SharedContext::Attach(const ContextRef& context) noexcept {
  Reference reference;
  const Error error = AttachIncarnation(context, &reference);
  return SharedContext(error, context, reference);
}

SharedContext::SharedContext(const Error& error, const ContextRef& incarnation,
                             const Reference& reference) noexcept
    : error_(error) {
  if (!error.ok()) return;
  incarnation_ = incarnation;
  slot_ = reference.slot;
  stripe_ = reference.stripe;
  internal::ContextHold::Begin();
}

SharedContext::SharedContext(const SharedContext& other) noexcept
    : SharedContext(other.error_, other.incarnation_,
                    other.slot_ != nullptr ? Registry::Copy(other.slot_) : Reference()) {}

SharedContext::SharedContext(SharedContext&& other) noexcept
    : incarnation_(other.incarnation_),
      slot_(other.slot_),
      stripe_(other.stripe_),
      error_(other.error_) {
  static_cast<void>(other.Leak());
}

// `other` ends what this one held.
SharedContext& SharedContext::operator=(SharedContext other) noexcept {
  std::swap(incarnation_, other.incarnation_);
  std::swap(slot_, other.slot_);
  std::swap(stripe_, other.stripe_);
  std::swap(error_, other.error_);
  return *this;
}

SharedContext::~SharedContext() {
  internal::EndOwed();
  if (slot_ != nullptr) LeaveOrOwe({slot_, stripe_});
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

Error SharedContext::error() const noexcept {
  if (ok()) return {};
  if (!error_.ok()) return error_;
  return Failure(Reason::kEmpty, CUDA_ERROR_INVALID_CONTEXT, "hold a shared context");
}

Error SharedContext::Release() noexcept {
  internal::EndOwed();  // first: what it reports, a listener may answer by ending this
  if (slot_ == nullptr) {
    return Failure(Reason::kEmpty, CUDA_ERROR_INVALID_CONTEXT, "detach a shared context");
  }
  const CUcontext context = get();
  const CUresult alive = incarnation_.Check();
  const CUresult code = Registry::Leave({slot_, stripe_});
  if (!internal::IsStillHeld(code)) static_cast<void>(Leak());
  if (alive == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    return OfContext(Failure(Reason::kDestroyed, alive, "detach"), context);
  }
  return OfContext(Failure(code, "detach the last reference"), context);
}

namespace internal {

void ContextHold::BeginHold(const ContextRef& context, ContextHold* hold) noexcept {
  Reference reference;
  const unsigned long long id = context.id();
  const auto outcome = Registry::IfFound()->Join(context.get(), &id, &reference);
  if (outcome == Registry::Outcome::kClosing) hold->result_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (outcome != Registry::Outcome::kJoined) return;
  if (!reference.slot->IsFor(context)) return LeaveOrOwe(reference);
  hold->slot_ = reference.slot;
  hold->stripe_ = reference.stripe;
}

void ContextHold::EndHold(Slot* slot, int stripe) noexcept { LeaveOrOwe({slot, stripe}); }

void ContextHold::Begin() noexcept {
  static constexpr Calls kCalls = {&BeginHold, &EndHold};
  if (g_calls.load(std::memory_order_relaxed) == nullptr) {
    g_calls.store(&kCalls, std::memory_order_release);
  }
}

}  // namespace internal

CUGUEST_END_NAMESPACE
