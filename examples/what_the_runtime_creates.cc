// SPDX-License-Identifier: Apache-2.0
//
// What does the CUDA runtime create, and which call does it?
//
// The runtime hides the contexts: it takes the device's primary context P, when a call needs
// one, makes it current on the calling thread, and keeps it until the process ends. Here the
// thread is looked at after each of the first calls of a program. Counting and naming devices
// create nothing; cudaSetDevice does (since CUDA 12; before, the first call that worked on the
// device), and costs the caller a place on its stack and the device half a gigabyte. That is
// why a guest asks cuguest::Device and not cudaSetDevice.
//
//   1. A program's first calls
//
//      at the start                  (empty)         P is inactive
//      cudaGetDeviceCount            (empty)         P is inactive
//      cudaSetDevice                 [P]<            P is active
//      cudaMalloc, cudaFree          [P]<            P is active
//
// What fails is a number in the runtime, and one that stays for whoever asks next. The usual
// checking macro turns it into text; here that is a Status.

#include <cuda_runtime_api.h>

#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/memory.h"
#include "cuguest/runtime/error.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace {

using cuguest::Device;
using cuguest::runtime::ToStatus;
using support::Activity;
using support::Cast;
using support::IsActive;
using support::PrintRow;
using support::PrintScene;

// The usual macro: which call it was, and what it said.
#define CHECK_RUNTIME(call) CHECK_OK(ToStatus((call), #call))

// A thread, and what the runtime did to it.
class Witness {
 public:
  Witness(Device device, CUcontext primary) : device_(device) { cast_.Name("P", primary); }

  void Expect(const char* when, const char* stack, bool active) const {
    PrintRow(when, cast_.Draw(), Activity(device_));
    CHECK(cast_.Draw() == stack);
    CHECK(IsActive(device_) == active);
  }

 private:
  Device device_;
  Cast cast_;
};

void ExpectMemoryOf(CUcontext primary) {
  float* data = nullptr;
  CHECK_RUNTIME(cudaMalloc(reinterpret_cast<void**>(&data), 1024 * sizeof(float)));
  const absl::StatusOr<cuguest::MemoryDescription> memory = cuguest::Describe(data);
  if (CHECK_OK(memory.status())) CHECK(memory->context.get() == primary);
  CHECK_RUNTIME(cudaFree(data));
}

void FirstCalls(const Witness& thread, Device device, CUcontext primary) {
  PrintScene("A program's first calls");
  thread.Expect("at the start", "(empty)", false);
  int count = 0;
  CHECK_RUNTIME(cudaGetDeviceCount(&count));
  CHECK(count >= 1);
  thread.Expect("cudaGetDeviceCount", "(empty)", false);
  int current = -1;
  CHECK_RUNTIME(cudaGetDevice(&current));
  CHECK(current == 0);
  thread.Expect("cudaGetDevice", "(empty)", false);

  CHECK_RUNTIME(cudaSetDevice(static_cast<int>(device.ordinal())));
  thread.Expect("cudaSetDevice", "[P]<", true);
  ExpectMemoryOf(primary);
  thread.Expect("cudaMalloc, cudaFree", "[P]<", true);
}

// The stack is the thread's own; the context is everybody's.
void AnotherThread(const Witness& thread, CUcontext primary) {
  PrintScene("Another thread");
  std::thread([&] {
    thread.Expect("at the start", "(empty)", true);
    ExpectMemoryOf(primary);
    thread.Expect("cudaMalloc, cudaFree", "[P]<", true);
  }).join();
}

void Failure() {
  PrintScene("A call that fails");
  const absl::Status status = ToStatus(cudaSetDevice(1000), "cudaSetDevice(1000)");
  PrintRow("cudaSetDevice(1000)", "a status");
  support::PrintParagraph(status.ToString());
  CHECK(cuguest::runtime::RuntimeCodeOf(status) == cudaErrorInvalidDevice);
  const cudaError_t left = cudaGetLastError();
  PrintRow("the runtime's last error", cudaGetErrorName(left));
  CHECK(left == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
}

absl::Status Demonstrate(const cuguest::Driver& driver, Device device) {
  const support::HostStack stack(driver, {});  // empties it at the end
  const absl::StatusOr<CUcontext> primary = support::HandleOfPrimary(device);
  if (!primary.ok()) return primary.status();
  const Witness thread(device, *primary);
  FirstCalls(thread, device, *primary);
  AnotherThread(thread, *primary);
  Failure();
  CHECK_RUNTIME(cudaDeviceReset());
  CHECK(!IsActive(device));
  return absl::OkStatus();
}

}  // namespace

int main() {
  return support::RunExample("What does the CUDA runtime create, and which call does it?",
                             &Demonstrate);
}
