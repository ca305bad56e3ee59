// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's own reasons in what fails. What needs a process of its own is in
// process/driver_log_test.cc.

#include "cuguest/objects/driver_log.h"

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/device.h"
#include "cuguest/objects/c_driver_log.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/stream.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(driver_log, *cuguest_test::NeedsDriver(12090, "cuLogsRegisterCallback"))

namespace {

using cudasim::Sim;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::Driver;
using cuguest::DriverLog;
using cuguest::ObjectDriver;
using cuguest::PrimaryContext;
using cuguest_test::OwnContext;

constexpr char kHint[] = "a cuguest::DriverLog open";
constexpr char kSays[] = "the driver says in ";

DriverLog Opened() {
  absl::StatusOr<DriverLog> log = DriverLog::Open();
  BOOST_TEST_REQUIRE(log.ok(), log.status().ToString());
  return *std::move(log);
}

bool Has(const absl::Status& status, const std::string& words) {
  return std::string(status.message()).find(words) != std::string::npos;
}

// A call that fails, as nothing is current: by cuguest, and by the host.
CUresult FailOurs() {
  CUdevice device = 0;
  return (*Driver::Get())->CtxGetDevice(&device);
}
CUresult FailHosts() {
  CUdevice device = 0;
  return RAW(cuCtxGetDevice)(&device);
}

}  // namespace

BOOST_AUTO_TEST_CASE(our_status_has_the_drivers_reason) {
  const DriverLog log = Opened();
  const CUresult code = FailOurs();
  BOOST_TEST(code == CUDA_ERROR_INVALID_CONTEXT);
  const std::string reason = DriverLog::Reason(code);
  BOOST_TEST(reason.find("cuCtxGetDevice") == 0U, reason);
  BOOST_TEST(reason.find("Returning") == std::string::npos, reason);
  BOOST_TEST(DriverLog::Reason(CUDA_ERROR_INVALID_VALUE) == "");
  const absl::Status status = cuguest::ToStatus(code, "ask for the device");
  BOOST_TEST(Has(status, kSays + reason), status.ToString());
  // It is told once.
  BOOST_TEST(!Has(cuguest::ToStatus(code, "do something else"), kSays));
}

BOOST_AUTO_TEST_CASE(an_operation_says_it_by_itself, *cuguest_test::OnlySim()) {
  const DriverLog log = Opened();
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  Sim::FailCall("cuMemAlloc", 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const absl::Status status = DeviceBuffer<int>::Allocate(primary.context(), 64).status();
  BOOST_TEST(Has(status, "says in cuMemAlloc_v2: API call conflicts with a stream capture"),
             status.ToString());
}

// Between the call that fails and the status are those that restore what was.
BOOST_AUTO_TEST_CASE(a_reason_outlasts_what_is_restored, *cuguest_test::OnlySim()) {
  const DriverLog log = Opened();
  const PrimaryContext primary = PrimaryContext::Retain(Device::Borrow(0));
  const auto stream = cuguest::Stream::Create(primary.context(), CU_STREAM_NON_BLOCKING);
  BOOST_TEST_REQUIRE(stream.ok());
  auto buffer = DeviceBuffer<int>::Allocate(primary.context(), 64);
  BOOST_TEST_REQUIRE(buffer.ok());
  const auto says = [](const char* entry, const auto& call, const char* function) {
    Sim::FailCall(entry, 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    const absl::Status status = call();
    Sim::ClearFaults();
    const std::string words = std::string("says in ") + function + ": API call conflicts";
    BOOST_TEST(Has(status, words), status.ToString());
  };
  says(
      "cuMemFree", [&] { return buffer->Release(); }, "cuMemFree_v2");
  says(
      "cuMemAllocAsync",
      [&] { return DeviceBuffer<int>::AllocateAsync(stream->ref(), 64).status(); },
      "cuMemAllocAsync");
  says(
      "cuStreamSynchronize", [&] { return stream->ref().Synchronize(); }, "cuStreamSynchronize");
  says(
      "cuMemcpyHtoD", [&] { return cuguest::Upload(buffer->view(), std::vector<int>(64)); },
      "cuMemcpyHtoD_v2");
}

BOOST_AUTO_TEST_CASE(an_error_keeps_its_own_reason, *cuguest_test::OnlySim()) {
  const DriverLog log = Opened();
  Sim::FailCall("cuDevicePrimaryCtxRetain", 1, CUDA_ERROR_INVALID_CONTEXT);
  const PrimaryContext none = PrimaryContext::Retain(Device::Borrow(0));
  BOOST_TEST(FailHosts() == CUDA_ERROR_INVALID_CONTEXT);
  for (int time = 0; time < 2; ++time) {
    const absl::Status status = ToStatus(none);
    BOOST_TEST(Has(status, "says in cuDevicePrimaryCtxRetain: No CUDA context"), status.ToString());
  }
  // Of the next call of ours that fails with the same code, it has none.
  BOOST_TEST(FailOurs() == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(!Has(ToStatus(none), kSays));
}

BOOST_AUTO_TEST_CASE(the_hosts_call_is_not_ours) {
  const DriverLog log = Opened();
  BOOST_TEST(FailHosts() == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(DriverLog::Reason(CUDA_ERROR_INVALID_CONTEXT) == "");
  BOOST_TEST(!Has(cuguest::ToStatus(CUDA_ERROR_INVALID_CONTEXT, "do something"), kSays));
}

BOOST_AUTO_TEST_CASE(the_hosts_call_in_between) {
  const DriverLog log = Opened();
  CUdevice device = 0;
  const CUresult code = (*Driver::Get())->DeviceGet(&device, 999);
  BOOST_TEST(code == CUDA_ERROR_INVALID_DEVICE);
  const std::string before = DriverLog::Reason(code);
  BOOST_TEST(FailHosts() == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(DriverLog::Reason(code) == before);
}

BOOST_AUTO_TEST_CASE(a_good_call_clears_it) {
  const DriverLog log = Opened();
  const CUresult code = FailOurs();
  BOOST_TEST(DriverLog::Reason(code) != "");
  int count = 0;
  BOOST_TEST((*Driver::Get())->DeviceGetCount(&count) == CUDA_SUCCESS);
  BOOST_TEST(DriverLog::Reason(code) == "");
}

BOOST_AUTO_TEST_CASE(a_vague_code_says_how) {
  BOOST_TEST(FailOurs() == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(DriverLog::Reason(CUDA_ERROR_INVALID_CONTEXT) == "");
  for (const CUresult vague : {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED,
                               CUDA_ERROR_UNKNOWN, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED}) {
    BOOST_TEST(Has(cuguest::ToStatus(vague, "do something"), kHint));
    const DriverLog log = Opened();
    BOOST_TEST(!Has(cuguest::ToStatus(vague, "do something"), kHint));
  }
  for (const CUresult clear : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_CONTEXT_IS_DESTROYED}) {
    BOOST_TEST(!Has(cuguest::ToStatus(clear, "do something"), kHint));
  }
}

BOOST_AUTO_TEST_CASE(the_last_close_counts) {
  const Driver* const before = *Driver::Get();
  const ObjectDriver* const objects = *ObjectDriver::Get();
  DriverLog first = Opened();
  DriverLog moved = Opened();
  DriverLog second = std::move(moved);
  BOOST_TEST(*Driver::Get() != before);
  BOOST_TEST(*ObjectDriver::Get() != objects);
  BOOST_TEST(first.Close().ok());
  BOOST_TEST(first.Close().ok());  // is closed
  BOOST_TEST(moved.Close().ok());  // is empty
  BOOST_TEST(DriverLog::Reason(FailOurs()) != "");
  second = Opened();
  BOOST_TEST(DriverLog::Reason(FailOurs()) != "");
  BOOST_TEST(second.Close().ok());
  BOOST_TEST(*Driver::Get() == before);
  BOOST_TEST(*ObjectDriver::Get() == objects);
  BOOST_TEST(DriverLog::Reason(FailOurs()) == "");
}

BOOST_AUTO_TEST_CASE(a_callback_of_the_hosts_stays) {
  struct Host {
    static void CUDA_CB Hear(void* user, CUlogLevel, char*, size_t) { ++*static_cast<int*>(user); }
  };
  int lines = 0;
  CUlogsCallbackHandle handle = nullptr;
  BOOST_TEST(RAW(cuLogsRegisterCallback)(&Host::Hear, &lines, &handle) == CUDA_SUCCESS);
  BOOST_TEST(FailHosts() == CUDA_ERROR_INVALID_CONTEXT);
  const int of_one_call = lines;
  BOOST_TEST(of_one_call > 0);
  {
    const DriverLog log = Opened();
    BOOST_TEST(FailOurs() == CUDA_ERROR_INVALID_CONTEXT);
    BOOST_TEST(lines == 2 * of_one_call);
  }
  BOOST_TEST(FailHosts() == CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(lines == 3 * of_one_call);
  BOOST_TEST(RAW(cuLogsUnregisterCallback)(handle) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(each_thread_has_its_own_reason) {
  const DriverLog log = Opened();
  const CUresult code = FailOurs();
  std::thread([=] {
    BOOST_TEST(DriverLog::Reason(code) == "");
    CUdevice device = 0;
    BOOST_TEST((*Driver::Get())->DeviceGet(&device, 999) == CUDA_ERROR_INVALID_DEVICE);
  }).join();
  BOOST_TEST(DriverLog::Reason(code).find("cuCtxGetDevice") == 0U);
}

BOOST_AUTO_TEST_CASE(threads_open_fail_and_close) {
  std::atomic<int> without{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int time = 0; time < 100; ++time) {
        const absl::StatusOr<DriverLog> log = DriverLog::Open();
        const CUresult code = FailOurs();
        if (!log.ok() || DriverLog::Reason(code).find("cuCtxGetDevice") != 0) ++without;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(without == 0);
}

BOOST_AUTO_TEST_CASE(comes_and_goes_in_a_capture) {
  const OwnContext context;
  cuguest_test::SetStack({context.get()});
  CUstream stream = nullptr;
  BOOST_TEST(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  BOOST_TEST(Opened().Close().ok());
  CUgraph graph = nullptr;
  BOOST_TEST(RAW(cuStreamEndCapture)(stream, &graph) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  BOOST_TEST(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(a_failed_registration_opens_nothing, *cuguest_test::OnlySim()) {
  Sim::FailCall("cuLogsRegisterCallback", 1, CUDA_ERROR_UNKNOWN);
  const absl::Status refused = DriverLog::Open().status();
  BOOST_TEST(Has(refused, "open the driver's log: CUDA_ERROR_UNKNOWN"), refused.ToString());
  BOOST_TEST(DriverLog::Reason(FailOurs()) == "");
  const DriverLog log = Opened();
  BOOST_TEST(DriverLog::Reason(FailOurs()) != "");
}

BOOST_AUTO_TEST_CASE(a_failed_unregistration_leaves_it_open, *cuguest_test::OnlySim()) {
  DriverLog log = Opened();
  Sim::FailCall("cuLogsUnregisterCallback", 1, CUDA_ERROR_UNKNOWN);
  BOOST_TEST(!log.Close().ok());
  BOOST_TEST(DriverLog::Reason(FailOurs()) != "");
  BOOST_TEST(log.Close().ok());
  BOOST_TEST(DriverLog::Reason(FailOurs()) == "");
  Sim::FailCall("cuLogsUnregisterCallback", 1, CUDA_ERROR_DEINITIALIZED);
  BOOST_TEST(Opened().Close().ok());  // nothing is left to unregister
}

// So no call by the table is left out.
BOOST_AUTO_TEST_CASE(every_entry_is_called_through, *cuguest_test::OnlySim()) {
  const ObjectDriver& plain = **ObjectDriver::Get();
  const DriverLog log = Opened();
  const ObjectDriver& told = **ObjectDriver::Get();
#define CUGUEST_CHECK_TOLD(Name, version, suffix, parameters)                \
  BOOST_TEST((told.Name == nullptr) == (plain.Name == nullptr), "cu" #Name); \
  BOOST_TEST((told.Name == nullptr || told.Name != plain.Name), "cu" #Name);
  CUGUEST_REQUIRED_ENTRIES(CUGUEST_CHECK_TOLD)
  CUGUEST_OPTIONAL_ENTRIES(CUGUEST_CHECK_TOLD)
  CUGUEST_REQUIRED_OBJECT_ENTRIES(CUGUEST_CHECK_TOLD)
  CUGUEST_OPTIONAL_OBJECT_ENTRIES(CUGUEST_CHECK_TOLD)
  BOOST_TEST((told.CtxGetDeviceOf != plain.CtxGetDeviceOf));
  BOOST_TEST(told.version == plain.version);
}

BOOST_AUTO_TEST_CASE(opened_asked_and_closed_in_c) {
  BOOST_TEST(cuguest_driver_log_close() == CUDA_ERROR_ILLEGAL_STATE);
  BOOST_TEST(cuguest_driver_log_open() == CUDA_SUCCESS);
  BOOST_TEST(cuguest_driver_log_open() == CUDA_SUCCESS);
  BOOST_TEST(cuguest_driver_log_close() == CUDA_SUCCESS);
  const int code = FailOurs();
  const std::string reason = DriverLog::Reason(CUDA_ERROR_INVALID_CONTEXT);
  BOOST_TEST(cuguest_driver_log_reason(code, nullptr, 0) == reason.size());
  char text[8] = "~~~~~~~";
  BOOST_TEST(cuguest_driver_log_reason(code, text, sizeof(text)) == reason.size());
  BOOST_TEST(text == reason.substr(0, 7));
  std::string whole(reason.size(), '\0');
  BOOST_TEST(cuguest_driver_log_reason(code, whole.data(), whole.size() + 1) == reason.size());
  BOOST_TEST(whole == reason);
  BOOST_TEST(cuguest_driver_log_reason(CUDA_ERROR_UNKNOWN, text, sizeof(text)) == 0U);
  BOOST_TEST(text == std::string());
  BOOST_TEST(cuguest_driver_log_close() == CUDA_SUCCESS);
  BOOST_TEST(cuguest_driver_log_close() == CUDA_ERROR_ILLEGAL_STATE);
}

BOOST_AUTO_TEST_SUITE_END()
