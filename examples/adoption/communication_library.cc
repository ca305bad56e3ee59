// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does a communication library gain that registers foreign memory?
//
// The library registers memory that it is handed, by reading its first byte, and sends from it
// later. It is written with driver calls and with cuguest: docs/adoption/communication_library.md.

#include <vector>

#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/status.h"
#include "examples/support/stage.h"

using cuguest::Driver;
using cuguest::ObjectDriver;
using Wire = std::vector<unsigned char>;

// With driver calls. `cuda.Name` is the driver's cuName.
namespace before {

struct Region {
  CUdeviceptr start;
  std::size_t bytes;
  CUcontext context;
};

CUresult Register(const ObjectDriver& cuda, CUdeviceptr start, std::size_t bytes, Region* region) {
  CUcontext context = nullptr;
  cuda.PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, start);
  if (context == nullptr) {  // pool or virtual memory: of a device, and of no context
    int ordinal = 0;
    cuda.PointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, start);
    cuda.DevicePrimaryCtxRetain(&context, ordinal);  // never released
  }
  *region = {start, bytes, context};
  unsigned char header = 0;
  cuda.CtxSetCurrent(context);
  return cuda.MemcpyDtoH(&header, start, 1);
}

}  // namespace before

// With cuguest.
namespace after {

struct Region {
  CUdeviceptr start;
  std::size_t bytes;
  cuguest::Acquired context;  // keeps a primary context for as long as the memory is registered
};

// One guard for regions of many contexts: one push, and one set for each change.
absl::Status Send(const ObjectDriver& cuda, const std::vector<Region>& regions,
                  std::vector<Wire>* wires) {
  cuguest::ContextGuard guard;
  for (const Region& region : regions) {
    static_cast<void>(guard.MoveTo(region.context));
    CUGUEST_RETURN_IF_ERROR(guard);
    Wire& wire = wires->emplace_back(region.bytes);
    CUGUEST_RETURN_IF_ERROR(cuguest::ToStatus(
        cuda.MemcpyDtoH(wire.data(), region.start, region.bytes), "send a region"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Region> Register(const ObjectDriver& cuda, CUdeviceptr start, std::size_t bytes,
                                cuguest::IfInactive if_inactive = cuguest::IfInactive::kRefuse) {
  Region region = {start, bytes, cuguest::AcquireFromBuffer(start, bytes, if_inactive)};
  CUGUEST_RETURN_IF_ERROR(region.context);
  const cuguest::ContextGuard guard(region.context);
  CUGUEST_RETURN_IF_ERROR(guard);
  unsigned char header = 0;
  CUGUEST_RETURN_IF_ERROR(cuguest::ToStatus(cuda.MemcpyDtoH(&header, start, 1), "read a header"));
  return region;
}

}  // namespace after

// A program with three contexts, which registers its memory.
namespace host {

using Buffer = cuguest::DeviceBuffer<unsigned char>;
constexpr std::size_t kBytes = 256;

absl::Status Demonstrate(const ObjectDriver& driver, cuguest::Device device) {
  support::Stage stage(driver, device, {"A", "B", "C"});
  const auto in_b = cuguest::ContextRef::Borrow(stage["B"]);
  const auto in_c = cuguest::ContextRef::Borrow(stage["C"]);
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(in_b));
  CUGUEST_ASSIGN_OR_RETURN(const Buffer of_b, Buffer::CopyOf(in_b, Wire(kBytes, 2)));
  CUGUEST_ASSIGN_OR_RETURN(const Buffer of_c, Buffer::CopyOf(in_c, Wire(kBytes, 3)));
  CUGUEST_ASSIGN_OR_RETURN(const Buffer of_pool, Buffer::AllocateAsync(stream, kBytes));
  CUGUEST_RETURN_IF_ERROR(stream.ref().Synchronize());

  support::PrintScene("With driver calls");
  before::Region region = {};
  stage.Set({"A"});
  SUCCEEDS(before::Register(driver, of_b.get(), 2 * kBytes, &region));
  CHECK(stage.Shows("twice the bytes of B", "[B]<", "WRONG CONTEXT"));
  stage.Set({});
  SUCCEEDS(before::Register(driver, of_pool.get(), kBytes, &region));
  stage.Name("P", region.context);
  CHECK(stage.Shows("pool memory", "[P]<", "P is active, for good"));
  stage.Set({});
  SUCCEEDS(driver.DevicePrimaryCtxRelease(device.get()));  // tidies up
  support::PrintRow("C is destroyed", "(not run)", "sets a destroyed handle: undefined");

  support::PrintScene("With cuguest");
  stage.Set({"A"});
  std::vector<after::Region> regions(2);
  {
    const support::Undisturbed undisturbed;
    CHECK(support::IsRefused("twice the bytes of B",
                             after::Register(driver, of_b.get(), 2 * kBytes).status(),
                             absl::StatusCode::kInvalidArgument));
    CUGUEST_ASSIGN_OR_RETURN(regions[0], after::Register(driver, of_b.get(), kBytes));
    CUGUEST_ASSIGN_OR_RETURN(regions[1], after::Register(driver, of_c.get(), kBytes));
    CHECK(stage.Shows("memory of B and of C", "[A]<", "as it was"));
  }
  stage.Set({});
  const support::Undisturbed undisturbed;
  std::vector<Wire> wires;
  CHECK_OK(after::Send(driver, regions, &wires));
  CHECK((wires == std::vector<Wire>{Wire(kBytes, 2), Wire(kBytes, 3)}));
  CHECK(stage.Shows("both are sent", "(empty)", "as it was"));

  CHECK(support::IsRefused("pool memory", after::Register(driver, of_pool.get(), kBytes).status(),
                           absl::StatusCode::kFailedPrecondition));
  {
    const auto held = after::Register(driver, of_pool.get(), kBytes, cuguest::IfInactive::kCreate);
    CHECK(held.ok() && support::IsActive(device));
  }
  CHECK(!support::IsActive(device));

  stage.Destroy("C");
  CHECK(support::IsRefused("C is destroyed", after::Send(driver, regions, &wires),
                           absl::StatusCode::kFailedPrecondition,
                           "CUDA_ERROR_CONTEXT_IS_DESTROYED"));
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "What does a communication library gain that registers foreign memory?", &host::Demonstrate);
}
