// SPDX-License-Identifier: Apache-2.0
//
// Device memory that two processes share.

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/facts.h"
#include "test/support/child.h"

using namespace cudasim_facts;

namespace {

constexpr unsigned kFlags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
constexpr char kHandle[] = "CUDASIM_TEST_IPC_HANDLE";
constexpr size_t kSizes[] = {4, 4096, size_t{3} << 20};  // from the heap, and mapped

// A handle holds zeros: as text, two letters for each byte.
std::string ToText(const CUipcMemHandle& handle) {
  std::string text;
  for (const char byte : handle.reserved) {
    const auto bits = static_cast<unsigned char>(byte);
    text += static_cast<char>('a' + (bits >> 4));
    text += static_cast<char>('a' + (bits & 15));
  }
  return text;
}

CUipcMemHandle FromText(const char* text) {
  CUipcMemHandle handle = {};
  for (char& byte : handle.reserved) {
    byte = static_cast<char>((text[0] - 'a') << 4 | (text[1] - 'a'));
    text += 2;
  }
  return handle;
}

void CheckOther(const char* child, const CUipcMemHandle& handle) {
  const cudasim_test::Ended ended = cudasim_test::RunSelf(
      {std::string("--child=") + child}, {std::string(kHandle) + "=" + ToText(handle)});
  BOOST_TEST(ended.code == 0, ended.output);
}

struct Memory {
  explicit Memory(size_t size) : bytes(size) {
    SetStack({context.get()});
    OK(RAW(cuMemAlloc)(&address, bytes));
    OK(RAW(cuMemsetD8)(address, 0x11, bytes));
    OK(RAW(cuCtxSynchronize)());
  }
  ~Memory() {
    OK(RAW(cuMemFree)(address));
    SetStack({});
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::vector<unsigned char> Content() const {
    std::vector<unsigned char> content(bytes);
    OK(RAW(cuMemcpyDtoH)(content.data(), address, bytes));
    return content;
  }

  OwnContext context;
  size_t bytes;
  CUdeviceptr address = 0;
};

}  // namespace

// Finds 0x11 everywhere, and leaves 0x22.
CHILD(reads_and_writes) {
  const CUipcMemHandle handle = FromText(std::getenv(kHandle));
  const CUcontext context = cudasim_test::MakeContext();
  CHECK(RAW(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
  CUdeviceptr address = 0;
  CUdeviceptr again = 0;
  CUdeviceptr base = 0;
  size_t size = 0;
  CHECK(RAW(cuIpcOpenMemHandle)(&address, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(RAW(cuIpcOpenMemHandle)(&address, handle, kFlags) == CUDA_SUCCESS);
  CHECK(RAW(cuIpcOpenMemHandle)(&again, handle, kFlags) == CUDA_SUCCESS);
  CHECK(again == address);
  CHECK(RAW(cuMemGetAddressRange)(&base, &size, address) == CUDA_SUCCESS);
  std::vector<unsigned char> content(size);
  CHECK(RAW(cuMemcpyDtoH)(content.data(), address, size) == CUDA_SUCCESS);
  CHECK(content == std::vector<unsigned char>(size, 0x11));
  CHECK(RAW(cuMemsetD8)(address, 0x22, size) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(RAW(cuMemFree)(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(RAW(cuIpcCloseMemHandle)(address) == CUDA_SUCCESS);
  CHECK(RAW(cuMemcpyDtoH)(content.data(), address, size) == CUDA_SUCCESS);  // opened twice
  CHECK(RAW(cuIpcCloseMemHandle)(address) == CUDA_SUCCESS);
  CHECK(RAW(cuIpcCloseMemHandle)(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(RAW(cuMemcpyDtoH)(content.data(), address, size) == CUDA_ERROR_INVALID_VALUE);
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
  return 0;
}

BOOST_AUTO_TEST_CASE(another_process_reads_and_writes_it) {
  for (const size_t size : kSizes) {
    const Memory memory(size);
    CUipcMemHandle handle = {};
    OK(RAW(cuIpcGetMemHandle)(&handle, memory.address));
    BOOST_TEST((memory.Content() == std::vector<unsigned char>(size, 0x11)));
    CheckOther("reads_and_writes", handle);
    BOOST_TEST((memory.Content() == std::vector<unsigned char>(size, 0x22)));
    CUipcMemHandle again = {};
    OK(RAW(cuIpcGetMemHandle)(&again, memory.address));
    BOOST_TEST(std::memcmp(&handle, &again, sizeof(handle)) == 0);
    IS(RAW(cuMemcpyDtoH)(&again, memory.address + size, 1), INVALID_VALUE);
  }
}

// Whether pages of this process are another's, too, on the simulation.
bool SharesPages() {
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  return text.find("memfd:cudasim") != std::string::npos;
}

// Its pages are an ordinary allocation's again.
BOOST_AUTO_TEST_CASE(shared_memory_is_freed) {
  for (const size_t size : kSizes) {
    std::vector<CUdeviceptr> others(8);
    {
      const Memory memory(size);
      CUipcMemHandle handle = {};
      OK(RAW(cuIpcGetMemHandle)(&handle, memory.address));
      BOOST_TEST(SharesPages() == cudasim::Sim::IsActive());
    }
    BOOST_TEST(!SharesPages());
    const Memory memory(size);
    for (CUdeviceptr& other : others) {
      OK(RAW(cuMemAlloc)(&other, size));
      OK(RAW(cuMemsetD8)(other, 0x33, size));
    }
    BOOST_TEST((memory.Content() == std::vector<unsigned char>(size, 0x11)));
    for (const CUdeviceptr other : others) OK(RAW(cuMemFree)(other));
  }
}

CHILD(finds_it_gone) {
  const CUipcMemHandle handle = FromText(std::getenv(kHandle));
  const CUcontext context = cudasim_test::MakeContext();
  CHECK(RAW(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
  CUdeviceptr address = 0;
  CHECK(RAW(cuIpcOpenMemHandle)(&address, handle, kFlags) == CUDA_ERROR_MAP_FAILED);
  return 0;
}

BOOST_AUTO_TEST_CASE(a_handle_of_freed_memory_opens_nothing, *cudasim_test::OnlySim()) {
  CUipcMemHandle handle = {};
  {
    const Memory memory(4096);
    OK(RAW(cuIpcGetMemHandle)(&handle, memory.address));
  }
  CheckOther("finds_it_gone", handle);
  const Memory memory(4096);  // takes the same file number
  CUipcMemHandle other = {};
  OK(RAW(cuIpcGetMemHandle)(&other, memory.address));
  CheckOther("finds_it_gone", handle);
}

BOOST_AUTO_TEST_CASE(only_memory_of_one_allocation_is_shared) {
  const Memory memory(4096);
  CUipcMemHandle handle = {};
  CUdeviceptr managed = 0;
  void* host = nullptr;
  OK(RAW(cuMemAllocManaged)(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  OK(RAW(cuMemAllocHost)(&host, 4096));
  IS(RAW(cuIpcGetMemHandle)(&handle, managed), INVALID_VALUE);
  IS(RAW(cuIpcGetMemHandle)(&handle, reinterpret_cast<CUdeviceptr>(host)), INVALID_VALUE);
  IS(RAW(cuIpcGetMemHandle)(&handle, 0), INVALID_VALUE);
  IS(RAW(cuIpcGetMemHandle)(nullptr, memory.address), INVALID_VALUE);
  IS(RAW(cuIpcCloseMemHandle)(memory.address), INVALID_VALUE);
  OK(RAW(cuMemFree)(managed));
  OK(RAW(cuMemFreeHost)(host));
}

BOOST_AUTO_TEST_CASE(a_process_cannot_open_its_own) {
  const Memory memory(4096);
  CUipcMemHandle handle = {};
  CUdeviceptr address = 0;
  OK(RAW(cuIpcGetMemHandle)(&handle, memory.address));
  IS(RAW(cuIpcOpenMemHandle)(&address, handle, kFlags), INVALID_CONTEXT);
}
