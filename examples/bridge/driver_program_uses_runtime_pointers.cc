// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a driver-API program use a library that is written with the CUDA runtime?
//
// cuFFT, a neural network, a colleague's solver: it calls cudaMalloc and returns pointers, and
// works in whatever context is current. The pointers are CUdeviceptrs, which every driver call
// takes and either API frees. If the library calls cudaSetDevice, it creates the device's primary
// context P and replaces the program's current context by it. A CalleeScope restores the stack.
//
//   2. The library calls cudaSetDevice, without a scope
//
//      before                        [X] [A]<        P is inactive
//      after                         [X] [P]<        P is active
//
//   3. The same inside a CalleeScope
//
//      before                        [X] [A]<        P is inactive
//      in the scope                  [X] [A] [A]<    pushed for the library
//      after cudaSetDevice           [X] [A] [P]<    P is active
//      after scope.Reassert()        [X] [A] [A]<    the library's next call works in A
//      after                         [X] [A]<        replaced the current context, repaired by
//                                                    inference

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/device_view.h"
#include "cuguest/driver.h"
#include "cuguest/incident_listener.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/primary_context.h"
#include "cuguest/runtime/callee_scope.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/pointer.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"

// The library: runtime API only, without cuguest.
namespace library {

constexpr std::size_t kCount = 1000;

// 0, 1, 2, ... in device memory; for cudaFree.
cudaError_t MakeRamp(float** ramp) {
  std::vector<float> values(kCount);
  std::iota(values.begin(), values.end(), 0.0F);
  const cudaError_t code = cudaMalloc(reinterpret_cast<void**>(ramp), kCount * sizeof(float));
  if (code != cudaSuccess) return code;
  return cudaMemcpy(*ramp, values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice);
}

// The sum of `kCount` floats in device memory.
cudaError_t Sum(const float* values, double* sum) {
  std::vector<float> read(kCount);
  const cudaError_t code =
      cudaMemcpy(read.data(), values, kCount * sizeof(float), cudaMemcpyDeviceToHost);
  *sum = std::accumulate(read.begin(), read.end(), 0.0);
  return code;
}

// As many libraries do first.
cudaError_t Initialize() { return cudaSetDevice(0); }

cudaError_t Shutdown() { return cudaDeviceReset(); }

}  // namespace library

// A program of the driver API, with contexts of its own.
namespace host {

using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::DeviceView;
using cuguest::Driver;
using cuguest::PrimaryContext;
using cuguest::runtime::CalleeScope;
using cuguest::runtime::ToRuntime;
using cuguest::testing::UndisturbedScope;
using support::Activity;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::IsActive;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

struct House {
  const Driver& driver;
  Device device;
  ContextRef a;
  const Cast& cast;
  HostStack& stack;
};

std::string g_reported;
void TakeReport(const cuguest::Incident& incident, void*) {
  g_reported = std::string(Name(incident.kind)) + ", " + Name(incident.repair);
}

void PrintStack(const House& house, const char* when) {
  PrintRow(when, house.cast.Draw(), Activity(house.device));
}

// Takes ownership of what the library allocated; it is freed in its own context.
absl::StatusOr<DeviceBuffer<float>> Take(cudaError_t code, float* values) {
  if (code != cudaSuccess) return cuguest::runtime::ToStatus(code, "let the library make a ramp");
  return DeviceBuffer<float>::Adopt(values, library::kCount);
}

// The program's kernel on the library's memory, in the context that owns it: y = 2 x + y.
absl::Status Triple(const DeviceView<float>& values) {
  CUGUEST_ASSIGN_OR_RETURN(
      const cuguest::Module module,
      cuguest::Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size},
                            "saxpy"));
  CUGUEST_ASSIGN_OR_RETURN(const cuguest::Kernel kernel, module.GetKernel("saxpy"));
  CUGUEST_ASSIGN_OR_RETURN(const cuguest::Stream stream, cuguest::Stream::Create(values.context()));
  absl::Status status = cuguest::LaunchForElements(kernel, values.size(), stream.ref(),
                                                   static_cast<unsigned>(values.size()), 2.0F,
                                                   DevicePtr(values), DevicePtr(values));
  if (status.ok()) status = stream.ref().Synchronize();
  return status;
}

bool Holds(DeviceView<const float> values, const std::vector<float>& expected) {
  std::vector<float> read(values.size());
  return CHECK_OK(cuguest::Download(values, read)) && read == expected;
}

// The library's pointer becomes the program's.
absl::StatusOr<DeviceBuffer<float>> TakeRamp(const House& house, const ContextRef& home) {
  float* ramp = nullptr;
  cudaError_t made = cudaErrorUnknown;
  {
    const CalleeScope scope(home);
    CUGUEST_RETURN_IF_ERROR(scope);
    PrintStack(house, "in the scope");
    made = library::MakeRamp(&ramp);
  }
  return Take(made, ramp);
}

// The program's pointer, of cuMemAlloc, is used by the library.
absl::Status LendCopy(const ContextRef& home, DeviceView<const float> values, double* sum) {
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> own,
                           DeviceBuffer<float>::Allocate(home, values.size()));
  CUGUEST_RETURN_IF_ERROR(cuguest::Copy(own.view(), values));
  const CalleeScope scope(home);
  CUGUEST_RETURN_IF_ERROR(scope);
  return cuguest::runtime::ToStatus(library::Sum(ToRuntime<float>(own.get()), sum),
                                    "let the library add numbers");
}

absl::Status ExchangePointers(const House& house, const ContextRef& home) {
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  PrintStack(house, "before");
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> values, TakeRamp(house, home));
  CHECK(values.context() == home);
  CUGUEST_RETURN_IF_ERROR(Triple(values.view()));
  CHECK(Holds(values.view(), Ramp(3)));
  PrintRow("the library's numbers", "tripled", "by a kernel of the driver API");

  double sum = 0;
  CHECK_OK(LendCopy(home, values.view(), &sum));
  CHECK(sum == 3.0 * 999 * 1000 / 2);
  PrintRow("the host's numbers", "summed", "by the library: the same address");
  CHECK_OK(values.Release());
  PrintStack(house, "after, and freed");
  return absl::OkStatus();
}

absl::Status OwnContext(const House& house) {
  PrintScene("A library that does not choose a device works in the program's context A");
  CUGUEST_RETURN_IF_ERROR(ExchangePointers(house, house.a));
  CHECK(!IsActive(house.device));
  return absl::OkStatus();
}

// The primary ends, which the library had created, and the program's stack is built anew.
void Repair(const House& house, CUcontext x, CUcontext p) {
  house.stack.Set({p});
  CHECK(library::Shutdown() == cudaSuccess);
  house.stack.Set({x, house.a.get()});
  CHECK(!IsActive(house.device));
}

void Bare(const House& house) {
  PrintScene("The library calls cudaSetDevice, without a scope");
  PrintStack(house, "before");
  CHECK(library::Initialize() == cudaSuccess);
  PrintStack(house, "after");
  CHECK(house.cast.Draw() == "[X] [P]<");
  CHECK(IsActive(house.device));
  support::PrintParagraph("All of the host's next calls work in P.");
}

// A program that works in A copies what the library allocated in P.
absl::Status CopyHome(const House& house, DeviceBuffer<float> foreign) {
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> own,
                           DeviceBuffer<float>::Allocate(house.a, foreign.size()));
  CUGUEST_RETURN_IF_ERROR(cuguest::Copy(own.view(), foreign.view()));
  CHECK(Holds(own.view(), Ramp(1)));
  return foreign.Release();
}

// What the library allocated around a Reassert().
struct Ramps {
  cudaError_t before_code = cudaErrorUnknown;
  float* before = nullptr;
  cudaError_t after_code = cudaErrorUnknown;
  float* after = nullptr;
};

absl::Status CallInAScope(const House& house, Ramps* ramps) {
  CalleeScope scope(house.a);
  CUGUEST_RETURN_IF_ERROR(scope);
  PrintRow("in the scope", house.cast.Draw(), "pushed for the library");
  CHECK(library::Initialize() == cudaSuccess);
  PrintStack(house, "after cudaSetDevice");
  CHECK(house.cast.Draw() == "[X] [A] [P]<");
  ramps->before_code = library::MakeRamp(&ramps->before);
  CHECK(scope.Reassert() == CUDA_SUCCESS);
  PrintRow("after scope.Reassert()", house.cast.Draw(), "the library's next call works in A");
  ramps->after_code = library::MakeRamp(&ramps->after);
  CHECK(library::Initialize() == cudaSuccess);  // the scope's end undoes this one
  return absl::OkStatus();
}

absl::Status InAScope(const House& house, CUcontext p) {
  PrintScene("The same inside a CalleeScope");
  PrintStack(house, "before");
  Ramps ramps;
  CUGUEST_RETURN_IF_ERROR(CallInAScope(house, &ramps));
  PrintRow("after", house.cast.Draw(), g_reported);
  CHECK(house.cast.Draw() == "[X] [A]<");
  CHECK(!g_reported.empty());

  absl::StatusOr<DeviceBuffer<float>> in_p = Take(ramps.before_code, ramps.before);
  CUGUEST_RETURN_IF_ERROR(in_p);
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> in_a, Take(ramps.after_code, ramps.after));
  CHECK(in_p->context().get() == p && in_a.context() == house.a);
  support::PrintParagraph(
      "What it allocated before Reassert() is P's memory, and after it A's. Either is freed in its "
      "own context. P stays active: the library has a reference.");
  CHECK_OK(in_a.Release());
  return CopyHome(house, *std::move(in_p));
}

// cudaSetDevice does not change the stack of a program that works in the primary context.
absl::Status InThePrimary(const House& house) {
  PrintScene("The program works in P itself");
  CUGUEST_ASSIGN_OR_RETURN(const PrimaryContext primary, PrimaryContext::Retain(house.device));
  house.stack.Set({primary.get()});
  {
    const UndisturbedScope undisturbed(&support::ReportDisturbance);
    g_reported.clear();
    const CalleeScope scope(primary.context());
    CUGUEST_RETURN_IF_ERROR(scope);
    CHECK(library::Initialize() == cudaSuccess);
  }
  CHECK(g_reported.empty());
  return ExchangePointers(house, primary.context());
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext x, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const CUcontext p, support::HandleOfPrimary(device));
  Cast cast;
  cast.Name("X", x.get());
  cast.Name("A", a.get());
  cast.Name("P", p);
  HostStack stack(driver, {x.get(), a.get()});
  const House house{driver, device, ContextRef::Borrow(a.get()), cast, stack};

  const cuguest::IncidentListener listener(&TakeReport);
  CUGUEST_RETURN_IF_ERROR(OwnContext(house));
  Bare(house);
  Repair(house, x.get(), p);
  CUGUEST_RETURN_IF_ERROR(InAScope(house, p));
  CUGUEST_RETURN_IF_ERROR(InThePrimary(house));
  Repair(house, x.get(), p);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "How does a driver-API program use a library that is written with the CUDA runtime?",
      &host::Demonstrate);
}
