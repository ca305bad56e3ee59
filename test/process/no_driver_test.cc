// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every state of a machine without a usable driver is a status of its own, and no guard,
// query or owner crashes on it. Each scenario is a process that meets that state from
// the start.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "cudasim/sim.h"
#include "cuguest/acquire.h"
#include "cuguest/capture.h"
#include "cuguest/compatibility.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/context_scope.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/exact_guard.h"
#include "cuguest/green_context.h"
#include "cuguest/host_scope.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/objects/array.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/device_view.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/memory.h"
#include "cuguest/objects/peer_access.h"
#include "cuguest/objects/stream.h"
#include "cuguest/objects/surface_object.h"
#include "cuguest/objects/texture_object.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/sharing.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "test/guard/guard_kinds.h"
#include "test/support/advised.h"
#include "test/support/driver_path.h"
#include "test/support/files.h"
#include "test/support/scenario.h"

namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::ObjectDriver;
using cuguest::PrimaryContext;
using cuguest::ProblemOf;
using cuguest::SharedContext;
using cuguest_test::LibraryPathWithoutDriver;

// Whatever is asked, the answer is a refusal with `code`, or a status with `problem`.
void EverythingRefuses(Driver::Problem problem, CUresult code) {
  const auto refuses = [=](const absl::Status& status) {
    return ProblemOf(status) == problem && cuguest::CodeOf(status) == code;
  };
  CHECK(refuses(ObjectDriver::Get().status()));
  CHECK(refuses(ObjectDriver::GetInitialized().status()));
  const cuguest::Versions versions = cuguest::QueryVersions();
  CHECK(refuses(cuguest::CheckCompatibility(versions)));
  std::printf("%s\n", cuguest::Explain(versions).c_str());
  CHECK(refuses(cuguest::CountDevices().status()));
  CHECK(refuses(DeviceAt(cuguest::Device::Ordinal{0}).status()));
  CHECK(refuses(cuguest::CurrentDevice().status()));
  CHECK(refuses(NameOf(Device::Borrow(0)).status()));
  CHECK(refuses(ToStatus(PrimaryContext::Retain(Device::Borrow(0)))));
  CHECK(refuses(ToStatus(PrimaryContext::RetainIfActive(Device::Borrow(0)))));
  CHECK(refuses(ToStatus(PrimaryContext::Query(Device::Borrow(0)))));
  static CUcontext not_null = nullptr;
  const auto context = reinterpret_cast<CUcontext>(&not_null);
  CHECK(refuses(ToStatus(SharedContext::Create(Device::Borrow(0)))));
  CHECK(refuses(
      ToStatus(SharedContext::Create(Device::Borrow(0), cuguest::SharedContext::Options()))));
  CHECK(refuses(ToStatus(SharedContext::Attach(context))));
  const cuguest::SmCount one{1};
  CHECK(refuses(cuguest::SmCountOf(Device::Borrow(0)).status()));
  CHECK(refuses(cuguest::SmSplit::Of(Device::Borrow(0), one).status()));
  CHECK(refuses(cuguest::GreenContext::Create(Device::Borrow(0), one).status()));
  CHECK(refuses(cuguest::GreenContext::Create(cuguest::SmSplit::Part()).status()));
  CHECK(cuguest::GreenContext().Release().ok());
  CHECK(cuguest::CheckSharing().ok());
  CHECK(refuses(ToStatus(cuguest::AcquireFromStream(nullptr))));
  CHECK(refuses(ToStatus(cuguest::AcquireFromPointer(&not_null))));
  CHECK(refuses(ToStatus(cuguest::AcquireFromBuffer(&not_null, 1))));
  CHECK(refuses(ToStatus(cuguest::AcquireCurrent(Device::Borrow(0)))));
  CHECK(refuses(ToStatus(cuguest::AcquireOn(Device::Borrow(0)))));
  CHECK(refuses(cuguest::Describe(CUdeviceptr{1}).status()));
  CHECK(refuses(cuguest::Array::Describe(CUarray{nullptr}).status()));
  CHECK(refuses(cuguest::DeviceView<int>::Borrow(CUdeviceptr{4}, 1).status()));
  CHECK(refuses(cuguest::DeviceBuffer<int>::Allocate(ContextRef(), 1).status()));
  CHECK(refuses(cuguest::Array::Create(ContextRef(), CUDA_ARRAY3D_DESCRIPTOR()).status()));
  CHECK(refuses(
      cuguest::TextureObject::Create(ContextRef(), CUDA_RESOURCE_DESC(), CUDA_TEXTURE_DESC())
          .status()));
  CHECK(cuguest::Array().Release().ok());
  CHECK(cuguest::TextureObject().Release().ok());
  CHECK(cuguest::SurfaceObject().Release().ok());
  CHECK(refuses(cuguest::DeviceBuffer<int>::Adopt(CUdeviceptr{4}, 1).status()));
  CHECK(refuses(cuguest::PeerAccess::Enable(ContextRef(), ContextRef()).status()));
  CHECK(cuguest::DeviceBuffer<int>().Release().ok());
  CHECK(cuguest::PeerAccess().Release().ok());
  CHECK(refuses(cuguest::StreamRef::Borrow(nullptr).status()));
  CHECK(refuses(cuguest::StreamRef().Synchronize()));
  CHECK(cuguest::StreamRef().capture_status() == std::nullopt);
  CHECK(refuses(cuguest::Stream::Create(ContextRef()).status()));
  CHECK(refuses(cuguest::Event::Create(ContextRef()).status()));
  CHECK(refuses(cuguest::Event().Synchronize()));
  CHECK(cuguest::CaptureModeGuard().result() == code);
  CHECK(cuguest::CaptureStatusOf(nullptr) == std::nullopt);
  CHECK(!cuguest::HousekeepingIsSafe(nullptr));
  CHECK(cuguest::ContextScope().Enter(ContextRef()) != CUDA_SUCCESS);
  guard_kinds::EachKind([&](auto kind) {
    guard_kinds::GuardOf<decltype(kind)> guard(context);
    CHECK(guard.result() == code);
    CHECK(cuguest::CodeOf(ToStatus(guard)) == code);
    const cuguest::HostScope host = guard_kinds::HostOf(guard);
    CHECK(host.ok());
    CHECK(guard.Reassert() == code);
    CHECK(guard.Leave() == CUDA_SUCCESS);
  });
  CHECK(cuguest::NoContextGuard().result() == code);
  CHECK(ContextRef::Borrow(context).result() == code);
  CHECK(ContextRef::Current().result() == code);
  CHECK(cuguest::testing::StackProbe::Take().stack().empty());
  CHECK(cuguest::IncidentCount() == 0);
  std::printf("%s\n", std::string(ObjectDriver::Get().status().message()).c_str());
}

void NoLibrary() {
  EverythingRefuses(Driver::Problem::kNoLibrary, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
}

void Stub() { EverythingRefuses(Driver::Problem::kStub, CUDA_ERROR_STUB_LIBRARY); }

void TooOld() {
  Sim::SetDriverVersion(6050);
  EverythingRefuses(Driver::Problem::kTooOld, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
}

// The driver works and sees no device: counting them has an answer.
void NoDevice() {
  Sim::SetDeviceCount(0);
  CHECK(ObjectDriver::Get().ok());
  const absl::Status status = ObjectDriver::GetInitialized().status();
  CHECK(ProblemOf(status) == Driver::Problem::kNoDevice);
  CHECK(cuguest::CodeOf(status) == CUDA_ERROR_NO_DEVICE);
  CHECK(status.code() == absl::StatusCode::kNotFound);
  CHECK(cuguest::CountDevices().value() == 0);
  const cuguest::Versions versions = cuguest::QueryVersions();
  CHECK(ProblemOf(cuguest::CheckCompatibility(versions)) == Driver::Problem::kNoDevice);
  std::printf("%s\n", cuguest::Explain(versions).c_str());
  const absl::Status at = DeviceAt(cuguest::Device::Ordinal{0}).status();
  CHECK(ProblemOf(at) == Driver::Problem::kNoDevice);
  CHECK(ProblemOf(ToStatus(PrimaryContext::Retain(Device::Borrow(0)))) ==
        Driver::Problem::kNoDevice);
  std::printf("%s\n", std::string(at.message()).c_str());
}

// Drivers below CUDA 10.1: streams and events do without the calls for captures.
void WithoutCaptures() {
  for (const char* entry : {"cuStreamGetCaptureInfo", "cuThreadExchangeStreamCaptureMode"}) {
    Sim::HideEntry(entry);
  }
  const ObjectDriver& driver = **ObjectDriver::GetInitialized();
  CHECK(driver.StreamGetCaptureInfo == nullptr);
  CHECK(driver.ThreadExchangeStreamCaptureMode == nullptr);
  const ContextRef home = ContextRef::Borrow(cuguest_test::MakeContext());
  cuguest::Stream stream = cuguest::Stream::Create(home).value();
  cuguest::Event event = cuguest::Event::Create(home).value();
  CHECK(stream.ref().capture_status() == CU_STREAM_CAPTURE_STATUS_NONE);
  for (const CUstream each : {stream.get(), CUstream{nullptr}}) {
    const auto ref = cuguest::StreamRef::Borrow(each, home);
    CHECK(event.Record(ref).ok());
    CHECK(ref.WaitFor(event).ok());
    CHECK(ref.Synchronize().ok());
    CHECK(event.IsDone().value());
  }
  CHECK(event.Release().ok());
  CHECK(stream.Release().ok());
}

// An old driver without context ids: guards and owners work by handle.
void WithoutIds() {
  Sim::HideEntry("cuCtxGetId");
  const ObjectDriver& driver = **ObjectDriver::GetInitialized();
  CHECK(driver.CtxGetId == nullptr);
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  CUcontext popped = nullptr;
  CHECK(driver.CtxCreate(&first, 0, 0) == CUDA_SUCCESS);
  CHECK(driver.CtxCreate(&second, 0, 0) == CUDA_SUCCESS);
  CHECK(driver.CtxPopCurrent(&popped) == CUDA_SUCCESS);
  const ContextRef ref = ContextRef::Borrow(second);
  CHECK(ref.ok() && ref.id() == 0 && ref.IsAlive());
  {
    const cuguest::ExactGuard guard(ref);
    CHECK(guard.ok());
    CHECK(driver.CtxPushCurrent(first) == CUDA_SUCCESS);
  }
  CHECK(cuguest::IncidentCount(cuguest::Incident::Kind::kLeakedPush) == 1);
  PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  CHECK(!primary.WasReset());
  CHECK(primary.Release().ok());
  CHECK(primary.get() == nullptr);
  {
    // Destroyed by a callee: told from an extra pop, and never pushed again.
    const ContextGuard guard(ref);
    CHECK(driver.CtxDestroy(second) == CUDA_SUCCESS);
  }
  CHECK(cuguest::IncidentCount(cuguest::Incident::Kind::kDestroyed) == 1);
  CHECK(!ref.IsAlive());
  CHECK(cuguest::testing::StackProbe::Take().current() == first);
}

// Nothing happens at load time: when main begins, the driver has not been loaded.
void NothingAtLoadTime() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) CHECK(line.find("libcuda.so") == std::string::npos);
  CHECK(maps.eof());
}

std::string SkipWhereADriverIsInstalled() {
  return cuguest_test::RunSelf({"no_library"}, {LibraryPathWithoutDriver("")})
                     .output.find("not so") != std::string::npos
             ? "a driver is installed here"
             : "";
}

std::string SkipWithoutStub() {
  return cuguest_test::FindToolkitStub().empty() ? "needs the toolkit's stub libcuda.so" : "";
}

// A directory that offers the toolkit's stub under the driver's name.
std::string MakeStubDirectory() {
  static char s_directory[] = "/tmp/cuguest-stub-XXXXXX";
  static const char* s_made = mkdtemp(s_directory);
  if (s_made == nullptr) return "";
  const std::string link = std::string(s_made) + "/libcuda.so.1";
  if (symlink(cuguest_test::FindToolkitStub().c_str(), link.c_str()) != 0) return "";
  return s_made;
}

absl::Status InitRefused(CUresult code) {
  Sim::FailCall("cuInit", 1, code);
  const absl::Status status = Driver::GetInitialized().status();
  Sim::ClearFaults();
  CHECK(cuguest::CodeOf(status) == code);
  return status;
}

// By what users have reported: gorgonia/cu#2, ggml-org/llama.cpp#7218 (999); NVIDIA/OpenShell#1696,
// abetlen/llama-cpp-python#645 (304); NVIDIA/open-gpu-kernel-modules#947 (3, and nobody had
// forked).
void WhatIsBehindCuInit() {
  const struct {
    CUresult code;
    std::vector<const char*> words;
  } kRows[] = {
      {CUDA_ERROR_UNKNOWN, {"nvidia_uvm", "/dev/nvidia-uvm", "nvidia-modprobe -u"}},
      {CUDA_ERROR_OPERATING_SYSTEM, {"memfd_create", "seccomp", "/dev/nvidia*"}},
      {CUDA_ERROR_SYSTEM_NOT_READY, {"nvidia-fabricmanager"}},
      {CUDA_ERROR_NOT_INITIALIZED, {"was forked from one", "if it was not", "dmesg"}},
      {CUDA_ERROR_MPS_SERVER_NOT_READY, {Advised("perhaps recovering: try again")}},
      {static_cast<CUresult>(919), {Advised("is not ready yet: try again later")}},
  };
  for (const auto& row : kRows) {
    const std::string text(InitRefused(row.code).message());
    for (const char* words : row.words) {
      const bool says = text.find(words) != std::string::npos;
      if (!says) std::printf("%s: lacks %s\n", text.c_str(), words);
      CHECK(says);
    }
  }
  CHECK(Driver::GetInitialized().ok());
}

// With the driver's folder on the library path, and no stub's; and nothing hides the devices.
void WithPathAndDevices() {
  CHECK(Driver::GetInitialized().ok());
  CHECK(cuguest::CountDevices().value() > 0);
  CHECK(cuguest::CheckCompatibility(cuguest::QueryVersions()).ok());
}

void AHiddenDevice() {
  const absl::Status status = DeviceAt(Device::Ordinal{1}).status();
  CHECK(absl::IsNotFound(status));
  std::printf("%s\n", std::string(status.message()).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_child = argc == 2;
  const std::string stubs = is_child ? "" : MakeStubDirectory();
  const int code = cuguest_test::RunScenarios(
      argc, argv,
      {
          {"no_library",
           &NoLibrary,
           {"CUDA cannot work here: libcuda.so.1 cannot be loaded and no NVIDIA kernel module",
            "libcuda.so.1: cannot open shared object file",
            Advised("put its folder on the loader's search path (LD_LIBRARY_PATH, or a file in "
                    "/etc/ld.so.conf.d and ldconfig): under WSL it is /usr/lib/wsl/lib, in "
                    "containers often /usr/local/nvidia/lib64, on NixOS /run/opengl-driver/lib"),
            "no NVIDIA driver is installed here"},
           0,
           cuguest_test::On::kAnyDriver,
           {LibraryPathWithoutDriver("")},
           &SkipWhereADriverIsInstalled},
          {"stub",
           &Stub,
           {"CUDA cannot work here: the libcuda that was loaded is the toolkit's link-time stub",
            Advised("link-time stub: take the toolkit's stubs directory out of LD_LIBRARY_PATH "
                    "and the run path")},
           0,
           cuguest_test::On::kAnyDriver,
           {LibraryPathWithoutDriver(stubs)},
           &SkipWithoutStub},
          {"too_old",
           &TooOld,
           {"CUDA cannot work here: load the CUDA driver, libcuda.so.1 (CUDA 6.5)",
            "(CUDA 6.5) has no cuCtxGetFlags of CUDA 7.0; driver 346.46 or newer is needed"},
           0,
           cuguest_test::On::kSimulation},
          {"no_device",
           &NoDevice,
           {"CUDA cannot work here: the driver sees no CUDA device",
            Advised("the driver sees no CUDA device: look at CUDA_VISIBLE_DEVICES, the "
                    "container's device options and nvidia-smi")},
           0,
           cuguest_test::On::kAnyDriver,
           {"CUDA_VISIBLE_DEVICES="}},
          {"a_hidden_device",
           &AHiddenDevice,
           {"find device 1, of 1 in this process, with CUDA_VISIBLE_DEVICES=0: "},
           0,
           cuguest_test::On::kAnyDriver,
           {"CUDA_VISIBLE_DEVICES=0"}},
          {"without_captures", &WithoutCaptures, {}, 0, cuguest_test::On::kSimulation},
          {"without_ids", &WithoutIds, {}, 0, cuguest_test::On::kSimulation},
          {"what_is_behind_cu_init", &WhatIsBehindCuInit, {}, 0, cuguest_test::On::kSimulation},
          {"with_path_and_devices", &WithPathAndDevices},
          {"nothing_at_load_time", &NothingAtLoadTime},
      });
  if (!stubs.empty()) {
    unlink((stubs + "/libcuda.so.1").c_str());
    rmdir(stubs.c_str());
  }
  return code;
}
