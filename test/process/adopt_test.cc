// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Driver::Adopt: a driver that the host gives instead of the one that cuguest would load. Each
// scenario is a process that has used nothing of cuguest yet.

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cuguest/c.h"
#include "cuguest/capture.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/free_memory.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/objects/array.h"
#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/memory.h"
#include "cuguest/objects/peer_access.h"
#include "cuguest/objects/stream.h"
#include "cuguest/objects/surface_object.h"
#include "cuguest/objects/texture_object.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "test/support/advised.h"
#include "test/support/scenario.h"

namespace {

using cuguest::Driver;
using cuguest::ObjectDriver;
using cuguest::ProblemOf;

// The host's own way to the driver. Names that the host replaces come first.
struct Host {
  Host() : library(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    CHECK(library != nullptr);
    get = reinterpret_cast<Get>(dlsym(library, "cuGetProcAddress"));
    CHECK(get != nullptr);
  }

  template <typename Function>
  void Replace(const char* name, Function* function) {
    replaced.emplace_back(name, reinterpret_cast<void*>(function));
  }
  void Hide(const char* name) { replaced.emplace_back(name, nullptr); }

  void* Find(const char* name, int version) const {
    for (const auto& [other, function] : replaced) {
      if (std::strcmp(other, name) == 0) return function;
    }
    void* function = nullptr;
    return get(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM) == CUDA_SUCCESS
               ? function
               : nullptr;
  }

  using Get = CUresult (*)(const char*, void**, int, cuuint64_t);
  void* library;
  Get get;
  std::vector<std::pair<const char*, void*>> replaced;
  mutable std::vector<std::pair<std::string, int>> asked;
};

void* LookUp(const char* name, int version, void* user) {
  const Host& host = *static_cast<const Host*>(user);
  host.asked.emplace_back(name, version);
  return host.Find(name, version);
}

bool Says(const absl::Status& status, const char* words) {
  return absl::StrContains(status.ToString(), words);
}

// By function-local static: the table lives until the process ends.
Host& TheHost() {
  static Host& host = *new Host;
  return host;
}

CUresult SevenDevices(int* count) {
  *count = 7;
  return CUDA_SUCCESS;
}

void AdoptedFunctionsAreCalled() {
  Host& host = TheHost();
  host.Replace("cuDeviceGetCount", &SevenDevices);
  CHECK(Driver::Adopt(&LookUp, &host).ok());
  CHECK((*Driver::Get())->DeviceGetCount == &SevenDevices);
  CHECK(*cuguest::CountDevices() == 7);
}

CUresult NoLink(int* can, CUdevice, CUdevice) {
  *can = 0;
  return CUDA_SUCCESS;
}

// The driver gives no reason, so the status says where to look.
void ALinkThatTheDriverDenies() {
  TheHost().Replace("cuDeviceCanAccessPeer", &NoLink);
  CHECK(Driver::Adopt(&LookUp, &TheHost()).ok());
  const auto devices = cuguest::CountDevices();
  CHECK(devices.ok());
  if (*devices < 2) return;
  const absl::Status status =
      cuguest::PeerAccess::Check(cuguest::Device::Borrow(0), cuguest::Device::Borrow(1));
  CHECK(absl::IsUnimplemented(status));
  CHECK(cuguest::CodeOf(status) == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  CHECK(Says(status, "device 0 to device 1, at ") && Says(status, "on the PCI bus"));
  CHECK(Says(status, cuguest::PciBusIdOf(cuguest::Device::Borrow(1))->c_str()));
  CHECK(Says(status, "IOMMU"));
  CHECK(cuguest_peer_access_check(0, 1) == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

CUresult PageableOnDevice0(int* value, CUdevice_attribute, CUdevice device) {
  *value = device == 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

// Plain memory is a device's only where every device reaches it.
void OneDeviceThatDoesNotReachTheHost() {
  TheHost().Replace("cuDeviceGetAttribute", &PageableOnDevice0);
  CHECK(Driver::Adopt(&LookUp, &TheHost()).ok());
  const auto devices = cuguest::CountDevices();
  CHECK(devices.ok());
  const auto memory = cuguest::Describe(&TheHost());
  using Kind = cuguest::MemoryDescription::Kind;
  CHECK(memory.ok());
  CHECK(memory->kind == (*devices == 1 ? Kind::kPageable : Kind::kUnregistered));
}

void WithoutAWayToAskForFreeMemory() {
  TheHost().Hide("cuMemGetInfo");
  CHECK(Driver::Adopt(&LookUp, &TheHost()).ok());
  const auto memory =
      cuguest::GetFreeMemory(cuguest::Device::Borrow(0), cuguest::IfInactive::kCreate);
  CHECK(memory.error().code == CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
}

std::atomic<int> g_pushes{0};

CUresult CountedPush(CUcontext context) {
  ++g_pushes;
  static const auto push =
      reinterpret_cast<CUresult (*)(CUcontext)>(dlsym(TheHost().library, "cuCtxPushCurrent_v2"));
  return push(context);
}

void GuardsUseTheAdoptedPush() {
  TheHost().Replace("cuCtxPushCurrent", &CountedPush);
  CHECK(Driver::Adopt(&LookUp, &TheHost()).ok());
  const CUcontext context = cuguest_test::MakeContext();
  g_pushes = 0;
  {
    const cuguest::ContextGuard guard(context);
    CHECK(guard.ok());
  }
  CHECK(g_pushes == 1);
}

std::atomic<bool> g_refuses_a_push{false};

CUresult PushThatFailsOnce(CUcontext context) {
  static const auto push =
      reinterpret_cast<CUresult (*)(CUcontext)>(dlsym(TheHost().library, "cuCtxPushCurrent_v2"));
  return g_refuses_a_push.exchange(false) ? CUDA_ERROR_OPERATING_SYSTEM : push(context);
}

// A driver that fails when one context is left and the other is not entered: the guard comes back.
void MovesSurviveAPushThatFails() {
  TheHost().Replace("cuCtxPushCurrent", &PushThatFailsOnce);
  CHECK(Driver::Adopt(&LookUp, &TheHost()).ok());
  const CUcontext callers = cuguest_test::MakeContext();
  const CUcontext first = cuguest_test::MakeContext();
  const CUcontext second = cuguest_test::MakeContext();
  CHECK((*Driver::Get())->CtxPushCurrent(callers) == CUDA_SUCCESS);
  const auto before = cuguest::testing::StackProbe::Take();
  {
    cuguest::ContextGuard guard(first);
    const auto inside = cuguest::testing::StackProbe::Take();
    g_refuses_a_push = true;
    CHECK(guard.MoveTo(second) == CUDA_ERROR_OPERATING_SYSTEM);
    CHECK(!g_refuses_a_push);
    CHECK(guard.result() == CUDA_ERROR_OPERATING_SYSTEM);
    CHECK(inside.Difference(cuguest::testing::StackProbe::Take()).empty());
    CHECK(guard.get() == first);
    CHECK(guard.Reassert() == CUDA_SUCCESS && guard.ok());
  }
  CHECK(before.Difference(cuguest::testing::StackProbe::Take()).empty());
  CHECK((*Driver::Get())->CtxPopCurrent(nullptr) == CUDA_SUCCESS);
}

// What is asked for is what the table lists, whose versions driver_test.cc holds against
// <cudaTypedefs.h>, and the signature that shares an entry's name: each once, and nothing that is
// newer than the driver, which would fail.
void EachEntryIsAskedForOnceByItsVersion() {
  CHECK(Driver::Adopt(&LookUp, &TheHost()).ok());
  std::vector<std::pair<std::string, int>> listed = {
#define CUGUEST_NAME_AND_VERSION(Name, version, suffix, parameters) {"cu" #Name, version},
      CUGUEST_REQUIRED_ENTRIES(CUGUEST_NAME_AND_VERSION)
          CUGUEST_OPTIONAL_ENTRIES(CUGUEST_NAME_AND_VERSION)
#undef CUGUEST_NAME_AND_VERSION
  };
  listed.emplace_back("cuCtxGetDevice", 13000);  // CtxGetDeviceOf
  const int version = (*Driver::Get())->version;
  listed.erase(std::remove_if(listed.begin(), listed.end(),
                              [version](const auto& entry) { return entry.second > version; }),
               listed.end());
  std::vector<std::pair<std::string, int>> asked = TheHost().asked;
  std::sort(listed.begin(), listed.end());
  std::sort(asked.begin(), asked.end());
  CHECK(asked == listed);
}

// A process without libcuda, on functions that are all the test's.
CUresult VersionOfTest(int* version) {
  *version = 12040;
  return CUDA_SUCCESS;
}
CUresult NoDevice(unsigned) { return CUDA_ERROR_NO_DEVICE; }
CUresult NeverCalled() { std::abort(); }

void NothingIsLoadedForAnAdoptedDriver() {
  const auto lookup = [](const char* name, int, void*) {
    if (std::strcmp(name, "cuDriverGetVersion") == 0) {
      return reinterpret_cast<void*>(&VersionOfTest);
    }
    if (std::strcmp(name, "cuInit") == 0) return reinterpret_cast<void*>(&NoDevice);
    if (std::strcmp(name, "cuCtxGetId") == 0) return static_cast<void*>(nullptr);
    return reinterpret_cast<void*>(&NeverCalled);
  };
  CHECK(Driver::Adopt(lookup, nullptr).ok());
  CHECK((*Driver::Get())->version == 12040);
  CHECK(ProblemOf(Driver::GetInitialized().status()) == Driver::Problem::kNoDevice);
  CHECK(*cuguest::CountDevices() == 0);
  CHECK(ProblemOf((*Driver::Get())->Require(&Driver::CtxGetId).status()) ==
        Driver::Problem::kEntryMissing);
  CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) == nullptr);
}

void ObjectsNeedWhatMakesAndEndsThem() {
  for (const char* name : {"cuMemcpy3D", "cuTexObjectDestroy", "cuSurfObjectCreate"}) {
    TheHost().Hide(name);
  }
  CHECK(Driver::Adopt(&LookUp, &TheHost()).ok());
  const auto context = cuguest::SharedContext::Create(cuguest::Device::Borrow(0));
  CHECK(context.ok());
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  shape.Width = 4;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  shape.Flags = CUDA_ARRAY3D_SURFACE_LDST;
  absl::StatusOr<cuguest::Array> array = cuguest::Array::Create(context.context(), shape);
  CHECK(array.ok());
  const float values[4] = {};
  const auto lacks = [](const absl::Status& status, const char* name) {
    return absl::IsUnimplemented(status) && ProblemOf(status) == Driver::Problem::kEntryMissing &&
           Says(status, name);
  };
  CHECK(lacks(Upload(*array, cuguest::HostSpan<const float>(values)), "cuMemcpy3D"));
  CHECK(lacks(cuguest::TextureObject::Create(*array, CUDA_TEXTURE_DESC()).status(),
              "cuTexObjectDestroy"));
  CHECK(lacks(cuguest::SurfaceObject::Create(*array).status(), "cuSurfObjectCreate"));
  CHECK(array->Release().ok());
}

// A refused Adopt() leaves what was there.
void AdoptAfterTheFirstUseIsRefused() {
  const Driver* const driver = *Driver::Get();
  const absl::Status status = Driver::Adopt(&LookUp, &TheHost());
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(ProblemOf(status) == Driver::Problem::kInUse);
  // As the other scenarios do.
  CHECK(Says(status, Advised("call Driver::Adopt before anything else of cuguest")));
  CHECK(*Driver::Get() == driver);
  CHECK(TheHost().asked.empty());
}

void AdoptAfterAGuardIsRefused() {
  { const cuguest::NoContextGuard guard; }
  CHECK(ProblemOf(Driver::Adopt(&LookUp, &TheHost())) == Driver::Problem::kInUse);
}

void SecondAdoptIsRefused() {
  CHECK(Driver::Adopt(&LookUp, &TheHost()).ok());
  const Driver* const driver = *Driver::Get();
  CHECK(ProblemOf(Driver::Adopt(&LookUp, &TheHost())) == Driver::Problem::kInUse);
  CHECK(*Driver::Get() == driver);
}

// After each refusal the next one is tried, and at last the machine's own driver is taken.
void RefusedAdoptsChangeNothing() {
  CHECK(absl::IsInvalidArgument(Driver::Adopt(nullptr, nullptr)));
  TheHost().Hide("cuCtxDestroy");
  const absl::Status old = Driver::Adopt(&LookUp, &TheHost());
  CHECK(ProblemOf(old) == Driver::Problem::kTooOld);
  CHECK(absl::IsUnimplemented(old));
  CHECK(Says(old, "has no cuCtxDestroy of CUDA 4.0"));
  TheHost().replaced.clear();
  TheHost().Replace(
      "cuDriverGetVersion", +[](int*) { return CUDA_ERROR_STUB_LIBRARY; });
  const absl::Status stub = Driver::Adopt(&LookUp, &TheHost());
  CHECK(ProblemOf(stub) == Driver::Problem::kStub);
  CHECK(cuguest::CodeOf(stub) == CUDA_ERROR_STUB_LIBRARY);
  TheHost().asked.clear();
  CHECK(Driver::GetInitialized().ok());
  CHECK((*ObjectDriver::Get())->MemAlloc != nullptr);
  CHECK(TheHost().asked.empty());
}

// A lookup that knows contexts alone is enough for guards.
void WithoutAnEntryOfObjects() {
  TheHost().Hide("cuMemAlloc");
  CHECK(Driver::Adopt(&LookUp, &TheHost()).ok());
  const CUcontext context = cuguest_test::MakeContext();
  const cuguest::ContextGuard guard(context);
  CHECK(guard.ok());
  const absl::Status old = ObjectDriver::Get().status();
  CHECK(ProblemOf(old) == Driver::Problem::kTooOld);
  CHECK(Says(old, "has no cuMemAlloc of CUDA 3.2"));
  const auto buffer = cuguest::DeviceBuffer<int>::Allocate(cuguest::ContextRef::Borrow(context), 1);
  CHECK(ProblemOf(buffer.status()) == Driver::Problem::kTooOld);
}

// A lookup that uses cuguest makes the first use itself.
void LookupThatUsesCuguestIsTheFirstUse() {
  static const Driver* inside = nullptr;
  const auto lookup = [](const char* name, int version, void* user) {
    if (inside == nullptr) inside = *Driver::Get();
    return LookUp(name, version, user);
  };
  CHECK(ProblemOf(Driver::Adopt(lookup, &TheHost())) == Driver::Problem::kInUse);
  CHECK(inside == *Driver::Get());
}

// Of racing ones, one Adopt() or the first use wins, and everybody has the winner's table.
void RacingAdoptsHaveOneWinner() {
  constexpr int kThreads = 8;
  std::atomic<int> waiting{0};
  std::atomic<int> adopted{0};
  std::vector<const Driver*> tables(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const bool adopts = i % 2 == 0;
      Host host;
      ++waiting;
      while (waiting < kThreads) std::this_thread::yield();
      if (adopts) {
        const absl::Status status = Driver::Adopt(&LookUp, &host);
        CHECK(status.ok() || ProblemOf(status) == Driver::Problem::kInUse);
        if (status.ok()) ++adopted;
      }
      tables[static_cast<std::size_t>(i)] = *Driver::Get();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(adopted <= 1);
  for (const Driver* table : tables) CHECK(table == tables[0]);
  CHECK((tables[0]->lookup == &LookUp) == (adopted == 1));
}

void FindAsksTheLookup() {
  TheHost().Replace("cuGuestOwn", &SevenDevices);
  CHECK(Driver::Adopt(&LookUp, &TheHost()).ok());
  using Count = CUresult (*)(int*);
  const auto own = (*Driver::Get())->Find<Count>("cuGuestOwn", 13000);
  CHECK(own.ok() && *own == &SevenDevices);
  CHECK((TheHost().asked.back() == std::pair<std::string, int>("cuGuestOwn", 13000)));
  const auto none = (*Driver::Get())->Find<Count>("cuGuestOther", 12090);
  CHECK(ProblemOf(none.status()) == Driver::Problem::kEntryMissing);
  CHECK(Says(none.status(), "has no cuGuestOther of CUDA 12.9"));
}

constexpr auto kStatusToCome = static_cast<CUstreamCaptureStatus>(3);
CUresult CapturesAnew(CUstream, CUstreamCaptureStatus* status) {
  *status = kStatusToCome;
  return CUDA_SUCCESS;
}
CUresult InfoOfCapture(CUstream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  *status = kStatusToCome;
  *id = 7;
  return CUDA_SUCCESS;
}

// Of a driver that has ways to capture which cuguest does not know.
void AStatusToComeIsACapture() {
  TheHost().Replace("cuStreamIsCapturing", &CapturesAnew);
  TheHost().Replace("cuStreamGetCaptureInfo", &InfoOfCapture);
  CHECK(Driver::Adopt(&LookUp, &TheHost()).ok());
  const auto context = cuguest::SharedContext::Create(cuguest::Device::Borrow(0));
  CHECK(context.ok());
  absl::StatusOr<cuguest::Stream> stream = cuguest::Stream::Create(context.context());
  CHECK(stream.ok());
  CHECK(cuguest::CaptureStatusOf(stream->get()) == kStatusToCome);
  CHECK(!cuguest::HousekeepingIsSafe(stream->get()));
  CHECK(stream->ref().capture_status() == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  for (const absl::Status& status : {stream->ref().Synchronize(), stream->Release(),
                                     cuguest::CaptureScope::Begin(stream->ref()).status()}) {
    CHECK(cuguest::CodeOf(status) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"adopted_functions_are_called", &AdoptedFunctionsAreCalled},
          {"a_link_that_the_driver_denies", &ALinkThatTheDriverDenies},
          {"one_device_that_does_not_reach_the_host", &OneDeviceThatDoesNotReachTheHost},
          {"without_a_way_to_ask_for_free_memory", &WithoutAWayToAskForFreeMemory},
          {"guards_use_the_adopted_push", &GuardsUseTheAdoptedPush},
          {"moves_survive_a_push_that_fails", &MovesSurviveAPushThatFails},
          {"each_entry_is_asked_for_once_by_its_version", &EachEntryIsAskedForOnceByItsVersion},
          {"nothing_is_loaded_for_an_adopted_driver", &NothingIsLoadedForAnAdoptedDriver},
          {"objects_need_what_makes_and_ends_them", &ObjectsNeedWhatMakesAndEndsThem},
          {"adopt_after_the_first_use_is_refused", &AdoptAfterTheFirstUseIsRefused},
          {"adopt_after_a_guard_is_refused", &AdoptAfterAGuardIsRefused},
          {"second_adopt_is_refused", &SecondAdoptIsRefused},
          {"refused_adopts_change_nothing", &RefusedAdoptsChangeNothing},
          {"without_an_entry_of_objects", &WithoutAnEntryOfObjects},
          {"lookup_that_uses_cuguest_is_the_first_use", &LookupThatUsesCuguestIsTheFirstUse},
          {"racing_adopts_have_one_winner", &RacingAdoptsHaveOneWinner},
          {"a_status_to_come_is_a_capture", &AStatusToComeIsACapture},
          {"find_asks_the_lookup", &FindAsksTheLookup},
      });
}
