// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library's source, as it is compiled with CUDA, too: in the driver's names, which a cuda.h
// before or after cuguest_core.h may have declared, or made macros of.

#ifdef CUDA_H_BEFORE
#include <cuda.h>
#endif
#include "cuguest_core.h"
#ifdef CUDA_H_AFTER
#include <cuda.h>
#endif

#include <cstddef>
#include <cstdint>
#include <utility>

#include "check.h"

namespace {

int g_object = 0;
CUcontext SomeContext() { return reinterpret_cast<CUcontext>(&g_object); }
CUstream SomeStream() { return reinterpret_cast<CUstream>(&g_object); }

CUresult Launch() { return CUDA_SUCCESS; }

CUresult UseContext(CUcontext context) {
  cuguest::ContextGuard guard(context);
  if (!guard.ok()) return guard.result();
  const CUresult code = Launch();
  if (code != CUDA_SUCCESS) return code;
  return guard.ok() ? Launch() : guard.result();
}

int UseStream(CUstream stream) {
  cuguest::AcquiredGuard guard(stream);
  return guard.error().code;
}

const char* NameOf(CUresult code) {
  switch (code) {
    case CUDA_SUCCESS:
      return "success";
    default:
      return cuguest::ErrorName(code);
  }
}

void TestGuards() {
  CHECK(UseContext(SomeContext()) == CUDA_SUCCESS);
  CHECK(UseStream(SomeStream()) == 0);
  CHECK(UseStream(nullptr) == 0);

  cuguest::ContextGuard guard(SomeContext(), cuguest::GuardMode::kAlwaysPush);
  CHECK(guard.ok() && guard.result() == CUDA_SUCCESS && CUDA_SUCCESS == guard.result());
  CHECK(guard.get() == SomeContext() && SomeContext() == guard.get() && guard.get() != nullptr);
  CHECK(guard.context().get() == SomeContext() && guard.context().ok());
  CHECK(guard.caller() == nullptr && guard.elided());
  CHECK(guard.Reassert() == CUDA_SUCCESS);
  CUcontext entered = guard.get();
  CHECK(guard.MoveTo(entered) == CUDA_SUCCESS && guard.MoveTo(guard.context()) == CUDA_SUCCESS);
  const CUresult left = guard.Leave();
  CHECK(left == CUDA_SUCCESS && guard.Leave() == CUDA_SUCCESS);
  CHECK(!guard.result() && (guard.result() ? 1 : 0) == 0 && guard.result() == 0);
  CHECK(cuguest::ContextGuard(CUcontext()).ok());

  cuguest::ContextScope scope;
  CHECK(scope.Enter(SomeContext()) == CUDA_SUCCESS);
  CHECK(static_cast<int>(scope.Enter(SomeContext())) == 401);
  cuguest::ContextScope moved(std::move(scope));
  CHECK(moved.get() == SomeContext() && moved.Leave() == CUDA_SUCCESS);
  CHECK(static_cast<int>(moved.Leave()) == 401);

  cuguest::ExactGuard exact(SomeContext());
  cuguest::NoContextGuard none;
  cuguest::HostScope host, of_guard(guard);
  cuguest::CaptureModeGuard mode(CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(exact.ok() && none.ok() && host.ok() && of_guard.ok() && mode.ok());
  CHECK(exact.Leave() == CUDA_SUCCESS && none.Leave() == CUDA_SUCCESS);
  CHECK(host.Leave() == CUDA_SUCCESS && mode.Leave() == CUDA_SUCCESS);
  const CUstreamCaptureMode callers = mode.caller();
  CHECK(static_cast<int>(callers) == 0);
  CHECK(!cuguest::CaptureStatusOf(SomeStream()) && !cuguest::HousekeepingIsSafe(SomeStream()));

  cuguest::Relaxed<cuguest::ContextGuard> relaxed(SomeContext());
  cuguest::Relaxed<cuguest::AcquiredGuard> of_stream(SomeStream());
  CHECK(relaxed.ok() && relaxed.result() == CUDA_SUCCESS && relaxed.Leave() == CUDA_SUCCESS);
  CHECK(of_stream.ok() && of_stream.error().ok() && of_stream.Reassert() == CUDA_SUCCESS);
}

void TestGuardsOfWhatIsNotAcquired() {
  const cuguest::Device device = cuguest::Device::Borrow(0);
  cuguest::AcquiredGuard of_device(device);
  cuguest::AcquiredGuard of_pointer(static_cast<const void*>(&g_object));
  cuguest::AcquiredGuard on(SomeStream(), device, cuguest::IfInactive::kCreate);
  cuguest::AcquiredGuard of_acquired(cuguest::AcquireFromStream(SomeStream()));
  CHECK(of_device.ok() && of_pointer.ok() && on.ok() && of_acquired.ok());
  CHECK(of_device.error().ok() && of_device.context().get() == nullptr);
  CHECK(of_device.MoveTo(cuguest::AcquireAny()).ok() && of_device.Leave() == CUDA_SUCCESS);

  cuguest::ThreadHome home(device);
  cuguest::ThreadHome of_stream(SomeStream());
  const cuguest::ContextRef ref = cuguest::ContextRef::Borrow(SomeContext());
  CHECK(home.ok() && of_stream.ok() && home.Check().ok() && home.MoveTo(ref).ok());
  CHECK(home.context() == ref && home.Leave().ok());
  CHECK(static_cast<int>(home.Check().code) == 401);
}

// As absl::HashState, for two values at the most.
struct HashState {
  template <typename T>
  static HashState combine(HashState state, const T& value) {
    return {state.sum * 31 + Of(value)};
  }
  template <typename T, typename U>
  static HashState combine(HashState state, const T& a, const U& b) {
    return combine(combine(state, a), b);
  }
  static std::size_t Of(unsigned long long value) { return static_cast<std::size_t>(value); }
  static std::size_t Of(const void* value) { return reinterpret_cast<std::uintptr_t>(value); }
  template <typename T>
  static std::size_t Of(const T& value) {
    return AbslHashValue(HashState{0}, value).sum;
  }

  std::size_t sum;
};

template <typename Held>
bool IsRefused(const Held& held) {
  const CUresult code = held.error().code;
  return !held.ok() && code == CUDA_ERROR_NOT_SUPPORTED;
}

void TestRefusals() {
  const cuguest::Device device = cuguest::Device::Borrow(0);
  CHECK(IsRefused(cuguest::AcquireFromStream(SomeStream())));
  CHECK(IsRefused(cuguest::AcquireFromStream(SomeStream(), device)));
  CHECK(IsRefused(cuguest::AcquireFromPointer(static_cast<const void*>(&g_object))));
  CHECK(IsRefused(cuguest::AcquireFromBuffer(static_cast<const void*>(&g_object), 1)));
  CHECK(IsRefused(cuguest::AcquireOn(device)));
  CHECK(IsRefused(cuguest::AcquireCurrent(device)));
  CHECK(IsRefused(cuguest::AcquireAny()));
  CHECK(IsRefused(cuguest::PrimaryContext::Retain(device)));
  CHECK(IsRefused(cuguest::PrimaryContext::RetainIfActive(device)));
  CHECK(IsRefused(cuguest::PrimaryContext::Query(device)));
  CHECK(IsRefused(cuguest::SharedContext::Create(device)));
  CHECK(IsRefused(cuguest::SharedContext::Create(device, cuguest::SharedContext::Options())));
  CHECK(IsRefused(cuguest::SharedContext::Attach(SomeContext())));

  cuguest::Acquired acquired = cuguest::AcquireAny();
  cuguest::Acquired copy = acquired;
  CHECK(IsRefused(copy) && copy.get() == nullptr && copy.Release().ok());
  CHECK(copy.error().code == CUDA_ERROR_INVALID_CONTEXT);
  cuguest::PrimaryKeeper keeper;
  CHECK(keeper.Keep(acquired).code == CUDA_ERROR_NOT_SUPPORTED && !keeper.Keeps(device));
  CHECK(cuguest::ReleaseKeptPrimaries().ok());
  CHECK(cuguest::GetFreeMemory(device).error().code == CUDA_ERROR_NOT_SUPPORTED);

  const cuguest::SharedContext shared = cuguest::SharedContext::Attach(SomeContext());
  cuguest::SharedContext other = shared;
  CHECK(IsRefused(other) && other.use_count() == 0);
  CHECK(other.Release().code == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuguest::PrimaryContext().error().code == CUDA_ERROR_INVALID_CONTEXT);

  CHECK(cuguest::ContextRef::Current().result() == CUDA_ERROR_NOT_SUPPORTED);
  const cuguest::ContextRef ref = cuguest::ContextRef::Borrow(SomeContext());
  CHECK(ref.ok() && ref.IsAlive() && ref.get() == SomeContext());
  CHECK(cuguest::ContextRef::Borrow(nullptr).result() == CUDA_ERROR_INVALID_CONTEXT);
  const cuguest::ContextRef again = cuguest::ContextRef::Borrow(SomeContext());
  const cuguest::ContextRef none;
  const cuguest::ContextRef::Hash hash;
  CHECK(ref == again && hash(ref) == hash(again) && !(ref < again));
  CHECK(HashState::Of(ref) == HashState::Of(again) && HashState::Of(ref) != HashState::Of(none));
  CHECK(hash(ref) != hash(none) && none < ref && ref != none);
}

void TestCache() {
  cuguest::PerContext<int> cache;
  int made = 0;
  const auto pin = cache.GetOrMake(SomeContext(), [&](const cuguest::ContextRef&) {
    ++made;
    return 1;
  });
  CHECK(IsRefused(pin) && made == 0 && !cache.Find(SomeContext()));
  CHECK(cache.size() == 0 && !cache.Forget(cuguest::ContextRef::Borrow(SomeContext())));
  CHECK(cache.ForgetAll() == 0 && cache.DropDead() == 0);
}

void TestTexts() {
  CHECK(strcmp(cuguest::ErrorName(CUDA_ERROR_NOT_SUPPORTED), "CUDA_ERROR_NOT_SUPPORTED") == 0);
  CHECK(strcmp(NameOf(cuguest::AcquireAny().error().code), "CUDA_ERROR_NOT_SUPPORTED") == 0);
  CHECK(strcmp(NameOf(CUDA_SUCCESS), "success") == 0);
  CHECK(strstr(cuguest::ErrorText(CUDA_ERROR_NOT_SUPPORTED), "does not support it") != nullptr);
  CHECK(cuguest::IsSticky(static_cast<CUresult>(719)) && !cuguest::IsSticky(CUDA_SUCCESS));
  CHECK(strcmp(cuguest_error_name(47), "CUDA_ERROR_MULTICAST_RESOURCE_FULL") == 0);
  CHECK(strcmp(cuguest_error_name(123456), "CUDA_ERROR_UNRECOGNIZED") == 0);
  const char* const expected =
      "acquire a context, in a program that was compiled with CUGUEST_NO_CUDA: "
      "CUDA_ERROR_NOT_SUPPORTED (801): this driver or device does not support it";
  char text[256] = "";
  const cuguest::Error error = cuguest::AcquireAny().error();
  CHECK(error.Write(text, sizeof(text)) == strlen(expected) && strcmp(text, expected) == 0);
  CHECK(error.Write(text, 8) == strlen(expected) && strcmp(text, "acquire") == 0);
  CHECK(error.Write(nullptr, 0) == strlen(expected));
  cuguest::Error other;
  other.code = CUDA_ERROR_NOT_SUPPORTED;
  CHECK(other.code == error.code && !other.ok());
  CHECK(cuguest::Error().Write(text, sizeof(text)) == 0 && *text == '\0');
  CHECK(strcmp(Name(cuguest::Incident::Kind::kLeakedPush), "left a push behind") == 0);
  CHECK(strcmp(Name(cuguest::Incident::Repair::kRepaired), "repaired") == 0);
  CHECK(strcmp(Name(cuguest::Acquired::Source::kStream), "the stream") == 0);
  CHECK(strcmp(Name(cuguest::Acquired::Source::kCreated), "the primary context, created") == 0);
  CHECK(cuguest::IncidentCount() == 0);
}

void TestWrappersOfC() {
  const cuguest::CGuard guard(SomeContext());
  CHECK(guard.ok() && guard.ref().context == SomeContext());
  const cuguest::CPrimary primary(&cuguest_primary_retain, 0);
  CHECK(primary.code() == 801 && primary.ref().context == nullptr);
  const cuguest::CHostScope host(&cuguest_host_scope_enter, CUGUEST_HERE);
  CHECK(host.ok());
}

}  // namespace

int main() {
  TestGuards();
  TestGuardsOfWhatIsNotAcquired();
  TestRefusals();
  TestCache();
  TestTexts();
  TestWrappersOfC();
#ifdef cuCtxPushCurrent
  CHECK(cuCtxPushCurrent(SomeContext()) == CUDA_SUCCESS);  // the macro is as it was
#endif
  return Conclude();
}
