// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A process that works on device 1 alone leaves device 0 alone: whatever it asks, and by
// whichever way it acquires a context, device 0 has no primary context afterwards. Each
// way is tried in a process of its own, on the main thread and on a thread of which
// nothing is known.

#include <string>
#include <thread>

#include "cuguest/acquire.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_scope.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/sharing.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cuguest::Acquired;
using cuguest::AcquireOn;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::IfInactive;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using Source = Acquired::Source;

const Device kOurs = Device::Borrow(1);

bool IsActive(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  CHECK(RAW(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS);
  return active != 0;
}

std::string NeedsTwoDevices() {
  const auto count = cuguest::CountDevices();
  return count.ok() && *count >= 2 ? "" : "needs 2 devices";
}

// Runs `work` on this thread and on a new one; device 0 must not notice.
void Try(void (*work)()) {
  work();
  CHECK(!IsActive(0));
  std::thread(work).join();
  CHECK(!IsActive(0));
}

// A context of device 1, current for the scope, that is not its primary.
class Current {
 public:
  Current() : shared_(SharedContext::Create(kOurs)), guard_(shared_.get()) {}
  CUcontext get() const { return shared_.get(); }

 private:
  SharedContext shared_;
  ContextGuard guard_;
};

void Expect(const Acquired& acquired, CUcontext context, Source source) {
  if (!acquired.ok()) std::printf("%s\n", ToStatus(acquired).ToString().c_str());
  CHECK(acquired.ok());
  CHECK(context == nullptr || acquired.get() == context);
  CHECK(acquired.source() == source);
  const ContextGuard guard(acquired.context());
  CHECK(guard.ok());
}

void Queries() {
  CHECK(cuguest::Driver::GetInitialized().ok());
  CHECK(cuguest::CountDevices().value() >= 2);
  const Device device = DeviceAt(cuguest::Device::Ordinal{1}).value();
  CHECK(device == kOurs);
  CHECK(NameOf(device).ok() && PciBusIdOf(device).ok() && UuidOf(device).ok());
  CHECK(!cuguest::CurrentDevice().ok());
  CHECK(!PrimaryContext::Query(device).active);
  CHECK(!PrimaryContext::RetainIfActive(device).ok());
  CHECK(!ContextRef::Current().ok());
  CHECK(cuguest::HousekeepingIsSafe(nullptr));
  CHECK(cuguest::CaptureModeGuard().ok());
  CHECK(cuguest::CheckSharing().ok());
  const cuguest::NoContextGuard none;
  CHECK(none.ok());
}

void Refusals() {
  int plain = 0;
  CHECK(!AcquireOn(kOurs).ok());
  CHECK(!cuguest::AcquireCurrent(kOurs).ok());
  CHECK(!cuguest::AcquireFromStream(nullptr).ok());
  CHECK(!cuguest::AcquireFromStream(CU_STREAM_PER_THREAD).ok());
  CHECK(!cuguest::AcquireFromPointer(&plain).ok());
  CHECK(!IsActive(1));
}

void FromAStream() {
  const Current current;
  CUstream stream = nullptr;
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  Expect(cuguest::AcquireFromStream(stream), current.get(), Source::kStream);
  Expect(cuguest::AcquireFromStream(nullptr), current.get(), Source::kCurrent);
  {
    const cuguest::NoContextGuard none;
    Expect(cuguest::AcquireFromStream(stream), current.get(), Source::kStream);
  }
  CHECK(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
}

void FromAPointer() {
  const Current current;
  CUdeviceptr device = 0;
  CUdeviceptr managed = 0;
  void* host = nullptr;
  CHECK(RAW(cuMemAlloc)(&device, 4096) == CUDA_SUCCESS);
  CHECK(RAW(cuMemAllocManaged)(&managed, 4096, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  CHECK(RAW(cuMemAllocHost)(&host, 4096) == CUDA_SUCCESS);
  for (const bool current_too : {true, false}) {
    std::optional<cuguest::NoContextGuard> none;
    if (!current_too) none.emplace();
    Expect(cuguest::AcquireFromPointer(device + 1), current.get(), Source::kPointer);
    Expect(cuguest::AcquireFromPointer(managed), current.get(), Source::kPointer);
    Expect(cuguest::AcquireFromPointer(host), current.get(), Source::kPointer);
    Expect(cuguest::AcquireFromBuffer(device, 4096), current.get(), Source::kPointer);
  }
  CHECK(RAW(cuMemFree)(device) == CUDA_SUCCESS);
  CHECK(RAW(cuMemFree)(managed) == CUDA_SUCCESS);
  CHECK(RAW(cuMemFreeHost)(host) == CUDA_SUCCESS);
}

// Memory of device 1 that no context owns. First with a context of the device current,
// then with none and no primary, then with the primary.
void TryWithoutOwner(CUdeviceptr pointer, CUcontext current) {
  Expect(cuguest::AcquireFromPointer(pointer), current, Source::kCurrent);
  const cuguest::NoContextGuard none;
  const absl::Status refused = ToStatus(cuguest::AcquireFromPointer(pointer));
  CHECK(refused.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(refused.message().find("memory of device 1 that no context owns") != std::string::npos);
  CHECK(!IsActive(1));
  const PrimaryContext primary = PrimaryContext::Retain(kOurs);
  Expect(cuguest::AcquireFromPointer(pointer), primary.get(), Source::kPrimary);
  Expect(cuguest::AcquireFromBuffer(pointer, 4096), primary.get(), Source::kPrimary);
}

void FromPoolMemory() {
  const Current current;
  CUstream stream = nullptr;
  CUdeviceptr pointer = 0;
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(RAW(cuMemAllocAsync)(&pointer, 4096, stream) == CUDA_SUCCESS);
  TryWithoutOwner(pointer, current.get());
  CHECK(RAW(cuMemFreeAsync)(pointer, stream) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
}

void FromVirtualMemory() {
  const Current current;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  size_t size = 0;
  CUdeviceptr pointer = 0;
  CUmemGenericAllocationHandle handle = 0;
  CHECK(RAW(cuMemGetAllocationGranularity)(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
        CUDA_SUCCESS);
  CHECK(RAW(cuMemCreate)(&handle, size, &properties, 0) == CUDA_SUCCESS);
  CHECK(RAW(cuMemAddressReserve)(&pointer, size, 0, 0, 0) == CUDA_SUCCESS);
  CHECK(RAW(cuMemMap)(pointer, size, 0, handle, 0) == CUDA_SUCCESS);
  TryWithoutOwner(pointer, current.get());
  CHECK(RAW(cuMemUnmap)(pointer, size) == CUDA_SUCCESS);
  CHECK(RAW(cuMemAddressFree)(pointer, size) == CUDA_SUCCESS);
  CHECK(RAW(cuMemRelease)(handle) == CUDA_SUCCESS);
}

void TheCurrentOne() {
  const Current current;
  Expect(cuguest::AcquireCurrent(kOurs), current.get(), Source::kCurrent);
  Expect(AcquireOn(kOurs), current.get(), Source::kCurrent);
  Expect(AcquireOn(kOurs, IfInactive::kCreate), current.get(), Source::kCurrent);
  CHECK(!cuguest::AcquireCurrent(Device::Borrow(0)).ok());
  CHECK(!AcquireOn(Device::Borrow(0)).ok());
}

void ThePrimary() {
  {
    const auto created = AcquireOn(kOurs, IfInactive::kCreate);
    Expect(created, nullptr, Source::kCreated);
    Expect(AcquireOn(kOurs), created.get(), Source::kPrimary);
    const SharedContext attached = SharedContext::Attach(created.get());
    CHECK(attached.owner() == SharedContext::Owner::kPrimary);
  }
  CHECK(!IsActive(1));
}

void CachesAndWorkers() {
  const Current current;
  cuguest::PerContext<int> cache;
  const auto make = [](const ContextRef&) -> absl::StatusOr<int> { return 1; };
  {
    const cuguest::NoContextGuard none;
    CHECK(cache.GetOrMake(current.get(), make).ok());
    cuguest::ContextScope home;
    CHECK(home.Enter(ContextRef::Borrow(current.get())) == CUDA_SUCCESS);
    CHECK(home.Reassert() == CUDA_SUCCESS);
    CHECK(cache.DropDead() == 0);
  }
  CHECK(cache.Forget(ContextRef::Borrow(current.get())));
}

}  // namespace

int main(int argc, char** argv) {
  using cuguest_test::On;
  std::vector<cuguest_test::Scenario> scenarios = {
      {"queries", [] { Try(&Queries); }},
      {"refusals", [] { Try(&Refusals); }},
      {"from_a_stream", [] { Try(&FromAStream); }},
      {"from_a_pointer", [] { Try(&FromAPointer); }},
      {"from_pool_memory", [] { Try(&FromPoolMemory); }},
      {"from_virtual_memory", [] { Try(&FromVirtualMemory); }},
      {"the_current_one", [] { Try(&TheCurrentOne); }},
      {"the_primary", [] { Try(&ThePrimary); }},
      {"caches_and_workers", [] { Try(&CachesAndWorkers); }},
  };
  for (cuguest_test::Scenario& scenario : scenarios) scenario.skip = &NeedsTwoDevices;
  return cuguest_test::RunScenarios(argc, argv, scenarios);
}
