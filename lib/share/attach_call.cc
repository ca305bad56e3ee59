// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/share/attach_call.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "lib/share/primary_call.h"
#include "lib/stack/thread_stack.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE
namespace {

using Why = CallOutcome::Why;

constexpr char kAttach[] = "attach";
constexpr char kCreate[] = "create a shared context";

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

CallOutcome CountDevices(int* count) {
  const DriverTable* driver = nullptr;
  const CallOutcome found = GetInitializedDriver(&driver);
  if (found.why == Why::kNotInitialized && found.code == CUDA_ERROR_NO_DEVICE) return {};
  if (!found.ok()) return found;
  return Failure(driver->DeviceGetCount(count), Why::kAlone, "count the devices");
}

// A reference to the primary context that `context` is, of `device`; kNone if it is none. Asks each
// device for its primary context, because entering `context` to ask for its device would race
// with its destruction.
constexpr CUdevice kNone = -1;

CallOutcome RetainIfPrimary(const ContextRef& context, CUdevice* device) {
  int count = 0;
  CallOutcome failure = CountDevices(&count);
  if (!failure.ok()) return failure;
  for (*device = 0; *device < count; ++*device) {
    if (!CanBePrimary(context.get(), *device)) continue;
    PrimaryState state;
    ContextRef primary;
    CallOutcome outcome = QueryPrimary(*device, &state);
    if (outcome.ok() && state.active) outcome = RetainPrimary(*device, &primary);
    if (primary == context) return {};
    if (primary.ok()) static_cast<void>(ReleasePrimary(*device));
    if (failure.ok()) failure = outcome;
  }
  *device = kNone;
  return failure;
}

// `context` has not been attached by anybody, as far as is known.
CallOutcome AttachFirst(const ContextRef& context, Attachment* attachment) {
  CUdevice device = kNone;
  const CallOutcome retained = RetainIfPrimary(context, &device);
  if (!retained.ok()) return retained;
  const bool is_primary = device != kNone;
  Reference reference;
  const Registry::Outcome outcome = Registry::OfProcess().JoinOrOpen(
      context, is_primary ? Ending::kReleasePrimary : Ending::kNothing, is_primary ? device : 0,
      &reference);
  // Otherwise it is the slot's now.
  if (is_primary && outcome != Registry::Outcome::kOpened) {
    static_cast<void>(ReleasePrimary(device));
  }
  if (outcome == Registry::Outcome::kNoMemory) {
    return Failure(CUDA_ERROR_OUT_OF_MEMORY, Why::kNoMemory);
  }
  if (outcome == Registry::Outcome::kClosing) {
    return Failure(CUDA_ERROR_CONTEXT_IS_DESTROYED, Why::kClosing);
  }
  // Meanwhile its last holder may have destroyed it and freed its slot.
  const CUresult alive = context.Check();
  if (alive != CUDA_SUCCESS) {
    static_cast<void>(Registry::Leave(reference));
    return Failure(alive, kAttach);
  }
  *attachment = {context, reference};
  return {};
}

// The table has the first signature of cuCtxCreate alone; later ones are looked up.
template <typename Function>
Function FindCreate(const DriverTable& driver, int version) {
  return reinterpret_cast<Function>(driver.lookup("cuCtxCreate", version, driver.lookup_user));
}

// A new context, which is current then. `has_entry` becomes false where the driver lacks the
// signature.
CUresult CreateContext(const DriverTable& driver, CUdevice device,
                       const ContextParameters& parameters, CUcontext* context, bool* has_entry) {
  using WithAffinity =
      CUresult(CUDAAPI*)(CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice);
  using WithParameters = CUresult(CUDAAPI*)(CUcontext*, CUctxCreateParams*, unsigned, CUdevice);
  if (parameters.cig != nullptr) {
    const auto create = FindCreate<WithParameters>(driver, kCigVersion);
    CUctxCigParam cig = *parameters.cig;
    CUctxCreateParams all = {nullptr, 0, &cig};
    if (create != nullptr) return create(context, &all, parameters.flags, device);
  } else if (parameters.execution_affinity != 0) {
    const auto create = FindCreate<WithAffinity>(driver, kAffinityVersion);
    CUexecAffinityParam affinity = {};
    affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
    affinity.param.smCount.val = parameters.execution_affinity;
    if (create != nullptr) return create(context, &affinity, 1, parameters.flags, device);
  } else {
    return driver.CtxCreate(context, parameters.flags, device);
  }
  *has_entry = false;
  return kCallRequiresNewerDriver;
}

struct Destruction {
  const DriverTable* driver;
  CUcontext context;
  CUresult code;
};

void* Destroy(void* data) {
  auto* const destruction = static_cast<Destruction*>(data);
  destruction->code = destruction->driver->CtxDestroy(destruction->context);
  return nullptr;
}

}  // namespace

CallOutcome CreateShared(CUdevice device, const ContextParameters& parameters,
                         Attachment* attachment) noexcept {
  const DriverTable* driver = nullptr;
  const CallOutcome found = GetInitializedDriver(&driver);
  if (!found.ok()) return found;
  CUcontext context = nullptr;
  bool has_entry = true;
  CUresult code = AskOf(
      device, [&] { return CreateContext(*driver, device, parameters, &context, &has_entry); });
  if (!has_entry) return Failure(code, Why::kNoEntry, kCreate);
  if (code != CUDA_SUCCESS) return Failure(code, kCreate);
  // While it is current, destroying it takes it off the stack as well.
  const auto destroy_after = [&](const CallOutcome& failure) {
    static_cast<void>(driver->CtxDestroy(context));
    return failure;
  };
  CUcontext popped = nullptr;
  code = driver->CtxPopCurrent(&popped);
  if (code != CUDA_SUCCESS) {
    return destroy_after(Failure(code, "take a new shared context off the stack"));
  }
  const ContextRef incarnation = ContextRef::Borrow(context);
  if (!incarnation.ok()) {
    return destroy_after(Failure(incarnation.result(), "identify a new shared context"));
  }
  Reference reference;
  const Registry::Outcome outcome =
      Registry::OfProcess().JoinOrOpen(incarnation, Ending::kDestroy, device, &reference);
  if (outcome != Registry::Outcome::kOpened) {
    CallOutcome failure = Failure(CUDA_ERROR_OUT_OF_MEMORY, Why::kNoMemory);
    failure.context = context;
    return destroy_after(failure);
  }
  *attachment = {incarnation, reference};
  return {};
}

CallOutcome Attach(CUcontext context, Attachment* attachment) noexcept {
  const DriverTable* driver = nullptr;
  const CallOutcome found = GetDriver(&driver);
  if (!found.ok()) return found;
  if (context == nullptr) return Failure(CUDA_ERROR_INVALID_VALUE, Why::kNull);
  Registry& registry = Registry::OfProcess();
  if (!registry.Knows(context) && !CanBeContext(context)) {
    return Failure(CUDA_ERROR_INVALID_VALUE, Why::kNoContext);
  }
  // With a reference, so that no holder destroys it while it is asked which one it is.
  const Reference reference = registry.JoinLatest(context);
  const ContextRef incarnation = ContextRef::Borrow(context);
  const bool is_it =
      reference.slot != nullptr && incarnation.ok() && reference.slot->IsFor(incarnation);
  if (is_it) {
    *attachment = {incarnation, reference};
    return {};
  }
  if (reference.slot != nullptr) static_cast<void>(Registry::Leave(reference));
  if (!incarnation.ok()) return Failure(incarnation.result(), kAttach);
  return AttachFirst(incarnation, attachment);
}

CallOutcome Attach(const ContextRef& context, Attachment* attachment) noexcept {
  const Reference reference = Registry::OfProcess().Join(context);
  const CUresult alive = context.Check();
  if (alive == CUDA_SUCCESS && reference.slot == nullptr) return AttachFirst(context, attachment);
  if (alive == CUDA_SUCCESS) {
    *attachment = {context, reference};
    return {};
  }
  if (reference.slot != nullptr) static_cast<void>(Registry::Leave(reference));
  return Failure(alive, kAttach);
}

CallOutcome Detach(Attachment* attachment) noexcept {
  const Attachment left = *attachment;
  *attachment = {};
  if (left.reference.slot == nullptr) return Failure(CUDA_ERROR_INVALID_CONTEXT, Why::kNull);
  const CUresult alive = left.incarnation.Check();
  CUresult code = Registry::Leave(left.reference);
  if (alive == CUDA_ERROR_CONTEXT_IS_DESTROYED) code = alive;
  return Failure(code, "detach the last reference to");
}

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

CUGUEST_END_INTERNAL_NAMESPACE
