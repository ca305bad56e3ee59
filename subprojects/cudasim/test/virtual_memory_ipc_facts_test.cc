// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocations of virtual memory that are exported.

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cudasim/sim.h"
#include "test/facts.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(virtual_memory_ipc_facts)

using namespace cudasim_facts;

namespace {

constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr char kDescriptor[] = "CUDASIM_TEST_DESCRIPTOR";
constexpr size_t kUnit = size_t{2} << 20;  // the granularity

using Handle = CUmemGenericAllocationHandle;

Handle Create(CUmemAllocationHandleType type) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = type;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  Handle handle = 0;
  CHECK(RAW(cuMemCreate)(&handle, kUnit, &properties, 0) == CUDA_SUCCESS);
  return handle;
}

int Export(Handle handle) {
  int descriptor = -1;
  CHECK(RAW(cuMemExportToShareableHandle)(&descriptor, handle, kType, 0) == CUDA_SUCCESS);
  return descriptor;
}

// Closes the descriptor: the handle needs it no more.
Handle Import(int descriptor) {
  Handle handle = 0;
  void* exported = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
  CHECK(RAW(cuMemImportFromShareableHandle)(&handle, exported, kType) == CUDA_SUCCESS);
  CHECK(close(descriptor) == 0);
  return handle;
}

// An allocation that is mapped and may be written; takes the handle.
struct Mapping {
  explicit Mapping(Handle handle) {
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(RAW(cuMemAddressReserve)(&base, kUnit, 0, 0, 0) == CUDA_SUCCESS);
    CHECK(RAW(cuMemMap)(base, kUnit, 0, handle, 0) == CUDA_SUCCESS);
    CHECK(RAW(cuMemRelease)(handle) == CUDA_SUCCESS);
    CHECK(RAW(cuMemSetAccess)(base, kUnit, &access, 1) == CUDA_SUCCESS);
  }
  ~Mapping() {
    CHECK(RAW(cuMemUnmap)(base, kUnit) == CUDA_SUCCESS);
    CHECK(RAW(cuMemAddressFree)(base, kUnit) == CUDA_SUCCESS);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  void Fill(unsigned char value) const {
    CHECK(RAW(cuMemsetD8)(base, value, kUnit) == CUDA_SUCCESS);
    CHECK(RAW(cuCtxSynchronize)() == CUDA_SUCCESS);
  }
  int Last() const {
    unsigned char value = 0;
    CHECK(RAW(cuMemcpyDtoH)(&value, base + kUnit - 1, 1) == CUDA_SUCCESS);
    return value;
  }

  CUdeviceptr base = 0;
};

struct Owner {
  Owner() { SetStack({context.get()}); }
  ~Owner() { SetStack({}); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  OwnContext context;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_imported_handle_is_the_same_memory) {
  const Owner owner;
  const Handle handle = Create(kType);
  const int descriptor = Export(handle);
  const Handle again = Import(descriptor);
  CUmemAllocationProp properties = {};
  OK(RAW(cuMemGetAllocationPropertiesFromHandle)(&properties, again));
  BOOST_CHECK_EQUAL(properties.requestedHandleTypes, CU_MEM_HANDLE_TYPE_NONE);
  BOOST_CHECK_EQUAL(properties.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  BOOST_TEST(properties.location.id == 0);
  const Mapping alias(again);
  {
    const Mapping first(handle);
    BOOST_TEST(first.base != alias.base);
    first.Fill(3);
    BOOST_TEST(alias.Last() == 3);
    alias.Fill(4);
    BOOST_TEST(first.Last() == 4);
  }
  BOOST_TEST(alias.Last() == 4);  // the exporter's is gone
}

CHILD(maps_and_writes) {
  const CUcontext context = cudasim_test::MakeContext();
  CHECK(RAW(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
  {
    const Mapping mapping(Import(std::atoi(std::getenv(kDescriptor))));
    CHECK(mapping.Last() == 0x11);
    mapping.Fill(0x22);
  }
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
  return 0;
}

BOOST_AUTO_TEST_CASE(another_process_reads_and_writes_it) {
  const Owner owner;
  const Handle handle = Create(kType);
  const int descriptor = Export(handle);
  const int inherited = dup(descriptor);
  const Mapping mapping(handle);
  mapping.Fill(0x11);
  const cudasim_test::Ended ended = cudasim_test::RunSelf(
      {"--child=maps_and_writes"}, {kDescriptor + ("=" + std::to_string(inherited))});
  close(descriptor);
  close(inherited);
  BOOST_TEST(ended.code == 0, ended.output);
  BOOST_TEST(mapping.Last() == 0x22);
}

BOOST_AUTO_TEST_CASE(only_what_was_created_for_it_is_exported) {
  const Handle handle = Create(CU_MEM_HANDLE_TYPE_NONE);
  int descriptor = -1;
  IS(RAW(cuMemExportToShareableHandle)(&descriptor, handle, kType, 0), INVALID_VALUE);
  IS(RAW(cuMemExportToShareableHandle)(nullptr, handle, kType, 0), INVALID_VALUE);
  OK(RAW(cuMemRelease)(handle));
}

// Nothing says of these which code they get.
BOOST_AUTO_TEST_CASE(descriptors_of_no_allocation, *cudasim_test::OnlySim()) {
  Handle handle = 0;
  const int other = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  for (const std::intptr_t descriptor : {std::intptr_t{other}, std::intptr_t{-1}}) {
    IS(RAW(cuMemImportFromShareableHandle)(&handle, reinterpret_cast<void*>(descriptor), kType),
       INVALID_VALUE);
  }
  close(other);
}

BOOST_AUTO_TEST_SUITE_END()
