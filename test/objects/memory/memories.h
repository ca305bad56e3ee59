// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of every kind, and what must not change while somebody works with it.

#ifndef CUGUEST_TEST_OBJECTS_MEMORY_MEMORIES_H_
#define CUGUEST_TEST_OBJECTS_MEMORY_MEMORIES_H_

#include <cuda.h>
#include <sys/mman.h>

#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/context_ref.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

#define OK(call) BOOST_CHECK_EQUAL((call), CUDA_SUCCESS)

namespace cuguest_test {

using Stack = std::vector<CUcontext>;

inline constexpr size_t kBytes = 4096;
inline constexpr size_t kUnit = size_t{2} << 20;  // of virtual memory

inline CUdeviceptr AddressOf(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

inline bool IsActive(int device) {
  return cuguest::PrimaryContext::Query(cuguest::Device::Borrow(device)).active;
}

// What went wrong; empty if `status` has `code` and its text all of `words`.
inline std::string NoRefusal(const absl::Status& status, absl::StatusCode code,
                             const std::vector<std::string>& words) {
  std::string missing;
  for (const std::string& word : words) {
    if (!absl::StrContains(std::string(status.message()), word)) missing += ", " + word;
  }
  if (status.code() == code && missing.empty()) return "";
  return status.ToString() + " lacks" + missing;
}

// At its end the thread's stack and the first primary context are as they were, and, on the
// simulation, everything that lives.
class Undisturbed {
 public:
  Undisturbed() = default;
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  ~Undisturbed() {
    BOOST_TEST(GetStack() == stack_);
    BOOST_TEST(IsActive(0) == active_);
    BOOST_TEST((cudasim::Sim::Live() == live_), "leaked");
  }

 private:
  Stack stack_ = GetStack();
  bool active_ = IsActive(0);
  cudasim::SimLive live_ = cudasim::Sim::Live();
};

// A context of its own with a stream; nothing is current afterwards.
class Owner {
 public:
  explicit Owner(int device = 0) : context_(device) {
    Enter();
    OK(RAW(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING));
    SetStack({});
    ref_ = cuguest::ContextRef::Borrow(get());
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  CUcontext get() const { return context_.get(); }
  const cuguest::ContextRef& ref() const { return ref_; }
  CUstream stream() const { return stream_; }
  void Enter() const { SetStack({context_.get()}); }

  // Goes with the context.
  CUdeviceptr Allocate(size_t bytes = kBytes) const {
    Enter();
    CUdeviceptr pointer = 0;
    OK(RAW(cuMemAlloc)(&pointer, bytes));
    SetStack({});
    return pointer;
  }

 private:
  OwnContext context_;
  CUstream stream_ = nullptr;
  cuguest::ContextRef ref_;
};

// Addresses, and mappings in them.
class Virtual {
 public:
  explicit Virtual(size_t units) : size_(units * kUnit) {
    OK(RAW(cuMemAddressReserve)(&base_, size_, 0, 0, 0));
  }
  Virtual(const Virtual&) = delete;
  Virtual& operator=(const Virtual&) = delete;
  ~Virtual() {
    OK(RAW(cuMemUnmap)(base_, size_));
    OK(RAW(cuMemAddressFree)(base_, size_));
  }
  CUdeviceptr At(size_t unit) const { return base_ + unit * kUnit; }

  // What `device` may do with a mapping.
  void Allow(size_t unit, int device, CUmemAccess_flags access) const {
    CUmemAccessDesc allowed = {};
    allowed.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    allowed.flags = access;
    OK(RAW(cuMemSetAccess)(At(unit), kUnit, &allowed, 1));
  }

  // Of memory of the host, which has access as device 0 has.
  void MapHost(size_t unit) const {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    CUmemGenericAllocationHandle handle = 0;
    OK(RAW(cuMemCreate)(&handle, kUnit, &properties, 0));
    OK(RAW(cuMemMap)(At(unit), kUnit, 0, handle, 0));
    OK(RAW(cuMemRelease)(handle));
    const CUmemAccessDesc allowed = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(RAW(cuMemSetAccess)(At(unit), kUnit, &allowed, 1));
    Allow(unit, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }

  // Of memory of `device`, which alone has access.
  CUdeviceptr Map(size_t unit, CUmemAccess_flags access, int device = 0) const {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    CUmemGenericAllocationHandle handle = 0;
    OK(RAW(cuMemCreate)(&handle, kUnit, &properties, 0));
    OK(RAW(cuMemMap)(At(unit), kUnit, 0, handle, 0));
    OK(RAW(cuMemRelease)(handle));
    Allow(unit, device, access);
    return At(unit);
  }

 private:
  size_t size_;
  CUdeviceptr base_ = 0;
};

// What the default pool of the first device has given out.
inline cuuint64_t BytesOfPool() {
  CUmemoryPool pool = nullptr;
  cuuint64_t bytes = 0;
  OK(RAW(cuDeviceGetDefaultMemPool)(&pool, 0));
  OK(RAW(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes));
  return bytes;
}

// A pool on the host, whose allocations the driver tells the size of, and no start: where
// NeedsHostPools().
class HostPool {
 public:
  HostPool() { OK(cudasim_test::CreateHostPool(&pool_)); }
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  ~HostPool() { OK(RAW(cuMemPoolDestroy)(pool_)); }
  CUmemoryPool get() const { return pool_; }
  CUdeviceptr Allocate(const Owner& owner) const {
    CUdeviceptr pointer = 0;
    OK(RAW(cuMemAllocFromPoolAsync)(&pointer, kBytes, pool_, owner.stream()));
    OK(RAW(cuStreamSynchronize)(owner.stream()));
    return pointer;
  }

 private:
  CUmemoryPool pool_ = nullptr;
};

// kBytes of each kind that belong to one context, or to its device.
class Memories {
 public:
  explicit Memories(const Owner& owner) {
    owner.Enter();
    OK(RAW(cuMemAlloc)(&device, kBytes));
    OK(RAW(cuMemAllocManaged)(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
    void* host = nullptr;
    OK(RAW(cuMemHostAlloc)(&host, kBytes, 0));
    pinned = AddressOf(host);
    pages_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(RAW(cuMemHostRegister)(pages_, kBytes, 0));
    registered = AddressOf(pages_);
    OK(RAW(cuMemAllocAsync)(&pool, kBytes, owner.stream()));
    OK(RAW(cuStreamSynchronize)(owner.stream()));
    virtual_memory = range_.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    SetStack({});
  }
  Memories(const Memories&) = delete;
  Memories& operator=(const Memories&) = delete;
  ~Memories() {
    OK(RAW(cuMemFree)(device));
    OK(RAW(cuMemFree)(managed));
    OK(RAW(cuMemFreeHost)(reinterpret_cast<void*>(pinned)));
    OK(RAW(cuMemHostUnregister)(pages_));
    OK(RAW(cuMemFree)(pool));
    munmap(pages_, kBytes);
  }

  std::vector<CUdeviceptr> All() const {
    return {device, managed, pinned, registered, pool, virtual_memory};
  }

  // The first address behind `device`, in steps of kBytes, that is in no memory.
  CUdeviceptr BehindDevice() const {
    CUdeviceptr behind = device + kBytes;
    unsigned type = 0;
    while (RAW(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, behind) ==
           CUDA_SUCCESS) {
      behind += kBytes;
    }
    return behind;
  }

  CUdeviceptr device = 0;
  CUdeviceptr managed = 0;
  CUdeviceptr pinned = 0;
  CUdeviceptr registered = 0;
  CUdeviceptr pool = 0;
  CUdeviceptr virtual_memory = 0;  // kUnit bytes

 private:
  void* pages_ = nullptr;
  Virtual range_{1};
};

// A stream that captures; the capture must have survived at the end.
class Capture {
 public:
  Capture(CUstream stream, CUstreamCaptureMode mode) : stream_(stream) {
    OK(RAW(cuStreamBeginCapture)(stream, mode));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    CUgraph graph = nullptr;
    OK(RAW(cuStreamEndCapture)(stream_, &graph));
    if (graph != nullptr) OK(RAW(cuGraphDestroy)(graph));
  }

 private:
  CUstream stream_;
};

inline constexpr CUstreamCaptureMode kCaptureModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                                        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                        CU_STREAM_CAPTURE_MODE_RELAXED};

// A context that is current on this thread and destroyed. Pop it.
inline void PushDeadContext() {
  OwnContext context;
  const CUcontext dead = context.release();
  OK(RAW(cuCtxPushCurrent)(dead));
  std::thread([dead] { OK(RAW(cuCtxDestroy)(dead)); }).join();
}

inline absl::Status StatusOf(const absl::Status& status) { return status; }
template <typename T>
auto StatusOf(const T& object) -> decltype(cuguest::ToStatus(object.error())) {
  return cuguest::ToStatus(object.error());
}
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Tells, while there is one, which calls of cuCtxGetCurrent were made right after one of
// cuCtxPopCurrent: by the end of a guard, to see what its pop has left. They are counted from 1.
class LooksAfterPops {
 public:
  LooksAfterPops() {
    looks_.clear();
    queries_ = 0;
    was_pop_ = false;
    cudasim::Sim::OnEveryCall([](const char* name) {
      const std::string entry = name;
      if (entry == "cuCtxGetCurrent") {
        ++queries_;
        if (was_pop_) looks_.insert(queries_);
      }
      was_pop_ = entry == "cuCtxPopCurrent";
    });
  }
  LooksAfterPops(const LooksAfterPops&) = delete;
  LooksAfterPops& operator=(const LooksAfterPops&) = delete;
  ~LooksAfterPops() { cudasim::Sim::OnEveryCall(nullptr); }

  bool Has(unsigned query) const { return looks_.count(query) != 0; }

 private:
  static inline std::set<unsigned> looks_;
  static inline unsigned queries_ = 0;
  static inline bool was_pop_ = false;
};

// `work`, whose result has a status, with the n-th call of each of `entries` failing, for n from
// 1 until it is not called so often: the status has the code, the thread's stack is as it was
// and nothing is leaked. Without a fault it works. The result itself ends without a fault.
template <typename Work>
void FailEachCall(const std::vector<std::string>& entries, const Work& work) {
  using cudasim::Sim;
  for (const std::string& entry : entries) {
    std::uint64_t calls = 1;
    for (unsigned nth = 1; nth <= calls; ++nth) {
      BOOST_TEST_CONTEXT(entry << ", call " << nth) {
        const Undisturbed undisturbed;
        cuguest_test::BeginCount();
        Sim::FailCall(entry.c_str(), nth, CUDA_ERROR_OPERATING_SYSTEM);
        const LooksAfterPops looks;
        const auto result = work();
        calls = Sim::Calls(entry.c_str()) + 1;
        Sim::ClearFaults();
        const absl::Status status = StatusOf(result);
        const bool is_silent = TakeIncidents().empty();
        const bool failed = cuguest::CodeOf(status) == CUDA_ERROR_OPERATING_SYSTEM;
        // The second guard of an operation asks for the current id first, and for its own if it
        // gets no answer.
        const bool is_asked_again = nth > 1 && entry == "cuCtxGetId" && status.ok();
        // A guard that gets no answer to what its pop has left asks again, and finds nothing wrong.
        const bool is_looked_again =
            entry == "cuCtxGetCurrent" && looks.Has(nth) && status.ok() && is_silent;
        const bool is_answered = is_asked_again || is_looked_again;
        const bool expected = calls > nth ? failed || is_answered : status.ok();
        BOOST_TEST(expected, status.ToString());
      }
    }
  }
}

}  // namespace cuguest_test

#define REFUSES(status, code, ...)                                              \
  do {                                                                          \
    const std::string complaint =                                               \
        cuguest_test::NoRefusal(status, absl::StatusCode::code, {__VA_ARGS__}); \
    BOOST_TEST(complaint.empty(), #status << ": " << complaint);                \
  } while (false)
#define SUCCEEDS(status)                                                           \
  do {                                                                             \
    const absl::Status status_of_call = (status);                                  \
    BOOST_TEST(status_of_call.ok(), #status << ": " << status_of_call.ToString()); \
  } while (false)

#endif  // CUGUEST_TEST_OBJECTS_MEMORY_MEMORIES_H_
