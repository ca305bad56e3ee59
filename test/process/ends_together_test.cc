// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A Stream, and what uses its stream, end on two threads at the same time: one of them stands at
// any of its driver calls while the other one ends, or while a child is forked in which the other
// one ends. Nobody waits, or the program would not end; all memory is freed; the stream is
// destroyed exactly once; and nothing calls the driver with a stream that is destroyed, at which
// the simulation ends the program. The same of what is in a shared context and the last holder of
// that.
//
// test/schedules/stream_use_test.cc has every schedule of it, with a model of the driver.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cudasim/sim.h"
#include "cuguest/context_ref.h"
#include "cuguest/incident.h"
#include "cuguest/objects/array.h"
#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/graph.h"
#include "cuguest/objects/pinned_buffer.h"
#include "cuguest/objects/stream.h"
#include "cuguest/objects/surface_object.h"
#include "cuguest/per_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "test/support/held_locks.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::CaptureScope;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::Stream;
using cuguest_test::Fork;

constexpr std::size_t kInts = 16;
constexpr unsigned kSecondsToHang = 20;  // alarm() ends who takes longer

// -----------------------------------------------------------------------------
// Threads that stand still
// -----------------------------------------------------------------------------

// A thread that does `work`, and stands at its driver call `place` (from 0) until GoOn(). The
// constructor returns when it stands there, or is done because it makes fewer calls.
class Thread {
 public:
  // `there` is called at that place instead, on the thread.
  Thread(int place, const std::function<void()>& work, const std::function<void()>& there = {})
      : place_(place), there_(there), thread_([this, work] {
          t_this = this;
          work();
          t_this = nullptr;
          is_done_ = true;
        }) {
    while (!stands_ && !is_done_) std::this_thread::yield();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { GoOn(); }

  [[nodiscard]] bool is_done() const { return is_done_; }

  // To the end of its work.
  void GoOn() {
    may_go_on_ = true;
    if (thread_.joinable()) thread_.join();
  }

  static void OnCall(const char* entry) {
    cuguest_test::RequireNoLock(entry);
    Thread* const self = t_this;
    if (self == nullptr || self->calls_++ != self->place_) return;
    if (self->there_) return self->there_();
    self->stands_ = true;
    while (!self->may_go_on_) std::this_thread::yield();
  }

 private:
  static inline thread_local Thread* t_this = nullptr;
  const int place_;
  const std::function<void()> there_;
  int calls_ = 0;
  std::atomic<bool> stands_{false};
  std::atomic<bool> is_done_{false};
  std::atomic<bool> may_go_on_{false};
  std::thread thread_;
};

// -----------------------------------------------------------------------------
// What ends
// -----------------------------------------------------------------------------

bool g_is_child = false;  // in which a Release() says that CUDA cannot be used

void CheckReleased(const absl::Status& status) {
  if (!g_is_child && !status.ok()) std::printf("%s\n", status.ToString().c_str());
  CHECK(status.ok() || g_is_child);
}

enum class With { kBuffers, kCapture };

struct World {
  explicit World(With with = With::kBuffers) : context(cuguest_test::MakeContext()) {
    const ContextRef ref = ContextRef::Borrow(context);
    stream = Stream::Create(ref).value();
    if (with == With::kBuffers) {
      pool = DeviceBuffer<int>::AllocateAsync(stream.ref(), kInts).value();
      second = DeviceBuffer<int>::AllocateAsync(stream.ref(), kInts).value();
      const CUdeviceptr pointer = DeviceBuffer<int>::Allocate(ref, kInts).value().Leak().get();
      adopted = DeviceBuffer<int>::AdoptAsync(pointer, kInts, stream.ref()).value();
    } else {
      capture = CaptureScope::Begin(stream.ref(), CU_STREAM_CAPTURE_MODE_RELAXED).value();
    }
    Sim::ResetCalls();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  // All have ended. The context takes along what is left.
  ~World() {
    CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
    CHECK(Sim::Live() == live);
    CHECK(cuguest::IncidentCount() == incidents);
  }

  // All have ended; with their work nothing is left but `streams`. The stream was given to
  // cuStreamDestroy so many times; a buffer that makes one for itself destroys it, too.
  void CheckNothingLeft(unsigned long long destroys = 1, std::size_t streams = 0) const {
    CUcontext popped = nullptr;
    CHECK(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
    CHECK(RAW(cuCtxSynchronize)() == CUDA_SUCCESS);
    CHECK(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
    const cudasim::SimLive now = Sim::Live();
    CHECK(now.allocations == live.allocations);
    CHECK(now.streams == live.streams + streams);
    CHECK(now.events == live.events);
    CHECK(now.graphs == live.graphs);
    CHECK(Sim::Calls("cuStreamDestroy") - Sim::Calls("cuStreamCreate") == destroys);
  }

  const cudasim::SimLive live = Sim::Live();
  unsigned long long incidents = cuguest::IncidentCount();
  const CUcontext context;
  Stream stream;
  DeviceBuffer<int> pool;
  DeviceBuffer<int> second;
  DeviceBuffer<int> adopted;
  std::optional<CaptureScope> capture;
};

template <typename T>
void Drop(T* object) {
  const T gone = std::move(*object);
}

struct Ends {
  const char* name;
  void (*end)(World& w);
};
const std::vector<Ends> kStreams = {
    {"~Stream", [](World& w) { Drop(&w.stream); }},
    {"Stream::Release", [](World& w) { CheckReleased(w.stream.Release()); }},
};
// Of a pool's memory, and of a context's own.
const std::vector<Ends> kBuffers = {
    {"~DeviceBuffer", [](World& w) { Drop(&w.pool); }},
    {"DeviceBuffer::Release", [](World& w) { CheckReleased(w.pool.Release()); }},
    {"~DeviceBuffer, adopted", [](World& w) { Drop(&w.adopted); }},
    {"DeviceBuffer::Release, adopted", [](World& w) { CheckReleased(w.adopted.Release()); }},
};

void EndTheRest(World* w) {
  Drop(&w->pool);
  Drop(&w->second);
  Drop(&w->adopted);
  Drop(&w->stream);
}

// Calls check(stopped, place, other), which returns whether there are more places, for each pair of
// a stream's end and a buffer's, both ways round.
template <typename Check>
void ForEachPlace(const Check& check) {
  for (const Ends& stream : kStreams) {
    for (const Ends& buffer : kBuffers) {
      for (const bool stops_buffer : {false, true}) {
        const Ends& stopped = stops_buffer ? buffer : stream;
        const Ends& other = stops_buffer ? stream : buffer;
        std::printf("%s at a call, meanwhile %s\n", stopped.name, other.name);  // in which it fails
        int places = 0;
        while (check(stopped, places, other)) ++places;
        CHECK(places > 0);
      }
    }
  }
}

// -----------------------------------------------------------------------------
// Scenarios
// -----------------------------------------------------------------------------

void TwoEnd() {
  ForEachPlace([](const Ends& stopped, int place, const Ends& other) {
    World w;
    Thread thread(place, [&] { stopped.end(w); });
    const bool stands = !thread.is_done();
    other.end(w);
    thread.GoOn();
    EndTheRest(&w);
    w.CheckNothingLeft();
    return stands;
  });
}

// Two buffers stand anywhere while the stream ends, and go on in either order.
void ThreeEnd() {
  for (const Ends& end_of_stream : kStreams) {
    bool pool_stands = true;
    for (int i = 0; pool_stands; ++i) {
      bool adopted_stands = true;
      for (int j = 0; adopted_stands; ++j) {
        for (const bool pool_first : {false, true}) {
          World w;
          Thread pool(i, [&] { Drop(&w.pool); });
          Thread adopted(j, [&] { Drop(&w.adopted); });
          pool_stands = !pool.is_done();
          adopted_stands = !adopted.is_done();
          end_of_stream.end(w);
          (pool_first ? pool : adopted).GoOn();
          Drop(&w.second);
          pool.GoOn();
          adopted.GoOn();
          w.CheckNothingLeft();
        }
      }
    }
  }
}

// A stream that the driver refuses to destroy has not ended, also for a buffer that has found it
// over meanwhile, and stands at any call until it has ended for good.
void RefusedOnce() {
  int found_over = 0;
  for (const Ends& buffer : kBuffers) {
    bool stream_stands = true;
    for (int place = 0; stream_stands; ++place) {
      bool buffer_stands = true;
      for (int of_buffer = 0; buffer_stands; ++of_buffer) {
        World w;
        Thread stream(place, [&] {
          Sim::FailCall("cuStreamDestroy", 1, CUDA_ERROR_UNKNOWN, /*from_any_thread=*/false);
          static_cast<void>(w.stream.Release());
        });
        Thread ends(of_buffer, [&] { buffer.end(w); });
        stream_stands = !stream.is_done();
        buffer_stands = !ends.is_done();
        stream.GoOn();
        Sim::ClearFaults();
        const bool is_refused = w.stream.get() != nullptr;  // not handed over to the buffer
        const auto streams = Sim::Calls("cuStreamCreate");
        if (is_refused && streams + Sim::Calls("cuEventSynchronize") != 0) ++found_over;
        Drop(&w.second);
        CHECK((Sim::Calls("cuStreamCreate") == streams) == is_refused);
        CHECK(w.stream.Release().ok());
        ends.GoOn();
        EndTheRest(&w);
        w.CheckNothingLeft(is_refused ? 2 : 1);
      }
    }
  }
  CHECK(found_over > 0);
}

// Nobody is left who could be told: the stream goes with its context.
void RefusedWhenHandedOver() {
  for (const Ends& buffer : kBuffers) {
    int handed_over = 0;
    bool stands = true;
    for (int place = 0; stands; ++place) {
      World w;
      Thread ends(place, [&] {
        Sim::FailCall("cuStreamDestroy", 1, CUDA_ERROR_UNKNOWN, /*from_any_thread=*/false);
        buffer.end(w);
      });
      stands = !ends.is_done();
      Drop(&w.stream);
      const bool is_destroyed = Sim::Calls("cuStreamDestroy") != 0;
      ends.GoOn();
      Sim::ClearFaults();
      EndTheRest(&w);
      if (is_destroyed) continue;
      w.CheckNothingLeft(1, 1);
      ++w.incidents;  // that the driver refused it
      ++handed_over;
    }
    CHECK(handed_over > 0);
  }
}

void ACaptureAndItsStream() {
  const Ends captures[] = {
      {"~CaptureScope", [](World& w) { w.capture.reset(); }},
      {"CaptureScope::End", [](World& w) { static_cast<void>(w.capture->End()); }},
      {"CaptureScope::Allocate",
       [](World& w) { static_cast<void>(w.capture->Allocate<int>(kInts)); }},
  };
  for (const Ends& stream : kStreams) {
    for (const Ends& capture : captures) {
      std::printf("%s at a call, meanwhile %s\n", capture.name, stream.name);
      bool stands = true;
      for (int place = 0; stands; ++place) {
        World w(With::kCapture);
        Thread thread(place, [&] { capture.end(w); });
        stands = !thread.is_done();
        if (&stream == &kStreams[0]) {
          stream.end(w);
        } else {
          static_cast<void>(w.stream.Release());  // refused while the stream captures
        }
        thread.GoOn();
        w.capture.reset();
        Drop(&w.stream);
        w.CheckNothingLeft();
      }
    }
  }
}

// The stream ought to live until the allocation returns. If it does not, there is memory that is
// freed behind it, or an error.
void AnAllocationAndItsStream() {
  int refused = 0;
  bool stands = true;
  for (int place = 0; stands; ++place) {
    World w;
    absl::Status status;
    Thread thread(place, [&] {
      const auto buffer = DeviceBuffer<int>::AllocateAsync(w.stream.ref(), kInts);
      status = buffer.status();
    });
    stands = !thread.is_done();
    const cuguest::StreamRef ref = w.stream.ref();
    Stream moved = Stream::Adopt(ref.get(), ref.context()).value();  // `w.stream` stays to be read
    Drop(&moved);
    thread.GoOn();
    CHECK(status.ok() || status.code() == absl::StatusCode::kInvalidArgument);
    if (!status.ok()) ++refused;
    static_cast<void>(w.stream.Leak());
    EndTheRest(&w);
    w.CheckNothingLeft();
  }
  CHECK(refused > 0);
}

// What ends in a shared context, at any of whose driver calls the last holder ends.
struct InHome {
  const char* name;
  // Makes an object in `home`; the result destroys it.
  std::function<void()> (*make)(const ContextRef& home);
};
template <typename T, typename... Args>
std::function<void()> Ending(absl::StatusOr<T> made) {
  CHECK(made.ok());
  const auto object = std::make_shared<T>(*std::move(made));
  return [object] { Drop(object.get()); };
}
template <typename T>
std::function<void()> Releasing(absl::StatusOr<T> made) {
  CHECK(made.ok());
  const auto object = std::make_shared<T>(*std::move(made));
  return [object] {
    const absl::Status status = object->Release();  // where the home was faster it has gone along
    CHECK(status.ok() || cuguest::ResultOf(status) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  };
}

using cuguest::Array;
using cuguest::Event;
using cuguest::Graph;
using cuguest::PinnedBuffer;
using cuguest::StreamRef;
using cuguest::SurfaceObject;

Array MakeArray(const ContextRef& home) {
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  shape.Width = 8;
  shape.Height = 8;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  shape.Flags = CUDA_ARRAY3D_SURFACE_LDST;
  return Array::Create(home, shape).value();
}
// Of a Stream that ends first, and leaves its stream to the buffer.
std::function<void()> BufferOfAStream(const ContextRef& home) {
  auto stream = std::make_shared<Stream>(Stream::Create(home).value());
  auto buffer = std::make_shared<DeviceBuffer<int>>(
      DeviceBuffer<int>::AllocateAsync(stream->ref(), kInts).value());
  Drop(stream.get());
  return [buffer] { Drop(buffer.get()); };
}
std::function<void()> BufferAndStream(const ContextRef& home) {
  auto stream = std::make_shared<Stream>(Stream::Create(home).value());
  auto buffer = std::make_shared<DeviceBuffer<int>>(
      DeviceBuffer<int>::AllocateAsync(stream->ref(), kInts).value());
  return [buffer, stream] {
    Drop(buffer.get());
    Drop(stream.get());
  };
}
std::function<void()> CacheEntry(const ContextRef& home) {
  auto cache = std::make_shared<cuguest::PerContext<Stream>>();
  CHECK(cache->GetOrMake(home, [](const ContextRef& at) { return Stream::Create(at); }).ok());
  return [cache, home] { cache->Forget(home); };
}

const InHome kInHome[] = {
    {"~Stream", [](const ContextRef& home) { return Ending(Stream::Create(home)); }},
    {"Stream::Release", [](const ContextRef& home) { return Releasing(Stream::Create(home)); }},
    {"~Event", [](const ContextRef& home) { return Ending(Event::Create(home)); }},
    {"Event::Release", [](const ContextRef& home) { return Releasing(Event::Create(home)); }},
    {"~DeviceBuffer",
     [](const ContextRef& home) { return Ending(DeviceBuffer<int>::Allocate(home, kInts)); }},
    {"DeviceBuffer::Release",
     [](const ContextRef& home) { return Releasing(DeviceBuffer<int>::Allocate(home, kInts)); }},
    {"~DeviceBuffer of stream 0",
     [](const ContextRef& home) {
       return Ending(DeviceBuffer<int>::AllocateAsync(StreamRef::Borrow(nullptr, home), kInts));
     }},
    {"~DeviceBuffer of a Stream that has ended", &BufferOfAStream},
    {"~DeviceBuffer and ~Stream", &BufferAndStream},
    {"~PinnedBuffer",
     [](const ContextRef& home) { return Ending(PinnedBuffer<int>::Allocate(home, kInts)); }},
    {"~Array", [](const ContextRef& home) { return Ending<Array>(MakeArray(home)); }},
    {"~SurfaceObject",
     [](const ContextRef& home) {
       auto array = std::make_shared<Array>(MakeArray(home));
       auto object = std::make_shared<SurfaceObject>(SurfaceObject::Create(*array).value());
       return std::function<void()>([array, object] {
         Drop(object.get());
         Drop(array.get());
       });
     }},
    {"~Graph", [](const ContextRef& home) { return Ending(Graph::Create(home)); }},
    {"~ExecutableGraph",
     [](const ContextRef& home) { return Ending(Graph::Create(home).value().Instantiate()); }},
    {"PerContext::Forget", &CacheEntry},
};

// At a driver call of one the other one ends. The context is destroyed once, by either thread, and
// nothing is left.
void AHomeAndWhatIsInIt() {
  for (const InHome& in : kInHome) {
    for (const bool stops_home : {false, true}) {
      std::printf("%s, and ~SharedContext, %s at a call\n", in.name,
                  stops_home ? "the latter" : "the former");
      int places = 0;
      int destroyed_by_end = 0;
      for (bool stands = true; stands; ++places) {
        const cudasim::SimLive before = Sim::Live();
        auto home = cuguest::SharedContext::Create(cuguest::Device::Borrow(0));
        CHECK(home.ok());
        const std::function<void()> end = in.make(home.context());
        const std::function<void()> end_home = [&] { Drop(&home); };
        Sim::ResetCalls();
        Thread thread(places, stops_home ? end_home : end);
        stands = !thread.is_done();
        (stops_home ? end : end_home)();
        destroyed_by_end += Sim::Calls("cuCtxDestroy") == 0 ? 1 : 0;
        thread.GoOn();
        CHECK(Sim::Calls("cuCtxDestroy") == 1);
        cudasim::SimLive left = Sim::Live();
        if (stops_home) left.graphs = before.graphs;  // is let go where its context is over
        CHECK(left == before);
        CHECK(cuguest::IncidentCount() == 0);
      }
      CHECK(places > 1);
      CHECK(stops_home || destroyed_by_end > 0);
    }
  }
}

#ifdef __SANITIZE_THREAD__
std::string NoForks() { return "forks with threads"; }
#else
std::string NoForks() { return ""; }
#endif

void BeginChild() {
  g_is_child = true;
  alarm(kSecondsToHang);
}

// In the child there is no thread that stands there.
void WithAChild() {
  ForEachPlace([](const Ends& stopped, int place, const Ends& other) {
    World w;
    Thread thread(place, [&] { stopped.end(w); });
    const bool stands = !thread.is_done();
    Fork([&] {
      BeginChild();
      other.end(w);
      Drop(&w.second);
    });
    other.end(w);
    thread.GoOn();
    EndTheRest(&w);
    w.CheckNothingLeft();
    return stands;
  });
}

// The thread that stands there forks, and goes on in the child.
void InAChild() {
  ForEachPlace([](const Ends& stopped, int place, const Ends& other) {
    World w;
    pid_t child = -1;
    const auto end = [&] {
      stopped.end(w);
      if (child != 0) return;
      other.end(w);
      EndTheRest(&w);
      _exit(0);
    };
    Thread thread(place, end, [&] {
      std::fflush(stdout);
      child = fork();
      if (child == 0) return BeginChild();
      int status = 0;
      CHECK(waitpid(child, &status, 0) == child);
      CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    });
    other.end(w);
    thread.GoOn();
    EndTheRest(&w);
    w.CheckNothingLeft();
    return child > 0;
  });
}

template <void (*kScenario)()>
void Watched() {
  Sim::OnEveryCall(&Thread::OnCall);
  kScenario();
}

}  // namespace

int main(int argc, char** argv) {
  const auto on = cuguest_test::On::kSimulation;
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"two_end", &Watched<&TwoEnd>, {}, 0, on},
          {"three_end", &Watched<&ThreeEnd>, {}, 0, on},
          {"refused_once", &Watched<&RefusedOnce>, {}, 0, on},
          {"refused_when_handed_over", &Watched<&RefusedWhenHandedOver>, {}, 0, on},
          {"a_capture_and_its_stream", &Watched<&ACaptureAndItsStream>, {}, 0, on},
          {"an_allocation_and_its_stream", &Watched<&AnAllocationAndItsStream>, {}, 0, on},
          {"a_home_and_what_is_in_it", &Watched<&AHomeAndWhatIsInIt>, {}, 0, on},
          {"with_a_child", &Watched<&WithAChild>, {}, 0, on, {}, &NoForks},
          {"in_a_child", &Watched<&InAChild>, {}, 0, on, {}, &NoForks},
      });
}
