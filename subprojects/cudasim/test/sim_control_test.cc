// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulation's own controls: faults, counters, hidden entries, configuration.

#include <cstring>
#include <set>
#include <string>

#include "cudasim/sim.h"
#include "test/facts.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(sim_control)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLive;
using cudasim_test::OnlySim;

namespace {

struct NoFaultsLeft {
  ~NoFaultsLeft() {
    Sim::ClearFaults();
    Sim::HideEntry(nullptr);
    Sim::SetDriverVersion(13000);
  }
};
constexpr int kNewestDriver = 13050;  // which has every entry

// Calls an entry with eleven zeros: the calling conventions of x86-64 and AArch64 let a
// function with fewer parameters be called like that, and all of them are integers or
// pointers. A fault returns before any is looked at.
CUresult CallWithZeros(void* function) {
  using Z = std::uintptr_t;
  using AnyEntry = CUresult (*)(Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z);
  return reinterpret_cast<AnyEntry>(function)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

// The newest form; null if there is none.
void* Resolve(const char* name) {
  void* function = nullptr;
  int version = 0;
  RAW(cuDriverGetVersion)(&version);
  RAW(cuGetProcAddress)(name, &function, version, 0, nullptr);
  return function;
}

}  // namespace

BOOST_AUTO_TEST_CASE(entry_names_are_distinct, *OnlySim()) {
  std::set<std::string> names;
  size_t index = 0;
  for (; Sim::EntryName(index) != nullptr; ++index) names.insert(Sim::EntryName(index));
  BOOST_TEST(names.size() == index);
  BOOST_TEST(names.count("cuCtxPushCurrent") == 1u);
}

BOOST_AUTO_TEST_CASE(every_entry_fails_on_demand_and_does_nothing_else, *OnlySim()) {
  const NoFaultsLeft cleanup;
  Sim::SetDriverVersion(kNewestDriver);
  const OwnContext a;
  SetStack({a.get()});
  const SimLive live = Sim::Live();
  for (size_t i = 0; Sim::EntryName(i) != nullptr; ++i) {
    const char* name = Sim::EntryName(i);
    BOOST_TEST_CONTEXT(name) {
      void* const function = Resolve(name);
      BOOST_REQUIRE(function != nullptr);
      const auto calls = Sim::Calls(name);
      Sim::FailCall(name, 1, CUDA_ERROR_UNKNOWN);
      BOOST_CHECK_EQUAL(CallWithZeros(function), CUDA_ERROR_UNKNOWN);
      BOOST_TEST(Sim::Calls(name) == calls + 1);
      BOOST_CHECK(Sim::Live() == live);
      BOOST_CHECK(CurrentContext() == a.get());
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_fault_hits_the_nth_call_once, *OnlySim()) {
  const NoFaultsLeft cleanup;
  CUcontext out = nullptr;
  Sim::FailCall("cuCtxGetCurrent", 3, CUDA_ERROR_UNKNOWN);
  Sim::FailCall("cuCtxGetCurrent", 4, CUDA_ERROR_OPERATING_SYSTEM);
  OK(RAW(cuCtxGetCurrent)(&out));
  OK(RAW(cuCtxGetCurrent)(&out));
  IS(RAW(cuCtxGetCurrent)(&out), UNKNOWN);
  IS(RAW(cuCtxGetCurrent)(&out), OPERATING_SYSTEM);
  OK(RAW(cuCtxGetCurrent)(&out));
}

BOOST_AUTO_TEST_CASE(second_fault_of_one_call_waits, *OnlySim()) {
  const NoFaultsLeft cleanup;
  CUcontext out = nullptr;
  Sim::FailCall("cuCtxGetCurrent", 2, CUDA_ERROR_UNKNOWN);
  Sim::FailCall("cuCtxGetCurrent", 2, CUDA_ERROR_OPERATING_SYSTEM);
  OK(RAW(cuCtxGetCurrent)(&out));
  IS(RAW(cuCtxGetCurrent)(&out), UNKNOWN);
  IS(RAW(cuCtxGetCurrent)(&out), OPERATING_SYSTEM);
  OK(RAW(cuCtxGetCurrent)(&out));
}

BOOST_AUTO_TEST_CASE(a_fault_may_be_one_threads_only, *OnlySim()) {
  const NoFaultsLeft cleanup;
  Sim::FailCall("cuCtxGetCurrent", 1, CUDA_ERROR_UNKNOWN, /*from_any_thread=*/false);
  OnAnotherThread([] { CurrentContext(); });
  CUcontext out = nullptr;
  IS(RAW(cuCtxGetCurrent)(&out), UNKNOWN);
}

BOOST_AUTO_TEST_CASE(faults_can_be_cleared, *OnlySim()) {
  Sim::FailCall("cuCtxGetCurrent", 1, CUDA_ERROR_UNKNOWN);
  Sim::ClearFaults();
  CurrentContext();
}

BOOST_AUTO_TEST_CASE(a_fault_hits_every_version_of_a_name, *OnlySim()) {
  const NoFaultsLeft cleanup;
  using Pop = CUresult (*)(CUcontext*);
  Sim::FailCall("cuCtxPopCurrent", 1, CUDA_ERROR_UNKNOWN);
  IS(RAW_AS(Pop, "cuCtxPopCurrent")(nullptr), UNKNOWN);
}

BOOST_AUTO_TEST_CASE(calls_are_counted, *OnlySim()) {
  Sim::ResetCalls();
  BOOST_TEST(Sim::TotalCalls() == 0u);
  CUcontext out = nullptr;
  OK(RAW(cuCtxGetCurrent)(&out));
  OnAnotherThread([] { OK(RAW(cuCtxSetCurrent)(nullptr)); });
  IS(RAW(cuCtxPopCurrent)(&out), INVALID_CONTEXT);
  BOOST_TEST(Sim::Calls("cuCtxGetCurrent") == 1u);
  BOOST_TEST(Sim::Calls("cuCtxSetCurrent") == 1u);
  BOOST_TEST(Sim::Calls("cuCtxPopCurrent") == 1u);
  BOOST_TEST(Sim::TotalCalls() == 3u);
}

BOOST_AUTO_TEST_CASE(what_is_not_modelled_says_so_and_is_counted, *OnlySim()) {
  const NoFaultsLeft cleanup;
  Sim::ResetCalls();
  IS(CallWithZeros(cudasim_test::RawSymbol("cuMulticastUnbind")), NOT_SUPPORTED);
  IS(CallWithZeros(Resolve("cuGraphicsResourceSetMapFlags")), NOT_SUPPORTED);
  IS(CallWithZeros(Resolve("cuGraphicsResourceSetMapFlags")), NOT_SUPPORTED);
  IS(CallWithZeros(cudasim_test::RawSymbol("cuGraphicsResourceSetMapFlags")), NOT_SUPPORTED);
  Sim::FailCall("cuGraphicsResourceSetMapFlags", 1, CUDA_ERROR_UNKNOWN);
  IS(CallWithZeros(Resolve("cuGraphicsResourceSetMapFlags")), UNKNOWN);
  BOOST_TEST(Sim::Calls("cuGraphicsResourceSetMapFlags") == 4u);
  BOOST_TEST(Sim::UnmodelledCalls("cuGraphicsResourceSetMapFlags") == 1u);
  BOOST_TEST(Sim::UnmodelledCalls("cuGraphicsResourceSetMapFlags_v2") == 2u);
  BOOST_TEST(Sim::UnmodelledCalls("cuMulticastUnbind") == 1u);
  BOOST_TEST(Sim::UnmodelledCalls("cuMulticastCreate") == 0u);
  BOOST_TEST(Sim::UnmodelledCalls() == 4u);
  Sim::ResetCalls();
  BOOST_TEST(Sim::UnmodelledCalls() == 0u);
}

BOOST_AUTO_TEST_CASE(a_hidden_entry_is_not_found, *OnlySim()) {
  const NoFaultsLeft cleanup;
  Sim::HideEntry("cuCtxGetId");
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = {};
  OK(RAW(cuGetProcAddress)("cuCtxGetId", &function, 13000, 0, &status));
  BOOST_CHECK(function == nullptr);
  BOOST_CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  Sim::HideEntry(nullptr);
  BOOST_CHECK(Resolve("cuCtxGetId") != nullptr);
}

BOOST_AUTO_TEST_CASE(an_older_driver_has_less, *OnlySim()) {
  Sim::SetDriverVersion(11080);
  int version = 0;
  OK(RAW(cuDriverGetVersion)(&version));
  BOOST_TEST(version == 11080);
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = {};
  OK(RAW(cuGetProcAddress)("cuCtxGetId", &function, 11080, 0, &status));
  BOOST_CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  OK(RAW(cuGetProcAddress)("cuCtxCreate", &function, 11080, 0, &status));
  BOOST_CHECK_EQUAL(function, cudasim_test::RawSymbol("cuCtxCreate_v3"));
  IS(RAW(cuGetProcAddress)("cuCtxCreate", &function, 12000, 0, &status), INVALID_VALUE);
  Sim::SetDriverVersion(13000);
}

BOOST_AUTO_TEST_CASE(what_is_alive_is_counted, *OnlySim()) {
  const SimLive before = Sim::Live();
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  void* host = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  OK(RAW(cuCtxCreate)(&context, nullptr, 0, 0));
  OK(RAW(cuMemAlloc)(&pointer, 16));
  OK(RAW(cuMemAllocHost)(&host, 16));
  OK(RAW(cuStreamCreate)(&stream, 0));
  OK(RAW(cuEventCreate)(&event, 0));
  OK(RAW(cuModuleLoadData)(&module, kPtx));
  const SimLive now = Sim::Live();
  BOOST_TEST(now.contexts == before.contexts + 1);
  BOOST_TEST(now.primary_references == before.primary_references + 1);
  BOOST_TEST(now.allocations == before.allocations + 2);
  BOOST_TEST(now.streams == before.streams + 1);
  BOOST_TEST(now.events == before.events + 1);
  BOOST_TEST(now.modules == before.modules + 1);
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
  OK(RAW(cuCtxDestroy)(context));  // and everything in it
  BOOST_CHECK(Sim::Live() == before);
}

BOOST_AUTO_TEST_CASE(graphs_are_counted, *OnlySim()) {
  const cudasim_test::OwnContext context;
  OK(RAW(cuCtxPushCurrent)(context.get()));
  const SimLive before = Sim::Live();
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  OK(RAW(cuStreamCreate)(&stream, 0));
  OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  BOOST_TEST(Sim::Live().graphs == before.graphs + 1);
  OK(RAW(cuStreamEndCapture)(stream, &graph));
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  BOOST_TEST(Sim::Live().graphs == before.graphs + 2);
  OK(RAW(cuGraphExecDestroy)(executable));
  OK(RAW(cuGraphDestroy)(graph));
  OK(RAW(cuStreamDestroy)(stream));
  BOOST_CHECK(Sim::Live() == before);
  OK(RAW(cuCtxPopCurrent)(nullptr));
}

BOOST_AUTO_TEST_CASE(what_needs_no_context_is_counted, *OnlySim()) {
  constexpr size_t kSize = size_t{2} << 20;
  const SimLive before = Sim::Live();
  CUmemPoolProps pool_properties = {};
  pool_properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  pool_properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUgreenCtx green = nullptr;
  CUmemoryPool pool = nullptr;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle memory = 0;
  OK(RAW(cuGreenCtxCreate)(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(RAW(cuMemPoolCreate)(&pool, &pool_properties));
  OK(RAW(cuMemAddressReserve)(&address, kSize, 0, 0, 0));
  OK(RAW(cuMemCreate)(&memory, kSize, &properties, 0));
  OK(RAW(cuMemMap)(address, kSize, 0, memory, 0));
  const SimLive now = Sim::Live();
  BOOST_TEST(now.contexts == before.contexts);
  BOOST_TEST(now.primary_references == before.primary_references + 1);
  BOOST_TEST(now.green_contexts == before.green_contexts + 1);
  BOOST_TEST(now.pools == before.pools + 1);
  BOOST_TEST(now.virtual_memory == before.virtual_memory + 2);
  BOOST_TEST(now.allocations == before.allocations + 1);
  OK(RAW(cuMemUnmap)(address, kSize));
  OK(RAW(cuMemRelease)(memory));
  OK(RAW(cuMemAddressFree)(address, kSize));
  OK(RAW(cuMemPoolDestroy)(pool));
  OK(RAW(cuGreenCtxDestroy)(green));
  BOOST_CHECK(Sim::Live() == before);
}

BOOST_AUTO_TEST_CASE(contexts_take_room_on_the_device, *OnlySim()) {
  std::vector<CUcontext> contexts;
  CUcontext context = nullptr;
  while (RAW(cuCtxCreate)(&context, nullptr, 0, 0) == CUDA_SUCCESS) contexts.push_back(context);
  IS(RAW(cuCtxCreate)(&context, nullptr, 0, 0), OUT_OF_MEMORY);
  BOOST_TEST(contexts.size() > 100u);
  while (!contexts.empty()) {
    OK(RAW(cuCtxDestroy)(contexts.back()));
    contexts.pop_back();
  }
}

BOOST_AUTO_TEST_CASE(a_fatbin_with_plain_ptx_is_read, *OnlySim()) {
  const OwnContext a;
  SetStack({a.get()});
  struct {
    unsigned magic = 0xba55ed50;
    unsigned short version = 1;
    unsigned short header_size = 16;
    unsigned long long size = 64 + sizeof(text);
    unsigned short kind = 1;  // PTX
    unsigned short member_version = 0x101;
    unsigned member_header_size = 64;
    unsigned long long member_size = sizeof(text);
    unsigned compressed_size = 0;
    unsigned options = 0;
    unsigned code_version = 0;
    unsigned architecture = 120;
    unsigned long long rest[4] = {};
    char text[(sizeof(kPtx) + 7) / 8 * 8] = {};
  } fatbin;
  CUmodule module = nullptr;
  std::memcpy(fatbin.text, kPtx, sizeof(kPtx));
  IS(RAW(cuModuleLoadData)(&module, &fatbin), NO_BINARY_FOR_GPU);
  fatbin.architecture = 50;
  OK(RAW(cuModuleLoadData)(&module, &fatbin));
  CUfunction function = nullptr;
  OK(RAW(cuModuleGetFunction)(&function, module, "store"));
  OK(RAW(cuModuleUnload)(module));
  fatbin.member_size = sizeof(fatbin.text) + 8;  // beyond the end
  IS(RAW(cuModuleLoadData)(&module, &fatbin), INVALID_IMAGE);
  SetStack({});
}

BOOST_AUTO_TEST_CASE(parameters_have_the_sizes_of_the_ptx, *OnlySim()) {
  static const char kParameters[] = R"(.version 9.0
.target sm_90a
.address_size 64
// .entry not_this(.param .u8 x)
.visible .entry sizes(
  .param .u64 .ptr .global .align 4 sizes_param_0,
  .param .align 16 .b8 sizes_param_1[32], /* .param */
  .param .u8 sizes_param_2,
  .param .f64 sizes_param_3
)
.maxntid 128, 1, 1
{ ret; }
)";
  static std::vector<size_t> sizes;
  static std::vector<std::ptrdiff_t> offsets;
  Sim::RegisterKernel("sizes", [](const cudasim::SimLaunch& launch) {
    for (size_t i = 0; i < launch.parameter_count; ++i) {
      sizes.push_back(launch.parameter_sizes[i]);
      offsets.push_back(static_cast<char*>(launch.parameters[i]) -
                        static_cast<char*>(launch.parameters[0]));
    }
    return CUDA_SUCCESS;
  });
  const OwnContext a;
  SetStack({a.get()});
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  OK(RAW(cuModuleLoadData)(&module, kParameters));
  IS(RAW(cuModuleGetFunction)(&function, module, "not_this"), NOT_FOUND);
  OK(RAW(cuModuleGetFunction)(&function, module, "sizes"));
  char packed[64] = {};
  size_t size = sizeof(packed);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  OK(RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  BOOST_CHECK((sizes == std::vector<size_t>{8, 32, 1, 8}));
  BOOST_CHECK((offsets == std::vector<std::ptrdiff_t>{0, 16, 48, 56}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(kernels_without_a_host_function_can_be_skipped, *OnlySim()) {
  const OwnContext a;
  SetStack({a.get()});
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  OK(RAW(cuModuleLoadData)(&module, kPtx));
  OK(RAW(cuModuleGetFunction)(&function, module, "nothing"));
  Sim::SkipUnknownKernels(true);
  BOOST_TEST(Sim::SkippedLaunches("nothing") == 0u);
  OK(RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  OK(RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  OK(RAW(cuCtxSynchronize)());
  BOOST_TEST(Sim::SkippedLaunches("nothing") == 2u);
  BOOST_TEST(Sim::SkippedLaunches() == 2u);
  BOOST_TEST(Sim::SkippedLaunches("store") == 0u);
  Sim::SkipUnknownKernels(false);
  OK(RAW(cuModuleUnload)(module));
  SetStack({});
}

// -----------------------------------------------------------------------------

CHILD(no_device) {
  Sim::SetDeviceCount(0);
  CHECK(RAW(cuInit)(0) == CUDA_ERROR_NO_DEVICE);
  Sim::SetDeviceCount(3);
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  Sim::SetDeviceCount(1);  // too late
  int count = 0;
  CHECK(RAW(cuDeviceGetCount)(&count) == CUDA_SUCCESS && count == 3);
  return 0;
}

BOOST_AUTO_TEST_CASE(the_device_count_is_set_before_init, *OnlySim()) {
  REQUIRE_CHILD_PASSES("no_device");
}

CHILD(deinitialize) {
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CUcontext context = nullptr;
  CHECK(RAW(cuCtxCreate)(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  Sim::SetDriverVersion(kNewestDriver);
  std::vector<void*> entries;
  for (size_t i = 0; Sim::EntryName(i) != nullptr; ++i) {
    const std::string name = Sim::EntryName(i);
    // Destroying null is INVALID_VALUE at any time.
    if (name != "cuCtxDestroy") entries.push_back(Resolve(name.c_str()));
  }
  Sim::Deinitialize();
  for (void* entry : entries) CHECK(CallWithZeros(entry) == CUDA_ERROR_DEINITIALIZED);
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_ERROR_DEINITIALIZED);
  return 0;
}

BOOST_AUTO_TEST_CASE(after_the_end_nothing_works, *OnlySim()) {
  REQUIRE_CHILD_PASSES("deinitialize");
}

BOOST_AUTO_TEST_SUITE_END()
