// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/process/elsewhere.h"

#include <sys/mman.h>

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/c.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/exact_guard.h"
#include "cuguest/green_context.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident.h"
#include "cuguest/incident_listener.h"
#include "cuguest/libraries/cublas.h"
#include "cuguest/libraries/cufft.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/objects/array.h"
#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/graph.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/peer_access.h"
#include "cuguest/objects/pinned_buffer.h"
#include "cuguest/objects/pinned_pages.h"
#include "cuguest/objects/scratch_buffer.h"
#include "cuguest/objects/stream.h"
#include "cuguest/objects/surface_object.h"
#include "cuguest/objects/texture_object.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/relaxed.h"
#include "cuguest/runtime/callee_scope.h"
#include "cuguest/runtime/device_guard.h"
#include "cuguest/runtime/last_error_scope.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace cuguest_elsewhere {
namespace {

using cuguest::ContextGuard;
using cuguest::Device;
using cuguest::ScratchBuffer;

template <typename T, typename Ending>
class Holder final : public Object {
 public:
  template <typename... Arguments>
  explicit Holder(Ending end, Arguments&&... arguments)
      : end_(end), held_(std::make_unique<T>(std::forward<Arguments>(arguments)...)) {}
  void End() override { static_cast<void>(end_(*held_)); }
  void Move() override {
    if constexpr (std::is_move_constructible_v<T>) held_ = std::make_unique<T>(std::move(*held_));
  }
  const T& held() const { return *held_; }

 private:
  const Ending end_;
  std::unique_ptr<T> held_;
};

template <typename T, typename Ending>
Made Own(absl::StatusOr<T> made, Ending end) {
  if (!made.ok()) return nullptr;
  return std::make_unique<Holder<T, Ending>>(end, *std::move(made));
}

template <typename T, typename Ending>
Made Own(T made, Ending end) {
  if (!made.ok()) return nullptr;
  return std::make_unique<Holder<T, Ending>>(end, std::move(made));
}

template <typename T, typename... Arguments>
Made Enter(Arguments&&... arguments) {
  const auto end = [](T& scope) { return scope.Leave(); };
  auto entered =
      std::make_unique<Holder<T, decltype(end)>>(end, std::forward<Arguments>(arguments)...);
  return entered->held().ok() ? std::move(entered) : nullptr;
}

constexpr char kPtx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k(.param .u32 a)\n{\n "
    "ret;\n}\n";

absl::StatusOr<cuguest::Module> LoadModule() {
  return cuguest::Module::Load(*cuguest::CodeImage::FromPtx(kPtx, "k.ptx"));
}

struct GuardAndHost {
  explicit GuardAndHost(const World& w) : guard(w.home), host(guard) {}
  [[nodiscard]] bool ok() const { return guard.ok() && host.ok(); }
  CUresult Leave() { return host.Leave() == CUDA_SUCCESS ? guard.Leave() : host.result(); }

  ContextGuard guard;
  cuguest::HostScope host;
};

// One that may be moved while it is inside.
struct Scope {
  explicit Scope(const World& w) : entered(scope.Enter(w.home)) {}
  [[nodiscard]] bool ok() const { return entered == CUDA_SUCCESS; }
  CUresult Leave() { return scope.Leave(); }

  cuguest::ContextScope scope;
  CUresult entered;
};

// A storage of C, ended by its function, and once more with its memory, as `_cleanup` does.
template <typename T, int (*kEnd)(T*)>
struct Storage {
  explicit Storage(const std::function<int(T*)>& begin) : begun(begin(&storage)) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() { static_cast<void>(kEnd(&storage)); }
  [[nodiscard]] bool ok() const { return begun == CUDA_SUCCESS; }
  int Leave() { return kEnd(&storage); }

  T storage = {};
  int begun;
};
template <typename T, int (*kEnd)(T*)>
Made Begin(const std::function<int(T*)>& begin) {
  return Enter<Storage<T, kEnd>>(begin);
}

struct GuardAndHostOfC {
  explicit GuardAndHostOfC(const World& w)
      : guard([&w](cuguest_guard* of) {
          return cuguest_guard_enter(of, w.home.get(), CUGUEST_ELIDE, CUGUEST_HERE);
        }),
        host([](cuguest_host_scope* of) { return cuguest_host_scope_enter(of, CUGUEST_HERE); }) {}
  [[nodiscard]] bool ok() const { return guard.ok() && host.ok(); }
  int Leave() { return host.Leave() == CUDA_SUCCESS ? guard.Leave() : CUDA_SUCCESS; }

  Storage<cuguest_guard, &cuguest_guard_leave> guard;
  Storage<cuguest_host_scope, &cuguest_host_scope_leave> host;
};

// A pool of handles, and a scope that has one of them.
template <typename Handles, typename Scope>
struct Borrowed {
  template <typename... Arguments>
  explicit Borrowed(const Arguments&... arguments) : scope(std::in_place, handles, arguments...) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    scope.reset();
    handles.ForgetAll();
  }
  [[nodiscard]] bool ok() const { return scope->ok(); }
  absl::Status Leave() { return scope->Leave(); }

  Handles handles;
  std::optional<Scope> scope;
};

// Idle handles, which the pool's end alone would leave in a context that is not current.
struct Pool {
  explicit Pool(const World& w) : prepared(handles.Prepare(w.home, 2)) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { handles.ForgetAll(); }
  [[nodiscard]] bool ok() const { return prepared.ok(); }
  bool Leave() { return handles.Forget(ContextRef::Borrow(nullptr)); }

  cuguest::runtime::CublasHandles handles;
  absl::Status prepared;
};

struct OfDevice {
  explicit OfDevice(Device device) : guard(std::in_place, device, cuguest::IfInactive::kCreate) {}
  [[nodiscard]] bool ok() const { return guard->ok(); }
  void Leave() { guard.reset(); }

  std::optional<cuguest::runtime::DeviceGuard> guard;
};

struct LastError {
  [[nodiscard]] static bool ok() { return true; }
  void Leave() { scope.reset(); }

  std::optional<cuguest::runtime::LastErrorScope> scope{std::in_place};
};

// In a stream of its own, which ends after it.
struct Capture {
  Stream stream;
  cuguest::CaptureScope scope;
};
absl::StatusOr<Capture> BeginCapture(const World& w, CUstreamCaptureMode mode) {
  absl::StatusOr<Stream> stream = Stream::Create(w.home);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<cuguest::CaptureScope> scope = cuguest::CaptureScope::Begin(stream->ref(), mode);
  if (!scope.ok()) return scope.status();
  return Capture{*std::move(stream), *std::move(scope)};
}
absl::Status EndCapture(Capture& capture) { return capture.scope.End().status(); }

// Memory of a capture that ends after it.
struct Scratch {
  Capture capture;
  cuguest::ScratchBuffer<int> memory;
};
absl::StatusOr<Scratch> AllocateInCapture(const World& w) {
  absl::StatusOr<Capture> capture = BeginCapture(w, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (!capture.ok()) return capture.status();
  auto memory = cuguest::ScratchBuffer<int>::Allocate(capture->stream.ref(), 16);
  if (!memory.ok()) return memory.status();
  return Scratch{*std::move(capture), *std::move(memory)};
}

// Memory in the order of a stream that has ended before it.
absl::StatusOr<cuguest::DeviceBuffer<int>> AllocateInEndedStream(const World& w) {
  const absl::StatusOr<Stream> stream = Stream::Create(w.home);
  if (!stream.ok()) return stream.status();
  return cuguest::DeviceBuffer<int>::AllocateAsync(stream->ref(), 16);
}

absl::StatusOr<cuguest::Array> MakeArray(const World& w) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = {8, 8, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};
  return cuguest::Array::Create(w.home, shape);
}

// With what it is an object of, which ends after it.
template <typename T>
struct Resource {
  cuguest::Array array;
  T object;
};
template <typename T, typename... Arguments>
Made OwnResource(const World& w, const Arguments&... arguments) {
  absl::StatusOr<cuguest::Array> array = MakeArray(w);
  if (!array.ok()) return nullptr;
  absl::StatusOr<T> object = T::Create(*array, arguments...);
  if (!object.ok()) return nullptr;
  return Own(absl::StatusOr<Resource<T>>(Resource<T>{*std::move(array), *std::move(object)}),
             [](Resource<T>& resource) { return resource.object.Release(); });
}

// Each context has one, so that it is made anew.
Made MakeValue(World& w) {
  if (w.cache.has_value()) w.cache->Forget(w.home);
  return Own(w.cache->GetOrMake(w.home, &MakeStream), [](Cache::Pin& pin) { pin = Cache::Pin(); });
}

absl::StatusOr<cuguest::ExecutableGraph> MakeExecutable(const World& w) {
  const absl::StatusOr<cuguest::Graph> graph = cuguest::Graph::Create(w.home);
  if (!graph.ok()) return graph.status();
  return graph->Instantiate();
}

}  // namespace

absl::StatusOr<Stream> MakeStream(const ContextRef& context) { return Stream::Create(context); }

// What the toolkit's libraries keep in a context is kept before anything is counted.
World::World()
    : home(ContextRef::Borrow(cuguest_test::MakeContext())),
      other(ContextRef::Borrow(cuguest_test::MakeContext())),
      callers(cuguest_test::MakeContext()),
      others(cuguest_test::MakeContext()),
      stream(Stream::Create(home).value()),
      module(LoadModule().value()) {
  cuguest::runtime::CublasHandles handles;
  cuguest::runtime::CufftPlans plans;
  CHECK(handles.Prepare(home).ok());
  CHECK(plans.Prepare(home, cuguest::runtime::CufftPlans::Layout::Line(16)).ok());
  handles.ForgetAll();
  plans.ForgetAll();
}

const std::vector<Row>& Rows() {
  using namespace cuguest;
  static const auto& rows = *new std::vector<Row>{
      {"ContextGuard",
       [](World& w) { return Enter<ContextGuard>(w.home, GuardMode::kElide, Location::Here()); },
       1},
      {"ContextGuard, elided",
       [](World& w) { return Enter<ContextGuard>(w.callers, GuardMode::kElide, Location::Here()); },
       1},
      {"ContextGuard, kAlwaysPush",
       [](World& w) { return Enter<ContextGuard>(w.callers, GuardMode::kAlwaysPush); }, 1},
      {"ExactGuard", [](World& w) { return Enter<ExactGuard>(w.home, Location::Here()); }, 1},
      {"NoContextGuard", [](World&) { return Enter<NoContextGuard>(); }, 1},
      {"AcquiredGuard",
       [](World& w) { return Enter<AcquiredGuard>(AcquireFromStream(w.stream.get())); }, 1},
      {"ContextScope", [](World& w) { return Enter<Scope>(w); }, 1},
      {"HostScope", [](World& w) { return Enter<GuardAndHost>(w); }, 2},
      {"Relaxed", [](World& w) { return Enter<Relaxed<ContextGuard>>(w.home); }, 2},
      {"CaptureModeGuard", [](World&) { return Enter<CaptureModeGuard>(); }, 1},
      {"cuguest_guard",
       [](World& w) {
         return Begin<cuguest_guard, &cuguest_guard_leave>([&w](cuguest_guard* guard) {
           return cuguest_guard_enter(guard, w.home.get(), CUGUEST_ELIDE, CUGUEST_HERE);
         });
       },
       1},
      {"cuguest_no_context_guard",
       [](World&) {
         return Begin<cuguest_no_context_guard, &cuguest_no_context_guard_leave>(
             [](auto* guard) { return cuguest_no_context_guard_enter(guard, CUGUEST_HERE); });
       },
       1},
      {"cuguest_capture_guard",
       [](World&) {
         return Begin<cuguest_capture_guard, &cuguest_capture_guard_leave>([](auto* guard) {
           return cuguest_capture_guard_enter(guard, CU_STREAM_CAPTURE_MODE_RELAXED, CUGUEST_HERE);
         });
       },
       1},
      {"cuguest_host_scope", [](World& w) { return Enter<GuardAndHostOfC>(w); }, 2},
      {"cuguest_primary",
       [](World&) {
         return Begin<cuguest_primary, &cuguest_primary_release>(
             [](auto* primary) { return cuguest_primary_retain(primary, 0); });
       }},
      {"cuguest_acquired",
       [](World&) {
         return Begin<cuguest_acquired, &cuguest_acquired_release>(
             [](auto* acquired) { return cuguest_acquire_on(acquired, 0, CUGUEST_CREATE); });
       }},
      {"cuguest_shared_context",
       [](World& w) {
         return Begin<cuguest_shared_context, &cuguest_shared_context_detach>(
             [&w](auto* shared) { return cuguest_shared_context_attach(shared, w.other.get()); });
       }},
      {"cuguest_incident_listener",
       [](World&) {
         return Begin<cuguest_incident_listener, &cuguest_incident_listener_remove>(
             [](auto* listener) {
               return cuguest_incident_listener_register(
                   listener, [](const cuguest_incident*, void*) {}, nullptr);
             });
       }},
      {"CalleeScope",
       [](World& w) { return Enter<runtime::CalleeScope>(w.home, Location::Here()); }, 2, 0, 1, 1},
      {"LastErrorScope", [](World&) { return Enter<LastError>(); }, 1, 0, 1, 1},
      {"DeviceGuard", [](World&) { return Enter<OfDevice>(Device::Borrow(0)); }, 1},
      {"CublasHandles", [](World& w) { return Enter<Pool>(w); }},
      {"CublasScope",
       [](World& w) {
         return Enter<Borrowed<runtime::CublasHandles, runtime::CublasScope>>(w.stream.ref());
       },
       2},
      {"CufftScope",
       [](World& w) {
         return Enter<Borrowed<runtime::CufftPlans, runtime::CufftScope>>(
             runtime::CufftPlans::Layout::Line(16), w.stream.ref());
       },
       2},
      {"PrimaryContext",
       [](World&) {
         return Own(PrimaryContext::Retain(Device::Borrow(0)),
                    [](PrimaryContext& primary) { return primary.Release(); });
       }},
      {"Acquired",
       [](World&) {
         return Own(AcquireOn(Device::Borrow(0), IfInactive::kCreate),
                    [](Acquired& acquired) { return acquired.Release(); });
       }},
      {"SharedContext, made",
       [](World&) {
         return Own(SharedContext::Create(Device::Borrow(0)),
                    [](SharedContext& shared) { return shared.Release(); });
       }},
      {"SharedContext, attached",
       [](World& w) {
         return Own(SharedContext::Attach(w.other),
                    [](SharedContext& shared) { return shared.Release(); });
       }},
      {"GreenContext",
       [](World&) {
         return Own(GreenContext::Create(Device::Borrow(0), SmCount{1}),
                    [](GreenContext& green) { return green.Release(); });
       },
       0, 12040},
      {"Stream",
       [](World& w) {
         return Own(Stream::Create(w.home), [](Stream& stream) { return stream.Release(); });
       }},
      {"Event",
       [](World& w) {
         return Own(Event::Create(w.home), [](Event& event) { return event.Release(); });
       }},
      {"DeviceBuffer",
       [](World& w) {
         return Own(DeviceBuffer<int>::Allocate(w.home, 16),
                    [](DeviceBuffer<int>& buffer) { return buffer.Release(); });
       }},
      {"DeviceBuffer, in order",
       [](World& w) {
         return Own(DeviceBuffer<int>::AllocateAsync(w.stream.ref(), 16),
                    [](DeviceBuffer<int>& buffer) { return buffer.Release(); });
       }},
      {"DeviceBuffer, after its stream",
       [](World& w) {
         return Own(AllocateInEndedStream(w),
                    [](DeviceBuffer<int>& buffer) { return buffer.Release(); });
       }},
      {"DeviceBuffer, of the per-thread stream",
       [](World& w) {
         return Own(
             DeviceBuffer<int>::AllocateAsync(StreamRef::Borrow(CU_STREAM_PER_THREAD, w.home), 16),
             [](DeviceBuffer<int>& buffer) { return buffer.Release(); });
       }},
      {"ScratchBuffer",
       [](World& w) {
         return Own(ScratchBuffer<int>::Allocate(w.stream.ref(), 16),
                    [](ScratchBuffer<int>& buffer) { return buffer.Release(); });
       }},
      {"ScratchBuffer, in a capture",
       [](World& w) {
         return Own(AllocateInCapture(w),
                    [](Scratch& scratch) { return scratch.memory.Release(); });
       }},
      {"PinnedBuffer",
       [](World& w) {
         return Own(PinnedBuffer<int>::Allocate(w.home, 16),
                    [](PinnedBuffer<int>& buffer) { return buffer.Release(); });
       }},
      {"PinnedPages",
       [](World& w) {
         // The user's; never unmapped.
         void* const pages =
             mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         return Own(PinnedPages::Pin(w.home, pages, 4096),
                    [](PinnedPages& pinned) { return pinned.Release(); });
       }},
      {"Array",
       [](World& w) { return Own(MakeArray(w), [](Array& array) { return array.Release(); }); }},
      {"TextureObject",
       [](World& w) { return OwnResource<TextureObject>(w, CUDA_TEXTURE_DESC{}, nullptr); }},
      {"SurfaceObject", [](World& w) { return OwnResource<SurfaceObject>(w); }},
      {"PeerAccess",
       [](World& w) {
         return Own(PeerAccess::Enable(w.home, w.peer),
                    [](PeerAccess& access) { return access.Release(); });
       },
       0, 0, 2},
      {"Module",
       [](World&) { return Own(LoadModule(), [](Module& module) { return module.Release(); }); }},
      {"Kernel",
       [](World& w) {
         const absl::StatusOr<Module> module = LoadModule();
         if (!module.ok()) return Made();
         absl::StatusOr<Kernel> kernel = module->GetKernel("k");
         if (!kernel.ok() || !kernel->Preload(w.home).ok()) return Made();
         return Own(std::move(kernel), [](Kernel& held) { const Kernel ended = std::move(held); });
       },
       // Below, what is loaded in a context that is not known to be alive stays there.
       0, 12000},
      {"Kernel, of a module that threads share",
       [](World& w) {
         return Own(w.module->GetKernel("k"), [](Kernel& kernel) { Kernel(std::move(kernel)); });
       }},
      {"Graph",
       [](World& w) {
         return Own(Graph::Create(w.home), [](Graph& graph) { return graph.Release(); });
       }},
      {"ExecutableGraph",
       [](World& w) {
         return Own(MakeExecutable(w), [](ExecutableGraph& graph) { return graph.Release(); });
       }},
      {"CaptureScope",
       [](World& w) {
         return Own(BeginCapture(w, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), &EndCapture);
       }},
      {"CaptureScope, relaxed",
       [](World& w) { return Own(BeginCapture(w, CU_STREAM_CAPTURE_MODE_RELAXED), &EndCapture); }},
      {"PerContext", &MakeValue},
      {"IncidentListener",
       [](World&) -> Made {
         const auto end = [](std::optional<IncidentListener>& listener) { listener.reset(); };
         using Listener = Holder<std::optional<IncidentListener>, decltype(end)>;
         return std::make_unique<Listener>(
             end, std::in_place, [](const Incident&, void*) {}, nullptr);
       }},
  };
  return rows;
}

}  // namespace cuguest_elsewhere
