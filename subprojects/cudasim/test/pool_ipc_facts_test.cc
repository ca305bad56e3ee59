// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pools that two processes share.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/facts.h"
#include "test/ipc.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(pool_ipc_facts)

using namespace cudasim_facts;

namespace {

constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr char kDescriptor[] = "CUDASIM_TEST_DESCRIPTOR";
constexpr size_t kBytes = 5000;  // more than a page

CUmemoryPool CreatePool(CUmemAllocationHandleType type) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = type;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  OK(RAW(cuMemPoolCreate)(&pool, &properties));
  return pool;
}

void* ToHandle(int descriptor) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
}

// A pool with an allocation that holds `value`, both exported. Its context is current.
struct Exporter {
  explicit Exporter(unsigned char value = 0x11) {
    SetStack({context.get()});
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuMemAllocFromPoolAsync)(&address, kBytes, pool, stream));
    OK(RAW(cuMemsetD8Async)(address, value, kBytes, stream));
    OK(RAW(cuStreamSynchronize)(stream));
    OK(RAW(cuMemPoolExportToShareableHandle)(&descriptor, pool, kType, 0));
    OK(RAW(cuMemPoolExportPointer)(&data, address));
  }
  ~Exporter() {
    OK(RAW(cuMemFree)(address));
    OK(RAW(cuStreamDestroy)(stream));
    OK(RAW(cuMemPoolDestroy)(pool));
    close(descriptor);
    SetStack({});
  }
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  std::vector<unsigned char> Content() const {
    std::vector<unsigned char> content(kBytes);
    OK(RAW(cuMemcpyDtoH)(content.data(), address, kBytes));
    return content;
  }

  // A child that inherits the descriptor.
  void CheckOther(const std::string& child, const CUmemPoolPtrExportData& pointer) const {
    const int inherited = dup(descriptor);
    const cudasim_test::Ended ended =
        RunWithHandle(child, pointer, {kDescriptor + ("=" + std::to_string(inherited))});
    close(inherited);
    BOOST_TEST(ended.code == 0, ended.output);
  }

  OwnContext context;
  CUstream stream = nullptr;
  CUmemoryPool pool = CreatePool(kType);
  CUdeviceptr address = 0;
  int descriptor = -1;
  CUmemPoolPtrExportData data = {};
};

// The same pool, in the child.
struct Importer {
  Importer() {
    CHECK(RAW(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
    const int descriptor = std::atoi(std::getenv(kDescriptor));
    CHECK(RAW(cuMemPoolImportFromShareableHandle)(&pool, ToHandle(descriptor), kType, 0) ==
          CUDA_SUCCESS);
    CHECK(close(descriptor) == 0);  // the caller's still
  }
  int End() const {
    CHECK(RAW(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
    CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
    return 0;
  }

  CUcontext context = cudasim_test::MakeContext();
  CUmemoryPool pool = nullptr;
  CUmemPoolPtrExportData data = ReceivedHandle<CUmemPoolPtrExportData>();
};

}  // namespace

// Finds 0x11 everywhere, and leaves 0x22.
CHILD(reads_and_writes_pool) {
  Importer importer;
  CUdeviceptr address = 0;
  CHECK(RAW(cuMemPoolImportPointer)(&address, importer.pool, &importer.data) == CUDA_SUCCESS);
  std::vector<unsigned char> content(kBytes);
  CHECK(RAW(cuMemcpyDtoH)(content.data(), address, kBytes) == CUDA_SUCCESS);
  CHECK(content == std::vector<unsigned char>(kBytes, 0x11));
  CHECK(RAW(cuMemsetD8)(address, 0x22, kBytes) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(RAW(cuMemFree)(address) == CUDA_SUCCESS);
  return importer.End();
}

BOOST_AUTO_TEST_CASE(another_process_reads_and_writes_it) {
  const Exporter exporter;
  exporter.CheckOther("reads_and_writes_pool", exporter.data);
  BOOST_TEST((exporter.Content() == std::vector<unsigned char>(kBytes, 0x22)));
}

CHILD(frees_it_in_a_stream) {
  Importer importer;
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(RAW(cuMemPoolImportPointer)(&address, importer.pool, &importer.data) == CUDA_SUCCESS);
  CHECK(RAW(cuMemFreeAsync)(address, stream) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
  return importer.End();
}

BOOST_AUTO_TEST_CASE(it_stays_the_exporters) {
  const Exporter exporter;
  exporter.CheckOther("frees_it_in_a_stream", exporter.data);
  BOOST_TEST((exporter.Content() == std::vector<unsigned char>(kBytes, 0x11)));
}

CHILD(cannot_allocate) {
  const Importer importer;
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(RAW(cuMemAllocFromPoolAsync)(&address, kBytes, importer.pool, stream) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(RAW(cuDeviceSetMemPool)(0, importer.pool) == CUDA_ERROR_INVALID_VALUE);
  CHECK(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
  return importer.End();
}

BOOST_AUTO_TEST_CASE(nothing_is_allocated_from_an_imported_pool) {
  const Exporter exporter;
  exporter.CheckOther("cannot_allocate", exporter.data);
}

CHILD(finds_no_such_pointer) {
  Importer importer;
  CUdeviceptr address = 0;
  CHECK(RAW(cuMemPoolImportPointer)(&address, importer.pool, &importer.data) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(RAW(cuMemPoolImportPointer)(nullptr, importer.pool, &importer.data) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(RAW(cuMemPoolImportPointer)(&address, importer.pool, nullptr) == CUDA_ERROR_INVALID_VALUE);
  return importer.End();
}

BOOST_AUTO_TEST_CASE(a_pointer_is_imported_from_its_own_pool) {
  const Exporter exporter;
  const Exporter other;
  exporter.CheckOther("finds_no_such_pointer", other.data);
}

CHILD(keeps_it_without_its_pool) {
  Importer importer;
  CUdeviceptr address = 0;
  CHECK(RAW(cuMemPoolImportPointer)(&address, importer.pool, &importer.data) == CUDA_SUCCESS);
  CHECK(RAW(cuMemPoolDestroy)(importer.pool) == CUDA_SUCCESS);
  CHECK(RAW(cuMemsetD8)(address, 0x22, kBytes) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(RAW(cuMemFree)(address) == CUDA_SUCCESS);
  CHECK(RAW(cuMemFree)(address) == CUDA_ERROR_INVALID_VALUE);
  return 0;
}

BOOST_AUTO_TEST_CASE(an_imported_pointer_outlives_the_imported_pool, *cudasim_test::OnlySim()) {
  const Exporter exporter;
  exporter.CheckOther("keeps_it_without_its_pool", exporter.data);
  BOOST_TEST((exporter.Content() == std::vector<unsigned char>(kBytes, 0x22)));
}

BOOST_AUTO_TEST_CASE(only_a_pool_made_for_it_is_exported) {
  const Exporter exporter;
  const CUmemoryPool pool = CreatePool(CU_MEM_HANDLE_TYPE_NONE);
  CUmemoryPool standard = nullptr;
  int descriptor = -1;
  OK(RAW(cuDeviceGetDefaultMemPool)(&standard, 0));
  IS(RAW(cuMemPoolExportToShareableHandle)(&descriptor, pool, kType, 0), INVALID_VALUE);
  IS(RAW(cuMemPoolExportToShareableHandle)(&descriptor, standard, kType, 0), INVALID_VALUE);
  IS(RAW(cuMemPoolExportToShareableHandle)(nullptr, exporter.pool, kType, 0), INVALID_VALUE);
  CUdeviceptr address = 0;
  CUmemPoolPtrExportData data = {};
  OK(RAW(cuMemAllocFromPoolAsync)(&address, kBytes, pool, exporter.stream));
  IS(RAW(cuMemPoolExportPointer)(&data, address), INVALID_VALUE);
  IS(RAW(cuMemPoolExportPointer)(nullptr, exporter.address), INVALID_VALUE);
  OK(RAW(cuMemFreeAsync)(address, exporter.stream));
  OK(RAW(cuStreamSynchronize)(exporter.stream));
  OK(RAW(cuMemPoolDestroy)(pool));
}

// Nothing says of these which code they get.
BOOST_AUTO_TEST_CASE(descriptors_of_no_pool, *cudasim_test::OnlySim()) {
  const Exporter exporter;
  CUmemoryPool pool = nullptr;
  const int other = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  IS(RAW(cuMemPoolImportFromShareableHandle)(&pool, ToHandle(other), kType, 0), INVALID_VALUE);
  IS(RAW(cuMemPoolImportFromShareableHandle)(&pool, ToHandle(-1), kType, 0), INVALID_VALUE);
  IS(RAW(cuMemPoolImportFromShareableHandle)(nullptr, ToHandle(exporter.descriptor), kType, 0),
     INVALID_VALUE);
  close(other);
}

// Its room is the device's again: pages of many allocations, one after another.
BOOST_AUTO_TEST_CASE(what_is_freed_takes_no_room, *cudasim_test::OnlySim()) {
  constexpr size_t kMuch = size_t{64} << 20;
  const Exporter exporter;
  for (int i = 0; i < 8; ++i) {
    CUdeviceptr address = 0;
    OK(RAW(cuMemAllocFromPoolAsync)(&address, kMuch, exporter.pool, exporter.stream));
    OK(RAW(cuMemsetD8)(address, 0x33, kMuch));
    OK(RAW(cuMemFree)(address));
  }
  struct stat status = {};
  BOOST_TEST(fstat(exporter.descriptor, &status) == 0);
  BOOST_TEST(static_cast<size_t>(status.st_blocks) * 512 < kMuch);
}

BOOST_AUTO_TEST_SUITE_END()
