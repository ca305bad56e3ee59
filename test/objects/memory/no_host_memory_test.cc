// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No destructor, and no assignment that ends what was there before, asks for host memory: a
// std::bad_alloc in one would end the process. Each owning type is ended in each way that there
// is: with its context alive, after its context was destroyed, and with each driver entry failing.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cudasim/sim_library.h"
#include "cuguest/acquire.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/driver.h"
#include "cuguest/host_scope.h"
#include "cuguest/libraries/cublas.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/peer_access.h"
#include "cuguest/objects/scratch_buffer.h"
#include "cuguest/objects/stream.h"
#include "cuguest/per_context.h"
#include "cuguest/runtime/device_guard.h"
#include "cuguest/runtime/last_error_scope.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/objects/memory/memories.h"
#include "test/support/runtime.h"

namespace {

thread_local bool t_is_ending = false;
thread_local int t_allocations = 0;
thread_local char t_where[4096] = {};

const char* FileOf(void* address) {
  Dl_info info = {};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

bool IsSimulation(const char* file) { return std::strstr(file, "cudasim/sim/") != nullptr; }

// Counts what cuguest asks for, in its library or in its headers' code here; not what the
// simulated driver and libraries need for themselves.
void Count(void* caller) {
  void* frames[24];
  const int count = backtrace(frames, 24);
  int first = 0;
  while (first < count && frames[first] != caller) ++first;
  while (first < count && std::strstr(FileOf(frames[first]), "libstdc++") != nullptr) ++first;
  if (first < count && IsSimulation(FileOf(frames[first]))) return;
  if (t_allocations++ != 0) return;
  t_is_ending = false;
  char** names = backtrace_symbols(frames, count);
  for (int i = first; i < count && i < first + 8; ++i) {
    std::strncat(t_where, "\n  ", sizeof(t_where) - std::strlen(t_where) - 1);
    std::strncat(t_where, names[i], sizeof(t_where) - std::strlen(t_where) - 1);
  }
  std::free(names);
  t_is_ending = true;
}

thread_local bool t_has_memory = true;

void* Allocate(std::size_t size, void* caller) noexcept {
  if (!t_has_memory && !IsSimulation(FileOf(caller))) return nullptr;
  if (t_is_ending) Count(caller);
  return std::malloc(size == 0 ? 1 : size);
}

}  // namespace

void* operator new(std::size_t size) {
  void* const memory = Allocate(size, __builtin_return_address(0));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace cuguest;
using cudasim::Sim;
using cuguest_test::kBytes;
using cuguest_test::NeedsDevices;
using cuguest_test::OnlySim;
using cuguest_test::Owner;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;

constexpr char kPtx[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
)";

// What a case works with: contexts of its own, and what is current.
struct Scene {
  Scene() { other.Enter(); }
  ~Scene() {
    SetStack({});
    TakeIncidents();
  }
  StreamRef stream() const { return StreamRef::Borrow(context->stream(), context->ref()); }

  std::unique_ptr<Owner> context = std::make_unique<Owner>();
  Owner other;
};

using End = std::function<void()>;

// Makes something, and returns what destroys it.
struct Kind {
  const char* name;
  std::function<End(const Scene&)> make;
};

// Ends a T by its destructor.
template <typename T>
End EndOf(T object) {
  auto* const made = new T(std::move(object));
  return [made] {
    made->~T();
    ::operator delete(made);
  };
}

// The same, by assigning what is empty.
template <typename T>
End Emptied(T object) {
  auto made = std::make_shared<T>(std::move(object));
  return [made] { *made = T(); };
}

template <typename T, typename... Arguments>
End EndOfScope(Arguments&&... arguments) {
  auto* const made = new T(std::forward<Arguments>(arguments)...);
  return [made] {
    made->~T();
    ::operator delete(made);
  };
}

struct Value {
  explicit Value(Stream made) : stream(std::move(made)) {}
  void Leak() noexcept { static_cast<void>(stream.Leak()); }
  Stream stream;
};

template <typename Use>
End WithCache(const Scene& scene, const Use& use) {
  auto cache = std::make_shared<PerContext<Value>>();
  const ContextRef context = scene.context->ref();
  const auto made = cache->GetOrMake(context, [](const ContextRef& of) -> absl::StatusOr<Value> {
    return Value(Stream::Create(of).value());
  });
  BOOST_TEST(made.ok());
  return [=] { use(*cache, context); };
}

const std::vector<Kind>& Kinds() {
  static const auto& kinds = *new std::vector<Kind>{
      {"DeviceBuffer",
       [](const Scene& s) {
         return EndOf(DeviceBuffer<int>::Allocate(s.context->ref(), 100).value());
       }},
      {"DeviceBuffer of a pool",
       [](const Scene& s) {
         return EndOf(DeviceBuffer<int>::AllocateAsync(s.stream(), 9).value());
       }},
      {"ScratchBuffer",
       [](const Scene& s) { return EndOf(ScratchBuffer<int>::Allocate(s.stream(), 9).value()); }},
      {"DeviceBuffer, assigned",
       [](const Scene& s) {
         return Emptied(DeviceBuffer<int>::Allocate(s.context->ref(), 100).value());
       }},
      {"Stream", [](const Scene& s) { return EndOf(Stream::Create(s.context->ref()).value()); }},
      {"Stream, assigned",
       [](const Scene& s) { return Emptied(Stream::Create(s.context->ref()).value()); }},
      {"Event", [](const Scene& s) { return EndOf(Event::Create(s.context->ref()).value()); }},
      {"Event, assigned",
       [](const Scene& s) { return Emptied(Event::Create(s.context->ref()).value()); }},
      {"PrimaryContext",
       [](const Scene&) { return EndOf(PrimaryContext::Retain(Device::Borrow(0))); }},
      {"PrimaryContext, assigned",
       [](const Scene&) { return Emptied(PrimaryContext::Retain(Device::Borrow(0))); }},
      {"SharedContext",
       [](const Scene&) { return EndOf(SharedContext::Create(Device::Borrow(0))); }},
      {"SharedContext of a host's",
       [](const Scene& s) { return EndOf(SharedContext::Attach(s.context->ref())); }},
      {"Acquired", [](const Scene& s) { return EndOf(AcquireFromStream(s.context->stream())); }},
      {"ContextGuard", [](const Scene& s) { return EndOfScope<ContextGuard>(s.context->ref()); }},
      {"ContextGuard, disturbed",
       [](const Scene& s) {
         const End end = EndOfScope<ContextGuard>(s.context->ref());
         OK(RAW(cuCtxPushCurrent)(s.other.get()));
         return end;
       }},
      {"NoContextGuard", [](const Scene&) { return EndOfScope<NoContextGuard>(); }},
      {"CaptureModeGuard", [](const Scene&) { return EndOfScope<CaptureModeGuard>(); }},
      {"HostScope",
       [](const Scene& s) {
         auto* const guard = new ContextGuard(s.context->ref());
         const End end = EndOfScope<HostScope>(*guard);
         return [=] {
           end();
           guard->~ContextGuard();
           ::operator delete(guard);
         };
       }},
      {"PerContext",
       [](const Scene& s) {
         return WithCache(s, [](PerContext<Value>& cache, const ContextRef&) { cache.DropDead(); });
       }},
      {"PerContext, forgotten",
       [](const Scene& s) {
         return WithCache(
             s, [](PerContext<Value>& cache, const ContextRef& context) { cache.Forget(context); });
       }},
      {"Module",
       [](const Scene& s) {
         const CodeImage image = CodeImage::FromPtx(kPtx, "nothing").value();
         return EndOf(Module::LoadIn(s.context->ref(), image).value());
       }},
      {"CublasScope",
       [](const Scene& s) {
         static auto& handles = *new runtime::CublasHandles;
         auto* const scope = new runtime::CublasScope(handles, s.stream());
         BOOST_TEST(scope->ok(), scope->status().ToString());
         return [scope] {
           std::destroy_at(scope);
           ::operator delete(scope);
         };
       }},
      {"CublasHandles",
       [](const Scene& s) {
         auto* const handles = new runtime::CublasHandles;
         BOOST_TEST(handles->Prepare(s.context->ref()).ok());
         return [handles] {
           std::destroy_at(handles);
           ::operator delete(handles);
         };
       }},
      {"DeviceGuard",
       [](const Scene&) {
         return EndOfScope<runtime::DeviceGuard>(Device::Borrow(0), cuguest::IfInactive::kCreate);
       }},
      {"LastErrorScope", [](const Scene&) { return EndOfScope<runtime::LastErrorScope>(); }},
  };
  return kinds;
}

// Destroys it, and says what it has asked for.
void CheckEnd(const End& end) {
  t_allocations = 0;
  t_where[0] = 0;
  const cuguest_test::Unrecorded unrecorded;
  t_is_ending = true;
  end();
  t_is_ending = false;
  BOOST_TEST(t_allocations == 0, t_allocations << " allocations" << t_where);
}

// The entries that are called when it ends.
std::vector<std::string> EntriesOf(const Kind& kind) {
  Scene scene;
  const End end = kind.make(scene);
  Sim::ResetCalls();
  end();
  std::vector<std::string> entries;
  for (std::size_t i = 0; Sim::EntryName(i) != nullptr; ++i) {
    if (Sim::Calls(Sim::EntryName(i)) != 0) entries.emplace_back(Sim::EntryName(i));
  }
  return entries;
}

// So that nothing is made for the first time while something ends.
const bool g_is_warm = [] {
  void* frames[2];
  return backtrace(frames, 2) != 0;
}();

}  // namespace

BOOST_AUTO_TEST_SUITE(no_host_memory, *OnlySim())

BOOST_AUTO_TEST_CASE(counts_what_cuguest_asks_for) {
  BOOST_TEST(g_is_warm);
  t_is_ending = true;
  const absl::Status status = cuguest::ToStatus(CUDA_ERROR_UNKNOWN, "do what has a long name");
  t_is_ending = false;
  BOOST_TEST(!status.ok());
  BOOST_TEST(t_allocations > 0);
}

// To say why it failed needs memory.
BOOST_AUTO_TEST_CASE(a_scope_whose_constructor_throws_leaves_nothing) {
  Scene scene;
  static auto& handles = *new runtime::CublasHandles;
  BOOST_TEST(handles.Prepare(scene.context->ref()).ok());
  SetStack({scene.other.get()});
  cudasim::SimLibrary::FailCall("cublasSetStream_v2", 1, CUBLAS_STATUS_INTERNAL_ERROR);
  t_has_memory = false;
  bool has_thrown = false;
  try {
    const runtime::CublasScope scope(handles, scene.stream());
  } catch (const std::bad_alloc&) {
    has_thrown = true;
  }
  t_has_memory = true;
  BOOST_TEST(has_thrown);
  BOOST_TEST((cuguest_test::GetStack() == std::vector<CUcontext>{scene.other.get()}));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  OK(RAW(cuThreadExchangeStreamCaptureMode)(&mode));
  BOOST_TEST(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
  BOOST_TEST(runtime::CublasScope(handles, scene.stream()).ok());
}

BOOST_AUTO_TEST_CASE(in_a_living_context) {
  for (const Kind& kind : Kinds()) {
    BOOST_TEST_CONTEXT(kind.name) {
      Scene scene;
      CheckEnd(kind.make(scene));
    }
  }
}

BOOST_AUTO_TEST_CASE(after_the_end_of_the_context) {
  for (const Kind& kind : Kinds()) {
    BOOST_TEST_CONTEXT(kind.name) {
      Scene scene;
      const End end = kind.make(scene);
      scene.context.reset();
      CheckEnd(end);
    }
  }
}

BOOST_AUTO_TEST_CASE(with_each_call_failing) {
  for (const Kind& kind : Kinds()) {
    for (const std::string& entry : EntriesOf(kind)) {
      for (const CUresult code :
           {CUDA_ERROR_UNKNOWN, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_DEINITIALIZED}) {
        BOOST_TEST_CONTEXT(kind.name << ", " << entry << " fails with " << code) {
          Scene scene;
          const End end = kind.make(scene);
          Sim::FailCall(entry.c_str(), 1, code);
          CheckEnd(end);
          Sim::ClearFaults();
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(peer_access, *NeedsDevices(2)) {
  for (const char* failing : {"", "cuCtxDisablePeerAccess", "cuCtxGetId", "cuCtxPushCurrent"}) {
    BOOST_TEST_CONTEXT("failing: " << failing) {
      const Owner a(0);
      const Owner b(1);
      const End end = EndOf(PeerAccess::Enable(a.ref(), b.ref()).value());
      if (*failing != 0) Sim::FailCall(failing, 1, CUDA_ERROR_UNKNOWN);
      CheckEnd(end);
      Sim::ClearFaults();
      TakeIncidents();
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
