// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every object that holds something, ended elsewhere than it was made: on another thread, after its
// own thread has ended, and in a forked child, also with another thread inside of any of its
// functions at the fork. The stacks and capture modes of both threads are what they were, what is
// bound to its thread reports kElsewhere and nothing else reports anything, the driver has back
// what was held, and a child neither crashes nor waits for a thread that it does not have.
//
// fork_test.cc has what the objects say in a child, and the tests of each object what they say on
// another thread.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/array.h"
#include "cuguest/c.h"
#include "cuguest/capture.h"
#include "cuguest/capture_scope.h"
#include "cuguest/code_image.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/driver.h"
#include "cuguest/exact_guard.h"
#include "cuguest/graph.h"
#include "cuguest/green_context.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident.h"
#include "cuguest/incident_listener.h"
#include "cuguest/kernel.h"
#include "cuguest/module.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/peer_access.h"
#include "cuguest/per_context.h"
#include "cuguest/pinned_buffer.h"
#include "cuguest/primary_context.h"
#include "cuguest/runtime/callee_scope.h"
#include "cuguest/runtime/cublas.h"
#include "cuguest/runtime/cufft.h"
#include "cuguest/runtime/device_guard.h"
#include "cuguest/runtime/last_error_scope.h"
#include "cuguest/shared_context.h"
#include "cuguest/stream.h"
#include "cuguest/surface_object.h"
#include "cuguest/testing/stack_probe.h"
#include "cuguest/texture_object.h"
#include "cuguest/thread_residency.h"
#include "test/support/held_locks.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

// Of LeakSanitizer, in a program that has it.
extern "C" {
void __lsan_disable() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)
void __lsan_enable() __attribute__((weak));   // NOLINT(bugprone-reserved-identifier)
}

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Stream;
using cuguest_test::Fork;

constexpr unsigned kSecondsToHang = 20;  // alarm() ends who takes longer

// -----------------------------------------------------------------------------
// The objects
// -----------------------------------------------------------------------------

class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  // By the function that says what came of it.
  virtual void End() = 0;
  // To another address, where it can be moved.
  virtual void Move() = 0;
};

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

// nullptr where there is none, as in a forked child.
using Made = std::unique_ptr<Object>;

template <typename T, typename Ending>
Made Own(absl::StatusOr<T> made, Ending end) {
  if (!made.ok()) return nullptr;
  return std::make_unique<Holder<T, Ending>>(end, *std::move(made));
}

template <typename T, typename... Arguments>
Made Enter(Arguments&&... arguments) {
  const auto end = [](T& scope) { return scope.Restore(); };
  auto entered =
      std::make_unique<Holder<T, decltype(end)>>(end, std::forward<Arguments>(arguments)...);
  return entered->held().ok() ? std::move(entered) : nullptr;
}

constexpr char kPtx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k(.param .u32 a)\n{\n "
    "ret;\n}\n";

using Cache = cuguest::PerContext<Stream>;  // whose making and ending call the driver

absl::StatusOr<Stream> MakeStream(const ContextRef& context) { return Stream::Create(context); }

absl::StatusOr<cuguest::Module> LoadModule() {
  return cuguest::Module::Load(*cuguest::CodeImage::FromPtx(kPtx, "k.ptx"));
}

// What the objects are made of, and what threads share. Never ended but in a child.
struct World {
  ContextRef home = ContextRef::Borrow(cuguest_test::MakeContext());
  ContextRef other = ContextRef::Borrow(cuguest_test::MakeContext());
  CUcontext callers = cuguest_test::MakeContext();
  CUcontext others = cuguest_test::MakeContext();
  ContextRef peer;  // of another device, if there is one
  Stream stream = Stream::Create(home).value();
  std::optional<Cache> cache{std::in_place};
  std::optional<cuguest::Module> module{LoadModule().value()};

  // What the toolkit's libraries keep in a context is kept before anything is counted.
  World() {
    cuguest::runtime::CublasHandles handles;
    cuguest::runtime::CufftPlans plans;
    CHECK(handles.Prepare(home).ok());
    CHECK(plans.Prepare(home, cuguest::runtime::CufftLayout::Line(16)).ok());
    handles.ForgetAll();
    plans.ForgetAll();
  }
};

struct GuardAndHost {
  explicit GuardAndHost(const World& w) : guard(w.home), host(guard) {}
  [[nodiscard]] bool ok() const { return guard.ok() && host.ok(); }
  CUresult Restore() { return host.Restore() == CUDA_SUCCESS ? guard.Restore() : host.result(); }

  ContextGuard guard;
  cuguest::HostScope host;
};

struct Residency {
  explicit Residency(const World& w) : home(w.home) {}
  [[nodiscard]] bool ok() const { return home.ok(); }
  CUresult Restore() { return home.Leave(); }

  cuguest::ThreadResidency home;
};

// One that may be moved while it is inside.
struct Scope {
  explicit Scope(const World& w) : entered(scope.Enter(w.home)) {}
  [[nodiscard]] bool ok() const { return entered == CUDA_SUCCESS; }
  CUresult Restore() { return scope.Leave(); }

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
  int Restore() { return kEnd(&storage); }

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
  int Restore() { return host.Restore() == CUDA_SUCCESS ? guard.Restore() : CUDA_SUCCESS; }

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
  absl::Status Restore() { return scope->Restore(); }

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
  bool Restore() { return handles.Forget(ContextRef::Borrow(nullptr)); }

  cuguest::runtime::CublasHandles handles;
  absl::Status prepared;
};

struct OfDevice {
  explicit OfDevice(Device device) : guard(std::in_place, device, cuguest::IfInactive::kCreate) {}
  [[nodiscard]] bool ok() const { return guard->ok(); }
  void Restore() { guard.reset(); }

  std::optional<cuguest::runtime::DeviceGuard> guard;
};

struct LastError {
  [[nodiscard]] static bool ok() { return true; }
  void Restore() { scope.reset(); }

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
             [](Resource<T>& resource) { return resource.object.Destroy(); });
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

struct Row {
  const char* name;
  Made (*make)(World& w);
  unsigned scopes = 0;  // that are bound to the thread that made it
  int version = 0;      // of the driver
  int devices = 1;
  unsigned reports_in_child = 0;  // of one that ends on another thread of a child
};

// An exact guard's memory is lost if its thread ends first (exact_guard.h).
bool LosesMemory(const Row& row) {
  const std::string name = row.name;
  return name == "ExactGuard" || name == "NoContextGuard" || name == "cuguest_no_context_guard";
}

const std::vector<Row>& Rows() {
  using namespace cuguest;
  static const auto& rows = *new std::vector<Row>{
      {"ContextGuard", [](World& w) { return Enter<ContextGuard>(w.home, Location::Here()); }, 1},
      {"ContextGuard, elided",
       [](World& w) { return Enter<ContextGuard>(w.callers, Location::Here()); }, 1},
      {"ContextGuard, kAlwaysPush",
       [](World& w) { return Enter<ContextGuard>(w.callers, GuardMode::kAlwaysPush); }, 1},
      {"ExactGuard", [](World& w) { return Enter<ExactGuard>(w.home, Location::Here()); }, 1},
      {"NoContextGuard", [](World&) { return Enter<NoContextGuard>(); }, 1},
      {"AcquiredGuard",
       [](World& w) { return Enter<AcquiredGuard>(AcquireFromStream(w.stream.get())); }, 1},
      {"ContextScope", [](World& w) { return Enter<Scope>(w); }, 1},
      {"HostScope", [](World& w) { return Enter<GuardAndHost>(w); }, 2},
      {"ThreadResidency", [](World& w) { return Enter<Residency>(w); }, 1},
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
       [](World& w) { return Enter<runtime::CalleeScope>(w.home, __FILE__, __LINE__); }, 2, 0, 1,
       1},
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
             runtime::CufftLayout::Line(16), w.stream.ref());
       },
       2},
      {"PrimaryContext",
       [](World&) {
         return Own(PrimaryContext::Retain(Device::Borrow(0)),
                    [](PrimaryContext& primary) { return primary.Release(); });
       }},
      {"AcquiredContext",
       [](World&) {
         return Own(AcquireOn(Device::Borrow(0), IfInactive::kCreate),
                    [](AcquiredContext& acquired) { AcquiredContext(std::move(acquired)); });
       }},
      {"SharedContext, made",
       [](World&) {
         return Own(SharedContext::Create(Device::Borrow(0)),
                    [](SharedContext& shared) { return shared.Detach(); });
       }},
      {"SharedContext, attached",
       [](World& w) {
         return Own(SharedContext::Attach(w.other),
                    [](SharedContext& shared) { return shared.Detach(); });
       }},
      {"GreenContext",
       [](World&) {
         return Own(GreenContext::Create(Device::Borrow(0), SmCount{1}),
                    [](GreenContext& green) { return green.Destroy(); });
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
                    [](DeviceBuffer<int>& buffer) { return buffer.Free(); });
       }},
      {"DeviceBuffer, in order",
       [](World& w) {
         return Own(DeviceBuffer<int>::AllocateAsync(w.stream.ref(), 16),
                    [](DeviceBuffer<int>& buffer) { return buffer.Free(); });
       }},
      {"DeviceBuffer, after its stream",
       [](World& w) {
         return Own(AllocateInEndedStream(w),
                    [](DeviceBuffer<int>& buffer) { return buffer.Free(); });
       }},
      {"DeviceBuffer, of the per-thread stream",
       [](World& w) {
         return Own(
             DeviceBuffer<int>::AllocateAsync(StreamRef::Borrow(CU_STREAM_PER_THREAD, w.home), 16),
             [](DeviceBuffer<int>& buffer) { return buffer.Free(); });
       }},
      {"PinnedBuffer",
       [](World& w) {
         return Own(PinnedBuffer<int>::Allocate(w.home, 16),
                    [](PinnedBuffer<int>& buffer) { return buffer.Free(); });
       }},
      {"Array",
       [](World& w) { return Own(MakeArray(w), [](Array& array) { return array.Destroy(); }); }},
      {"TextureObject",
       [](World& w) { return OwnResource<TextureObject>(w, CUDA_TEXTURE_DESC{}, nullptr); }},
      {"SurfaceObject", [](World& w) { return OwnResource<SurfaceObject>(w); }},
      {"PeerAccess",
       [](World& w) {
         return Own(PeerAccess::Enable(w.home, w.peer),
                    [](PeerAccess& access) { return access.Disable(); });
       },
       0, 0, 2},
      {"Module",
       [](World&) { return Own(LoadModule(), [](Module& module) { return module.Unload(); }); }},
      {"Kernel",
       [](World& w) {
         const absl::StatusOr<Module> module = LoadModule();
         if (!module.ok()) return Made();
         absl::StatusOr<Kernel> kernel = module->GetKernel("k");
         if (!kernel.ok() || !kernel->Preload(w.home).ok()) return Made();
         return Own(std::move(kernel), [](Kernel& kernel) { Kernel(std::move(kernel)); });
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

// -----------------------------------------------------------------------------
// Threads
// -----------------------------------------------------------------------------

// A thread that does one thing after the other, with a context current.
class Worker {
 public:
  explicit Worker(CUcontext context) : thread_([this] { Run(); }) {
    Do([&] {
      CHECK(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
      stack_ = cuguest::testing::StackProbe::Take().stack();
    });
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    Do(nullptr);
    thread_.join();
  }

  // Returns when it is done.
  void Do(std::function<void()> work) {
    std::unique_lock<std::mutex> lock(mutex_);
    work_ = std::move(work);
    has_work_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !has_work_; });
  }

  // Closes what another thread has ended, and checks that nothing of it is left.
  void CheckUndisturbed() {
    Do([this] {
      CHECK(ContextGuard(stack_.back().context, cuguest::Location::Here()).ok());
      CHECK(cuguest::testing::StackProbe::Take().stack() == stack_);
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
      CHECK(RAW(cuThreadExchangeStreamCaptureMode)(&mode) == CUDA_SUCCESS);
      CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    });
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (bool ends = false; !ends;) {
      changed_.wait(lock, [this] { return has_work_; });
      if (work_) work_();
      ends = !work_;
      has_work_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // null: the end
  bool has_work_ = false;
  std::vector<cuguest::testing::StackProbe::Entry> stack_;
  std::thread thread_;
};

// How an object ends. The object is gone in the end, whatever its function said.
enum class How { kByFunction, kByDestructor, kMoved };
constexpr How kWays[] = {How::kByFunction, How::kByDestructor, How::kMoved};

void End(Made object, How how) {
  if (how == How::kByFunction) object->End();
  if (how == How::kMoved) object->Move();
  object.reset();
}

// Calls check(row) for each row of this driver, and looks at what is left.
template <typename Check>
void ForEachRow(World* world, const Check& check) {
  const int version = (*cuguest::Driver::Get())->version;
  const int devices = Device::Count().value();
  if (devices > 1) {
    auto primary = cuguest::PrimaryContext::Retain(Device::Borrow(1));
    world->peer = ContextRef::Borrow(primary.value().Leak());
  }
  for (const Row& row : Rows()) {
    if (row.version > version || row.devices > devices) continue;
    std::printf("%s\n", row.name);  // in which it fails
    const auto live = Sim::Live();
    check(row);
    world->cache->ForgetAll();
    CHECK(Sim::Live() == live);
    CHECK(cuguest::IncidentCount() == cuguest::IncidentCount(cuguest::IncidentKind::kElsewhere));
  }
}

unsigned long long Elsewhere() { return cuguest::IncidentCount(cuguest::IncidentKind::kElsewhere); }

void OnAnotherThread() {
  World world;
  Worker own(world.callers);
  Worker another(world.others);
  ForEachRow(&world, [&](const Row& row) {
    for (const How how : kWays) {
      const unsigned long long before = Elsewhere();
      Made object;
      own.Do([&] { object = row.make(world); });
      CHECK(object != nullptr);
      another.Do([&] { End(std::move(object), how); });
      another.CheckUndisturbed();
      own.CheckUndisturbed();
      CHECK(Elsewhere() - before == (row.scopes));
    }
  });
}

// What may be moved is not bound to where that is done.
void MovedOnAnotherThread() {
  World world;
  Worker own(world.callers);
  Worker another(world.others);
  ForEachRow(&world, [&](const Row& row) {
    Made object;
    own.Do([&] { object = row.make(world); });
    another.Do([&] { object->Move(); });
    another.CheckUndisturbed();
    own.Do([&] { object->End(); });
    object.reset();
    own.CheckUndisturbed();
    CHECK(Elsewhere() == 0);
  });
}

void AfterItsThread() {
  World world;
  Worker another(world.others);
  ForEachRow(&world, [&](const Row& row) {
    for (const How how : kWays) {
      Made object;
      {
        Worker own(world.callers);
        own.Do([&] {
          const bool expects_leak = LosesMemory(row) && __lsan_disable != nullptr;
          if (expects_leak) __lsan_disable();
          object = row.make(world);
          if (expects_leak) __lsan_enable();
        });
      }
      CHECK(object != nullptr);
      another.Do([&] { End(std::move(object), how); });
      another.CheckUndisturbed();
    }
  });
}

// -----------------------------------------------------------------------------
// Forks
// -----------------------------------------------------------------------------

// Ends what threads share, too.
void EndAllInChild(const Row& row, World* world, Made objects[], How how) {
  alarm(kSecondsToHang);
  const unsigned long long incidents = cuguest::IncidentCount();
  End(std::move(objects[0]), how);
  std::thread([&] { End(std::move(objects[1]), how); }).join();
  static_cast<void>(row.make(*world));
  CHECK(!world->cache->GetOrMake(world->other, &MakeStream).ok());
  world->cache->Forget(world->home);
  world->cache->DropDead();
  world->cache->ForgetAll();
  world->cache.reset();
  CHECK(!world->module->GetKernel("k").ok());
  world->module->ForgetDestroyed(world->home);
  CHECK(!world->module->Unload().ok());
  world->module.reset();
  CHECK(cuguest::IncidentCount() - incidents == row.reports_in_child);
}

void InAForkedChild() {
  World world;
  Worker own(world.callers);
  ForEachRow(&world, [&](const Row& row) {
    for (const How how : kWays) {
      own.Do([&] {
        Made objects[2] = {row.make(world), row.make(world)};
        CHECK(objects[0] != nullptr && objects[1] != nullptr);
        Fork([&] { EndAllInChild(row, &world, objects, how); });
        End(std::move(objects[1]), how);
        End(std::move(objects[0]), how);
      });
      own.CheckUndisturbed();
      CHECK(Elsewhere() == 0);
    }
  });
}

// Where a thread is stopped: at one of its driver calls, and wherever the library has taken a lock.
// For a short time only, since a fork may have to wait for the lock.
class Stop {
 public:
  // Counts the places of the thread that works.
  static int CountPlaces(const std::function<void()>& work) {
    Work(-1, work);
    return s_places;
  }

  // While the thread is at `place` for the first time, calls `meanwhile` on the calling one.
  static void Meanwhile(int place, const std::function<void()>& work,
                        const std::function<void()>& meanwhile) {
    s_is_there = false;
    s_may_go_on = false;
    std::thread thread([&] { Work(place, work); });
    while (!s_is_there) std::this_thread::yield();
    meanwhile();
    s_may_go_on = true;
    thread.join();
  }

  static int stops() { return s_stops; }

  static void Reach() {
    if (!s_is_worker || s_places++ != s_stop_at) return;
    ++s_stops;
    s_is_there = true;
    const auto end = std::chrono::steady_clock::now() + kLongest;
    while (!s_may_go_on && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

 private:
  static constexpr std::chrono::milliseconds kLongest{100};

  static void Work(int place, const std::function<void()>& work) {
    s_places = 0;
    s_stop_at = place;
    s_is_worker = true;
    work();
    s_is_worker = false;
    s_is_there = true;
  }

  static inline thread_local bool s_is_worker = false;
  static inline int s_places = 0;
  static inline int s_stops = 0;
  static inline int s_stop_at = -1;
  static inline std::atomic<bool> s_is_there{false};
  static inline std::atomic<bool> s_may_go_on{false};
};

void WithAThreadInside() {
  World world;
  Worker own(world.callers);
  Sim::OnEveryCall([](const char* entry) {
    cuguest_test::RequireNoLock(entry);
    Stop::Reach();
  });
  cuguest_test::OnLockTaken(&Stop::Reach);
  ForEachRow(&world, [&](const Row& row) {
    const auto work = [&] {
      for (const How how : kWays) {
        Made object = row.make(world);
        if (object != nullptr) End(std::move(object), how);
      }
    };
    int places = 0;
    std::thread([&] { places = Stop::CountPlaces(work); }).join();
    // Some make no driver call, and one takes no lock either.
    CHECK(places > 0 || !cuguest_test::SeesLocks() || row.name == std::string("LastErrorScope"));
    for (int place = 0; place < places; ++place) {
      const How how = kWays[place % 3];
      own.Do([&] {
        Made objects[2] = {row.make(world), row.make(world)};
        Stop::Meanwhile(place, work,
                        [&] { Fork([&] { EndAllInChild(row, &world, objects, how); }); });
        End(std::move(objects[1]), how);
        End(std::move(objects[0]), how);
      });
    }
    own.CheckUndisturbed();
  });
  std::printf("%d forks\n", Stop::stops());
}

}  // namespace

int main(int argc, char** argv) {
  const auto on = cuguest_test::On::kSimulation;
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"on_another_thread", &OnAnotherThread, {}, 0, on},
          {"moved_on_another_thread", &MovedOnAnotherThread, {}, 0, on},
          {"after_its_thread", &AfterItsThread, {}, 0, on},
          {"in_a_forked_child", &InAForkedChild, {}, 0, on},
          {"with_a_thread_inside", &WithAThreadInside, {}, 0, on},
      });
}
