// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device memory and events that two processes share.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "test/busy.h"
#include "test/facts.h"
#include "test/ipc.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(ipc_facts)

using namespace cudasim_facts;

namespace {

constexpr unsigned kFlags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
constexpr size_t kSizes[] = {4, 4096, size_t{3} << 20};  // from the heap, and mapped

void CheckOther(const char* child, const CUipcMemHandle& handle) {
  const cudasim_test::Ended ended = RunWithHandle(child, handle);
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
  const auto handle = ReceivedHandle<CUipcMemHandle>();
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
  const auto handle = ReceivedHandle<CUipcMemHandle>();
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

// What an owner of buffers can tell an import by.
CHILD(is_not_exportable) {
  const CUcontext context = cudasim_test::MakeContext();
  CHECK(RAW(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
  CUdeviceptr address = 0;
  CUdeviceptr own = 0;
  unsigned is_capable = 0;
  CHECK(RAW(cuMemAlloc)(&own, 4096) == CUDA_SUCCESS);
  CHECK(RAW(cuPointerGetAttribute)(&is_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                   own) == CUDA_SUCCESS);
  CHECK(is_capable == 1);
  CHECK(RAW(cuIpcOpenMemHandle)(&address, ReceivedHandle<CUipcMemHandle>(), kFlags) ==
        CUDA_SUCCESS);
  is_capable = 0;
  CHECK(RAW(cuPointerGetAttribute)(&is_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                   address) == CUDA_SUCCESS);
  CHECK(is_capable == 0);
  CUipcMemHandle handle = {};
  CHECK(RAW(cuIpcGetMemHandle)(&handle, address) == CUDA_ERROR_INVALID_VALUE);
  CUcontext owner = nullptr;
  CHECK(RAW(cuPointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address) == CUDA_SUCCESS);
  CHECK(owner == context);
  CHECK(RAW(cuIpcCloseMemHandle)(address) == CUDA_SUCCESS);
  CHECK(RAW(cuMemFree)(own) == CUDA_SUCCESS);
  return 0;
}

BOOST_AUTO_TEST_CASE(what_is_imported_is_not_exportable) {
  int exports = 0;
  OK(RAW(cuDeviceGetAttribute)(&exports, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0));
  BOOST_TEST(exports == 1);
  const Memory memory(4096);
  CUipcMemHandle handle = {};
  OK(RAW(cuIpcGetMemHandle)(&handle, memory.address));
  CheckOther("is_not_exportable", handle);
}

namespace {

constexpr CUstreamCaptureMode kAllModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                             CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                             CU_STREAM_CAPTURE_MODE_RELAXED};

// Whether a capture of the mode survives `work`, on a thread whose own mode is relaxed.
template <typename Work>
bool Survives(CUstream stream, CUstreamCaptureMode mode, const Work& work) {
  CHECK(RAW(cuStreamBeginCapture)(stream, mode) == CUDA_SUCCESS);
  auto threads = CU_STREAM_CAPTURE_MODE_RELAXED;
  CHECK(RAW(cuThreadExchangeStreamCaptureMode)(&threads) == CUDA_SUCCESS);
  work();
  CHECK(RAW(cuThreadExchangeStreamCaptureMode)(&threads) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  const CUresult code = RAW(cuStreamEndCapture)(stream, &graph);
  if (graph != nullptr) CHECK(RAW(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  return code == CUDA_SUCCESS;
}

}  // namespace

CHILD(imports_in_relaxed_captures) {
  const CUcontext context = cudasim_test::MakeContext();
  CHECK(RAW(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
  CUstream stream = nullptr;
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const auto handle = ReceivedHandle<CUipcMemHandle>();
  for (const CUstreamCaptureMode mode : kAllModes) {
    CHECK(Survives(stream, mode, [&] {
      CUdeviceptr address = 0;
      CHECK(RAW(cuIpcOpenMemHandle)(&address, handle, kFlags) == CUDA_SUCCESS);
      CHECK(RAW(cuIpcCloseMemHandle)(address) == CUDA_SUCCESS);
    }));
  }
  return 0;
}

BOOST_AUTO_TEST_CASE(relaxed_captures_survive_it) {
  const Memory memory(4096);
  CUipcMemHandle handle = {};
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  for (const CUstreamCaptureMode mode : kAllModes) {
    BOOST_TEST(
        Survives(stream, mode, [&] { OK(RAW(cuIpcGetMemHandle)(&handle, memory.address)); }));
  }
  OK(RAW(cuStreamDestroy)(stream));
  CheckOther("imports_in_relaxed_captures", handle);
}

CHILD(resets_a_primary_context_with_an_import) {
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CUcontext primary = nullptr;
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxSetCurrent)(primary) == CUDA_SUCCESS);
  const auto handle = ReceivedHandle<CUipcMemHandle>();
  CUdeviceptr address = 0;
  unsigned type = 0;
  CHECK(RAW(cuIpcOpenMemHandle)(&address, handle, kFlags) == CUDA_SUCCESS);
  CHECK(RAW(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  CHECK(RAW(cuIpcOpenMemHandle)(&address, handle, kFlags) == CUDA_SUCCESS);
  unsigned char value = 0;
  CHECK(RAW(cuMemcpyDtoH)(&value, address, 1) == CUDA_SUCCESS);
  CHECK(value == 0x11);
  CHECK(RAW(cuIpcCloseMemHandle)(address) == CUDA_SUCCESS);
  return 0;
}

BOOST_AUTO_TEST_CASE(an_import_goes_with_a_reset) {
  const Memory memory(4096);
  CUipcMemHandle handle = {};
  OK(RAW(cuIpcGetMemHandle)(&handle, memory.address));
  CheckOther("resets_a_primary_context_with_an_import", handle);
  BOOST_TEST((memory.Content() == std::vector<unsigned char>(4096, 0x11)));
}

namespace {

constexpr char kMarks[] = "CUDASIM_TEST_MARKS";
constexpr unsigned kShared = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;

// Mark
//
// What one process has done and the other waits for: a file.
class Mark {
 public:
  explicit Mark(const char* name) : path_(std::getenv(kMarks) + std::string(name)) {}
  void Set() const { std::ofstream(path_).put('.'); }
  // False if it was not set in a long time.
  bool Await() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!IsSet() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return IsSet();
  }
  void Remove() const { unlink(path_.c_str()); }

 private:
  bool IsSet() const { return access(path_.c_str(), F_OK) == 0; }

  std::string path_;
};

// An event and a stream of a context, current while it is there.
struct EventOwner {
  EventOwner() {
    // As the environment of the child: its name for the marks.
    setenv(kMarks, ("/tmp/cudasim_ipc_" + std::to_string(getpid()) + "_").c_str(), 1);
    SetStack({context.get()});
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuEventCreate)(&event, kShared));
    OK(RAW(cuIpcGetEventHandle)(&handle, event));
  }
  ~EventOwner() {
    for (const char* name : {"asked", "answered"}) Mark(name).Remove();
    if (event != nullptr) OK(RAW(cuEventDestroy)(event));
    OK(RAW(cuStreamDestroy)(stream));
    SetStack({});
  }
  EventOwner(const EventOwner&) = delete;
  EventOwner& operator=(const EventOwner&) = delete;

  cudasim_test::Ended RunOther(const std::string& child, const std::string& schedule = "") const {
    return RunWithHandle(child, handle, {"CUDASIM_SCHEDULE" + schedule});
  }

  OwnContext context;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUipcEventHandle handle = {};
};

// The same event, in the child.
struct EventUser {
  EventUser() {
    CHECK(RAW(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
    CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    const auto handle = ReceivedHandle<CUipcEventHandle>();
    CHECK(RAW(cuIpcOpenEventHandle)(nullptr, handle) == CUDA_ERROR_INVALID_VALUE);
    CHECK(RAW(cuIpcOpenEventHandle)(&event, handle) == CUDA_SUCCESS);
  }
  int End() const {
    CHECK(RAW(cuEventDestroy)(event) == CUDA_SUCCESS);
    CHECK(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
    CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
    return 0;
  }

  CUcontext context = cudasim_test::MakeContext();
  CUstream stream = nullptr;
  CUevent event = nullptr;
};

}  // namespace

// Its stream and its thread wait for what the other process recorded.
CHILD(waits_for_a_record) {
  const EventUser user;
  CHECK(RAW(cuEventQuery)(user.event) == CUDA_ERROR_NOT_READY);
  CHECK(RAW(cuStreamWaitEvent)(user.stream, user.event, 0) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamQuery)(user.stream) == CUDA_ERROR_NOT_READY);
  Mark("asked").Set();
  CHECK(RAW(cuEventSynchronize)(user.event) == CUDA_SUCCESS);
  CHECK(Mark("answered").Await());
  CHECK(RAW(cuEventQuery)(user.event) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamSynchronize)(user.stream) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamWaitEvent)(user.stream, user.event, 0) == CUDA_SUCCESS);
  CHECK(RAW(cuStreamSynchronize)(user.stream) == CUDA_SUCCESS);
  return user.End();
}

// The other's wait, in a process whose work is done at once, and in one where it is done later.
void CheckWait(const std::string& schedule) {
  const EventOwner owner;
  OK(RAW(cuEventQuery)(owner.event));  // never recorded
  Hold hold(owner.stream);
  OK(RAW(cuEventRecord)(owner.event, owner.stream));
  IS(RAW(cuEventQuery)(owner.event), NOT_READY);
  cudasim_test::Ended ended;
  std::thread other([&] { ended = owner.RunOther("waits_for_a_record", schedule); });
  BOOST_TEST(Mark("asked").Await());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  IS(RAW(cuEventQuery)(owner.event), NOT_READY);
  Mark("answered").Set();
  hold.Release();
  other.join();
  BOOST_TEST(ended.code == 0, ended.output);
  OK(RAW(cuEventSynchronize)(owner.event));
}

BOOST_AUTO_TEST_CASE(another_process_waits_for_a_record) { CheckWait(""); }
BOOST_AUTO_TEST_CASE(another_process_waits_with_a_schedule, *cudasim_test::OnlySim()) {
  CheckWait("=7:5");
}

CHILD(records_behind_its_work) {
  const EventUser user;
  static std::atomic<bool> is_released = false;
  const auto wait = [](void*) {
    while (!is_released) std::this_thread::yield();
  };
  CHECK(RAW(cuLaunchHostFunc)(user.stream, wait, nullptr) == CUDA_SUCCESS);
  CHECK(RAW(cuEventRecord)(user.event, user.stream) == CUDA_SUCCESS);
  Mark("asked").Set();
  CHECK(Mark("answered").Await());
  is_released = true;
  CHECK(RAW(cuStreamSynchronize)(user.stream) == CUDA_SUCCESS);
  return user.End();
}

// The process that created the event waits; its other streams do not.
BOOST_AUTO_TEST_CASE(a_stream_waits_for_another_processs_record) {
  const EventOwner owner;
  CUstream other_stream = nullptr;
  OK(RAW(cuStreamCreate)(&other_stream, CU_STREAM_NON_BLOCKING));
  cudasim_test::Ended ended;
  std::thread other([&] { ended = owner.RunOther("records_behind_its_work"); });
  BOOST_TEST(Mark("asked").Await());
  IS(RAW(cuEventQuery)(owner.event), NOT_READY);
  OK(RAW(cuStreamWaitEvent)(owner.stream, owner.event, 0));
  IS(RAW(cuStreamQuery)(owner.stream), NOT_READY);
  OK(RAW(cuStreamQuery)(other_stream));
  Mark("answered").Set();
  OK(RAW(cuStreamSynchronize)(owner.stream));
  OK(RAW(cuEventQuery)(owner.event));
  other.join();
  BOOST_TEST(ended.code == 0, ended.output);
  OK(RAW(cuStreamDestroy)(other_stream));
}

BOOST_AUTO_TEST_CASE(only_interprocess_events_have_handles) {
  const EventOwner owner;
  CUipcEventHandle handle = {};
  CUipcEventHandle again = {};
  CUevent own = nullptr;
  OK(RAW(cuIpcGetEventHandle)(&again, owner.event));
  BOOST_TEST(std::memcmp(&owner.handle, &again, sizeof(again)) == 0);
  for (const unsigned flags : {unsigned{CU_EVENT_DEFAULT}, unsigned{CU_EVENT_DISABLE_TIMING}}) {
    OK(RAW(cuEventCreate)(&own, flags));
    IS(RAW(cuIpcGetEventHandle)(&handle, own), INVALID_HANDLE);
    OK(RAW(cuEventDestroy)(own));
  }
  IS(RAW(cuEventCreate)(&own, CU_EVENT_INTERPROCESS), INVALID_VALUE);
  IS(RAW(cuIpcGetEventHandle)(&handle, nullptr), INVALID_VALUE);
  IS(RAW(cuIpcGetEventHandle)(nullptr, owner.event), INVALID_VALUE);
}

// Nothing says of these which code they get.
BOOST_AUTO_TEST_CASE(handles_that_open_nothing, *cudasim_test::OnlySim()) {
  const EventOwner owner;
  CUevent event = nullptr;
  IS(RAW(cuIpcOpenEventHandle)(&event, owner.handle), INVALID_CONTEXT);  // its own
  IS(RAW(cuIpcOpenEventHandle)(&event, CUipcEventHandle{}),
     MAP_FAILED);  // so an H200's driver, 580
  SetStack({});
  IS(RAW(cuIpcOpenEventHandle)(&event, owner.handle), INVALID_CONTEXT);
  SetStack({owner.context.get()});
}

CHILD(finds_the_event_gone) {
  CHECK(RAW(cuCtxSetCurrent)(cudasim_test::MakeContext()) == CUDA_SUCCESS);
  CUevent event = nullptr;
  const auto handle = ReceivedHandle<CUipcEventHandle>();
  CHECK(RAW(cuIpcOpenEventHandle)(&event, handle) == CUDA_ERROR_MAP_FAILED);
  return 0;
}

BOOST_AUTO_TEST_CASE(a_handle_of_a_destroyed_event_opens_nothing, *cudasim_test::OnlySim()) {
  EventOwner owner;
  OK(RAW(cuEventDestroy)(owner.event));
  owner.event = nullptr;
  const cudasim_test::Ended ended = owner.RunOther("finds_the_event_gone");
  BOOST_TEST(ended.code == 0, ended.output);
}

CHILD(has_no_interprocess_event) {
  const EventUser user;
  CUipcEventHandle handle = {};
  float milliseconds = 0;
  CHECK(RAW(cuIpcGetEventHandle)(&handle, user.event) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(RAW(cuEventElapsedTime)(&milliseconds, user.event, user.event) ==
        CUDA_ERROR_INVALID_HANDLE);
  return user.End();
}

BOOST_AUTO_TEST_CASE(an_opened_event_is_as_one_without_timing) {
  const EventOwner owner;
  const cudasim_test::Ended ended = owner.RunOther("has_no_interprocess_event");
  BOOST_TEST(ended.code == 0, ended.output);
}

CHILD(uses_a_destroyed_event) {
  const EventUser user;
  Mark("asked").Set();
  CHECK(Mark("answered").Await());
  RAW(cuEventQuery)(user.event);
  return 0;
}

CHILD(ends_with_its_record_pending) {
  const EventUser user;
  const auto wait = [](void*) { std::this_thread::sleep_for(std::chrono::seconds(60)); };
  CHECK(RAW(cuLaunchHostFunc)(user.stream, wait, nullptr) == CUDA_SUCCESS);
  CHECK(RAW(cuEventRecord)(user.event, user.stream) == CUDA_SUCCESS);
  _exit(0);
}

// Between the two: the creator's child is a process that creates the event.
CHILD(waits_for_a_process_that_ended) {
  CHECK(RAW(cuCtxSetCurrent)(cudasim_test::MakeContext()) == CUDA_SUCCESS);
  const EventOwner owner;
  if (owner.RunOther("ends_with_its_record_pending").code != 0) return 1;
  RAW(cuEventSynchronize)(owner.event);
  return 0;
}

BOOST_AUTO_TEST_CASE(an_abandoned_event_panics, *cudasim_test::OnlySim()) {
  EventOwner owner;
  cudasim_test::Ended ended;
  std::thread other([&] { ended = owner.RunOther("uses_a_destroyed_event"); });
  BOOST_TEST(Mark("asked").Await());
  OK(RAW(cuEventDestroy)(owner.event));
  owner.event = nullptr;
  Mark("answered").Set();
  other.join();
  BOOST_TEST(ended.code == -SIGABRT);
  BOOST_TEST(ended.output.find("created the event destroyed it") != std::string::npos,
             ended.output);
  ended = cudasim_test::RunChild("waits_for_a_process_that_ended");
  BOOST_TEST(ended.code == -SIGABRT);
  BOOST_TEST(ended.output.find("ended before the record was done") != std::string::npos,
             ended.output);
}

BOOST_AUTO_TEST_SUITE_END()
