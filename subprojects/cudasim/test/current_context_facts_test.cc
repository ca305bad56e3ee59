// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which calls need a current context, and in whose they work: each is made with nothing current,
// and with another context of the same device than that of its arguments.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "test/current_context/calls.h"

BOOST_AUTO_TEST_SUITE(current_context_facts)

using namespace cudasim_facts;
using namespace cudasim_facts::current_context;

namespace {

// What each call answers, and whose context it works in. docs/recipes/do_you_need_to_enter.md has
// the rows, which test/docs/recipes_test.py compares.
struct Row {
  const char* call;
  const char* nothing;  // is current
  const char* other;    // context is current than that of the arguments
  const char* works_in;
};
// What is not called: it crashes, as was measured, or nobody has measured it.
constexpr const char* kNotCalled[] = {"crashes", "not measured"};
constexpr Row kRows[] = {
    {"cuCtxPopCurrent", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuCtxGetDevice", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuCtxGetFlags", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuCtxSynchronize", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuCtxGetExecAffinity", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuCtxEnablePeerAccess", "INVALID_CONTEXT", "PEER_ACCESS_UNSUPPORTED", "the current one"},
    {"cuCtxDisablePeerAccess", "INVALID_CONTEXT", "PEER_ACCESS_NOT_ENABLED", "the current one"},
    {"cuMemGetInfo", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuStreamCreate", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuStreamCreateWithPriority", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuEventCreate", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemAlloc", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemHostAlloc", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemHostRegister", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuArray3DCreate", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuTexObjectCreate", "INVALID_CONTEXT", "PEER_ACCESS_NOT_ENABLED", "the current one"},
    {"cuSurfObjectCreate", "INVALID_CONTEXT", "PEER_ACCESS_NOT_ENABLED", "the current one"},
    {"cuModuleLoadDataEx", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuLibraryGetModule", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuLibraryGetGlobal", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuKernelGetFunction", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuStreamSynchronize, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuStreamGetCtx, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuStreamIsCapturing, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuEventRecord, stream 0", "INVALID_CONTEXT", "INVALID_HANDLE", "the current one"},
    {"cuMemAllocAsync, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemcpyHtoDAsync, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemsetD8Async, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuLaunchKernel, stream 0", "INVALID_CONTEXT", "INVALID_HANDLE", "the current one"},
    {"cuGraphLaunch, stream 0", "INVALID_CONTEXT", "SUCCESS", "the current one"},
    {"cuMemcpyHtoD", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemcpyDtoH", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemcpyDtoD", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemcpy3D", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemsetD8", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemsetD16", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuMemsetD32", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuTexObjectDestroy", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuSurfObjectDestroy", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuIpcGetMemHandle", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuLinkCreate", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", "INVALID_CONTEXT", "SUCCESS",
     "any that is current"},
    {"cuOccupancyMaxPotentialBlockSize", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuOccupancyAvailableDynamicSMemPerBlock", "INVALID_CONTEXT", "SUCCESS",
     "any that is current"},
    {"cuGraphAddKernelNode", "crashes", "SUCCESS", "any that is current"},
    {"cuGraphInstantiateWithFlags", "INVALID_CONTEXT", "SUCCESS", "any that is current"},
    {"cuGraphExecKernelNodeSetParams", "crashes", "SUCCESS", "any that is current"},
    {"cuStreamDestroy", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamSynchronize", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamQuery", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamWaitEvent", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamGetCtx", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamGetGreenCtx", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamIsCapturing", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamGetCaptureInfo", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamBeginCapture", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuStreamEndCapture", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuEventRecord", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemAllocAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemFreeAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemcpyHtoDAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemcpyDtoHAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemcpyDtoDAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemcpy3DAsync", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemsetD8Async", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemsetD16Async", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuMemsetD32Async", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuOccupancyMaxActiveClusters", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuLaunchKernel", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuLaunchKernelEx", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuGraphLaunch", "SUCCESS", "SUCCESS", "its stream's"},
    {"cuCtxGetId", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuCtxGetApiVersion", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuCtxGetDevResource", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuEventDestroy", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuEventQuery", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuEventSynchronize", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuEventElapsedTime", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuIpcGetEventHandle", "not measured", "crashes", "its argument's"},
    {"cuMemFree", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuMemFreeHost", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuMemHostUnregister", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuPointerGetAttribute", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuPointerGetAttributes", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuArrayDestroy", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuArray3DGetDescriptor", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuModuleUnload", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuModuleGetFunction", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuModuleGetGlobal", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncGetAttribute", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncSetAttribute", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncGetModule", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncGetName", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncGetParamInfo", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncIsLoaded", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuFuncLoad", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuLinkAddData", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuLinkComplete", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuLinkDestroy", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuGraphDestroy", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuGraphKernelNodeSetAttribute", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuGraphDestroyNode", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuGraphExecDestroy", "SUCCESS", "SUCCESS", "its argument's"},
    {"cuInit", "SUCCESS", "SUCCESS", "none"},
    {"cuDriverGetVersion", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetCount", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGet", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetName", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetPCIBusId", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetAttribute", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetUuid", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceCanAccessPeer", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetP2PAttribute", "SUCCESS", "SUCCESS", "none"},
    {"cuDevicePrimaryCtxRetain", "SUCCESS", "SUCCESS", "none"},
    {"cuDevicePrimaryCtxRelease", "SUCCESS", "SUCCESS", "none"},
    {"cuDevicePrimaryCtxGetState", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxCreate", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxDestroy", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxPushCurrent", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxSetCurrent", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxGetCurrent", "SUCCESS", "SUCCESS", "none"},
    {"cuThreadExchangeStreamCaptureMode", "SUCCESS", "SUCCESS", "none"},
    {"cuDeviceGetDevResource", "SUCCESS", "SUCCESS", "none"},
    {"cuDevSmResourceSplitByCount", "SUCCESS", "SUCCESS", "none"},
    {"cuDevResourceGenerateDesc", "SUCCESS", "SUCCESS", "none"},
    {"cuGreenCtxCreate", "SUCCESS", "SUCCESS", "none"},
    {"cuGreenCtxDestroy", "SUCCESS", "SUCCESS", "none"},
    {"cuCtxFromGreenCtx", "SUCCESS", "SUCCESS", "none"},
    {"cuMemGetAccess", "SUCCESS", "SUCCESS", "none"},
    {"cuModuleGetLoadingMode", "SUCCESS", "SUCCESS", "none"},
    {"cuLibraryLoadData", "SUCCESS", "SUCCESS", "none"},
    {"cuLibraryUnload", "SUCCESS", "SUCCESS", "none"},
    {"cuLibraryGetKernel", "SUCCESS", "SUCCESS", "none"},
    {"cuLibraryGetKernelCount", "SUCCESS", "SUCCESS", "none"},
    {"cuLibraryEnumerateKernels", "SUCCESS", "SUCCESS", "none"},
    {"cuKernelGetLibrary", "SUCCESS", "SUCCESS", "none"},
    {"cuKernelGetName", "SUCCESS", "SUCCESS", "none"},
    {"cuGraphCreate", "SUCCESS", "SUCCESS", "none"},
};

std::vector<DriverCall> AllCalls() {
  std::vector<DriverCall> all;
  for (const auto* calls : {&kContextCalls, &kStreamCalls, &kMemoryCalls, &kCodeCalls,
                            &kLaunchCalls, &kStreamZeroCalls})
    all.insert(all.end(), calls->begin(), calls->end());
  return all;
}

std::string NameOf(CUresult code) {
  const char* name = nullptr;
  RAW(cuGetErrorName)(code, &name);
  const std::string prefix = "CUDA_ERROR_";
  const std::string all = name != nullptr ? name : std::to_string(code);
  return all.rfind(prefix, 0) == 0 ? all.substr(prefix.size())
         : all == "CUDA_SUCCESS"   ? "SUCCESS"
                                   : all;
}

// What it gives in `trial`, or what is expected where it is not called.
std::string Answer(const char* expected, const DriverCall& call, Trial& trial) {
  const auto is_expected = [&](const char* each) { return std::strcmp(each, expected) == 0; };
  const bool is_called = std::none_of(std::begin(kNotCalled), std::end(kNotCalled), is_expected);
  return is_called ? NameOf(call.run(trial)) : expected;
}

}  // namespace

// A row for each call, and each is printed: what a driver says otherwise is seen at once.
BOOST_AUTO_TEST_CASE(each_call_with_another_context) {
  const std::vector<DriverCall> calls = AllCalls();
  BOOST_TEST(std::size(kRows) == calls.size());
  Objects objects;
  SetStack({});
  for (const Row& row : kRows) {
    const auto has_name = [&](const DriverCall& call) {
      return std::strcmp(call.name, row.call) == 0;
    };
    const auto call = std::find_if(calls.begin(), calls.end(), has_name);
    BOOST_TEST_REQUIRE((call != calls.end()), row.call);
    const bool compiles =
        row.call == std::string("cuLinkAddData") || row.call == std::string("cuLinkComplete");
    if (compiles && !HasCompiler()) continue;
    Trial nothing = {objects, nullptr};
    Trial other = {objects, objects.b.get()};
    const std::string without = Answer(row.nothing, *call, nothing);
    const std::string with = Answer(row.other, *call, other);
    std::printf("%s | nothing: %s | another: %s | %s%s\n", row.call, without.c_str(), with.c_str(),
                row.works_in, without == row.nothing && with == row.other ? "" : " DIFFERS");
    BOOST_TEST(without == row.nothing, row.call << ", nothing current: " << without);
    BOOST_TEST(with == row.other, row.call << ", another context current: " << with);
    // Of what tells.
    const bool is_current = std::strcmp(row.works_in, "the current one") == 0;
    BOOST_TEST((nothing.owner == nullptr || nothing.owner == objects.a.get()), row.call);
    const CUcontext owner = is_current ? objects.b.get() : objects.a.get();
    BOOST_TEST((other.owner == nullptr || other.owner == owner), row.call);
  }
}

BOOST_AUTO_TEST_SUITE_END()
