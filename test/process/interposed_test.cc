// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library in front of the driver (fixtures/interposer.cc): what "Where a library stands in front
// of the driver" in docs/limits.md promises. Each scenario is a process with that library
// preloaded.

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/incident.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/stream.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "kernels/launch.h"
#include "test/support/files.h"
#include "test/support/scenario.h"

namespace {

using cuguest::Acquired;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::Driver;
using cuguest::IfInactive;
using cuguest::SharedContext;
using cuguest::Stream;

constexpr std::size_t kWithinLimit = 1 << 10;
constexpr std::size_t kAboveLimit = std::size_t{2} << 20;

// What the interposer has counted.
int Counted(const char* what) {
  const auto count = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, what));
  CHECK(count != nullptr);
  return count();
}

const Driver& TheDriver() { return **Driver::GetInitialized(); }

CUcontext CurrentHandle() {
  CUcontext current = nullptr;
  CHECK(TheDriver().CtxGetCurrent(&current) == CUDA_SUCCESS);
  return current;
}

// A context that the host has current, and nothing beneath it.
struct Host {
  explicit Host(CUdevice device = 0) {
    CHECK(TheDriver().CtxCreate(&context, 0, device) == CUDA_SUCCESS);
    CHECK(CurrentHandle() == context);
  }
  // Whatever the guest did, that is what the host finds.
  void FindsItsStack() const {
    CUcontext popped = nullptr;
    CHECK(CurrentHandle() == context);
    CHECK(TheDriver().CtxPopCurrent(&popped) == CUDA_SUCCESS && popped == context);
    CHECK(CurrentHandle() == nullptr);
    CHECK(TheDriver().CtxPushCurrent(context) == CUDA_SUCCESS);
  }
  CUcontext context = nullptr;
};

bool Says(const absl::Status& status, const char* words) {
  return absl::StrContains(status.ToString(), words);
}

// ---- a limit

absl::Status Allocate(std::size_t bytes) {
  const SharedContext context = SharedContext::Create(Device::Borrow(0));
  CHECK(context.ok());
  auto buffer = DeviceBuffer<char>::Allocate(context.context(), bytes);
  return buffer.ok() ? buffer->Release() : buffer.status();
}

void LimitHolds() {
  CHECK(absl::IsResourceExhausted(Allocate(kAboveLimit)));
  CHECK(Allocate(kWithinLimit).ok());
}

void ALimitOfLookupsHolds() {
  LimitHolds();
  CHECK(Counted("InterposerAllocations") == 2 && Counted("InterposerFrees") == 1);
}

void ALimitOfExportsIsPassedBy() {
  CHECK(Allocate(kAboveLimit).ok());
  CHECK(Counted("InterposerAllocations") == 0 && Counted("InterposerFrees") == 0);
}

CUresult (*GetProcAddress())(const char*, void**, int, cuuint64_t) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const get = dlsym(library, "cuGetProcAddress");
  CHECK(get != nullptr);
  return reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t)>(get);
}

void* ByVersion(const char* name, int version, void*) {
  static const auto get = GetProcAddress();
  void* function = nullptr;
  return get(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM) == CUDA_SUCCESS ? function
                                                                                          : nullptr;
}

// What a program that is linked with the driver calls, for the names that are known to be replaced.
void* ByWhatIsExported(const char* name, int version, void* user) {
  for (const auto& [known, symbol] :
       {std::pair{"cuMemAlloc", "cuMemAlloc_v2"}, std::pair{"cuMemFree", "cuMemFree_v2"}}) {
    if (std::strcmp(known, name) == 0) return dlsym(RTLD_DEFAULT, symbol);
  }
  return ByVersion(name, version, user);
}

void ALimitOfExportsHoldsWhereItIsAdopted() {
  CHECK(Driver::Adopt(&ByWhatIsExported, nullptr).ok());
  ALimitOfLookupsHolds();
}

// ---- a lookup that does not look at the version

void CreationHasItsOwnSignature() {
  CHECK(SharedContext::Create(Device::Borrow(0)).ok());
  CHECK(TheDriver().CtxGetDeviceOf == nullptr);  // the table is by symbols, which this is not in
}

// The context of device 1 is asked for its device while one of device 0 is current.
void DevicesAreThoseOfTheirContexts() {
  const Host host;
  const SharedContext other = SharedContext::Create(Device::Borrow(1));
  CHECK(other.ok());
  Stream stream = Stream::Create(other.context()).value();
  const Acquired acquired = cuguest::AcquireFromStream(stream.get());
  CHECK(acquired.ok() && acquired.context() == other.context());
  Device device = Device::Borrow(0);
  CHECK(acquired.GetDevice(&device) == CUDA_SUCCESS && device == Device::Borrow(1));
  host.FindsItsStack();
}

void DevicesAreThoseOfTheirContextsWhereItIsAdopted() {
  CHECK(Driver::Adopt(&ByVersion, nullptr).ok());
  DevicesAreThoseOfTheirContexts();
}

std::string WithoutSecondDevice() {
  const auto devices = cuguest::CountDevices();
  return devices.ok() && *devices > 1 ? "" : "needs two devices";
}

// ---- a lookup that does not know every name

constexpr char kHidden[] = " has it, and what answers for this one does not give it: a preloaded ";

void AnOptionalEntryIsNamed() {
  const Host host;
  const SharedContext own = SharedContext::Create(Device::Borrow(0));
  {
    const ContextGuard guard(own.context());
    CHECK(guard.ok());
  }
  Stream stream = Stream::Create(own.context()).value();
  const Acquired acquired = cuguest::AcquireFromStream(stream.get());
  CHECK(!acquired.ok());
  const absl::Status status = ToStatus(acquired);
  CHECK(absl::IsUnimplemented(status));
  CHECK(cuguest::ProblemOf(status) == Driver::Problem::kEntryMissing);
  CHECK(Says(status, "has no cuStreamGetCtx of CUDA 9.2; a driver of CUDA "));
  CHECK(Says(status, kHidden));
  CHECK(cuguest::AcquireCurrent(Device::Borrow(0)).ok());
  host.FindsItsStack();
}

void ARequiredEntryIsNamed() {
  const absl::Status status = Driver::Get().status();
  CHECK(absl::IsUnimplemented(status));
  CHECK(cuguest::ProblemOf(status) == Driver::Problem::kTooOld);
  CHECK(Says(status, "has no cuCtxGetFlags of CUDA 7.0; a driver of CUDA "));
  CHECK(Says(status, kHidden));
  CHECK(SharedContext::Create(Device::Borrow(0)).error().code ==
        CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
}

// ---- handles that are not the driver's

bool IsVirtual(CUcontext context) { return reinterpret_cast<std::uintptr_t>(context) % 2 != 0; }

void WorkInAContextOfAStranger(const Host& host, const ContextRef& other) {
  Stream stream = Stream::Create(other).value();
  auto buffer = DeviceBuffer<char>::Allocate(other, kWithinLimit);
  CHECK(buffer.ok());
  for (const Acquired& acquired :
       {cuguest::AcquireFromStream(stream.get()), cuguest::AcquireFromPointer(buffer->data())}) {
    CHECK(acquired.ok());
    const ContextGuard guard(acquired.context());
    CHECK(guard.ok() && !guard.elided());
    CHECK(CurrentHandle() == other.get());
  }
  host.FindsItsStack();
  CHECK(buffer->Release().ok() && stream.Release().ok());
}

void HandlesAreThoseOfTheShim() {
  const Host host;
  CHECK(IsVirtual(host.context));
  SharedContext other = SharedContext::Create(Device::Borrow(0));
  CHECK(other.ok() && IsVirtual(other.context().get()));
  WorkInAContextOfAStranger(host, other.context());
  {
    const ContextGuard elided(host.context);
    CHECK(elided.ok() && elided.elided());
  }
  CHECK(cuguest::IncidentCount() == 0);
  host.FindsItsStack();
  CHECK(other.Release().ok());
}

// The context that a pointer's attribute tells is the driver's, which the shim takes, too.
void TwoHandlesOfOneContext() {
  const Host host;
  auto buffer = DeviceBuffer<char>::Allocate(ContextRef::Current(), kWithinLimit);
  CHECK(buffer.ok());
  {
    const Acquired acquired = cuguest::AcquireFromPointer(buffer->data());
    CHECK(acquired.ok() && !IsVirtual(acquired.context().get()));
    CHECK(acquired.context().id() == ContextRef::Current().id());
    CHECK(acquired.context() != ContextRef::Current());
    const ContextGuard guard(acquired.context());
    CHECK(guard.ok() && !guard.elided());
    CHECK(CurrentHandle() == host.context);
  }
  // Its entry came off by the other handle.
  CHECK(cuguest::IncidentCount(cuguest::Incident::Kind::kReplaced) == 1);
  CHECK(cuguest::IncidentCount() == 1);
  host.FindsItsStack();
}

// ---- a context around each launch

class Kernels {
 public:
  explicit Kernels(const ContextRef& context)
      : module_(cuguest::Module::LoadIn(
                    context, cuguest::CodeImage::Borrow({cuguest_kernels::launch_fatbin,
                                                         cuguest_kernels::launch_fatbin_size},
                                                        "launch.fatbin")
                                 .value())
                    .value()) {
    cudasim::Sim::RegisterKernel("nothing", [](const cudasim::SimLaunch&) { return CUDA_SUCCESS; });
  }
  cuguest::Kernel Nothing() const { return module_.GetKernel("nothing").value(); }

 private:
  cuguest::Module module_;
};

// In the guest's context, which a guard has current, and in the order of a created stream or of the
// default one. As many incidents as say that a push was left.
absl::Status LaunchBesideTheHost(bool in_default, unsigned long long incidents) {
  const Host host;
  SharedContext own = SharedContext::Create(Device::Borrow(0));
  absl::Status launched;
  {
    Stream stream = Stream::Create(own.context()).value();
    const Kernels kernels(own.context());
    const cuguest::Kernel nothing = kernels.Nothing();
    const ContextGuard guard(own.context());
    const auto in = in_default ? cuguest::StreamRef::Borrow(nullptr, own.context()) : stream.ref();
    launched = cuguest::Launch(nothing, {}, in);
    CHECK(Counted("InterposerLaunches") == 1);
  }
  CHECK(cuguest::IncidentCount(cuguest::Incident::Kind::kLeakedPush) == incidents);
  host.FindsItsStack();
  CHECK(own.Release().ok());
  return launched;
}

void AContextAroundALaunch() { CHECK(LaunchBesideTheHost(false, 0).ok()); }
void AContextThatALaunchLeaves() { CHECK(LaunchBesideTheHost(false, 1).ok()); }
void AContextAroundALaunchOfTheDefaultStream() {
  CHECK(cuguest::CodeOf(LaunchBesideTheHost(true, 0)) == CUDA_ERROR_INVALID_HANDLE);
}

// ---- answers without cuInit

void InitializedAccordingToTheShim() {
  CHECK(Driver::Get().ok());
  CHECK(Driver::IsInitialized());  // which it is not
  CHECK(SharedContext::Create(Device::Borrow(0)).ok());
}

// Not without the library, where some would pass as well.
template <void (*kRun)()>
void Preloaded() {
  CHECK(Counted("InterposerLaunches") == 0);
  kRun();
}

template <void (*kRun)()>
cuguest_test::Scenario Behind(const char* name, const char* words, const char* hides = "") {
  cuguest_test::Scenario scenario = {name, &Preloaded<kRun>};
  scenario.environment = {"LD_PRELOAD=" + cuguest_test::FindBeside("test/interposer.so"),
                          std::string("INTERPOSER=") + words,
                          std::string("INTERPOSER_HIDES=") + hides};
  return scenario;
}

template <void (*kRun)()>
cuguest_test::Scenario BehindOnTwoDevices(const char* name, const char* words) {
  cuguest_test::Scenario scenario = Behind<kRun>(name, words);
  scenario.skip = &WithoutSecondDevice;
  return scenario;
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          Behind<&ALimitOfLookupsHolds>("a_limit_of_lookups_holds", "limits"),
          Behind<&ALimitOfExportsIsPassedBy>("a_limit_of_exports_is_passed_by", ""),
          Behind<&ALimitOfExportsHoldsWhereItIsAdopted>(
              "a_limit_of_exports_holds_where_it_is_adopted", ""),
          Behind<&CreationHasItsOwnSignature>("the_newest_function_of_a_name", "newest"),
          BehindOnTwoDevices<&DevicesAreThoseOfTheirContexts>("the_only_function_of_a_name",
                                                              "only"),
          BehindOnTwoDevices<&DevicesAreThoseOfTheirContextsWhereItIsAdopted>(
              "the_only_function_of_a_name_is_adopted", "only"),
          Behind<&AnOptionalEntryIsNamed>("an_optional_entry_is_named", "hides", "cuStreamGetCtx"),
          Behind<&AnOptionalEntryIsNamed>("an_optional_entry_is_named_by_code", "code",
                                          "cuStreamGetCtx"),
          Behind<&ARequiredEntryIsNamed>("a_required_entry_is_named", "hides", "cuCtxGetFlags"),
          Behind<&HandlesAreThoseOfTheShim>("handles_are_those_of_the_shim", "virtual,whole"),
          Behind<&TwoHandlesOfOneContext>("two_handles_of_one_context", "virtual"),
          Behind<&AContextAroundALaunch>("a_context_around_a_launch", "own"),
          Behind<&AContextAroundALaunchOfTheDefaultStream>(
              "a_context_around_a_launch_of_the_default_stream", "own"),
          Behind<&AContextThatALaunchLeaves>("a_context_that_a_launch_leaves", "own,leaves"),
          Behind<&InitializedAccordingToTheShim>("initialized_according_to_the_shim",
                                                 "uninitialised"),
      });
}
