// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/objects/memory.h"

#include "cuguest/objects/array.h"
#include "test/objects/memory/memories.h"

BOOST_AUTO_TEST_SUITE(describe)

namespace {

using cudasim::Sim;
using cuguest::Array;
using cuguest::ContextRef;
using cuguest::Describe;
using cuguest::Device;
using cuguest::MemoryDescription;
using namespace cuguest_test;

MemoryDescription Of(CUdeviceptr pointer) {
  const absl::StatusOr<MemoryDescription> memory = Describe(pointer);
  BOOST_TEST(memory.ok(), memory.status().ToString());
  return memory.ok() ? *memory : MemoryDescription();
}

void CheckIsUnknown(CUdeviceptr pointer) {
  const MemoryDescription memory = Of(pointer);
  BOOST_TEST((memory.kind == MemoryDescription::Kind::kUnregistered), memory.ToString());
  BOOST_TEST(memory.pointer == pointer);
  BOOST_TEST((memory.context == ContextRef()));
  BOOST_TEST(!memory.device.has_value());
  BOOST_TEST(memory.size == 0u);
  BOOST_TEST(memory.offset() == 0u);
  BOOST_TEST(memory.bytes_left() == 0u);
  BOOST_TEST(memory.device_address == 0u);
  BOOST_TEST(memory.host_address == nullptr);
  BOOST_TEST((memory.access == MemoryDescription::Access::kNone));
}

struct Expected {
  CUdeviceptr base;
  MemoryDescription::Kind kind;
  CUcontext context;
  size_t size = kBytes;
  bool is_on_host = false;
};

void Check(const Expected& expected, size_t offset, int device = 0) {
  const CUdeviceptr pointer = expected.base + offset;
  const MemoryDescription memory = Of(pointer);
  BOOST_TEST_CONTEXT(memory.ToString()) {
    BOOST_TEST((memory.kind == expected.kind));
    BOOST_TEST((memory.context.get() == expected.context));
    if (expected.context != nullptr) BOOST_TEST(memory.context.IsAlive());
    BOOST_TEST((memory.device == Device::Borrow(device)));
    BOOST_TEST(memory.base == expected.base);
    BOOST_TEST(memory.size == expected.size);
    BOOST_TEST(memory.offset() == offset);
    BOOST_TEST(memory.bytes_left() == expected.size - offset);
    BOOST_TEST(memory.device_address == pointer);
    BOOST_TEST(AddressOf(memory.host_address) == (expected.is_on_host ? pointer : 0));
    BOOST_TEST((memory.access == MemoryDescription::Access::kReadWrite));
    BOOST_TEST((memory.pool != nullptr) == (expected.kind == MemoryDescription::Kind::kPool));
  }
}

std::vector<Expected> Expectations(const Memories& all, CUcontext owner) {
  return {{all.device, MemoryDescription::Kind::kDevice, owner},
          {all.managed, MemoryDescription::Kind::kManaged, owner, kBytes, true},
          {all.pinned, MemoryDescription::Kind::kPinnedHost, owner, kBytes, true},
          {all.registered, MemoryDescription::Kind::kPinnedHost, owner, kBytes, true},
          {all.pool, MemoryDescription::Kind::kPool, nullptr},
          {all.virtual_memory, MemoryDescription::Kind::kVirtual, nullptr, kUnit}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_whatever_is_current) {
  const Owner owner;
  const OwnContext other;
  const Memories all(owner);
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{owner.get(), other.get()}}) {
    SetStack(stack);
    const Undisturbed undisturbed;
    for (const Expected& expected : Expectations(all, owner.get())) {
      for (const size_t offset : {size_t{0}, size_t{7}, kBytes - 1}) Check(expected, offset);
    }
  }
  SetStack({});
  BOOST_TEST(!IsActive(0));
}

BOOST_AUTO_TEST_CASE(every_kind_from_another_thread) {
  const Owner owner;
  const Memories all(owner);
  std::thread([&] {
    for (const Expected& expected : Expectations(all, owner.get())) Check(expected, 100);
    BOOST_TEST(GetStack().empty());
  }).join();
}

BOOST_AUTO_TEST_CASE(every_kind_with_a_dead_context_current) {
  const Owner owner;
  const Memories all(owner);
  PushDeadContext();
  for (const Expected& expected : Expectations(all, owner.get())) Check(expected, 3);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(memory_of_the_primary_and_of_a_green_context,
                     *NeedsDriver(12040, "green contexts")) {
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary});
  CUdeviceptr pointer = 0;
  OK(RAW(cuMemAlloc)(&pointer, kBytes));
  Check({pointer, MemoryDescription::Kind::kDevice, primary}, 5);
  OK(RAW(cuMemFree)(pointer));
  CUdevResource resource = {};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  OK(RAW(cuDeviceGetDevResource)(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
  OK(RAW(cuDevResourceGenerateDesc)(&description, &resource, 1));
  OK(RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(RAW(cuCtxFromGreenCtx)(&context, green));
  SetStack({context});
  OK(RAW(cuMemAlloc)(&pointer, kBytes));
  Check({pointer, MemoryDescription::Kind::kDevice, primary}, 5);
  OK(RAW(cuMemFree)(pointer));
  SetStack({});
  OK(RAW(cuGreenCtxDestroy)(green));
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_CASE(any_number_that_is_no_address_of_cudas) {
  const Owner owner;
  const CUdeviceptr pointer = owner.Allocate();
  int local = 0;
  const Undisturbed undisturbed;
  for (const CUdeviceptr unknown :
       {CUdeviceptr{0}, CUdeviceptr{0x1000}, ~CUdeviceptr{0}, AddressOf(&local), pointer - 1,
        pointer + kBytes, CUdeviceptr{0xdead} << 32}) {
    CheckIsUnknown(unknown);
  }
  BOOST_TEST((Describe(nullptr)->kind == MemoryDescription::Kind::kUnregistered));
  BOOST_TEST((Describe(&local)->kind == MemoryDescription::Kind::kUnregistered));
  BOOST_TEST(
      (Describe(reinterpret_cast<void*>(pointer))->kind == MemoryDescription::Kind::kDevice));
}

BOOST_AUTO_TEST_CASE(what_was_freed_is_unknown) {
  const Owner owner;
  std::vector<CUdeviceptr> pointers;
  {
    const Memories all(owner);
    pointers = all.All();
  }
  for (const CUdeviceptr pointer : pointers) CheckIsUnknown(pointer);
}

BOOST_AUTO_TEST_CASE(what_went_with_its_context_is_unknown) {
  std::vector<CUdeviceptr> pointers;
  {
    const Owner owner;
    pointers.push_back(owner.Allocate());
    owner.Enter();
    void* host = nullptr;
    OK(RAW(cuMemHostAlloc)(&host, kBytes, 0));
    pointers.push_back(AddressOf(host));
    SetStack({});
  }
  OwnContext::DestroyIdle();
  for (const bool resets : {false, true}) {
    CUcontext primary = nullptr;
    CUdeviceptr pointer = 0;
    OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
    SetStack({primary});
    OK(RAW(cuMemAlloc)(&pointer, kBytes));
    SetStack({});
    if (resets) OK(RAW(cuDevicePrimaryCtxReset)(0));
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
    pointers.push_back(pointer);
  }
  for (const CUdeviceptr pointer : pointers) CheckIsUnknown(pointer);
}

// A driver (580.159.04) does it, and crashes now and then when another pool is destroyed later.
BOOST_AUTO_TEST_CASE(pool_memory_outlives_its_pool, *OnlySim()) {
  const Owner owner;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  OK(RAW(cuMemPoolCreate)(&pool, &properties));
  CUdeviceptr pointer = 0;
  OK(RAW(cuMemAllocFromPoolAsync)(&pointer, kBytes, pool, owner.stream()));
  OK(RAW(cuStreamSynchronize)(owner.stream()));
  BOOST_TEST((Of(pointer).pool == pool));
  OK(RAW(cuMemPoolDestroy)(pool));
  Check({pointer, MemoryDescription::Kind::kPool, nullptr}, 9);
  OK(RAW(cuMemFree)(pointer));
}

// As of drivers below CUDA 11.3, which know of virtual memory its reservation.
BOOST_AUTO_TEST_CASE(virtual_memory_without_a_known_mapping, *OnlySim()) {
  const Virtual range(2);
  range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  Sim::FailCall("cuPointerGetAttributes", 1, CUDA_ERROR_INVALID_VALUE);
  const MemoryDescription memory = Of(range.At(0) + 4);
  Sim::ClearFaults();
  BOOST_TEST((memory.kind == MemoryDescription::Kind::kVirtual));
  BOOST_TEST(memory.base == 0u);
  BOOST_TEST(memory.size == 0u);
}

static CUmemLocation HostLocation() {
  CUmemLocation location = {};
  location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  return location;
}

BOOST_AUTO_TEST_CASE(virtual_memory_of_the_host) {
  const Owner owner;
  const Virtual range(1);
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = HostLocation();
  CUmemGenericAllocationHandle handle = 0;
  if (RAW(cuMemCreate)(&handle, kUnit, &properties, 0) != CUDA_SUCCESS) {
    BOOST_TEST_MESSAGE("this driver has no such memory");
    return;
  }
  OK(RAW(cuMemMap)(range.At(0), kUnit, 0, handle, 0));
  OK(RAW(cuMemRelease)(handle));
  const CUmemAccessDesc accesses[] = {
      {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
      {HostLocation(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
  for (const bool is_current : {false, true}) {
    if (is_current) owner.Enter();
    const Undisturbed undisturbed;
    OK(RAW(cuMemSetAccess)(range.At(0), kUnit, &accesses[0], 1));
    const MemoryDescription memory = Of(range.At(0) + 64);
    BOOST_TEST((memory.kind == MemoryDescription::Kind::kVirtual));
    BOOST_TEST(memory.is_on_host);
    BOOST_TEST((memory.context == ContextRef()));
    BOOST_TEST(memory.base == range.At(0));
    BOOST_TEST(memory.size == kUnit);
    BOOST_TEST(memory.device_address == range.At(0) + 64);
    BOOST_TEST((memory.access == MemoryDescription::Access::kReadWrite));
    BOOST_TEST(memory.ToString().find("virtual memory of the host") != std::string::npos);
  }
  OK(RAW(cuMemSetAccess)(range.At(0), kUnit, &accesses[1], 1));
  BOOST_TEST(AddressOf(Of(range.At(0) + 64).host_address) == range.At(0) + 64);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(pool_memory_of_the_host, *NeedsHostPools()) {
  const Owner owner;
  const HostPool pool;
  const CUdeviceptr pointer = pool.Allocate(owner);
  {
    const Undisturbed undisturbed;
    const MemoryDescription memory = Of(pointer + 64);
    BOOST_TEST((memory.kind == MemoryDescription::Kind::kPool));
    BOOST_TEST(memory.is_on_host);
    BOOST_TEST((memory.pool == pool.get()));
    BOOST_TEST((memory.context == ContextRef()));
    BOOST_TEST(memory.device_address == pointer + 64);
    BOOST_TEST(AddressOf(memory.host_address) == pointer + 64);
    BOOST_TEST(memory.bytes_left() == memory.size, "the start is not known, or it is right");
    BOOST_TEST(memory.offset() <= memory.size);
    BOOST_TEST(memory.ToString().find("pool memory of the host") != std::string::npos);
  }
  OK(RAW(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(virtual_memory_is_its_mapping_with_its_access) {
  const Virtual range(4);
  range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  range.Map(1, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  range.Map(2, CU_MEM_ACCESS_FLAGS_PROT_READ);
  Check({range.At(0), MemoryDescription::Kind::kVirtual, nullptr, kUnit}, 10);
  const MemoryDescription none = Of(range.At(1) + 10);
  BOOST_TEST((none.kind == MemoryDescription::Kind::kVirtual));
  BOOST_TEST((none.access == MemoryDescription::Access::kNone));
  BOOST_TEST(none.device_address == 0u);
  BOOST_TEST(none.base == range.At(1));
  const MemoryDescription read = Of(range.At(2));
  BOOST_TEST((read.access == MemoryDescription::Access::kRead));
  BOOST_TEST(read.device_address == range.At(2));
  CheckIsUnknown(range.At(3));  // reserved
}

BOOST_AUTO_TEST_CASE(memory_of_the_second_device, *NeedsDevices(2)) {
  const Owner first(0);
  const Owner second(1);
  const CUdeviceptr pointer = second.Allocate();
  for (const Stack& stack : {Stack{}, Stack{first.get()}}) {
    SetStack(stack);
    Check({pointer, MemoryDescription::Kind::kDevice, second.get()}, 1, 1);
  }
  SetStack({});
  BOOST_TEST(!IsActive(1));
}

BOOST_AUTO_TEST_CASE(invalidates_no_capture) {
  const Owner owner;
  const Memories all(owner);
  for (const CUstreamCaptureMode mode : kCaptureModes) {
    for (const Stack& stack : {Stack{}, Stack{owner.get()}}) {
      SetStack(stack);
      const Capture capture(owner.stream(), mode);
      for (const Expected& expected : Expectations(all, owner.get())) Check(expected, 2);
      std::thread([&] {
        for (const Expected& expected : Expectations(all, owner.get())) Check(expected, 2);
      }).join();
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(from_a_callback_it_is_not_permitted) {
  const Owner owner;
  struct Asked {
    CUdeviceptr pointer;
    absl::Status status;
  } asked = {owner.Allocate(), {}};
  OK(RAW(cuLaunchHostFunc)(
      owner.stream(),
      [](void* data) {
        auto& from = *static_cast<Asked*>(data);
        from.status = Describe(from.pointer).status();
      },
      &asked));
  OK(RAW(cuStreamSynchronize)(owner.stream()));
  REFUSES(asked.status, kPermissionDenied, "describe memory", "0x");
}

BOOST_AUTO_TEST_CASE(it_prints_in_one_line) {
  const Owner owner;
  const Memories all(owner);
  const auto says = [](CUdeviceptr pointer, const std::string& words) {
    const std::string text = Of(pointer).ToString();
    BOOST_TEST(absl::StrContains(text, words), text);
  };
  says(0, "0x0: memory that CUDA does not know");
  says(all.device + 16, ": device memory of device 0, byte 16 of 4096, context 0x");
  says(all.managed, ": managed memory of device 0");
  says(all.pinned, ": pinned host memory of device 0");
  says(all.pool, ": pool memory of device 0, byte 0 of 4096, pool 0x");
  says(all.virtual_memory, ": virtual memory of device 0, byte 0 of 2097152");
  const Virtual range(2);
  says(range.Map(0, CU_MEM_ACCESS_FLAGS_PROT_NONE), ", no access");
  says(range.Map(1, CU_MEM_ACCESS_FLAGS_PROT_READ), ", read-only");
}

BOOST_AUTO_TEST_CASE(it_costs_what_it_says, *OnlySim()) {
  const Owner owner;
  const Memories all(owner);
  const auto cost = [](CUdeviceptr pointer) {
    Sim::ResetCalls();
    Of(pointer);
    return Sim::TotalCalls();
  };
  for (const Stack& stack : {Stack{}, Stack{owner.get()}}) {
    SetStack(stack);
    BOOST_TEST(cost(0) == 1u);
    BOOST_TEST(cost(all.pool) == 1u);
    BOOST_TEST(cost(all.virtual_memory) == 2u);
    BOOST_TEST(cost(all.device) == 2u);
    BOOST_TEST(cost(all.managed) == 2u);
    BOOST_TEST(cost(all.pinned) == (stack.empty() ? 8u : 2u));
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_driver_that_does_not_know_the_newer_attributes, *OnlySim()) {
  const Owner owner;
  const CUdeviceptr pointer = owner.Allocate();
  Sim::FailCall("cuPointerGetAttributes", 1, CUDA_ERROR_INVALID_VALUE);
  Check({pointer, MemoryDescription::Kind::kDevice, owner.get()}, 4);
  for (const unsigned nth : {1u, 2u}) {
    Sim::FailCall("cuPointerGetAttributes", nth, CUDA_ERROR_INVALID_VALUE);
  }
  const Undisturbed undisturbed;
  const MemoryDescription memory = Of(pointer + 4);
  BOOST_TEST((memory.kind == MemoryDescription::Kind::kDevice));
  BOOST_TEST((memory.context.get() == owner.get()));
  BOOST_TEST((memory.device == Device::Borrow(0)));
  BOOST_TEST(memory.size == 0u);
  BOOST_TEST(memory.offset() == 0u);
  BOOST_TEST(memory.device_address == pointer + 4);
  Sim::ClearFaults();
}

BOOST_AUTO_TEST_CASE(every_call_fails_once, *OnlySim()) {
  const Owner owner;
  const Memories all(owner);
  for (const CUdeviceptr pointer : all.All()) {
    FailEachCall({"cuPointerGetAttributes", "cuPointerGetAttribute", "cuCtxGetId", "cuMemGetAccess",
                  "cuCtxPushCurrent"},
                 [pointer] { return Describe(pointer); });
  }
}

BOOST_AUTO_TEST_SUITE(of_arrays)

namespace {

// Of the current context.
CUarray Create(size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels,
               unsigned flags = 0) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = {width, height, depth, format, channels, flags};
  CUarray array = nullptr;
  OK(RAW(cuArray3DCreate)(&array, &shape));
  return array;
}

void CheckText(CUarray array, const std::string& words, size_t bytes) {
  const Undisturbed undisturbed;
  const absl::StatusOr<Array::Description> description = Array::Describe(array);
  BOOST_TEST_REQUIRE(description.ok(), description.status().ToString());
  BOOST_TEST((description->array == array));
  BOOST_TEST(description->bytes == bytes);
  const std::string text = description->ToString();
  BOOST_TEST(absl::StrContains(text, words), text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_every_shape_whatever_is_current) {
  const Owner owner;
  const OwnContext other;
  owner.Enter();
  const CUarray line = Create(10, 0, 0, CU_AD_FORMAT_FLOAT, 1);
  const CUarray plane = Create(8, 4, 0, CU_AD_FORMAT_HALF, 4);
  const CUarray cube = Create(8, 8, 6, CU_AD_FORMAT_SIGNED_INT32, 2, CUDA_ARRAY3D_CUBEMAP);
  const CUarray packed = Create(8, 4, 0, CU_AD_FORMAT_UNORM_INT8X4, 4);
  for (const Stack& stack : {Stack{}, Stack{owner.get()}, Stack{other.get()}}) {
    SetStack(stack);
    CheckText(line, ": 10 elements of 1 float, 40 bytes", 40);
    CheckText(plane, ": 8 x 4 elements of 4 half, 256 bytes", 256);
    CheckText(cube, ": 8 x 8 x 6 elements of 2 int32, 3072 bytes, flags 0x4", 3072);
    CheckText(packed, ": 8 x 4 elements of 4 format 0xc2", 0);
  }
  const Capture capture(owner.stream(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  CheckText(line, "float", 40);
  std::thread([line] { CheckText(line, "float", 40); }).join();
  SetStack({});
}

BOOST_AUTO_TEST_CASE(null_and_a_driver_that_fails) {
  const CUarray none = nullptr;
  REFUSES(Array::Describe(none).status(), kInvalidArgument, "describe an array", "array 0x0");
  const Owner owner;
  owner.Enter();
  const CUarray array = Create(10, 0, 0, CU_AD_FORMAT_FLOAT, 1);
  SetStack({});
  const Undisturbed undisturbed;
  FailEachCall({"cuArray3DGetDescriptor"}, [array] { return Array::Describe(array); });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
