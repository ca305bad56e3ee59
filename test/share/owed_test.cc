// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an object could not give back where it ended, in a host function: Note [What is owed] in
// lib/share/owed.h.

#include "lib/share/owed.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/c.h"
#include "cuguest/context_guard.h"
#include "cuguest/green_context.h"
#include "cuguest/incident.h"
#include "cuguest/incident_listener.h"
#include "cuguest/objects/array.h"
#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/graph.h"
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
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/thread_home.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

// A sanitizer has an allocator of its own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kCanRefuse = true;
thread_local bool t_refuses_next = false;
extern "C" void* __libc_malloc(std::size_t bytes);
extern "C" void* malloc(std::size_t bytes) noexcept {
  return std::exchange(t_refuses_next, false) ? nullptr : __libc_malloc(bytes);
}
#else
constexpr bool kCanRefuse = false;
bool t_refuses_next = false;
#endif

BOOST_AUTO_TEST_SUITE(owed)

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::Event;
using cuguest::Incident;
using cuguest::PinnedBuffer;
using cuguest::PrimaryContext;
using cuguest::ScratchBuffer;
using cuguest::SharedContext;
using cuguest::Stream;
using cuguest_test::OwnContext;

const Device kFirst = Device::Borrow(0);

bool IsActive() { return PrimaryContext::Query(kFirst).active; }

// Calls `function` in a host function, and waits for it.
template <typename Function>
void InAHostFunction(Function function) {
  const OwnContext context;
  const ContextGuard guard(context.get());
  CUstream stream = nullptr;
  BOOST_TEST(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const auto call = [](void* data) { (*static_cast<Function*>(data))(); };
  BOOST_TEST(RAW(cuLaunchHostFunc)(stream, call, &function) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
}

// The incidents since the last call.
void CheckOwed(const std::vector<std::string>& what, CUresult result = CUDA_ERROR_NOT_PERMITTED) {
  const std::vector<Incident> incidents = cuguest_test::TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == what.size());
  for (std::size_t i = 0; i < what.size(); ++i) {
    BOOST_TEST((incidents[i].kind == Incident::Kind::kOwed));
    BOOST_TEST(incidents[i].file == what[i]);
    BOOST_TEST(incidents[i].result == result);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(release_keeps_the_last_reference) {
  SharedContext made = SharedContext::Create(kFirst);
  CUcontext primary = nullptr;
  BOOST_TEST(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  SharedContext attached = SharedContext::Attach(primary);
  BOOST_TEST(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
  cuguest_shared_context of_c = CUGUEST_INIT(cuguest_shared_context);
  BOOST_TEST(cuguest_shared_context_create(&of_c, 0, 0) == 0);
  int codes[3] = {};
  InAHostFunction([&] {
    codes[0] = made.Release().code;
    codes[1] = attached.Release().code;
    codes[2] = cuguest_shared_context_detach(&of_c);
  });
  for (const int code : codes) BOOST_TEST(code == CUDA_ERROR_NOT_PERMITTED);
  BOOST_TEST(made.use_count() == 1U);
  BOOST_TEST(SharedContext::Attach(made.get()).use_count() == 2U);
  const ContextRef ref = made.context();
  BOOST_TEST(ref.IsAlive());
  BOOST_TEST(made.Release().ok());
  BOOST_TEST(!SharedContext::Attach(ref).ok());
  BOOST_TEST(IsActive());
  BOOST_TEST(attached.Release().ok());
  BOOST_TEST(!IsActive());
  BOOST_TEST(cuguest_shared_context_detach(&of_c) == 0);
}

// While others are attached nothing is asked of the driver there.
BOOST_AUTO_TEST_CASE(shared_reference_is_released_at_once) {
  SharedContext made = SharedContext::Create(kFirst);
  SharedContext second = made;
  CUresult code = CUDA_ERROR_UNKNOWN;
  InAHostFunction([&] {
    const SharedContext gone = std::move(second);
    code = CUDA_SUCCESS;
  });
  BOOST_TEST(code == CUDA_SUCCESS);
  BOOST_TEST(made.use_count() == 1U);
  BOOST_TEST(made.Release().ok());
}

BOOST_AUTO_TEST_CASE(next_call_completes_a_destructor) {
  SharedContext made = SharedContext::Create(kFirst);
  const ContextRef ref = made.context();
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  InAHostFunction([&] {
    { const SharedContext gone = std::move(made); }
    { const PrimaryContext gone = std::move(primary); }
  });
  CheckOwed({"a SharedContext", "a PrimaryContext"});
  BOOST_TEST(ref.IsAlive());
  BOOST_TEST(IsActive());
  { const PrimaryContext empty; }
  BOOST_TEST(!ref.IsAlive());
  BOOST_TEST(!IsActive());
}

// Also where a reference is given back without a PrimaryContext.
BOOST_AUTO_TEST_CASE(acquired_contexts_complete_a_destructor) {
  const PrimaryContext hosts = PrimaryContext::Retain(kFirst);
  SharedContext made = SharedContext::Create(kFirst);
  const ContextRef ref = made.context();
  {
    const cuguest::Acquired held = cuguest::AcquireOn(kFirst);
    BOOST_TEST(held.holds());
    InAHostFunction([&] { const SharedContext gone = std::move(made); });
    CheckOwed({"a SharedContext"});
    BOOST_TEST(ref.IsAlive());
  }
  BOOST_TEST(!ref.IsAlive());
}

BOOST_AUTO_TEST_CASE(next_call_completes_an_assignment) {
  SharedContext made = SharedContext::Create(kFirst);
  const ContextRef ref = made.context();
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  InAHostFunction([&] {
    made = SharedContext();
    primary = PrimaryContext();
  });
  BOOST_TEST(!made.ok());
  BOOST_TEST(!primary.ok());
  CheckOwed({"a SharedContext", "a PrimaryContext"});
  SharedContext next = SharedContext::Create(kFirst);
  if (cuguest_test::HasDriver(12000)) BOOST_TEST(!ref.IsAlive());  // it has the same handle
  BOOST_TEST(!IsActive());
  BOOST_TEST(next.Release().ok());
}

BOOST_AUTO_TEST_CASE(next_call_completes_a_c_cleanup) {
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary);
  BOOST_TEST(cuguest_primary_retain(&primary, 0) == 0);
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  BOOST_TEST(cuguest_acquire_on(&acquired, 0, CUGUEST_REFUSE) == 0);
  cuguest_shared_context shared = CUGUEST_INIT(cuguest_shared_context);
  BOOST_TEST(cuguest_shared_context_create(&shared, 0, 0) == 0);
  InAHostFunction([&] {
    cuguest_primary_cleanup(&primary);
    cuguest_acquired_cleanup(&acquired);
    cuguest_shared_context_cleanup(&shared);
  });
  CheckOwed({"a PrimaryContext", "an Acquired", "a SharedContext"});
  BOOST_TEST(IsActive());
  { const SharedContext empty; }
  BOOST_TEST(!IsActive());
}

namespace {

// Ends `given`, which has a reference to the primary context, in a host function, and again in what
// a listener is told of that: one reference is given back, and the host's stays.
template <typename Given>
void CheckEndsOnce(const char* what, Given* given, void (*clean_up)(Given*)) {
  BOOST_TEST_CONTEXT(what) {
    struct Ending {
      Given* given;
      void (*clean_up)(Given*);
      int told;
    } ending = {given, clean_up, 0};
    const cuguest::IncidentListener listener(
        [](const Incident&, void* user) {
          auto* const again = static_cast<Ending*>(user);
          if (++again->told < 4) again->clean_up(again->given);
        },
        &ending);
    const PrimaryContext hosts = PrimaryContext::Retain(kFirst);
    InAHostFunction([&] { clean_up(given); });
    CheckOwed({what});
    BOOST_TEST(ending.told == 1);
    { const PrimaryContext empty; }
    BOOST_TEST(!hosts.WasReset());
    BOOST_TEST(IsActive());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(c_owners_ended_by_a_listener) {
  cuguest_primary primary = CUGUEST_INIT(cuguest_primary);
  BOOST_TEST(cuguest_primary_retain(&primary, 0) == 0);
  CheckEndsOnce("a PrimaryContext", &primary, &cuguest_primary_cleanup);
  BOOST_TEST(cuguest_primary_retain(&primary, 0) == 0);
  cuguest_acquired acquired = CUGUEST_INIT(cuguest_acquired);
  BOOST_TEST(cuguest_acquire_on(&acquired, 0, CUGUEST_REFUSE) == 0);
  cuguest_primary_keeper keeper = CUGUEST_INIT(cuguest_primary_keeper);
  BOOST_TEST(cuguest_primary_keeper_keep(&keeper, &acquired) == 0);
  BOOST_TEST(cuguest_primary_release(&primary) == 0);
  CheckEndsOnce("an Acquired", &acquired, &cuguest_acquired_cleanup);
  CheckEndsOnce("a PrimaryKeeper", &keeper, &cuguest_primary_keeper_cleanup);
  BOOST_TEST(!IsActive());
  cuguest_shared_context shared = CUGUEST_INIT(cuguest_shared_context);
  BOOST_TEST(cuguest_shared_context_create(&shared, 0, 0) == 0);
  CheckEndsOnce("a SharedContext", &shared, &cuguest_shared_context_cleanup);
}

// Streams, events and memory; what is freed at once and in a stream's order.
BOOST_AUTO_TEST_CASE(next_call_destroys_owed_objects, *cuguest_test::OnlySim()) {
  const OwnContext context;
  const ContextRef ref = ContextRef::Borrow(context.get());
  absl::StatusOr<Stream> order = Stream::Create(ref, CU_STREAM_NON_BLOCKING);
  BOOST_TEST_REQUIRE(order.ok());
  const auto before = cudasim::Sim::Live();
  {
    absl::StatusOr<Stream> stream = Stream::Create(ref, CU_STREAM_NON_BLOCKING);
    absl::StatusOr<Event> event = Event::Create(ref);
    auto memory = DeviceBuffer<int>::Allocate(ref, 10);
    auto ordered = DeviceBuffer<int>::AllocateAsync(order->ref(), 10);
    auto scratch = ScratchBuffer<int>::Allocate(order->ref(), 10);
    auto pinned = PinnedBuffer<int>::Allocate(ref, 10);
    BOOST_TEST_REQUIRE(
        (stream.ok() && event.ok() && memory.ok() && ordered.ok() && scratch.ok() && pinned.ok()));
    InAHostFunction([&] {
      { const Stream gone = *std::move(stream); }
      { const Event gone = *std::move(event); }
      { const DeviceBuffer<int> gone = *std::move(memory); }
      { const DeviceBuffer<int> gone = *std::move(ordered); }
      { const ScratchBuffer<int> gone = *std::move(scratch); }
      { const PinnedBuffer<int> gone = *std::move(pinned); }
    });
    CheckOwed({"a Stream", "an Event", "a DeviceBuffer", "a DeviceBuffer", "a DeviceBuffer",
               "a PinnedBuffer"});
  }
  { const PrimaryContext empty; }
  BOOST_TEST((cudasim::Sim::Live() == before));
}

namespace {

using cuguest::Array;
using cuguest::CaptureScope;
using cuguest::ExecutableGraph;
using cuguest::Graph;
using cuguest::GreenContext;
using cuguest::Module;
using cuguest::PinnedPages;
using cuguest::SurfaceObject;
using cuguest::TextureObject;

constexpr char kEmpty[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }";

constexpr CUDA_ARRAY3D_DESCRIPTOR kPicture = {
    16, 16, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};

// Ends `made` in a host function. It is reported as `what`, is there until an object of any kind
// ends elsewhere, and then nothing is left of it.
template <typename T, typename Make>
void CheckEndsLater(const char* what, const Make& make) {
  BOOST_TEST_CONTEXT(what) {
    const auto before = Sim::Live();
    absl::StatusOr<T> made = make();
    BOOST_TEST_REQUIRE(made.ok(), made.status());
    const auto with = Sim::Live();
    InAHostFunction([&] { const T gone = *std::move(made); });
    CheckOwed({what});
    BOOST_TEST((Sim::Live() == with));
    { const PrimaryContext empty; }
    BOOST_TEST((Sim::Live() == before));
    BOOST_TEST(cuguest_test::TakeIncidents().empty());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_owner_is_given_back_later,
                     *cuguest_test::OnlySim() *
                         cuguest_test::NeedsDriver(12040, "green contexts")) {
  const OwnContext context;
  const ContextRef ref = ContextRef::Borrow(context.get());
  auto stream = Stream::Create(ref, CU_STREAM_NON_BLOCKING);
  CheckEndsLater<Array>("an Array", [&] { return Array::Create(ref, kPicture); });
  auto array = Array::Create(ref, kPicture);
  BOOST_TEST_REQUIRE((stream.ok() && array.ok()));
  CheckEndsLater<TextureObject>("a TextureObject",
                                [&] { return TextureObject::Create(*array, CUDA_TEXTURE_DESC()); });
  CheckEndsLater<SurfaceObject>("a SurfaceObject", [&] { return SurfaceObject::Create(*array); });
  std::vector<char> pages(4096);
  CheckEndsLater<PinnedPages>("a PinnedPages",
                              [&] { return PinnedPages::Pin(ref, pages.data(), pages.size()); });
  CheckEndsLater<GreenContext>("a GreenContext",
                               [&] { return GreenContext::Create(kFirst, cuguest::SmCount{8}); });
  CheckEndsLater<Graph>("a Graph", [&] { return Graph::Create(ref); });
  auto graph = Graph::Create(ref);
  BOOST_TEST_REQUIRE(graph.ok());
  CheckEndsLater<ExecutableGraph>("an ExecutableGraph", [&] { return graph->Instantiate(); });
  CheckEndsLater<Module>("a Module", [&] { return Module::Load(kEmpty, "code"); });
  CheckEndsLater<CaptureScope>("a CaptureScope", [&] {
    return CaptureScope::Begin(stream->ref(), CU_STREAM_CAPTURE_MODE_RELAXED);
  });
}

namespace {

// The end of an empty `T` gives back what is owed.
template <typename T>
void CheckEndOfEmpty(const char* what) {
  BOOST_TEST_CONTEXT(what) {
    PrimaryContext primary = PrimaryContext::Retain(kFirst);
    InAHostFunction([&] { const PrimaryContext gone = std::move(primary); });
    CheckOwed({"a PrimaryContext"});
    { const T empty; }
    BOOST_TEST(!IsActive());
    BOOST_TEST(cuguest_test::TakeIncidents().empty());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(ends_of_empty_owners_give_back) {
  CheckEndOfEmpty<SharedContext>("SharedContext");
  CheckEndOfEmpty<PrimaryContext>("PrimaryContext");
  CheckEndOfEmpty<Stream>("Stream");
  CheckEndOfEmpty<Event>("Event");
  CheckEndOfEmpty<DeviceBuffer<int>>("DeviceBuffer");
  CheckEndOfEmpty<PinnedBuffer<int>>("PinnedBuffer");
  CheckEndOfEmpty<ScratchBuffer<int>>("ScratchBuffer");
  CheckEndOfEmpty<Array>("Array");
  CheckEndOfEmpty<TextureObject>("TextureObject");
  CheckEndOfEmpty<SurfaceObject>("SurfaceObject");
  CheckEndOfEmpty<PinnedPages>("PinnedPages");
  CheckEndOfEmpty<cuguest::PeerAccess>("PeerAccess");
  CheckEndOfEmpty<GreenContext>("GreenContext");
  CheckEndOfEmpty<Graph>("Graph");
  CheckEndOfEmpty<ExecutableGraph>("ExecutableGraph");
  CheckEndOfEmpty<CaptureScope>("CaptureScope");
}

// Peer access is no object: the next Enable() says whether it is there.
BOOST_AUTO_TEST_CASE(peer_access_is_disabled_later,
                     *cuguest_test::OnlySim() * cuguest_test::NeedsDevices(2)) {
  const OwnContext first(0);
  const OwnContext second(1);
  const ContextRef from = ContextRef::Borrow(first.get());
  auto access = cuguest::PeerAccess::Enable(from, ContextRef::Borrow(second.get()));
  BOOST_TEST_REQUIRE(access.ok(), access.status());
  InAHostFunction([&] { const cuguest::PeerAccess gone = *std::move(access); });
  CheckOwed({"a PeerAccess"});
  { const PrimaryContext empty; }
  const ContextGuard guard(from);
  BOOST_TEST(RAW(cuCtxDisablePeerAccess)(second.get()) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

namespace {

using cuguest::PeerAccess;

// What is done once, where a tool is told of the driver's call `s_within`.
const char* s_within = nullptr;
std::function<void()> s_done;

// Makes one by `make`, and calls `done` in a tool's callback out of `entry` in there.
template <typename Make, typename Done>
auto MakeAround(const char* entry, const Make& make, const Done& done) {
  s_within = entry;
  s_done = done;
  Sim::OnEveryCall([](const char* called) {
    if (std::string(called) != s_within) return;
    Sim::OnEveryCall(nullptr);
    std::exchange(s_done, nullptr)();
  });
  auto made = make();
  BOOST_TEST_REQUIRE(made.ok(), made.status());
  BOOST_TEST(!s_done);
  return made;
}

// Two that `make` makes, which share nothing, while `entry` is called for a third: one is owed, and
// one ends. Both are there until an object of any kind ends elsewhere.
template <typename T, typename Make>
void CheckEndsAfterTheCallback(const char* what, const char* entry, const Make& make) {
  auto owed = make(0);
  auto ending = make(1);
  BOOST_TEST_REQUIRE((owed.ok() && ending.ok()));
  InAHostFunction([&] { const T gone = *std::move(owed); });
  CheckOwed({what});
  {
    const auto around = MakeAround(
        entry, [&] { return make(2); },
        [&] {
          { const PrimaryContext empty; }
          BOOST_TEST(cuguest_test::TakeIncidents().empty());
          BOOST_TEST((cuguest::CodeOf(ending->Release()) == CUDA_ERROR_NOT_PERMITTED));
          { const T gone = *std::move(ending); }
          CheckOwed({what});
        });
    { const PrimaryContext empty; }
  }
  BOOST_TEST(cuguest_test::TakeIncidents().empty());
}

}  // namespace

// There the turn is taken which the end needs.
BOOST_AUTO_TEST_CASE(pinned_pages_owed_in_a_callback, *cuguest_test::OnlySim()) {
  const OwnContext context;
  const ContextRef ref = ContextRef::Borrow(context.get());
  const auto before = Sim::Live();
  std::vector<char> pages(3 * 4096);
  CheckEndsAfterTheCallback<PinnedPages>("a PinnedPages", "cuMemHostRegister", [&](int which) {
    return PinnedPages::Pin(ref, &pages[which * 4096UL], 4096);
  });
  BOOST_TEST((Sim::Live() == before));
}

BOOST_AUTO_TEST_CASE(peer_access_owed_in_a_callback,
                     *cuguest_test::OnlySim() * cuguest_test::NeedsDevices(2)) {
  const OwnContext first(0);
  const OwnContext peers[] = {OwnContext(1), OwnContext(1), OwnContext(1)};
  const ContextRef from = ContextRef::Borrow(first.get());
  CheckEndsAfterTheCallback<PeerAccess>("a PeerAccess", "cuCtxEnablePeerAccess", [&](int which) {
    return PeerAccess::Enable(from, ContextRef::Borrow(peers[which].get()));
  });
  const ContextGuard guard(from);
  for (const OwnContext& peer : peers) {
    BOOST_TEST(RAW(cuCtxDisablePeerAccess)(peer.get()) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  }
}

namespace {

// Counts the ends of its driver object, which a value that is given up does not have.
struct CachedValue {
  static inline int s_ended = 0;

  CachedValue() = default;
  CachedValue(CachedValue&& other) noexcept : is_owner(std::exchange(other.is_owner, false)) {}
  ~CachedValue() { s_ended += is_owner ? 1 : 0; }
  void Leak() { is_owner = false; }

  bool is_owner = true;
};

}  // namespace

// A cache keeps its value, for the next Forget().
BOOST_AUTO_TEST_CASE(a_cached_value_is_destroyed_later) {
  CachedValue::s_ended = 0;
  const OwnContext context;
  const ContextRef ref = ContextRef::Borrow(context.get());
  cuguest::PerContext<CachedValue> cache;
  BOOST_TEST(cache.GetOrMake(ref, [](const ContextRef&) { return CachedValue(); }).ok());
  bool is_found = false;
  InAHostFunction([&] { is_found = cache.Forget(ref); });
  BOOST_TEST(is_found);
  BOOST_TEST(cache.size() == 0U);
  BOOST_TEST(CachedValue::s_ended == 0);
  BOOST_TEST(!cache.Forget(ref));
  BOOST_TEST(CachedValue::s_ended == 1);
}

// Of a cache there is no later: also what is of a primary context is given up.
BOOST_AUTO_TEST_CASE(cache_ends_in_a_host_function) {
  CachedValue::s_ended = 0;
  const PrimaryContext primary = PrimaryContext::Retain(kFirst);
  std::optional<cuguest::PerContext<CachedValue>> cache(std::in_place);
  const auto make = [&] {
    return cache->GetOrMake(primary.context(), [](const ContextRef&) { return CachedValue(); });
  };
  BOOST_TEST(make().ok());
  InAHostFunction([&] { cache.reset(); });
  BOOST_TEST(CachedValue::s_ended == 0);
  BOOST_TEST(cuguest_test::TakeIncidents().empty());
  cache.emplace();
  BOOST_TEST(make().ok());
  cache.reset();
  BOOST_TEST(CachedValue::s_ended == 1);
}

// In the order of a stream that captures, of which nobody knows how long there is one.
BOOST_AUTO_TEST_CASE(capturing_streams_memory_is_reported, *cuguest_test::OnlySim()) {
  const OwnContext context;
  const ContextRef ref = ContextRef::Borrow(context.get());
  auto stream = Stream::Create(ref, CU_STREAM_NON_BLOCKING);
  BOOST_TEST_REQUIRE(stream.ok());
  const auto before = Sim::Live();
  auto memory = DeviceBuffer<int>::AllocateAsync(stream->ref(), 10);
  BOOST_TEST_REQUIRE(memory.ok());
  BOOST_TEST(RAW(cuStreamBeginCapture)(stream->get(), CU_STREAM_CAPTURE_MODE_GLOBAL) ==
             CUDA_SUCCESS);
  const CUdeviceptr pointer = memory->get();
  { const DeviceBuffer<int> gone = *std::move(memory); }
  CheckOwed({"a DeviceBuffer"}, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  BOOST_TEST(RAW(cuStreamEndCapture)(stream->get(), &graph) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  // As a host destroys its own.
  BOOST_TEST(RAW(cuStreamDestroy)(stream->Leak()) == CUDA_SUCCESS);
  { const PrimaryContext empty; }
  BOOST_TEST(cuguest_test::TakeIncidents().empty());
  BOOST_TEST(Sim::Live().allocations == before.allocations + 1);
  BOOST_TEST(RAW(cuMemFree)(pointer) == CUDA_SUCCESS);
}

// Nobody knows when the stream's work is done.
BOOST_AUTO_TEST_CASE(ended_streams_memory_is_reported, *cuguest_test::OnlySim()) {
  const OwnContext context;
  auto stream = Stream::Create(ContextRef::Borrow(context.get()), CU_STREAM_NON_BLOCKING);
  BOOST_TEST_REQUIRE(stream.ok());
  auto memory = DeviceBuffer<int>::AllocateAsync(stream->ref(), 10);
  BOOST_TEST_REQUIRE(memory.ok());
  const CUdeviceptr pointer = memory->get();
  BOOST_TEST(RAW(cuStreamBeginCapture)(stream->get(), CU_STREAM_CAPTURE_MODE_RELAXED) ==
             CUDA_SUCCESS);
  { const Stream gone = *std::move(stream); }
  BOOST_TEST(cuguest_test::TakeIncidents().empty());
  { const DeviceBuffer<int> gone = *std::move(memory); }
  CheckOwed({"a DeviceBuffer"}, CUDA_ERROR_INVALID_HANDLE);
  BOOST_TEST(RAW(cuMemFree)(pointer) == CUDA_SUCCESS);
}

// What the driver refuses for another reason stays, and is reported with its code.
BOOST_AUTO_TEST_CASE(a_refused_end_is_reported, *cuguest_test::OnlySim()) {
  const OwnContext context;
  const ContextRef ref = ContextRef::Borrow(context.get());
  auto memory = DeviceBuffer<int>::Allocate(ref, 10);
  auto array = Array::Create(ref, kPicture);
  auto event = Event::Create(ref);
  BOOST_TEST_REQUIRE((memory.ok() && array.ok() && event.ok()));
  for (const char* entry : {"cuMemFree", "cuArrayDestroy", "cuEventDestroy"}) {
    Sim::FailCall(entry, 1, CUDA_ERROR_UNKNOWN);
  }
  const CUdeviceptr pointer = memory->get();
  const CUarray handle = array->get();
  const CUevent unended = event->get();
  { const DeviceBuffer<int> gone = *std::move(memory); }
  { const Array gone = *std::move(array); }
  { const Event gone = *std::move(event); }
  CheckOwed({"a DeviceBuffer", "an Array", "an Event"}, CUDA_ERROR_UNKNOWN);
  const ContextGuard guard(ref);
  BOOST_TEST(RAW(cuMemFree)(pointer) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuArrayDestroy)(handle) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuEventDestroy)(unended) == CUDA_SUCCESS);
}

// Of references, too.
BOOST_AUTO_TEST_CASE(refused_references_are_reported, *cuguest_test::OnlySim()) {
  const PrimaryContext hosts = PrimaryContext::Retain(kFirst);
  const auto refuse = [] { Sim::FailCall("cuDevicePrimaryCtxRelease", 1, CUDA_ERROR_UNKNOWN); };
  const auto is_kept = [] { return RAW(cuDevicePrimaryCtxRelease)(kFirst.get()) == CUDA_SUCCESS; };
  {
    const PrimaryContext gone = PrimaryContext::Retain(kFirst);
    refuse();
  }
  CheckOwed({"a PrimaryContext"}, CUDA_ERROR_UNKNOWN);
  BOOST_TEST(is_kept());
  {
    const cuguest::Acquired gone = cuguest::AcquireOn(kFirst);
    refuse();
  }
  CheckOwed({"an Acquired"}, CUDA_ERROR_UNKNOWN);
  BOOST_TEST(is_kept());
  {
    const cuguest::ThreadHome gone(kFirst, cuguest::ThreadHome::Keep::kReference);
    refuse();
  }
  CheckOwed({"an Acquired"}, CUDA_ERROR_UNKNOWN);
  BOOST_TEST(is_kept());
  BOOST_TEST(IsActive());
}

// Nothing is left of what went with its context, and nothing is reported.
BOOST_AUTO_TEST_CASE(gone_objects_are_not_reported) {
  auto context = std::make_optional<OwnContext>();
  const ContextRef ref = ContextRef::Borrow(context->get());
  auto stream = Stream::Create(ref, CU_STREAM_NON_BLOCKING);
  auto event = Event::Create(ref);
  auto memory = DeviceBuffer<int>::Allocate(ref, 10);
  auto array = Array::Create(ref, kPicture);
  auto graph = Graph::Create(ref);
  BOOST_TEST_REQUIRE((stream.ok() && event.ok() && memory.ok() && array.ok() && graph.ok()));
  // Of two entries of the stack one stays, so that the driver keeps the handle's memory.
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST(RAW(cuCtxPushCurrent)(context->get()) == CUDA_SUCCESS);
  }
  context.reset();
  {
    const Stream gone_stream = *std::move(stream);
    const Event gone_event = *std::move(event);
    const DeviceBuffer<int> gone_memory = *std::move(memory);
    const Array gone_array = *std::move(array);
    const Graph gone_graph = *std::move(graph);
  }
  BOOST_TEST(cuguest_test::TakeIncidents().empty());
  CUcontext popped = nullptr;
  BOOST_TEST(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
}

// By the version that takes the references, too.
BOOST_AUTO_TEST_CASE(reset_references_are_not_reported) {
  {
    const PrimaryContext primary = PrimaryContext::Retain(kFirst);
    const SharedContext shared = SharedContext::Attach(primary.context().get());
    BOOST_TEST_REQUIRE(shared.ok());
    const auto reset = reinterpret_cast<CUresult(CUDAAPI*)(CUdevice)>(
        cudasim_test::RawSymbol("cuDevicePrimaryCtxReset"));
    BOOST_TEST(reset(0) == CUDA_SUCCESS);
  }
  BOOST_TEST(cuguest_test::TakeIncidents().empty());
}

// What they keep after Release() there, they give back later.
BOOST_AUTO_TEST_CASE(refused_release_keeps_objects, *cuguest_test::OnlySim()) {
  const OwnContext context;
  const ContextRef ref = ContextRef::Borrow(context.get());
  const auto before = cudasim::Sim::Live();
  absl::StatusOr<Stream> stream = Stream::Create(ref, CU_STREAM_NON_BLOCKING);
  absl::StatusOr<Event> event = Event::Create(ref);
  auto memory = DeviceBuffer<int>::Allocate(ref, 10);
  auto pinned = PinnedBuffer<int>::Allocate(ref, 10);
  BOOST_TEST_REQUIRE((stream.ok() && event.ok() && memory.ok() && pinned.ok()));
  const auto release = [&] {
    return std::vector<absl::Status>{stream->Release(), event->Release(), memory->Release(),
                                     pinned->Release()};
  };
  std::vector<absl::Status> refused;
  InAHostFunction([&] { refused = release(); });
  for (const absl::Status& status : refused) {
    BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_NOT_PERMITTED), status);
  }
  for (const absl::Status& status : release()) BOOST_TEST(status.ok(), status);
  BOOST_TEST((cudasim::Sim::Live() == before));
}

// Who attaches meanwhile is counted beside what is owed, and is the last one then.
BOOST_AUTO_TEST_CASE(what_is_owed_can_be_attached) {
  SharedContext made = SharedContext::Create(kFirst);
  const ContextRef ref = made.context();
  InAHostFunction([&] { const SharedContext gone = std::move(made); });
  CheckOwed({"a SharedContext"});
  SharedContext attached = SharedContext::Attach(ref);
  BOOST_TEST(attached.ok());
  BOOST_TEST(attached.use_count() == 2U);
  { const SharedContext empty; }
  BOOST_TEST(attached.use_count() == 1U);
  BOOST_TEST(ref.IsAlive());
  BOOST_TEST(attached.Release().ok());
  BOOST_TEST(!ref.IsAlive());
}

// Still refused, it is kept, and said once.
BOOST_AUTO_TEST_CASE(owed_reference_is_reported_once) {
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  InAHostFunction([&] {
    { const PrimaryContext gone = std::move(primary); }
    for (int i = 0; i < 3; ++i) const PrimaryContext empty;
  });
  InAHostFunction([] { const PrimaryContext empty; });
  CheckOwed({"a PrimaryContext"});
  BOOST_TEST(IsActive());
  { const PrimaryContext empty; }
  BOOST_TEST(!IsActive());
}

// What fails for another reason when it is given back is tried no more, and keeps nothing else.
BOOST_AUTO_TEST_CASE(failed_return_is_not_retried, *cuguest_test::OnlySim()) {
  for (const char* entry : {"cuCtxDestroy", "cuCtxGetId", "cuCtxGetApiVersion", "cuCtxGetCurrent",
                            "cuCtxPushCurrent", "cuDevicePrimaryCtxRelease", "cuStreamDestroy",
                            "cuEventDestroy", "cuMemFree", "cuMemFreeHost"}) {
    for (const unsigned nth : {1U, 2U, 3U}) {
      BOOST_TEST_CONTEXT(entry << " fails at call " << nth) {
        const OwnContext own;
        const ContextRef ref = ContextRef::Borrow(own.get());
        SharedContext made = SharedContext::Create(kFirst);
        const CUcontext handle = made.get();
        const ContextRef shared = made.context();
        PrimaryContext primary = PrimaryContext::Retain(kFirst);
        auto stream = Stream::Create(ref);
        auto event = Event::Create(ref);
        auto buffer = DeviceBuffer<int>::Allocate(ref, 16);
        auto pinned = PinnedBuffer<int>::Allocate(ref, 16);
        InAHostFunction([&] {
          { const SharedContext gone = std::move(made); }
          { const PrimaryContext gone = std::move(primary); }
          { const Stream gone = *std::move(stream); }
          { const Event gone = *std::move(event); }
          { const DeviceBuffer<int> gone = *std::move(buffer); }
          { const PinnedBuffer<int> gone = *std::move(pinned); }
        });
        BOOST_TEST(cuguest_test::TakeIncidents().size() == 6U);
        Sim::FailCall(entry, nth, CUDA_ERROR_UNKNOWN);
        { const PrimaryContext empty; }
        Sim::ClearFaults();
        Sim::ResetCalls();
        { const PrimaryContext empty; }
        BOOST_TEST(Sim::TotalCalls() == 0U);
        if (IsActive()) BOOST_TEST(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
        BOOST_TEST(!IsActive());
        // Nobody is attached to what was not destroyed.
        if (shared.IsAlive()) {
          BOOST_TEST(SharedContext::Attach(shared).use_count() == 1U);
          BOOST_TEST(RAW(cuCtxDestroy)(handle) == CUDA_SUCCESS);
        }
        static_cast<void>(cuguest_test::TakeIncidents());
      }
    }
  }
}

// Without memory to remember it, it is lost, and the incident says so.
BOOST_AUTO_TEST_CASE(without_memory_it_is_lost,
                     *cuguest_test::OnlyIf([] { return kCanRefuse; },
                                           "a sanitizer has its own allocator")) {
  PrimaryContext primary = PrimaryContext::Retain(kFirst);
  InAHostFunction([&] {
    t_refuses_next = true;
    { const PrimaryContext gone = std::move(primary); }
    t_refuses_next = false;
  });
  CheckOwed({"a PrimaryContext"}, CUDA_ERROR_OUT_OF_MEMORY);
  { const PrimaryContext empty; }
  BOOST_TEST(IsActive());
  BOOST_TEST(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_SUITE_END()
