// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices and error names; and, each in a process of its own, what comes before
// cuInit, after fork, after an error that loses the device, and at the end.

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "cudasim/sim.h"
#include "test/facts.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(errors_and_init_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

BOOST_AUTO_TEST_CASE(errors_have_names_and_texts) {
  const char* text = nullptr;
  OK(RAW(cuGetErrorName)(CUDA_ERROR_CONTEXT_IS_DESTROYED, &text));
  BOOST_TEST(text == std::string("CUDA_ERROR_CONTEXT_IS_DESTROYED"));
  OK(RAW(cuGetErrorString)(CUDA_ERROR_CONTEXT_IS_DESTROYED, &text));
  BOOST_TEST(text == std::string("context is destroyed"));
  OK(RAW(cuGetErrorString)(CUDA_ERROR_INVALID_CONTEXT, &text));
  BOOST_TEST(text == std::string("invalid device context"));
  for (const int unknown : {12345, -1}) {
    text = "untouched";
    IS(RAW(cuGetErrorName)(OutOfRange<CUresult>(unknown), &text), INVALID_VALUE);
    BOOST_CHECK(text == nullptr);
    text = "untouched";
    IS(RAW(cuGetErrorString)(OutOfRange<CUresult>(unknown), &text), INVALID_VALUE);
    BOOST_CHECK(text == nullptr);
  }
}

BOOST_AUTO_TEST_CASE(init_may_be_repeated_and_takes_no_flags) {
  OK(RAW(cuInit)(0));
  IS(RAW(cuInit)(1), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(an_unknown_table_is_refused) {
  CUuuid unknown;
  std::memset(&unknown, 0x5a, sizeof(unknown));
  const void* table = &unknown;
  IS(RAW(cuGetExportTable)(&table, &unknown), INVALID_VALUE);
  BOOST_CHECK(table == nullptr);
  IS(RAW(cuGetExportTable)(nullptr, &unknown), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(devices_are_checked) {
  CUdevice device = 0;
  int value = 0;
  char name[64] = {};
  for (const int bad : {99, -1}) {
    IS(RAW(cuDeviceGet)(&device, bad), INVALID_DEVICE);
    IS(RAW(cuDeviceGetName)(name, sizeof(name), bad), INVALID_DEVICE);
    IS(RAW(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, bad), INVALID_DEVICE);
  }
  IS(RAW(cuDeviceGet)(nullptr, 0), INVALID_VALUE);
  IS(RAW(cuDeviceGetCount)(nullptr), INVALID_VALUE);
  IS(RAW(cuDeviceGetAttribute)(nullptr, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0), INVALID_VALUE);
  IS(RAW(cuDeviceGetAttribute)(&value, OutOfRange<CUdevice_attribute>(9999), 0), INVALID_VALUE);
  IS(RAW(cuDeviceGetName)(nullptr, 10, 0), INVALID_VALUE);
  IS(RAW(cuDeviceGetByPCIBusId)(&device, "nonsense"), INVALID_VALUE);
  IS(RAW(cuDriverGetVersion)(nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(device_texts_are_cut) {
  char name[64] = {};
  OK(RAW(cuDeviceGetName)(name, 5, 0));
  BOOST_TEST(name == std::string("NVID"));
  OK(RAW(cuDeviceGetName)(name, 1, 0));
  BOOST_TEST(name == std::string());
  char id[32] = {};
  IS(RAW(cuDeviceGetPCIBusId)(id, 5, 0), INVALID_VALUE);
  OK(RAW(cuDeviceGetPCIBusId)(id, sizeof(id), 0));
  CUdevice device = -1;
  OK(RAW(cuDeviceGetByPCIBusId)(&device, id));
  BOOST_TEST(device == 0);
}

BOOST_AUTO_TEST_CASE(device_queries_create_nothing) {
  int value = 0;
  OK(RAW(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0));
  BOOST_TEST(value == 1);
  OK(RAW(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0));
  BOOST_TEST(value == CU_COMPUTEMODE_DEFAULT);
  OK(RAW(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  BOOST_TEST(value >= 5);
  size_t bytes = 0;
  OK(RAW(cuDeviceTotalMem)(&bytes, 0));
  BOOST_TEST(bytes > 0u);
  CUuuid old_uuid = {};
  CUuuid uuid = {};
  using GetUuid = CUresult (*)(CUuuid*, CUdevice);
  OK(RAW_AS(GetUuid, "cuDeviceGetUuid")(&old_uuid, 0));
  OK(RAW(cuDeviceGetUuid)(&uuid, 0));
  BOOST_TEST(std::memcmp(&old_uuid, &uuid, sizeof(uuid)) == 0);
  BOOST_CHECK(CurrentContext() == nullptr);
  BOOST_TEST(!IsActive(0));
}

// -----------------------------------------------------------------------------

#define CHILD_OK(call) CHECK((call) == CUDA_SUCCESS)
#define CHILD_IS(call, error) CHECK((call) == CUDA_ERROR_##error)

namespace {

void RequireNotInitialized() {
  int number = 0;
  unsigned value = 0;
  unsigned long long id = 0;
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  CUstream stream = nullptr;
  CHILD_IS(RAW(cuDeviceGetCount)(&number), NOT_INITIALIZED);
  CHILD_IS(RAW(cuDeviceGetCount)(nullptr), NOT_INITIALIZED);  // before any argument check
  CHILD_IS(RAW(cuDeviceGet)(&number, 0), NOT_INITIALIZED);
  CHILD_IS(RAW(cuCtxGetCurrent)(nullptr), NOT_INITIALIZED);
  CHILD_IS(RAW(cuCtxPushCurrent)(nullptr), NOT_INITIALIZED);
  CHILD_IS(RAW(cuCtxPopCurrent)(&context), NOT_INITIALIZED);
  CHILD_IS(RAW(cuCtxSetCurrent)(nullptr), NOT_INITIALIZED);
  CHILD_IS(RAW(cuCtxGetId)(nullptr, &id), NOT_INITIALIZED);
  CHILD_IS(RAW(cuCtxGetApiVersion)(nullptr, &value), NOT_INITIALIZED);
  CHILD_IS(RAW(cuCtxCreate)(&context, nullptr, 0, 0), NOT_INITIALIZED);
  CHILD_IS(RAW(cuCtxSynchronize)(), NOT_INITIALIZED);
  CHILD_IS(RAW(cuDevicePrimaryCtxRetain)(&context, 0), NOT_INITIALIZED);
  CHILD_IS(RAW(cuDevicePrimaryCtxGetState)(0, &value, &number), NOT_INITIALIZED);
  CHILD_IS(RAW(cuStreamCreate)(&stream, 0), NOT_INITIALIZED);
  CHILD_IS(RAW(cuStreamGetCtx)(nullptr, &context), NOT_INITIALIZED);
  CHILD_IS(RAW(cuMemAlloc)(&pointer, 16), NOT_INITIALIZED);
  CHILD_IS(RAW(cuMemFree)(0), NOT_INITIALIZED);
}

void RequireHarmlessCallsWork() {
  int version = 0;
  const char* name = nullptr;
  void* function = nullptr;
  CHILD_OK(RAW(cuDriverGetVersion)(&version));
  CHILD_OK(RAW(cuGetErrorName)(CUDA_ERROR_UNKNOWN, &name));
  CHILD_OK(RAW(cuGetProcAddress)("cuCtxGetCurrent", &function, 4000, 0, nullptr));
}

void RequireWorks() {
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  CHILD_OK(RAW(cuCtxCreate)(&context, nullptr, 0, 0));
  CHILD_OK(RAW(cuCtxPopCurrent)(nullptr));
  CHILD_OK(RAW(cuCtxPushCurrent)(context));
  CHILD_OK(RAW(cuMemAlloc)(&pointer, 16));
  CHILD_OK(RAW(cuCtxDestroy)(context));
}

void RequireDeinitialized() {
  int number = 0;
  CUcontext context = nullptr;
  const char* name = nullptr;
  void* function = nullptr;
  CHILD_IS(RAW(cuCtxGetCurrent)(&context), DEINITIALIZED);
  CHILD_IS(RAW(cuCtxPopCurrent)(&context), DEINITIALIZED);
  CHILD_IS(RAW(cuInit)(0), DEINITIALIZED);
  CHILD_IS(RAW(cuDriverGetVersion)(&number), DEINITIALIZED);
  CHILD_IS(RAW(cuGetErrorName)(CUDA_ERROR_UNKNOWN, &name), DEINITIALIZED);
  CHILD_IS(RAW(cuGetProcAddress)("cuInit", &function, 2000, 0, nullptr), DEINITIALIZED);
}

// The exit code of `function` in a forked child.
template <typename Function>
int InFork(const Function& function) {
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    function();
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// exit() may not be called again by what exit() runs.
void QuickExitUnless(bool condition, const char* text) {
  if (condition) return;
  std::printf("not so: %s\n", text);
  std::fflush(stdout);
  _exit(1);
}

}  // namespace

CHILD(before_init) {
  RequireNotInitialized();
  RequireHarmlessCallsWork();
  CHILD_IS(RAW(cuCtxDestroy)(nullptr), INVALID_VALUE);  // the exception
  auto mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  CHILD_IS(RAW(cuThreadExchangeStreamCaptureMode)(&mode), NOT_INITIALIZED);
  CHILD_IS(RAW(cuInit)(1), INVALID_VALUE);
  RequireNotInitialized();
  CHILD_OK(RAW(cuInit)(0));
  CHECK(CurrentContext() == nullptr);
  RequireWorks();
  return 0;
}

BOOST_AUTO_TEST_CASE(before_init_nothing_works_that_needs_it) {
  REQUIRE_CHILD_PASSES("before_init");
}

CHILD(fork_before_init) {
  RequireHarmlessCallsWork();
  CHILD_IS(RAW(cuInit)(1), INVALID_VALUE);
  const auto child = [] {
    RequireNotInitialized();
    CHILD_OK(RAW(cuInit)(0));
    RequireWorks();
  };
  CHECK(InFork(child) == 0);
  CHILD_OK(RAW(cuInit)(0));
  RequireWorks();
  return 0;
}

BOOST_AUTO_TEST_CASE(a_fork_before_init_is_harmless) { REQUIRE_CHILD_PASSES("fork_before_init"); }

CHILD(fork_after_init) {
  CHILD_OK(RAW(cuInit)(0));
  CUcontext context = nullptr;
  CHILD_OK(RAW(cuCtxCreate)(&context, nullptr, 0, 0));
  const auto child = [&] {
    RequireHarmlessCallsWork();
    RequireNotInitialized();
    CHILD_IS(RAW(cuInit)(0), NOT_INITIALIZED);
    CHILD_IS(RAW(cuCtxPushCurrent)(context), NOT_INITIALIZED);
    CHILD_IS(RAW(cuCtxDestroy)(context), NOT_INITIALIZED);
    auto mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    CHILD_OK(RAW(cuThreadExchangeStreamCaptureMode)(&mode));  // the thread's own
  };
  CHECK(InFork(child) == 0);
  CHILD_OK(RAW(cuCtxDestroy)(context));
  RequireWorks();
  return 0;
}

BOOST_AUTO_TEST_CASE(a_child_forked_after_init_has_no_driver) {
  REQUIRE_CHILD_PASSES("fork_after_init");
}

CHILD(exit_order) {
  std::atexit([] { RequireDeinitialized(); });  // runs after the driver's end
  CHILD_OK(RAW(cuInit)(0));
  static CUcontext context = nullptr;
  CHILD_OK(RAW(cuCtxCreate)(&context, nullptr, 0, 0));
  std::atexit([] {  // runs before it
    CUdeviceptr pointer = 0;
    QuickExitUnless(CurrentContext() == context, "the stack outlives main");
    QuickExitUnless(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS, "push");
    QuickExitUnless(RAW(cuMemAlloc)(&pointer, 16) == CUDA_SUCCESS, "alloc");
    QuickExitUnless(RAW(cuCtxPopCurrent)(nullptr) == CUDA_SUCCESS, "pop");
    QuickExitUnless(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS, "destroy");
  });
  return 0;
}

BOOST_AUTO_TEST_CASE(the_driver_ends_as_if_init_had_registered_it) {
  REQUIRE_CHILD_PASSES("exit_order");
}

namespace {

// Stores through a null pointer.
constexpr char kLosesTheDevice[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .entry loses_the_device()
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  mov.u64 %rd1, 0;
  mov.u32 %r1, 1;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

}  // namespace

CHILD(sticky_error) {
  CHILD_OK(RAW(cuInit)(0));
  Sim::RegisterKernel("loses_the_device",
                      [](const SimLaunch&) { return CUDA_ERROR_ILLEGAL_ADDRESS; });
  CUcontext a = nullptr;
  CUcontext b = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHILD_OK(RAW(cuCtxCreate)(&b, nullptr, 0, 0));
  CHILD_OK(RAW(cuCtxCreate)(&a, nullptr, 0, 0));
  CHILD_OK(RAW(cuModuleLoadData)(&module, kLosesTheDevice));
  CHILD_OK(RAW(cuModuleGetFunction)(&function, module, "loses_the_device"));
  CHILD_OK(RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CHILD_IS(RAW(cuCtxSynchronize)(), ILLEGAL_ADDRESS);
  CUcontext other = nullptr;
  CUdeviceptr pointer = 0;
  unsigned long long id = 0;
  CHILD_OK(RAW(cuCtxGetCurrent)(&other));
  CHILD_OK(RAW(cuCtxPushCurrent)(a));
  CHILD_OK(RAW(cuCtxPopCurrent)(nullptr));
  CHILD_OK(RAW(cuCtxSetCurrent)(a));
  CHILD_OK(RAW(cuCtxGetId)(a, &id));
  CHILD_IS(RAW(cuMemAlloc)(&pointer, 64), ILLEGAL_ADDRESS);
  CHILD_IS(RAW(cuCtxCreate)(&other, nullptr, 0, 0), ILLEGAL_ADDRESS);
  CHILD_OK(RAW(cuCtxPushCurrent)(b));
  CHILD_IS(RAW(cuMemAlloc)(&pointer, 64), ILLEGAL_ADDRESS);
  CHILD_OK(RAW(cuCtxPopCurrent)(nullptr));
  CHILD_OK(RAW(cuCtxDestroy)(a));
  CHILD_IS(RAW(cuDevicePrimaryCtxRetain)(&other, 0), ILLEGAL_ADDRESS);
  return 0;
}

BOOST_AUTO_TEST_CASE(an_illegal_address_loses_the_device_and_not_the_stack) {
  REQUIRE_CHILD_PASSES("sticky_error");
}

CHILD(asks_before_init) {
  int count = 0;
  CHECK(RAW(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED);
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CHECK(RAW(cuDeviceGetCount)(&count) == CUDA_SUCCESS);
  return 0;
}

CHILD(fails_a_call) {
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CUcontext current = nullptr;
  CHECK(RAW(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  CUdevice device = 0;
  CHECK(RAW(cuCtxGetDevice)(&device) == CUDA_ERROR_INVALID_CONTEXT);
  return 0;
}

namespace {

std::string LogOf(const std::string& child) {
  char name[] = "/tmp/cudasim_log_XXXXXX";
  const int file = mkstemp(name);
  BOOST_TEST_REQUIRE(file >= 0);
  close(file);
  const cudasim_test::Ended ended =
      cudasim_test::RunSelf({"--child=" + child}, {std::string("CUDA_LOG_FILE=") + name});
  std::ifstream stream(name);
  const std::string log((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  unlink(name);
  BOOST_TEST(ended.code == 0, ended.output);
  return log;
}

}  // namespace

// So the question "is CUDA initialised?" is none.
BOOST_AUTO_TEST_CASE(a_call_that_fails_before_init_is_no_line_in_the_log,
                     *cudasim_test::NeedsDriver(12080, "CUDA_LOG_FILE")) {
  BOOST_TEST(LogOf("asks_before_init") == "");
  BOOST_TEST(LogOf("fails_a_call") != "");
}

// Whether the caller expects the failure or not. How a real driver words it was not measured here.
BOOST_AUTO_TEST_CASE(a_call_that_fails_is_a_line_in_the_log, *cudasim_test::OnlySim()) {
  const cudasim_test::Ended told =
      cudasim_test::RunSelf({"--child=fails_a_call"}, {"CUDA_LOG_FILE=stderr"});
  BOOST_TEST(told.code == 0);
  BOOST_TEST(told.output.find("cuCtxGetDevice") != std::string::npos, told.output);
  BOOST_TEST(told.output.find("cuCtxGetCurrent") == std::string::npos, told.output);
  const cudasim_test::Ended untold =
      cudasim_test::RunSelf({"--child=fails_a_call"}, {"CUDA_LOG_FILE"});
  BOOST_TEST(untold.code == 0);
  BOOST_TEST(untold.output == "");
}

BOOST_AUTO_TEST_SUITE_END()
