// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In which context does a library work when it is handed a stream or a pointer?
//
// Not in the current one, which need not be the context of the stream or of the memory; and not in
// the primary one, which may be inactive. A stream and an allocation each belong to a context, and
// AcquireFromStream and AcquireFromPointer ask the driver for it. Where there is nothing to ask
// (stream 0, pool memory) the current context is used, if it is on the right device.
//
// The host has a context A, in which it makes the stream and the memory, and a context X on the
// same device. The library doubles numbers.
//
//   1. A created stream belongs to a context
//
//      given, the host's stack       works in        named by
//      a stream of A, [X]<           [X] [A]<        the stream
//      a stream of A, (empty)        [A]<            the stream
//   ...
//   5. Memory without a context
//
//      plain host memory             refused         CUDA_ERROR_INVALID_VALUE
//        ... pointer 0x55de790d7000, which is not memory that CUDA knows ...

#include <cuda.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/copy.h"
#include "cuguest/device_buffer.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"

// The library. It links no CUDA library, and has no context of its own.
namespace guest {

using cuguest::Acquired;
using cuguest::AcquiredGuard;
using cuguest::DeviceBuffer;
using cuguest::Kernel;
using cuguest::Module;
using cuguest::Stream;
using cuguest::StreamRef;

// For the pictures: called while the library is in the context.
using Trace = std::function<void(const Acquired& context)>;

// values = 1 * values + values, in the order of `stream`; waits for it.
absl::Status RunDouble(const StreamRef& stream, CUdeviceptr values, std::size_t size) {
  CUGUEST_ASSIGN_OR_RETURN(
      const Module module,
      Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size}, "saxpy"));
  CUGUEST_ASSIGN_OR_RETURN(const Kernel saxpy, module.GetKernel("saxpy"));
  absl::Status status = cuguest::LaunchForElements(saxpy, size, stream, static_cast<unsigned>(size),
                                                   1.0F, values, values);
  if (status.ok()) status = stream.Synchronize();
  return status;
}

// Doubles what `values` points to, on `stream`.
absl::Status DoubleOn(CUstream stream, CUdeviceptr values, std::size_t size, const Trace& trace) {
  const AcquiredGuard guard(cuguest::AcquireFromStream(stream));
  CUGUEST_RETURN_IF_ERROR(guard);
  if (trace) trace(guard.acquired());
  return RunDouble(StreamRef::Borrow(stream, guard.context()), values, size);
}

// Doubles what `values` points to: memory of any kind that a kernel can use.
absl::Status Double(CUdeviceptr values, std::size_t size, const Trace& trace) {
  const AcquiredGuard guard(cuguest::AcquireFromPointer(values));
  CUGUEST_RETURN_IF_ERROR(guard);
  if (trace) trace(guard.acquired());
  CUGUEST_ASSIGN_OR_RETURN(const Stream stream, Stream::Create(guard.context()));
  return RunDouble(stream.ref(), values, size);
}

// Doubles the host's numbers, on a device that may have no context yet.
absl::StatusOr<std::vector<float>> Doubled(cuguest::Device device, const std::vector<float>& values,
                                           cuguest::IfInactive if_inactive, const Trace& trace) {
  const AcquiredGuard guard(cuguest::AcquireOn(device, if_inactive));
  CUGUEST_RETURN_IF_ERROR(guard);
  if (trace) trace(guard.acquired());
  CUGUEST_ASSIGN_OR_RETURN(const Stream stream, Stream::Create(guard.context()));
  CUGUEST_ASSIGN_OR_RETURN(const DeviceBuffer<float> buffer,
                           DeviceBuffer<float>::CopyOf(guard.context(), values));
  const absl::Status status = RunDouble(stream.ref(), buffer.get(), buffer.size());
  if (!status.ok()) return status;
  return cuguest::Download(buffer.view());
}

}  // namespace guest

// A program with two contexts, which calls the library with whatever it has current.
namespace host {

using cuguest::Acquired;
using cuguest::Device;
using cuguest::Driver;
using cuguest::IfInactive;
using cuguest::testing::StackProbe;
using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;
using Source = Acquired::Source;
using Stack = std::vector<CUcontext>;

constexpr std::size_t kSize = 1000;  // numbers, as many as in a Ramp
constexpr std::size_t kBytes = kSize * sizeof(float);

struct House {
  const Driver& driver;
  Device device;
  CUcontext x;
  CUcontext a;
  const Cast& cast;
  HostStack& stack;
};

// Memory that the host allocated while A was current.
struct Memory {
  CUdeviceptr address;
  bool is_on_host = false;
};

void Fill(const House& house, const Memory& memory) {
  house.stack.Set({house.a});
  const std::vector<float> values = Ramp(1);
  if (memory.is_on_host) {
    std::copy(values.begin(), values.end(), reinterpret_cast<float*>(memory.address));
  } else {
    CHECK(house.driver.MemcpyHtoD(memory.address, values.data(), kBytes) == CUDA_SUCCESS);
  }
}

std::vector<float> Read(const House& house, const Memory& memory) {
  house.stack.Set({house.a});
  std::vector<float> values(kSize);
  if (memory.is_on_host) {
    const auto* begin = reinterpret_cast<const float*>(memory.address);
    values.assign(begin, begin + kSize);
  } else {
    CHECK(house.driver.MemcpyDtoH(values.data(), memory.address, kBytes) == CUDA_SUCCESS);
  }
  return values;
}

// What the host hands to the library, and which context must be named by what.
struct Case {
  std::string given;
  Stack stack;
  Source source;
  CUcontext context;
  std::size_t first = 0;  // of the numbers to double
};
using Call = std::function<absl::Status(CUdeviceptr values, std::size_t size, const guest::Trace&)>;

void PrintHead() { PrintRow("given, the host's stack", "works in", "named by"); }

void CallAndCheck(const House& house, const Memory& memory, const Case& is, const Call& call) {
  Fill(house, memory);
  house.stack.Set(is.stack);
  {
    const UndisturbedScope undisturbed(&support::ReportDisturbance);
    const std::string given = is.given + ", " + house.cast.Draw();
    CHECK_OK(call(memory.address + is.first * sizeof(float), kSize - is.first,
                  [&](const Acquired& context) {
                    PrintRow(given, house.cast.Draw(), Name(context.source()));
                    CHECK(context.source() == is.source);
                    CHECK(context.get() == is.context);
                  }));
  }
  std::vector<float> expected = Ramp(1);
  for (std::size_t i = is.first; i < kSize; ++i) expected[i] *= 2.0F;
  CHECK(Read(house, memory) == expected);
}

void PrintRefusal(const std::string& given, const absl::Status& status) {
  const auto code = cuguest::CodeOf(status);
  PrintRow(given, status.ok() ? "done" : "refused", code ? cuguest::ErrorName(*code) : "");
  support::PrintParagraph(std::string(status.message()));
}

bool Says(const absl::Status& status, const char* text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

Call OnStream(CUstream stream) {
  return [stream](CUdeviceptr values, std::size_t size, const guest::Trace& trace) {
    return guest::DoubleOn(stream, values, size, trace);
  };
}

void CreatedStream(const House& house, const Memory& memory) {
  PrintScene("A created stream belongs to a context");
  house.stack.Set({house.a});
  CUstream stream = nullptr;
  if (!CHECK(house.driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS)) return;
  PrintHead();
  for (const Stack& current : {Stack{house.a}, Stack{house.x}, Stack{house.x, house.a}, Stack{}}) {
    CallAndCheck(house, memory, {"a stream of A", current, Source::kStream, house.a},
                 OnStream(stream));
  }
  house.stack.Set({house.a});
  CHECK(house.driver.StreamDestroy(stream) == CUDA_SUCCESS);
}

void SpecialStreams(const House& house, const Memory& memory) {
  PrintScene("The special streams belong to none: they use the current context");
  const std::pair<const char*, CUstream> streams[] = {{"stream 0", nullptr},
                                                      {"the legacy", CU_STREAM_LEGACY},
                                                      {"per thread", CU_STREAM_PER_THREAD}};
  PrintHead();
  for (const auto& [given, stream] : streams) {
    CallAndCheck(house, memory, {given, {house.x, house.a}, Source::kCurrent, house.a},
                 OnStream(stream));
  }
  house.stack.Set({});
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  for (const auto& [given, stream] : streams) {
    const absl::Status status = guest::DoubleOn(stream, memory.address, kSize, nullptr);
    PrintRefusal(std::string(given) + ", " + house.cast.Draw(), status);
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK(Says(status, "means the current one"));
  }
}

// Memory of A of the `kind`, by a pointer to its beginning and by one into it.
void CallWithPointers(const House& house, const char* kind, const Memory& memory) {
  for (const Stack& current : {Stack{house.x}, Stack{}}) {
    CallAndCheck(house, memory, {kind, current, Source::kPointer, house.a}, &guest::Double);
  }
  CallAndCheck(house, memory,
               {std::string(kind) + " + 400", {house.x}, Source::kPointer, house.a, 100},
               &guest::Double);
}

void Pointers(const House& house, const Memory& device) {
  PrintScene("Memory belongs to the context that it was allocated in");
  house.stack.Set({house.a});
  CUdeviceptr managed = 0;
  const CUresult made = DRIVER(cuMemAllocManaged)(&managed, kBytes, CU_MEM_ATTACH_GLOBAL);
  void* pinned = nullptr;
  CHECK(DRIVER(cuMemAllocHost)(&pinned, kBytes) == CUDA_SUCCESS);
  PrintHead();
  CallWithPointers(house, "device", device);
  if (CHECK(made == CUDA_SUCCESS)) CallWithPointers(house, "managed", {managed, true});
  // The same address on the host and on the device.
  CallWithPointers(house, "pinned", {reinterpret_cast<CUdeviceptr>(pinned), true});
  house.stack.Set({house.a});
  CHECK(house.driver.MemFree(managed) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemFreeHost)(pinned) == CUDA_SUCCESS);
}

// Memory of a device: the current context is used, if it is on that device.
void CallWithDeviceMemory(const House& house, const char* kind, const Memory& memory) {
  CallAndCheck(house, memory, {kind, {house.a, house.x}, Source::kCurrent, house.x},
               &guest::Double);
  house.stack.Set({});
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const absl::Status status = guest::Double(memory.address, kSize, nullptr);
  PrintRefusal(std::string(kind) + ", " + house.cast.Draw(), status);
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(Says(status, "that no context owns"));
}

void PoolMemory(const House& house) {
  const auto allocate = DRIVER(cuMemAllocAsync);
  const auto free = DRIVER(cuMemFreeAsync);
  house.stack.Set({house.a});
  CUdeviceptr pool = 0;
  const CUresult code =
      allocate == nullptr ? CUDA_ERROR_NOT_SUPPORTED : allocate(&pool, kBytes, /*stream=*/nullptr);
  if (code == CUDA_ERROR_NOT_SUPPORTED) {
    PrintRow("pool memory", "skipped", "this driver or device has none");
    return;
  }
  if (!CHECK(code == CUDA_SUCCESS)) return;
  CHECK(house.driver.StreamSynchronize(nullptr) == CUDA_SUCCESS);
  CallWithDeviceMemory(house, "pool", {pool});
  house.stack.Set({house.a});
  CHECK(free(pool, nullptr) == CUDA_SUCCESS);
  CHECK(house.driver.StreamSynchronize(nullptr) == CUDA_SUCCESS);
}

// Virtual memory: a range of addresses with physical memory mapped to it.
void VirtualMemory(const House& house) {
  CUmemAllocationProp where = {};
  where.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  where.location = {CU_MEM_LOCATION_TYPE_DEVICE, house.device.get()};
  const CUmemAccessDesc access = {where.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  std::size_t size = 0;  // the minimum, which is more than kBytes
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle physical = 0;
  house.stack.Set({house.a});  // the memory is not A's all the same
  const auto get_granularity = DRIVER(cuMemGetAllocationGranularity);
  const CUresult code = get_granularity == nullptr
                            ? CUDA_ERROR_NOT_SUPPORTED
                            : get_granularity(&size, &where, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (code == CUDA_ERROR_NOT_SUPPORTED) {
    PrintRow("virtual memory", "skipped", "this driver or device has none");
    return;
  }
  CHECK(code == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemAddressReserve)(&address, size, 0, 0, 0) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemCreate)(&physical, size, &where, 0) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemMap)(address, size, 0, physical, 0) == CUDA_SUCCESS);
  if (CHECK(DRIVER(cuMemSetAccess)(address, size, &access, 1) == CUDA_SUCCESS)) {
    CallWithDeviceMemory(house, "virtual", {address});
  }
  house.stack.Set({house.a});
  CHECK(DRIVER(cuMemUnmap)(address, size) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemRelease)(physical) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemAddressFree)(address, size) == CUDA_SUCCESS);
}

void DeviceMemory(const House& house) {
  PrintScene("Memory that belongs to a device and to no context");
  PrintHead();
  PoolMemory(house);
  VirtualMemory(house);
}

void NoContextAtAll(const House& house) {
  PrintScene("Memory without a context");
  house.stack.Set({house.a});
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  std::vector<float> plain = Ramp(1);
  CUdeviceptr freed = 0;
  CHECK(house.driver.MemAlloc(&freed, kBytes) == CUDA_SUCCESS);
  CHECK(house.driver.MemFree(freed) == CUDA_SUCCESS);
  const std::pair<const char*, CUdeviceptr> pointers[] = {
      {"plain host memory", reinterpret_cast<CUdeviceptr>(plain.data())},
      {"freed device memory", freed},
      {"null", 0},
  };
  for (const auto& [given, pointer] : pointers) {
    const absl::Status status = guest::Double(pointer, kSize, nullptr);
    PrintRefusal(given, status);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(Says(status, "not memory that CUDA knows"));
  }
  CHECK(plain == Ramp(1));
}

void WrongDevice(const House& house) {
  PrintScene("The current context is on another device");
  const absl::StatusOr<Device> second = DeviceAt(cuguest::Device::Ordinal{1});
  if (!second.ok()) {
    PrintRow("", "skipped", "there is only one device");
    return;
  }
  house.stack.Set({house.a});
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  for (const bool current_only : {true, false}) {
    const absl::Status status = current_only ? ToStatus(cuguest::AcquireCurrent(*second))
                                             : ToStatus(cuguest::AcquireOn(*second));
    PrintRefusal(current_only ? "AcquireCurrent(device 1)" : "AcquireOn(device 1)", status);
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK(Says(status, "device 1") && Says(status, "is on device 0"));
  }
}

void NothingWasCreated() {
  PrintScene("After all these calls");
  const StackProbe probe = StackProbe::Take();
  CHECK(!probe.primaries().empty());
  for (std::size_t i = 0; i < probe.primaries().size(); ++i) {
    const bool active = probe.primaries()[i].active;
    PrintRow("primary of device " + std::to_string(i), active ? "active" : "inactive",
             active ? "CREATED" : "not created");
    CHECK(!active);
  }
}

void CreatingThePrimary(const House& house) {
  PrintScene("AcquireOn(device, IfInactive::kCreate) creates the primary context");
  house.stack.Set({});
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  const absl::Status refused =
      guest::Doubled(house.device, Ramp(1), IfInactive::kRefuse, nullptr).status();
  PrintRefusal("kRefuse, " + house.cast.Draw(), refused);
  CHECK(refused.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(!support::IsActive(house.device));

  const absl::StatusOr<std::vector<float>> doubled =
      guest::Doubled(house.device, Ramp(1), IfInactive::kCreate, [&](const Acquired& context) {
        Cast cast;
        cast.Name("P", context.get());
        PrintRow("kCreate, (empty)", cast.Draw(), Name(context.source()));
        CHECK(context.source() == Source::kCreated);
        CHECK(support::IsActive(house.device));
      });
  if (CHECK_OK(doubled.status())) CHECK(*doubled == Ramp(2));
  PrintRow("when it returned", house.cast.Draw(), support::Activity(house.device));
  CHECK(!support::IsActive(house.device));
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext x, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  Cast cast;
  cast.Name("X", x.get());
  cast.Name("A", a.get());
  HostStack stack(driver, {a.get()});
  const House house = {driver, device, x.get(), a.get(), cast, stack};

  CUdeviceptr memory = 0;
  const CUresult code = driver.MemAlloc(&memory, kBytes);
  if (code != CUDA_SUCCESS) return cuguest::ToStatus(code, "allocate the host's memory");
  CreatedStream(house, {memory});
  SpecialStreams(house, {memory});
  Pointers(house, {memory});
  DeviceMemory(house);
  NoContextAtAll(house);
  WrongDevice(house);
  NothingWasCreated();
  CreatingThePrimary(house);
  stack.Set({a.get()});
  return cuguest::ToStatus(driver.MemFree(memory), "free the host's memory");
}

}  // namespace host

int main() {
  return support::RunExample(
      "In which context does a library work when it is handed a stream or a pointer?",
      &host::Demonstrate);
}
