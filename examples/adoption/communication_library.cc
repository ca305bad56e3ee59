// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does a communication library gain that registers foreign memory?
//
// The library registers memory that it is handed, and a thread of its own sends from it later. The
// host's contexts are A and B; what registering needs a context for is here a copy of the first
// bytes. The library is written twice: with driver calls, as such libraries do it, and with
// cuguest. docs/adoption/communication_library.md walks through both.
//
//   1. Memory of B is registered by a thread that works in A
//
//      before the call               [A]<
//      with driver calls             [B]<           WRONG CONTEXT
//      with cuguest                  [A]<           as it was
//   ...
//   5. The memory's context is destroyed; then the library's thread sends
//
//      with driver calls             (not run)      sets a destroyed handle, which is undefined
//      with cuguest                  refused        FAILED_PRECONDITION

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

using cuguest::Device;
using cuguest::Driver;
using Wire = std::vector<unsigned char>;

constexpr std::size_t kBytes = 256;

// With driver calls. `cuda.Name` is the driver's cuName.
namespace before {

struct Region {
  CUdeviceptr start;
  std::size_t bytes;
  CUcontext context;
};

CUresult Send(const Driver& cuda, const Region& region, Wire* wire) {
  CUresult code = cuda.CtxSetCurrent(region.context);
  if (code != CUDA_SUCCESS) return code;
  wire->resize(region.bytes);
  return cuda.MemcpyDtoH(wire->data(), region.start, region.bytes);
}

CUresult Register(const Driver& cuda, CUdeviceptr start, std::size_t bytes, Region* region) {
  CUcontext context = nullptr;
  CUresult code = cuda.PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, start);
  if (code != CUDA_SUCCESS) return code;
  if (context == nullptr) {  // pool or virtual memory: of a device, and of no context
    int ordinal = 0;
    code = cuda.PointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, start);
    if (code != CUDA_SUCCESS) return code;
    code = cuda.DevicePrimaryCtxRetain(&context, ordinal);  // never released
    if (code != CUDA_SUCCESS) return code;
  }
  *region = {start, bytes, context};
  Wire header;
  return Send(cuda, {start, 1, context}, &header);
}

}  // namespace before

// With cuguest.
namespace after {

using cuguest::Acquired;
using cuguest::ContextGuard;
using cuguest::IfInactive;

struct Region {
  CUdeviceptr start;
  std::size_t bytes;
  Acquired context;  // keeps a primary context for as long as the memory is registered
};

absl::Status Send(const Driver& cuda, const Region& region, std::size_t bytes, Wire* wire) {
  const ContextGuard guard(region.context.context());
  CUGUEST_RETURN_IF_ERROR(guard);
  wire->resize(bytes);
  return cuguest::ToStatus(cuda.MemcpyDtoH(wire->data(), region.start, bytes), "send a region");
}

// One guard for regions of many contexts: one push, and one set for each change.
absl::Status SendAll(const Driver& cuda, const std::vector<Region>& regions,
                     std::vector<Wire>* wires) {
  ContextGuard guard;
  for (const Region& region : regions) {
    const CUresult moved = guard.MoveTo(region.context.context());
    if (moved != CUDA_SUCCESS) return cuguest::ToStatus(guard);
    Wire& wire = wires->emplace_back(region.bytes);
    const CUresult code = cuda.MemcpyDtoH(wire.data(), region.start, region.bytes);
    if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "send a region");
  }
  return absl::OkStatus();
}

absl::StatusOr<Region> Register(const Driver& cuda, CUdeviceptr start, std::size_t bytes,
                                IfInactive if_inactive = IfInactive::kRefuse) {
  Acquired context = cuguest::AcquireFromBuffer(start, bytes, if_inactive);
  CUGUEST_RETURN_IF_ERROR(context);
  Region region = {start, bytes, std::move(context)};
  Wire header;
  CUGUEST_RETURN_IF_ERROR(Send(cuda, region, 1, &header));
  return region;
}

}  // namespace after

// A program with two contexts, which registers its memory.
namespace host {

using cuguest::IfInactive;
using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;

constexpr char kDriverCalls[] = "with driver calls";
constexpr char kCuguest[] = "with cuguest";

struct House {
  const Driver& driver;
  Device device;
  CUcontext a;
  CUcontext b;
  const Cast& cast;
  HostStack& stack;

  // Memory of `context`, filled with `value`.
  [[nodiscard]] CUdeviceptr Allocate(CUcontext context, unsigned char value) const {
    CUdeviceptr memory = 0;
    stack.Set({context});
    CHECK(driver.MemAlloc(&memory, kBytes) == CUDA_SUCCESS);
    CHECK(driver.MemsetD8(memory, value, kBytes) == CUDA_SUCCESS);
    CHECK(driver.CtxSynchronize() == CUDA_SUCCESS);
    return memory;
  }
};

void PrintStack(const char* when, const std::string& stack, const std::string& expected) {
  PrintRow(when, stack, stack == expected ? "as it was" : "WRONG CONTEXT");
}

void PrintRefusal(const absl::Status& status) {
  PrintRow(kCuguest, "refused", absl::StatusCodeToString(status.code()));
  support::PrintParagraph(std::string(status.message()));
}

void MemoryOfAnother(const House& house) {
  PrintScene("Memory of B is registered by a thread that works in A");
  const CUdeviceptr memory = house.Allocate(house.b, 7);
  house.stack.Set({house.a});
  PrintRow("before the call", house.cast.Draw());

  before::Region region = {};
  CHECK(before::Register(house.driver, memory, kBytes, &region) == CUDA_SUCCESS);
  PrintStack(kDriverCalls, house.cast.Draw(), "[A]<");
  CHECK(house.cast.Draw() == "[B]<");

  house.stack.Set({house.a});
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  CHECK_OK(after::Register(house.driver, memory, kBytes).status());
  PrintStack(kCuguest, house.cast.Draw(), "[A]<");
  CHECK(house.cast.Draw() == "[A]<");
}

void MoreThanThereIs(const House& house) {
  PrintScene("Twice as many bytes are registered as were allocated");
  const CUdeviceptr memory = house.Allocate(house.a, 1);
  house.stack.Set({house.a});
  before::Region region = {};
  CHECK(before::Register(house.driver, memory, 2 * kBytes, &region) == CUDA_SUCCESS);
  PrintRow(kDriverCalls, "registered", "and fails, or not, when it sends");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const absl::Status refused = after::Register(house.driver, memory, 2 * kBytes).status();
  PrintRefusal(refused);
  CHECK(refused.code() == absl::StatusCode::kInvalidArgument);
}

void SendOnThread(const House& house) {
  PrintScene("The library's thread sends memory of A, and then memory of B");
  const CUdeviceptr memory[] = {house.Allocate(house.a, 1), house.Allocate(house.b, 2)};
  house.stack.Set({house.a});
  std::vector<after::Region> regions;
  for (const CUdeviceptr start : memory) {
    absl::StatusOr<after::Region> region = after::Register(house.driver, start, kBytes);
    if (CHECK_OK(region.status())) regions.push_back(*std::move(region));
  }
  std::thread([&] {
    const UndisturbedScope undisturbed(&support::ReportDisturbance);
    std::vector<Wire> wires;
    CHECK_OK(after::SendAll(house.driver, regions, &wires));
    CHECK((wires == std::vector<Wire>{Wire(kBytes, 1), Wire(kBytes, 2)}));
    PrintStack("with cuguest, its thread", house.cast.Draw(), "(empty)");
  }).join();
  PrintStack("the host's thread", house.cast.Draw(), "[A]<");
}

// Memory of the device's pool, registered by a thread without a context.
void PoolMemory(const House& house) {
  PrintScene("Pool memory is registered by a thread without a context");
  const auto allocate = DRIVER(cuMemAllocAsync);
  const auto free = DRIVER(cuMemFreeAsync);
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  house.stack.Set({house.a});
  if (allocate == nullptr || free == nullptr) {
    PrintRow("", "skipped", "the driver has no memory pools");
    return;
  }
  CHECK(house.driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  if (allocate(&memory, kBytes, stream) != CUDA_SUCCESS) {
    PrintRow("", "skipped", "the device has no memory pools");
    CHECK(house.driver.StreamDestroy(stream) == CUDA_SUCCESS);
    return;
  }
  CHECK(house.driver.StreamSynchronize(stream) == CUDA_SUCCESS);
  house.stack.Set({});
  PrintRow("before the call", house.cast.Draw(), support::Activity(house.device));
  {
    const UndisturbedScope undisturbed(&support::ReportDisturbance);
    const absl::Status refused = after::Register(house.driver, memory, kBytes).status();
    PrintRefusal(refused);
    CHECK(refused.code() == absl::StatusCode::kFailedPrecondition);
    {
      const absl::StatusOr<after::Region> region =
          after::Register(house.driver, memory, kBytes, IfInactive::kCreate);
      CHECK_OK(region.status());
      PrintRow("with kCreate, registered", house.cast.Draw(), support::Activity(house.device));
      CHECK(support::IsActive(house.device));
    }
    PrintRow("with kCreate, given up", house.cast.Draw(), support::Activity(house.device));
    CHECK(!support::IsActive(house.device));
  }
  before::Region region = {};
  CHECK(before::Register(house.driver, memory, kBytes, &region) == CUDA_SUCCESS);
  Cast cast;
  cast.Name("P", region.context);
  PrintRow(kDriverCalls, cast.Draw(), "P is active, for good");
  CHECK(cast.Draw() == "[P]<");
  CHECK(support::IsActive(house.device));
  house.stack.Set({house.a});
  CHECK(house.driver.DevicePrimaryCtxRelease(house.device.get()) == CUDA_SUCCESS);  // tidies up
  CHECK(free(memory, stream) == CUDA_SUCCESS);
  CHECK(house.driver.StreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(house.driver.StreamDestroy(stream) == CUDA_SUCCESS);
}

absl::Status DestroyedContext(const House& house) {
  PrintScene("The memory's context is destroyed; then the library's thread sends");
  CUGUEST_ASSIGN_OR_RETURN(HostContext c, HostContext::Create(house.driver, house.device));
  const CUdeviceptr memory = house.Allocate(c.get(), 3);
  house.stack.Set({house.a});
  CUGUEST_ASSIGN_OR_RETURN(const after::Region region,
                           after::Register(house.driver, memory, kBytes));
  CHECK(house.driver.CtxDestroy(c.get()) == CUDA_SUCCESS);
  c.Leak();

  PrintRow(kDriverCalls, "(not run)", "sets a destroyed handle, which is undefined");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  std::thread([&] {
    Wire wire;
    const absl::Status refused = after::Send(house.driver, region, kBytes, &wire);
    PrintRefusal(refused);
    CHECK(cuguest::CodeOf(refused) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }).join();
  return absl::OkStatus();
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const HostContext b, HostContext::Create(driver, device));
  Cast cast;
  cast.Name("A", a.get());
  cast.Name("B", b.get());
  HostStack stack(driver, {a.get()});
  const House house = {driver, device, a.get(), b.get(), cast, stack};

  MemoryOfAnother(house);
  MoreThanThereIs(house);
  SendOnThread(house);
  PoolMemory(house);
  return DestroyedContext(house);
}

}  // namespace host

int main() {
  return support::RunExample(
      "What does a communication library gain that registers foreign memory?", &host::Demonstrate);
}
