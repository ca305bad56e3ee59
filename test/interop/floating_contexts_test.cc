// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floating contexts, in the manner of CUDA's threadMigration sample: they are made on one
// thread and current on none, up to fifteen other threads of each device take them, launch in
// them and check what came of it, and they end on yet another thread.

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/devices.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_ptr.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "kernels/saxpy.h"
#include "test/runtime/host_kernels.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::GuardMode;
using cuguest::Kernel;
using cuguest::SharedContext;
using cuguest::Stream;
using cuguest::testing::StackProbe;
using Numbers = std::vector<float>;

constexpr int kThreads = 15;  // on each device
constexpr int kContexts = 3;  // on each device
constexpr int kRounds = 20;
constexpr std::size_t kCount = 256;

// Boost.Test is for one thread only.
class Failures {
 public:
  void Add(const std::string& what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_.empty()) first_ = what;
  }
  void Expect(const absl::Status& status) {
    if (!status.ok()) Add(status.ToString());
  }
  void Expect(bool condition, const char* what) {
    if (!condition) Add(std::string("not so: ") + what);
  }
  const std::string& first() const { return first_; }

 private:
  std::mutex mutex_;
  std::string first_;
};

// A context with a row of numbers in it, which one thread at a time has.
class Floating {
 public:
  explicit Floating(Device device)
      : context_(SharedContext::Create(device)),
        stream_(Stream::Create(context_.context()).value()),
        ones_(DeviceBuffer<float>::Allocate(context_.context(), kCount).value()),
        sum_(DeviceBuffer<float>::Allocate(context_.context(), kCount).value()) {
    BOOST_REQUIRE(cuguest::FillAsync(ones_.view(), 1.0F, stream_.ref()).ok());
    BOOST_REQUIRE(cuguest::FillAsync(sum_.view(), 0.0F, stream_.ref()).ok());
  }

  // Adds one, and finds as many as there were turns. The host's own push and pop, as in the
  // sample; what guests do in between is theirs.
  void TakeTurn(const Kernel& saxpy, Failures* failures) {
    const std::lock_guard<std::mutex> lock(turn_);
    failures->Expect(RAW(cuCtxPushCurrent)(context_.get()) == CUDA_SUCCESS, "push");
    failures->Expect(cuguest::Launch(saxpy, {{1}, {kCount}}, stream_.ref(), unsigned{kCount}, 1.0F,
                                     DevicePtr(ones_.view()), DevicePtr(sum_.view())));
    ++turns_;
    Numbers found(kCount);
    failures->Expect(cuguest::DownloadAsync(sum_.view(), found, stream_.ref()));
    failures->Expect(stream_.ref().Synchronize());
    failures->Expect(found == Numbers(kCount, static_cast<float>(turns_)), "one for each turn");
    CUcontext popped = nullptr;
    failures->Expect(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS && popped == context_.get(),
                     "pop what was pushed");
  }

  const ContextRef& context() const { return context_.context(); }
  int turns() const { return turns_; }

 private:
  SharedContext context_;
  Stream stream_;
  DeviceBuffer<float> ones_;
  DeviceBuffer<float> sum_;
  std::mutex turn_;
  int turns_ = 0;
};

// Works in `context` beside other threads that do the same, with buffers of its own.
absl::Status WorkBesideOthers(const SharedContext& context, const Kernel& saxpy, GuardMode mode,
                              float* result) {
  const ContextGuard guard(context.context(), mode);
  if (!guard.ok()) return cuguest::ToStatus(guard);
  auto stream = Stream::Create(context.context());
  if (!stream.ok()) return stream.status();
  auto numbers = DeviceBuffer<float>::Allocate(context.context(), kCount);
  if (!numbers.ok()) return numbers.status();
  absl::Status status = cuguest::FillAsync(numbers->view(), 2.0F, stream->ref());
  if (!status.ok()) return status;
  status = cuguest::Launch(saxpy, {{1}, {kCount}}, stream->ref(), unsigned{kCount}, 3.0F,
                           DevicePtr(numbers->view()), DevicePtr(numbers->view()));
  if (!status.ok()) return status;
  Numbers found(kCount);
  status = cuguest::DownloadAsync(numbers->view(), found, stream->ref());
  if (!status.ok()) return status;
  status = stream->ref().Synchronize();
  *result = found.back();
  return status;
}

bool AreOver(const std::vector<ContextRef>& lives) {
  return std::none_of(lives.begin(), lives.end(),
                      [](const ContextRef& life) { return life.IsAlive(); });
}

class Fixture : cuguest_runtime_test::HostKernels {
 public:
  Fixture()
      : image_(cuguest::CodeImage::Borrow(
                   {cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size}, "saxpy")
                   .value()),
        module_(cuguest::Module::Load(image_).value()),
        saxpy_(module_.GetKernel("saxpy").value()) {}
  ~Fixture() { BOOST_TEST(failures.first() == ""); }

  // `work(device, thread)` on kThreads threads for each device, whose stacks are empty, and
  // empty again afterwards.
  template <typename Work>
  void OnAllThreads(const Work& work) {
    std::vector<std::thread> threads;
    for (int device = 0; device < devices(); ++device) {
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([this, &work, device, thread] {
          work(device, thread);
          failures.Expect(StackProbe::Take().stack().empty(), "the thread's stack is empty");
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
  }

 protected:
  const Kernel& saxpy() const { return saxpy_; }
  int devices() const { return devices_; }

  Failures failures;

 private:
  cuguest::CodeImage image_;
  cuguest::Module module_;
  Kernel saxpy_;
  const int devices_ = cuguest::CountDevices().value();
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(floating_contexts, Fixture)

// Each thread takes the contexts of its device in turn, whichever thread had them before.
BOOST_AUTO_TEST_CASE(are_handed_from_thread_to_thread) {
  std::deque<Floating> contexts;  // kContexts of each device, side by side
  std::vector<ContextRef> lives;
  for (int i = 0; i < devices() * kContexts; ++i) {
    lives.push_back(contexts.emplace_back(Device::Borrow(i / kContexts)).context());
  }
  BOOST_TEST(cuguest_test::GetStack().empty());
  OnAllThreads([&](int device, int thread) {
    for (int round = 0; round < kRounds; ++round) {
      const int which = device * kContexts + (thread + round) % kContexts;
      contexts[static_cast<std::size_t>(which)].TakeTurn(saxpy(), &failures);
    }
  });
  int turns = 0;
  for (const Floating& floating : contexts) turns += floating.turns();
  BOOST_TEST(turns == devices() * kThreads * kRounds);
  // With what is in them, on a thread that has never seen them.
  std::thread([&] { contexts.clear(); }).join();
  BOOST_TEST(AreOver(lives));
}

// All threads of a device are in one context at the same time; the last holder destroys it.
BOOST_AUTO_TEST_CASE(are_shared_by_many_threads) {
  std::vector<SharedContext> contexts;
  std::vector<ContextRef> lives;
  for (int device = 0; device < devices(); ++device) {
    contexts.push_back(SharedContext::Create(Device::Borrow(device)));
    lives.push_back(contexts.back().context());
  }
  std::vector<SharedContext> units;  // of each thread
  for (int i = 0; i < devices() * kThreads; ++i) units.push_back(contexts[i / kThreads]);
  contexts.clear();
  OnAllThreads([&](int device, int thread) {
    // The end of this scope may be the context's.
    const SharedContext mine =
        std::move(units[static_cast<std::size_t>(device * kThreads + thread)]);
    for (int round = 0; round < kRounds; ++round) {
      const auto mode = static_cast<GuardMode>(round % 3);
      float result = 0;
      failures.Expect(WorkBesideOthers(mine, saxpy(), mode, &result));
      failures.Expect(result == 8.0F, "3 x 2 + 2");
    }
  });
  BOOST_TEST(AreOver(lives));
}

BOOST_AUTO_TEST_SUITE_END()
