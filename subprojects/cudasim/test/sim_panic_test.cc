// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is undefined on a real driver ends the simulation with a text that says what.

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "cudasim/sim.h"
#include "test/facts.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(sim_panic)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim_test::Ended;
using cudasim_test::OnlySim;
using cudasim_test::RunChild;

namespace {

void CheckPanics(const char* child, const std::string& entry, const std::string& text) {
  BOOST_TEST_CONTEXT(child) {
    const Ended ended = RunChild(child);
    BOOST_TEST(ended.code == -SIGABRT);
    const auto has = [&](const std::string& part) {
      return ended.output.find(part) != std::string::npos;
    };
    BOOST_TEST(has("cudasim: " + entry), ended.output);
    BOOST_TEST(has(text), ended.output);
    BOOST_TEST(has("libcuda"), "no stack trace: " << ended.output);
  }
}

// A current context.
CUcontext Create() {
  CUcontext context = nullptr;
  RAW(cuInit)(0);
  RAW(cuCtxCreate)(&context, nullptr, 0, 0);
  return context;
}

CUcontext CreateAndDestroy() {
  const CUcontext context = Create();
  RAW(cuCtxDestroy)(context);
  return context;
}

template <typename Handle>
Handle Garbage() {
  static char something[4096];
  return reinterpret_cast<Handle>(something);
}

}  // namespace

CHILD(push_destroyed) { return RAW(cuCtxPushCurrent)(CreateAndDestroy()); }
CHILD(set_destroyed) { return RAW(cuCtxSetCurrent)(CreateAndDestroy()); }
CHILD(device_of_destroyed) {
  CUdevice device = 0;
  return RAW(cuCtxGetDevice_v2)(&device, CreateAndDestroy());
}
CHILD(set_flags_of_destroyed) {
  const CUcontext context = Create();
  RAW(cuCtxPushCurrent)(context);
  RAW(cuCtxDestroy)(context);
  return RAW(cuCtxSetFlags)(0);
}

BOOST_AUTO_TEST_CASE(destroyed_contexts, *OnlySim()) {
  const std::string text = "the context was destroyed and is on no stack";
  CheckPanics("push_destroyed", "cuCtxPushCurrent(0x", text);
  CheckPanics("set_destroyed", "cuCtxSetCurrent(0x", text);
  CheckPanics("device_of_destroyed", "cuCtxGetDevice(0x", text);
  CheckPanics("set_flags_of_destroyed", "cuCtxSetFlags(0x", "the current context was destroyed");
}

CHILD(push_garbage) {
  Create();
  return RAW(cuCtxPushCurrent)(Garbage<CUcontext>());
}
CHILD(set_garbage) {
  Create();
  return RAW(cuCtxSetCurrent)(Garbage<CUcontext>());
}
CHILD(destroy_garbage) {
  Create();
  return RAW(cuCtxDestroy)(Garbage<CUcontext>());
}
CHILD(id_of_garbage) {
  Create();
  unsigned long long id = 0;
  return RAW(cuCtxGetId)(Garbage<CUcontext>(), &id);
}

BOOST_AUTO_TEST_CASE(values_that_never_were_contexts, *OnlySim()) {
  const std::string text = "this never was a context";
  CheckPanics("push_garbage", "cuCtxPushCurrent(0x", text);
  CheckPanics("set_garbage", "cuCtxSetCurrent(0x", text);
  CheckPanics("destroy_garbage", "cuCtxDestroy(0x", text);
  CheckPanics("id_of_garbage", "cuCtxGetId(0x", text);
}

CHILD(garbage_stream) {
  Create();
  return RAW(cuStreamSynchronize)(Garbage<CUstream>());
}
CHILD(destroyed_stream) {
  Create();
  CUstream stream = nullptr;
  RAW(cuStreamCreate)(&stream, 0);
  RAW(cuStreamDestroy)(stream);
  return RAW(cuStreamQuery)(stream);
}
CHILD(garbage_event) {
  Create();
  return RAW(cuEventQuery)(Garbage<CUevent>());
}
CHILD(destroyed_event) {
  Create();
  CUevent event = nullptr;
  RAW(cuEventCreate)(&event, 0);
  RAW(cuEventDestroy)(event);
  return RAW(cuEventDestroy)(event);
}
CHILD(event_of_an_earlier_incarnation) {
  CUcontext primary = nullptr;
  CUevent event = nullptr;
  RAW(cuInit)(0);
  RAW(cuDevicePrimaryCtxRetain)(&primary, 0);
  RAW(cuCtxPushCurrent)(primary);
  RAW(cuEventCreate)(&event, 0);
  RAW(cuDevicePrimaryCtxReset)(0);
  RAW(cuDevicePrimaryCtxRetain)(&primary, 0);
  return RAW(cuEventDestroy)(event);
}
CHILD(event_of_a_destroyed_context) {
  const CUcontext context = Create();
  CUevent event = nullptr;
  RAW(cuEventCreate)(&event, 0);
  RAW(cuCtxDestroy)(context);
  return RAW(cuEventQuery)(event);
}
CHILD(garbage_module) {
  Create();
  return RAW(cuModuleUnload)(Garbage<CUmodule>());
}
CHILD(unloaded_module) {
  Create();
  CUmodule module = nullptr;
  const char* ptx = ".version 7.0\n.target sm_50\n.address_size 64\n";
  RAW(cuModuleLoadData)(&module, ptx);
  RAW(cuModuleUnload)(module);
  return RAW(cuModuleUnload)(module);
}
CHILD(kernel_node_without_context) {
  const CUcontext context = Create();
  CUmodule module = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUDA_KERNEL_NODE_PARAMS_v2 kernel = {};
  RAW(cuModuleLoadData)(&module, cudasim_facts::kPtx);
  RAW(cuModuleGetFunction)(&kernel.func, module, "store");
  RAW(cuGraphCreate)(&graph, 0);
  CUcontext popped = context;
  RAW(cuCtxPopCurrent)(&popped);
  return RAW(cuGraphAddKernelNode)(&node, graph, nullptr, 0, &kernel);
}
CHILD(garbage_function) {
  Create();
  return RAW(cuLaunchKernel)(Garbage<CUfunction>(), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
}
CHILD(callback_waits_for_itself) {
  Create();
  static CUstream stream = nullptr;
  RAW(cuStreamCreate)(&stream, 0);
  const auto wait = [](void*) { RAW(cuStreamSynchronize)(stream); };
  RAW(cuLaunchHostFunc)(stream, wait, nullptr);
  return RAW(cuStreamSynchronize)(stream);
}
CHILD(callback_waits_for_what_waits_for_it) {
  Create();
  static CUstream other = nullptr;
  static std::atomic<bool> waits{false};
  CUstream stream = nullptr;
  CUevent event = nullptr;
  RAW(cuStreamCreate)(&stream, 0);
  RAW(cuStreamCreate)(&other, 0);
  RAW(cuEventCreate)(&event, 0);
  const auto wait = [](void*) {
    while (!waits) std::this_thread::yield();
    RAW(cuStreamSynchronize)(other);
  };
  RAW(cuLaunchHostFunc)(stream, wait, nullptr);
  RAW(cuEventRecord)(event, stream);
  RAW(cuStreamWaitEvent)(other, event, 0);
  waits = true;
  return RAW(cuStreamSynchronize)(stream);
}

BOOST_AUTO_TEST_CASE(objects, *OnlySim()) {
  CheckPanics("garbage_stream", "cuStreamSynchronize(0x", "this never was a stream");
  CheckPanics("destroyed_stream", "cuStreamQuery(0x2c", "the stream was destroyed");
  CheckPanics("garbage_event", "cuEventQuery(0x", "this never was an event");
  CheckPanics("destroyed_event", "cuEventDestroy(0x2c", "the event was destroyed");
  const std::string dead = "the event's context was destroyed or reset";
  CheckPanics("event_of_an_earlier_incarnation", "cuEventDestroy(0x2c", dead);
  CheckPanics("event_of_a_destroyed_context", "cuEventQuery(0x2c", dead);
  CheckPanics("garbage_module", "cuModuleUnload(0x", "this never was a module");
  CheckPanics("unloaded_module", "cuModuleUnload(0x2c", "the module was unloaded");
  CheckPanics("kernel_node_without_context", "a node is made of a kernel",
              "a real driver crashes here");
  CheckPanics("garbage_function", "cuLaunchKernel(0x", "this never was a function");
  CheckPanics("callback_waits_for_itself", "cuStreamSynchronize(0x2c", "own callback");
  CheckPanics("callback_waits_for_what_waits_for_it", "cuStreamSynchronize(",
              "waits for work that waits for it");
}

CHILD(push_destroyed_green) {
  CUgreenCtx green = nullptr;
  RAW(cuInit)(0);
  RAW(cuGreenCtxCreate)(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  RAW(cuGreenCtxDestroy)(green);
  return RAW(cuCtxPushCurrent)(reinterpret_cast<CUcontext>(green));
}
CHILD(garbage_green) {
  RAW(cuInit)(0);
  return RAW(cuGreenCtxDestroy)(Garbage<CUgreenCtx>());
}
CHILD(garbage_description) {
  CUgreenCtx green = nullptr;
  RAW(cuInit)(0);
  return RAW(cuGreenCtxCreate)(&green, Garbage<CUdevResourceDesc>(), 0,
                               CU_GREEN_CTX_DEFAULT_STREAM);
}
CHILD(description_of_nothing) {
  CUdevResource resource = {};
  CUdevResourceDesc description = nullptr;
  RAW(cuInit)(0);
  return RAW(cuDevResourceGenerateDesc)(&description, &resource, 0);
}
CHILD(wait_for_orphan) {
  const CUcontext context = Create();
  CUevent event = nullptr;
  RAW(cuEventCreate)(&event, 0);
  const CUcontext other = Create();
  RAW(cuCtxDestroy)(context);
  return RAW(cuCtxWaitEvent)(other, event);
}

CHILD(affinity_and_cig) {
  Sim::SupportExecAffinity(true);
  Sim::SupportCig(true);
  CUexecAffinityParam affinity = {};
  CUctxCigParam cig = {};
  CUctxCreateParams parameters = {&affinity, 1, &cig};
  CUcontext context = nullptr;
  RAW(cuInit)(0);
  return RAW(cuCtxCreate)(&context, &parameters, 0, 0);
}

BOOST_AUTO_TEST_CASE(creation, *OnlySim()) {
  CheckPanics("affinity_and_cig", "cuCtxCreate: with", "for CUDA in Graphics, which is undefined");
}

BOOST_AUTO_TEST_CASE(green_contexts, *OnlySim()) {
  CheckPanics("push_destroyed_green", "cuCtxPushCurrent(0x",
              "the context was destroyed and is on no stack");
  CheckPanics("garbage_green", "cuGreenCtxDestroy(0x", "this never was a context");
  CheckPanics("garbage_description", "cuGreenCtxCreate(0x",
              "this never was a resource description");
  CheckPanics("description_of_nothing", "cuDevResourceGenerateDesc(", "null argument");
  CheckPanics("wait_for_orphan", "cuCtxWaitEvent(0x2c", "the event's context was destroyed");
}

CHILD(destroyed_pool) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  RAW(cuInit)(0);
  RAW(cuMemPoolCreate)(&pool, &properties);
  RAW(cuMemPoolDestroy)(pool);
  return RAW(cuDeviceSetMemPool)(0, pool);
}
CHILD(null_pool_attribute) {
  CUmemoryPool pool = nullptr;
  RAW(cuInit)(0);
  RAW(cuDeviceGetDefaultMemPool)(&pool, 0);
  return RAW(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr);
}
CHILD(allocate_on_orphan) {
  const CUcontext context = Create();
  CUstream stream = nullptr;
  CUdeviceptr pointer = 0;
  RAW(cuStreamCreate)(&stream, 0);
  RAW(cuCtxDestroy)(context);
  return RAW(cuMemAllocAsync)(&pointer, 64, stream);
}
CHILD(released_allocation) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  constexpr size_t kSize = size_t{2} << 20;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  RAW(cuInit)(0);
  RAW(cuMemAddressReserve)(&address, kSize, 0, 0, 0);
  RAW(cuMemCreate)(&handle, kSize, &properties, 0);
  RAW(cuMemRelease)(handle);
  return RAW(cuMemMap)(address, kSize, 0, handle, 0);
}
CHILD(garbage_allocation) {
  RAW(cuInit)(0);
  return RAW(cuMemRelease)(0x1234);
}

CHILD(memory_of_a_graph_that_does_not_run) {
  Create();
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUdeviceptr pointer = 0;
  RAW(cuStreamCreate)(&stream, 0);
  RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  RAW(cuMemAllocAsync)(&pointer, 64, stream);
  RAW(cuStreamEndCapture)(stream, &graph);
  return RAW(cuMemsetD8)(pointer, 1, 64);
}

BOOST_AUTO_TEST_CASE(memory, *OnlySim()) {
  CheckPanics("destroyed_pool", "cuDeviceSetMemPool(0x2c",
              "this never was a pool, or it was destroyed");
  CheckPanics("null_pool_attribute", "cuMemPoolSetAttribute(", "null argument");
  CheckPanics("allocate_on_orphan", "cuMemAllocAsync(0x2c", "the stream's context was destroyed");
  CheckPanics("released_allocation", "cuMemMap(0x2c", "the allocation was released");
  CheckPanics("memory_of_a_graph_that_does_not_run", "memory of a graph is used",
              "before its allocation node");
  CheckPanics("garbage_allocation", "cuMemRelease(0x1234", "this never was an allocation handle");
}

namespace {

// A graph with one fill, captured in a context that was destroyed since.
CUgraph CaptureAndDestroyContext() {
  const CUcontext context = Create();
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  CUgraph graph = nullptr;
  RAW(cuMemAlloc)(&memory, 16);
  RAW(cuStreamCreate)(&stream, 0);
  RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  RAW(cuMemsetD8Async)(memory, 1, 16, stream);
  RAW(cuStreamEndCapture)(stream, &graph);
  RAW(cuCtxDestroy)(context);
  return graph;
}

}  // namespace

CHILD(garbage_graph) {
  Create();
  return RAW(cuGraphDestroy)(Garbage<CUgraph>());
}
CHILD(graph_of_destroyed_context) {
  const CUgraph graph = CaptureAndDestroyContext();
  Create();
  CUgraphExec executable = nullptr;
  return RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0);
}

BOOST_AUTO_TEST_CASE(graphs, *OnlySim()) {
  CheckPanics("garbage_graph", "cuGraphDestroy(0x", "this never was a graph");
  CheckPanics("graph_of_destroyed_context", "cuGraphInstantiateWithFlags(0x2c",
              "of a context that was destroyed");
}

namespace {

CUfunction Load(const char* name) {
  Create();
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  RAW(cuModuleLoadData)(&module, kPtx);
  RAW(cuModuleGetFunction)(&function, module, name);
  return function;
}

}  // namespace

CHILD(unregistered_kernel) {
  return RAW(cuLaunchKernel)(Load("nothing"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
}
CHILD(short_parameters) {
  const CUfunction function = Load("store");
  char packed[4] = {};
  size_t size = sizeof(packed);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  return RAW(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra);
}
CHILD(unknown_entry) {
  Sim::FailCall("cuNope", 1, CUDA_ERROR_UNKNOWN);
  return 0;
}
CHILD(null_argument) {
  Create();
  return RAW(cuThreadExchangeStreamCaptureMode)(nullptr);
}

BOOST_AUTO_TEST_CASE(launches_and_arguments, *OnlySim()) {
  CheckPanics("unregistered_kernel", "launch of \"nothing\"", "Sim::RegisterKernel(\"nothing\"");
  CheckPanics("short_parameters", "launch of \"store\"", "take 12 bytes, the packed buffer has 4");
  CheckPanics("unknown_entry", "\"cuNope\"", "is no entry of the simulation");
  CheckPanics("null_argument", "cuThreadExchangeStreamCaptureMode(", "null argument");
}

BOOST_AUTO_TEST_SUITE_END()
