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

#include "cuguest/incident.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/runtime/callee_scope.h"
#include "cuguest/runtime/error.h"
#include "cuguest/status.h"
#include "examples/support/stage.h"

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

// A program of the driver API.
namespace program {

using Buffer = cuguest::DeviceBuffer<float>;

// Lends the program's memory, of cuMemAlloc, to the library, and takes ownership of the library's
// copy of it, of cudaMalloc: it is freed in its own context.
absl::StatusOr<Buffer> Copy(const Buffer& own) {
  float* copy = nullptr;
  const cuguest::runtime::CalleeScope scope(own);
  CUGUEST_RETURN_IF_ERROR(scope);
  CUGUEST_RETURN_IF_ERROR(
      cuguest::runtime::ToStatus(library::MakeCopy(own.data(), &copy), "copy by the library"));
  return Buffer::Adopt(copy, library::kCount);
}

}  // namespace program

namespace host {

using program::Buffer;
using support::Has;
using support::Ramp;
using support::Stage;

absl::Status InItsContext(const Stage& stage, const Buffer& own) {
  support::PrintScene("A library that does not choose a device works in the program's context A");
  const support::Undisturbed undisturbed;
  CUGUEST_ASSIGN_OR_RETURN(Buffer copy, program::Copy(own));
  CHECK(stage.Shows("after", "[X] [A]<", "P is inactive"));
  CHECK(copy.context() == own.context());
  CHECK(Has(cuguest::Download(copy.view()), Ramp(1)));
  return copy.Release();
}

void WithoutAScope(const Stage& stage) {
  support::PrintScene("It calls cudaSetDevice, without a scope");
  CHECK(stage.Shows("before", "[X] [A]<", "P is inactive"));
  SUCCEEDS(library::Initialize());
  CHECK(stage.Shows("after", "[X] [P]<", "P is active"));
  SUCCEEDS(cudaDeviceReset());
  stage.Set({"X", "A"});
}

// The library's copies before and after a Reassert() are in P and in A.
absl::Status CallInAScope(const Stage& stage, const Buffer& own, float** in_p, float** in_a) {
  const auto ramp = Ramp(1);
  cuguest::runtime::CalleeScope scope(own);
  CUGUEST_RETURN_IF_ERROR(scope);
  SUCCEEDS(library::Initialize());
  CHECK(stage.Shows("after cudaSetDevice", "[X] [A] [P]<", "P is active"));
  SUCCEEDS(library::MakeCopy(ramp.data(), in_p));
  SUCCEEDS(scope.Reassert());
  CHECK(stage.Shows("after scope.Reassert()", "[X] [A] [A]<", "its next call works in A"));
  SUCCEEDS(library::MakeCopy(ramp.data(), in_a));
  SUCCEEDS(library::Initialize());  // the scope's end undoes this one
  return absl::OkStatus();
}

absl::Status InAScope(const Stage& stage, const Buffer& own) {
  support::PrintScene("The same inside a CalleeScope");
  float* in_p = nullptr;
  float* in_a = nullptr;
  CUGUEST_RETURN_IF_ERROR(CallInAScope(stage, own, &in_p, &in_a));
  const auto incidents = cuguest::IncidentCount(cuguest::Incident::Kind::kReplaced);
  CHECK(stage.Shows("after", "[X] [A]<", std::to_string(incidents) + " incidents"));
  CHECK(incidents == 2);
  CUGUEST_ASSIGN_OR_RETURN(Buffer foreign, Buffer::Adopt(in_p, library::kCount));
  CUGUEST_ASSIGN_OR_RETURN(Buffer home, Buffer::Adopt(in_a, library::kCount));
  CHECK(foreign.context().get() == stage["P"] && home.context() == own.context());
  CUGUEST_RETURN_IF_ERROR(cuguest::Zero(home.view()));
  CUGUEST_RETURN_IF_ERROR(cuguest::Copy(home.view(), foreign.view()));
  CHECK(Has(cuguest::Download(home.view()), Ramp(1)));
  CUGUEST_RETURN_IF_ERROR(foreign.Release());
  return home.Release();
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  const Stage stage(driver, device, {"X", "A", "P"});
  stage.Set({"X", "A"});
  CUGUEST_ASSIGN_OR_RETURN(const Buffer own,
                           Buffer::CopyOf(cuguest::ContextRef::Current(), Ramp(1)));
  CUGUEST_RETURN_IF_ERROR(InItsContext(stage, own));
  WithoutAScope(stage);
  CUGUEST_RETURN_IF_ERROR(InAScope(stage, own));
  stage.Set({"P"});
  SUCCEEDS(cudaDeviceReset());
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "How does a driver-API program use a library that is written with the CUDA runtime?",
      &host::Demonstrate);
}
