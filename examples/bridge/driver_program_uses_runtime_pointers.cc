// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a driver-API program use a library that is written with the CUDA runtime?
//
// cuFFT, a neural network, a colleague's solver: it calls cudaMalloc and returns pointers, and
// works in whatever context is current. The pointers are CUdeviceptrs, which every driver call
// takes and either API frees. If the library calls cudaSetDevice, it creates the device's primary
// context P and replaces the program's current context by it. A CalleeScope restores the stack.
//
//   2. It calls cudaSetDevice, without a scope
//
//      after                         [X] [P]<        P is active
//
//   3. The same inside a CalleeScope
//
//      after scope.Reassert()        [X] [A] [A]<    its next call works in A
//      after                         [X] [A]<        2 incidents

#include <cuda_runtime_api.h>

#include <string>

#include "cuguest/copy.h"
#include "cuguest/device_buffer.h"
#include "cuguest/incident.h"
#include "cuguest/runtime/callee_scope.h"
#include "cuguest/runtime/error.h"
#include "cuguest/status.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/house.h"

// The library: runtime API only, without cuguest.
namespace library {

constexpr std::size_t kCount = 1000;

// As many libraries do first.
cudaError_t Initialize() { return cudaSetDevice(0); }

// A copy of `values`, in device memory, for cudaFree.
cudaError_t MakeCopy(const float* values, float** copy) {
  const cudaError_t code = cudaMalloc(reinterpret_cast<void**>(copy), kCount * sizeof(float));
  if (code != cudaSuccess) return code;
  return cudaMemcpy(*copy, values, kCount * sizeof(float), cudaMemcpyDefault);
}

}  // namespace library

// A program of the driver API, which works in `home`.
namespace program {

using cuguest::ContextRef;
using Buffer = cuguest::DeviceBuffer<float>;

// Lends the program's memory, of cuMemAlloc, to the library, and takes ownership of the library's
// copy of it, of cudaMalloc: it is freed in its own context.
absl::StatusOr<Buffer> Copy(const ContextRef& home, const Buffer& own) {
  float* copy = nullptr;
  const cuguest::runtime::CalleeScope scope(home);
  CUGUEST_RETURN_IF_ERROR(scope);
  CUGUEST_RETURN_IF_ERROR(
      cuguest::runtime::ToStatus(library::MakeCopy(own.data(), &copy), "copy by the library"));
  return Buffer::Adopt(copy, library::kCount);
}

}  // namespace program

namespace host {

using program::Buffer;
using support::House;
using support::Ramp;

absl::Status InItsContext(const House& house, const Buffer& own) {
  support::PrintScene("A library that does not choose a device works in the program's context A");
  const cuguest::testing::UndisturbedScope undisturbed(&support::ReportDisturbance);
  house.Show("before");
  CUGUEST_ASSIGN_OR_RETURN(Buffer copy, program::Copy(own.context(), own));
  house.Show("after");
  CHECK(copy.context() == own.context());
  CHECK(support::Holds(copy.view(), Ramp(1)));
  return copy.Release();
}

void WithoutAScope(const House& house, support::HostStack& stack) {
  support::PrintScene("It calls cudaSetDevice, without a scope");
  house.Show("before");
  CHECK(library::Initialize() == cudaSuccess);
  house.Show("after");
  CHECK(house.cast.Draw() == "[X] [P]<" && support::IsActive(house.device));
  CHECK(cudaDeviceReset() == cudaSuccess);
  stack.Set({house.x.get(), house.a.get()});
}

// The library's copies before and after a Reassert() are in P and in A.
absl::Status CallInAScope(const House& house, const Buffer& own, float** in_p, float** in_a) {
  const auto ramp = Ramp(1);
  cuguest::runtime::CalleeScope scope(own.context());
  CUGUEST_RETURN_IF_ERROR(scope);
  CHECK(library::Initialize() == cudaSuccess);
  house.Show("after cudaSetDevice");
  CHECK(house.cast.Draw() == "[X] [A] [P]<");
  CHECK(library::MakeCopy(ramp.data(), in_p) == cudaSuccess);
  CHECK(scope.Reassert() == CUDA_SUCCESS);
  house.Show("after scope.Reassert()", "its next call works in A");
  CHECK(library::MakeCopy(ramp.data(), in_a) == cudaSuccess);
  CHECK(library::Initialize() == cudaSuccess);  // the scope's end undoes this one
  return absl::OkStatus();
}

absl::Status InAScope(const House& house, const Buffer& own) {
  support::PrintScene("The same inside a CalleeScope");
  float* in_p = nullptr;
  float* in_a = nullptr;
  CUGUEST_RETURN_IF_ERROR(CallInAScope(house, own, &in_p, &in_a));
  const auto incidents = cuguest::IncidentCount(cuguest::Incident::Kind::kReplaced);
  house.Show("after", std::to_string(incidents) + " incidents");
  CHECK(house.cast.Draw() == "[X] [A]<" && incidents == 2);
  CUGUEST_ASSIGN_OR_RETURN(Buffer foreign, Buffer::Adopt(in_p, library::kCount));
  CUGUEST_ASSIGN_OR_RETURN(Buffer home, Buffer::Adopt(in_a, library::kCount));
  CHECK(foreign.context().get() == house.p && home.context() == own.context());
  CUGUEST_RETURN_IF_ERROR(cuguest::Zero(home.view()));
  CUGUEST_RETURN_IF_ERROR(cuguest::Copy(home.view(), foreign.view()));
  CHECK(support::Holds(home.view(), Ramp(1)));
  CUGUEST_RETURN_IF_ERROR(foreign.Release());
  return home.Release();
}

absl::Status Demonstrate(const cuguest::Driver& driver, cuguest::Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const House house, House::Create(driver, device));
  support::HostStack stack(driver, {house.x.get(), house.a.get()});
  const auto a = cuguest::ContextRef::Borrow(house.a.get());
  CUGUEST_ASSIGN_OR_RETURN(const Buffer own, Buffer::CopyOf(a, Ramp(1)));
  CUGUEST_RETURN_IF_ERROR(InItsContext(house, own));
  CHECK(!support::IsActive(device));
  WithoutAScope(house, stack);
  CUGUEST_RETURN_IF_ERROR(InAScope(house, own));
  stack.Set({house.p});
  CHECK(cudaDeviceReset() == cudaSuccess);
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "How does a driver-API program use a library that is written with the CUDA runtime?",
      &host::Demonstrate);
}
