// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedules of lib/objects/stream/stream_use.cc. A program is a word for each of its threads,
// whose letters are operations on one stream and on buffers in its order:
//
//   E     the Stream ends
//   R     the same, and the driver refuses it where the Stream's own thread asks it
//   W     submits work that uses the buffers of this thread
//   a b   the buffer a ends; the buffer b
//
// All of E, R and W are of the first thread, and none follows an E. It is an error to give a stream
// or an event to the driver that is destroyed, or that is destroyed before the call ends; to free a
// buffer neither in the order of the stream nor behind all work that uses it; to destroy the stream
// where what the calls have done need not have happened before; and to leave a buffer, the stream
// or an event behind.

#include "lib/objects/stream/stream_use.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lib/objects/object_driver.h"
#include "test/schedules/cases.h"
#include "test/schedules/model_driver.h"

namespace {

using cuguest::ContextRef;
using cuguest::DriverTable;
using cuguest::ObjectDriver;
using cuguest::StreamRef;
using cuguest::internal::Atomic;
using cuguest::internal::EndStream;
using cuguest::internal::StreamHold;
using cuguest::internal::StreamUse;
using schedules::Bounds;
using schedules::Case;
using schedules::Group;
using schedules::kUnbounded;
using schedules::ModelDriver;
using schedules::Require;

// What the driver's calls are given. They read it when they begin, and when they end.
struct Handle {
  explicit Handle(bool is_made) : is_alive(is_made ? 1 : 0) {}

  void Make() {
    Require(is_alive.load() == 0, "it is made twice");
    is_alive.store(1);
  }
  void Destroy() { Require(is_alive.exchange(0) == 1, "a dead handle is destroyed"); }
  void Use(const char* what) const {
    Require(is_alive.load() == 1, what);
    Require(is_alive.load() == 1, what);
  }

  Atomic<int> is_alive;
};

struct Buffer {
  StreamUse use;
  int work = 1;              // the last that uses it
  bool was_in_call = false;  // with the stream
  Atomic<int> call{0};       // 1: it has ended
  bool is_freed = false;
};

constexpr int kEnder = 0;  // the thread of the Stream

class Ending;
Ending* g_ending = nullptr;

CUresult NotCapturing(CUstream, CUstreamCaptureStatus* status, cuuint64_t*) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult ExchangeMode(CUstreamCaptureMode* mode) {
  static schedules::PerThread<CUstreamCaptureMode> s_mode;
  CUstreamCaptureMode& its = s_mode;
  std::swap(its, *mode);
  return CUDA_SUCCESS;
}

class Ending : public schedules::Program {
 public:
  explicit Ending(std::vector<std::string> threads) : words_(std::move(threads)) {
    g_ending = this;
    driver_.Create(ModelDriver::Handle(0));
    static const ObjectDriver s_table = MakeTable();
    cuguest::internal::g_driver.store(&s_table);
    cuguest::internal::g_object_driver.store(&s_table);
    ref_ = StreamRef::Borrow(reinterpret_cast<CUstream>(0x9000),
                             ContextRef::Borrow(ModelDriver::Handle(0)));
    for (Buffer& buffer : buffers_) Require(buffer.use.Begin(ref_), "no memory");
  }
  ~Ending() override { g_ending = nullptr; }

  int Threads() const override { return static_cast<int>(words_.size()); }
  void Run(int thread) override {
    for (const char operation : words_[static_cast<std::size_t>(thread)]) Do(operation);
  }

  void Finish() override {
    for (const char buffer : {'a', 'b'}) Do(buffer);
    if (is_owned_) Do('E');
    Require(stream_.is_alive.load() == 0, "the stream is not destroyed");
    Require(event_.is_alive.load() == 0, "the event is not destroyed");
  }

 private:
  static ObjectDriver MakeTable() {
    ObjectDriver table{};
    static_cast<DriverTable&>(table) = *cuguest::internal::g_driver.load();
    table.StreamGetCaptureInfo = &NotCapturing;
    table.ThreadExchangeStreamCaptureMode = &ExchangeMode;
    table.StreamDestroy = [](CUstream) { return g_ending->DestroyStream(); };
    table.EventCreate = [](CUevent* event, unsigned) {
      *event = reinterpret_cast<CUevent>(0x9100);
      g_ending->event_.Make();
      return CUDA_SUCCESS;
    };
    table.EventRecord = [](CUevent, CUstream) { return g_ending->Record(); };
    table.EventDestroy = [](CUevent) {
      g_ending->event_.Destroy();
      return CUDA_SUCCESS;
    };
    return table;
  }

  CUresult DestroyStream() {
    if (schedules::ThisThread() == kEnder && std::exchange(refuses_, false)) {
      stream_.Use("a dead stream is to be destroyed");
      return CUDA_ERROR_UNKNOWN;
    }
    for (const Buffer& buffer : buffers_) {
      Require(!buffer.was_in_call || buffer.call.load(std::memory_order_relaxed) == 1,
              "a call need not have ended before the stream is destroyed");
    }
    stream_.Destroy();
    return CUDA_SUCCESS;
  }

  CUresult Record() {
    event_.Use("a dead event is recorded");
    stream_.Use("an event is recorded in a dead stream");
    recorded_.store(work_, std::memory_order_relaxed);
    return CUDA_SUCCESS;
  }

  void Do(char operation) {
    switch (operation) {
      case 'R':
      case 'E': {
        if (!is_owned_) return;  // handed over already
        refuses_ = operation == 'R';
        is_owned_ = EndStream(ref_) != CUDA_SUCCESS;
        refuses_ = false;
        return;
      }
      case 'W':
        if (!is_owned_) return;
        stream_.Use("work is submitted to a dead stream");
        ++work_;
        for (std::size_t i = 0; i < buffers_.size(); ++i) {
          const bool is_ours = words_[kEnder].find(static_cast<char>('a' + i)) != std::string::npos;
          if (is_ours) buffers_[i].work = work_;
        }
        return;
      default:
        return Free(&buffers_[static_cast<std::size_t>(operation - 'a')]);
    }
  }

  // As OwnedMemory does.
  void Free(Buffer* buffer) {
    if (std::exchange(buffer->is_freed, true)) return;
    {
      const StreamHold hold(buffer->use);
      if (hold.ok()) {
        buffer->was_in_call = true;
        stream_.Use("a buffer is freed in a dead stream");
        buffer->call.store(1, std::memory_order_relaxed);
      } else {
        Require(hold.last() != nullptr, "there is no event");
        event_.Use("a stream waits for a dead event");
        Require(recorded_.load(std::memory_order_relaxed) >= buffer->work,
                "a buffer is freed before its work is done");
      }
    }
    buffer->use = StreamUse();
  }

  ModelDriver driver_;
  StreamRef ref_;
  Handle stream_{true};
  Handle event_{false};
  Atomic<int> recorded_{0};  // up to which work
  int work_ = 1;             // what follows, and this, are the first thread's
  bool is_owned_ = true;
  bool refuses_ = false;
  std::array<Buffer, 2> buffers_;
  std::vector<std::string> words_;
};

Case Words(const std::vector<std::string>& threads, const Bounds& bounds) {
  std::string name;
  for (const std::string& word : threads) name += (name.empty() ? "" : " ") + word;
  return {name, [=] { return std::make_unique<Ending>(threads); }, bounds};
}

Group All(const std::string& name, const std::vector<std::vector<std::string>>& programs,
          const Bounds& bounds) {
  Group group{name, {}};
  for (const auto& words : programs) group.cases.push_back(Words(words, bounds));
  return group;
}

}  // namespace

std::vector<Group> schedules::Groups() {
  const std::vector<std::vector<std::string>> two = {
      {"E", "a"}, {"E", "ab"}, {"bE", "a"}, {"Eb", "a"}, {"RE", "a"}, {"RWbE", "a"}, {"RWEb", "a"},
  };
  const std::vector<std::vector<std::string>> three = {{"E", "a", "b"}, {"RE", "a", "b"}};
  return {
      All("two_threads", two, {}),
      All("two_threads_weak", two, {kUnbounded, kUnbounded}),
      All("three_threads", three, {}),
      All("three_threads_weak", three, {2, 1}),
  };
}
