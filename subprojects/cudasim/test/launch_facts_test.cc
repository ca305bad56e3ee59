// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a launch may ask for, in which context it goes, and what a refused one does to a
// capture.

#include <csignal>
#include <string>

#include "test/launches.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(launch_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;
using cudasim_test::OnlySim;

namespace {

// What a launch that fails with `code` does to a capture in its stream, where it fails too.
template <typename Launch>
void CheckRefused(const Launcher& launcher, CUresult code, CUstreamCaptureStatus status,
                  const Launch& launch) {
  BOOST_CHECK_EQUAL(launch(launcher.stream), code);
  OK(RAW(cuStreamSynchronize)(launcher.stream));
  OK(Begin(launcher.stream));
  BOOST_CHECK_EQUAL(launch(launcher.stream), code);
  BOOST_TEST(StatusOf(launcher.stream) == status);
  End(launcher.stream);
}

void Accepts(const Launcher& launcher, const char* kernel, const Shape& shape) {
  BOOST_TEST_CONTEXT(kernel) {
    OK(LaunchOn(launcher.stream, launcher.Function(kernel), shape));
    OK(RAW(cuStreamSynchronize)(launcher.stream));
  }
}

void Refuses(const Launcher& launcher, const char* kernel, const Shape& shape, CUresult code,
             CUstreamCaptureStatus status = kLost) {
  BOOST_TEST_CONTEXT(kernel) {
    CheckRefused(launcher, code, status, [&](CUstream stream) {
      return LaunchOn(stream, launcher.Function(kernel), shape);
    });
  }
}

CUlaunchAttribute Number(CUlaunchAttributeID id, int value) {
  CUlaunchAttribute attribute = Attribute(id);
  std::memcpy(&attribute.value, &value, sizeof(value));
  return attribute;
}

CUlaunchAttribute Completion(CUlaunchAttributeID id, CUevent event) {
  CUlaunchAttribute attribute = Attribute(id);
  std::memcpy(&attribute.value, &event, sizeof(event));
  return attribute;
}

void SetMaxShared(CUfunction function, int bytes) {
  OK(RAW(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_form_goes_where_the_stream_is) {
  const Launcher a;
  const Launcher b;  // current
  const CUfunction nothing = a.Function("nothing");
  const auto cooperative = [&](CUstream stream) {
    return RAW(cuLaunchCooperativeKernel)(nothing, 1, 1, 1, 1, 1, 1, 0, stream, nullptr);
  };
  OK(LaunchOn(a.stream, nothing));
  OK(cooperative(a.stream));
  IS(LaunchOn(b.stream, nothing), INVALID_HANDLE);
  IS(cooperative(b.stream), INVALID_HANDLE);
  for (CUstream special : {CUstream{}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    IS(LaunchOn(special, nothing), INVALID_HANDLE);
  }
  SetStack({});
  OK(LaunchOn(a.stream, nothing));
  OK(cooperative(a.stream));
  IS(LaunchOn(nullptr, nothing), INVALID_CONTEXT);
  IS(LaunchOn(CU_STREAM_LEGACY, nothing), INVALID_CONTEXT);
  IS(cooperative(nullptr), INVALID_CONTEXT);
  OK(RAW(cuStreamSynchronize)(a.stream));
}

BOOST_AUTO_TEST_CASE(a_kernel_takes_every_form) {
  const Launcher launcher;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  OK(RAW(cuLibraryLoadData)(&library, kLaunchPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(RAW(cuLibraryGetKernel)(&kernel, library, "nothing"));
  const auto function = reinterpret_cast<CUfunction>(kernel);
  SetStack({});
  OK(LaunchOn(launcher.stream, function));
  OK(RAW(cuLaunchCooperativeKernel)(function, 1, 1, 1, 1, 1, 1, 0, launcher.stream, nullptr));
  IS(LaunchOn(nullptr, function), INVALID_CONTEXT);
  OK(RAW(cuStreamSynchronize)(launcher.stream));
  OK(RAW(cuLibraryUnload)(library));
}

BOOST_AUTO_TEST_CASE(a_config_is_needed_and_its_attributes) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  IS(RAW(cuLaunchKernelEx)(nullptr, nothing, nullptr, nullptr), INVALID_VALUE);
  IS(LaunchOn(launcher.stream, nullptr), INVALID_HANDLE);
  IS(LaunchOn(launcher.stream, nullptr, Grid(0)), INVALID_HANDLE);
  CUlaunchConfig config = ConfigOf({}, launcher.stream);
  config.attrs = nullptr;
  OK(RAW(cuLaunchKernelEx)(&config, nothing, nullptr, nullptr));
  config.numAttrs = 1;
  IS(RAW(cuLaunchKernelEx)(&config, nothing, nullptr, nullptr), INVALID_VALUE);
  OK(RAW(cuStreamSynchronize)(launcher.stream));
}

BOOST_AUTO_TEST_CASE(a_wrong_function_invalidates_no_capture) {
  const Launcher a;
  const Launcher b;
  const CUfunction of_a = a.Function("nothing");
  CheckRefused(b, CUDA_ERROR_INVALID_HANDLE, kActive,
               [&](CUstream stream) { return LaunchOn(stream, of_a); });
  CheckRefused(b, CUDA_ERROR_INVALID_HANDLE, kActive,
               [&](CUstream stream) { return LaunchOn(stream, nullptr); });
}

BOOST_AUTO_TEST_CASE(a_bad_grid_or_block_invalidates_a_capture) {
  const Launcher launcher;
  for (const Shape& shape :
       {Grid(0), Grid(1, 0), Grid(1, 1, 0), Block(0), Block(1, 0), Block(1, 1, 0),
        Grid(0x80000000u), Grid(1, 65536), Grid(1, 1, 65536), Block(1025), Block(1, 1025),
        Block(1, 1, 65), Block(1024, 2), Block(65536, 65536)}) {
    Refuses(launcher, "nothing", shape, CUDA_ERROR_INVALID_VALUE);
  }
  for (const Shape& shape : {Grid(1, 65535), Grid(1, 1, 65535), Block(1024), Block(1, 1024),
                             Block(1, 1, 64), Block(16, 1, 64)}) {
    Accepts(launcher, "nothing", shape);
  }
}

BOOST_AUTO_TEST_CASE(a_kernel_may_bound_its_block) {
  const Launcher launcher;
  Accepts(launcher, "bounded", Block(128));
  Accepts(launcher, "bounded", Block(1, 128));
  Refuses(launcher, "bounded", Block(129), CUDA_ERROR_INVALID_VALUE);
  Refuses(launcher, "bounded", Block(64, 4), CUDA_ERROR_INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_kernel_may_require_a_block) {
  const Launcher launcher;
  const CUfunction required = launcher.Function("required");
  CUdeviceptr to = launcher.result;
  void* each[] = {&to};
  OK(LaunchOn(launcher.stream, required, Block(64, 2), each));
  OK(RAW(cuStreamSynchronize)(launcher.stream));
  BOOST_TEST(launcher.Result() == 64u);
  // A block of one thread is not refused.
  OK(LaunchOn(launcher.stream, required, Block(1), each));
  OK(RAW(cuStreamSynchronize)(launcher.stream));
  BOOST_TEST(launcher.Result() == 64u);
  for (const Shape& shape : {Block(64), Block(128), Block(2, 64)}) {
    CheckRefused(launcher, CUDA_ERROR_INVALID_VALUE, kLost,
                 [&](CUstream stream) { return LaunchOn(stream, required, shape, each); });
  }
}

namespace {

// Holds 200 values at a time. The simulation knows how many registers that takes where it
// finds a compiler.
std::string HeavyPtx() {
  std::string loads;
  std::string stores;
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    const std::string place = "[%rd2+" + std::to_string(4 * i) + "]";
    loads += "ld.volatile.global.f32 %f" + number + ", " + place + ";\n";
    stores += "st.volatile.global.f32 " + place + ", %f" + number + ";\n";
  }
  return ".version 8.0\n.target sm_90\n.address_size 64\n"
         ".visible .entry heavy(.param .u64 to) {\n.reg .b64 %rd<3>;\n.reg .f32 %f<200>;\n"
         "ld.param.u64 %rd1, [to];\ncvta.to.global.u64 %rd2, %rd1;\n" +
         loads + stores + "ret;\n}\n";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_block_needs_registers) {
  const Launcher launcher;
  Sim::RegisterKernel("heavy", [](const SimLaunch&) { return CUDA_SUCCESS; });
  CUmodule module = nullptr;
  CUfunction heavy = nullptr;
  CUdeviceptr to = 0;
  int most = 0;
  void* each[] = {&to};
  OK(RAW(cuModuleLoadData)(&module, HeavyPtx().c_str()));
  OK(RAW(cuModuleGetFunction)(&heavy, module, "heavy"));
  OK(RAW(cuFuncGetAttribute)(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, heavy));
  OK(RAW(cuMemAlloc)(&to, 800));
  OK(LaunchOn(launcher.stream, heavy, Block(static_cast<unsigned>(most)), each));
  if (most < 1024) {
    IS(LaunchOn(launcher.stream, heavy, Block(1024), each), LAUNCH_OUT_OF_RESOURCES);
    OK(Begin(launcher.stream));
    OK(LaunchOn(launcher.stream, heavy, Block(1024), each));
    BOOST_TEST(StatusOf(launcher.stream) == kActive);
    End(launcher.stream);
  }
  OK(RAW(cuStreamSynchronize)(launcher.stream));
}

BOOST_AUTO_TEST_CASE(more_shared_memory_must_be_asked_for) {
  const Launcher launcher;
  const CUfunction dynamic = launcher.Function("with_dynamic");
  Accepts(launcher, "with_dynamic", Shared(48 << 10));
  Refuses(launcher, "with_dynamic", Shared((48 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
  SetMaxShared(dynamic, 100000);
  Accepts(launcher, "with_dynamic", Shared(100000));
  Refuses(launcher, "with_dynamic", Shared(100001), CUDA_ERROR_INVALID_VALUE);
  SetMaxShared(dynamic, 232448);
  Accepts(launcher, "with_dynamic", Shared(232448));
  SetMaxShared(dynamic, 1000);
  Refuses(launcher, "with_dynamic", Shared(1001), CUDA_ERROR_INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(static_shared_memory_counts) {
  const Launcher launcher;
  Accepts(launcher, "with_shared", Shared(8 << 10));
  Refuses(launcher, "with_shared", Shared((8 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
  SetMaxShared(launcher.Function("with_shared"), 232448 - 40960);
  Accepts(launcher, "with_shared", Shared(232448 - 40960));
  Refuses(launcher, "with_shared", Shared(232448 - 40959), CUDA_ERROR_INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(bad_parameters_invalidate_no_capture) {
  const Launcher launcher;
  const CUfunction store = launcher.Function("store");
  CUdeviceptr to = launcher.result;
  unsigned value = 7;
  size_t size = 12;
  void* each[] = {&to, &value};
  void* hole[] = {&to, nullptr};
  void* good[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER, &to,
                  CU_LAUNCH_PARAM_END};
  void* no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &to, CU_LAUNCH_PARAM_END};
  void* no_buffer[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  void* null_buffer[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, nullptr, CU_LAUNCH_PARAM_BUFFER_SIZE,
                         &size, CU_LAUNCH_PARAM_END};
  void* unknown[] = {reinterpret_cast<void*>(7), &to, CU_LAUNCH_PARAM_END};
  void* none[] = {CU_LAUNCH_PARAM_END};
  const auto refuses = [&](const Shape& shape, void** pointers, void** extra,
                           CUstreamCaptureStatus status) {
    CheckRefused(launcher, CUDA_ERROR_INVALID_VALUE, status,
                 [&](CUstream stream) { return LaunchOn(stream, store, shape, pointers, extra); });
  };
  refuses({}, nullptr, nullptr, kActive);
  refuses({}, hole, nullptr, kActive);
  refuses({}, each, good, kActive);
  for (void** extra : {no_size, no_buffer, null_buffer, unknown, none}) {
    refuses({}, nullptr, extra, kActive);
  }
  refuses(Grid(0), nullptr, nullptr, kLost);
}

BOOST_AUTO_TEST_CASE(a_capture_looks_at_resources_before_parameters) {
  const Launcher launcher;
  const CUfunction store = launcher.Function("store");
  const auto refuses = [&](const Shape& shape, CUresult captured) {
    IS(LaunchOn(launcher.stream, store, shape), INVALID_VALUE);
    OK(Begin(launcher.stream));
    BOOST_CHECK_EQUAL(LaunchOn(launcher.stream, store, shape), captured);
    BOOST_TEST(StatusOf(launcher.stream) == kLost);
    End(launcher.stream);
  };
  refuses(With({Cluster(3)}, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  refuses(With({Cooperative()}, 100000), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

BOOST_AUTO_TEST_CASE(a_kernel_without_parameters_takes_an_empty_buffer) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  unsigned char buffer[8] = {};
  size_t size = 0;
  void* empty[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  void* no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_END};
  void* none[] = {CU_LAUNCH_PARAM_END};
  for (void** extra : {empty, no_size, none}) {
    OK(LaunchOn(launcher.stream, nothing, {}, nullptr, extra));
  }
  size = 4;
  IS(LaunchOn(launcher.stream, nothing, {}, nullptr, empty), LAUNCH_OUT_OF_RESOURCES);
  OK(RAW(cuStreamSynchronize)(launcher.stream));
}

BOOST_AUTO_TEST_CASE(a_buffer_that_is_too_large_is_refused_differently_in_a_capture) {
  const Launcher launcher;
  const CUfunction store = launcher.Function("store");
  struct {
    CUdeviceptr to;
    unsigned value;
    unsigned more;
  } packed = {launcher.result, 7, 0};
  size_t size = sizeof(packed);  // with the padding behind the last parameter
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  IS(LaunchOn(launcher.stream, store, {}, nullptr, extra), LAUNCH_OUT_OF_RESOURCES);
  OK(Begin(launcher.stream));
  IS(LaunchOn(launcher.stream, store, {}, nullptr, extra), INVALID_VALUE);
  BOOST_TEST(StatusOf(launcher.stream) == kActive);
  End(launcher.stream);
}

BOOST_AUTO_TEST_CASE(clusters_divide_the_grid) {
  const Launcher launcher;
  for (const Shape& shape :
       {With({Cluster(2)}, 4), With({Cluster(1)}, 5), With({Cluster(3)}, 6), With({Cluster(8)}, 8),
        With({Cluster(0, 0, 0)}, 5), With({Cluster(3), Cluster(2)}, 4)}) {
    Accepts(launcher, "nothing", shape);
  }
  for (const Shape& shape : {With({Cluster(2)}, 5), With({Cluster(2, 2)}, 4),
                             With({Cluster(16)}, 16), With({Cluster(9)}, 9)}) {
    Refuses(launcher, "nothing", shape, CUDA_ERROR_INVALID_CLUSTER_SIZE);
  }
  Refuses(launcher, "nothing", With({Cluster(0)}, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE, kActive);
}

BOOST_AUTO_TEST_CASE(large_clusters_must_be_allowed) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  OK(RAW(cuFuncSetAttribute)(nothing, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  Accepts(launcher, "nothing", With({Cluster(16)}, 16));
  Accepts(launcher, "nothing", With({Cluster(12)}, 12));
  IS(LaunchOn(launcher.stream, nothing, With({Cluster(32)}, 32)), INVALID_CLUSTER_SIZE);
  OK(Begin(launcher.stream));
  OK(LaunchOn(launcher.stream, nothing, With({Cluster(32)}, 32)));
  BOOST_TEST(StatusOf(launcher.stream) == kActive);
  End(launcher.stream);
}

BOOST_AUTO_TEST_CASE(a_kernel_may_fix_its_cluster) {
  const Launcher launcher;
  Accepts(launcher, "clustered", Grid(4));
  Accepts(launcher, "clustered", With({Cluster(2)}, 4));
  for (const Shape& shape : {Grid(3), With({Cluster(4)}, 4), With({Cluster(1)}, 4)}) {
    Refuses(launcher, "clustered", shape, CUDA_ERROR_INVALID_CLUSTER_SIZE);
  }
  const CUfunction clustered = launcher.Function("clustered");
  OK(RAW(cuLaunchKernel)(clustered, 4, 1, 1, 1, 1, 1, 0, launcher.stream, nullptr, nullptr));
  IS(RAW(cuLaunchKernel)(clustered, 3, 1, 1, 1, 1, 1, 0, launcher.stream, nullptr, nullptr),
     INVALID_CLUSTER_SIZE);
  Accepts(launcher, "rank_of_4", With({Cluster(4)}, 8));
  Refuses(launcher, "rank_of_4", With({Cluster(8)}, 8), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

BOOST_AUTO_TEST_CASE(a_kernel_may_insist_on_some_cluster) {
  const Launcher launcher;
  const CUfunction must = launcher.Function("must_cluster");
  Accepts(launcher, "must_cluster", With({Cluster(2)}, 4));
  IS(LaunchOn(launcher.stream, must, Grid(4)), INVALID_CLUSTER_SIZE);
  OK(Begin(launcher.stream));
  OK(LaunchOn(launcher.stream, must, Grid(4)));
  BOOST_TEST(StatusOf(launcher.stream) == kActive);
  End(launcher.stream);
}

BOOST_AUTO_TEST_CASE(a_cluster_can_be_set) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  OK(RAW(cuFuncSetAttribute)(nothing, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
  IS(LaunchOn(launcher.stream, nothing, Grid(4)), INVALID_CLUSTER_SIZE);
  OK(RAW(cuFuncSetAttribute)(nothing, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
  OK(RAW(cuFuncSetAttribute)(nothing, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
  Accepts(launcher, "nothing", Grid(4));
  Refuses(launcher, "nothing", Grid(3), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  Refuses(launcher, "nothing", With({Cluster(4)}, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

BOOST_AUTO_TEST_CASE(a_cooperative_launch_must_fit) {
  const Launcher launcher;
  CUdevice device = 0;
  int multiprocessors = 0;
  OK(RAW(cuDeviceGetAttribute)(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  const auto most = static_cast<unsigned>(multiprocessors) * 2;  // of 1024 threads
  Accepts(launcher, "nothing", With({Cooperative()}, most, 1024));
  Accepts(launcher, "nothing", With({Cooperative(0)}, most + 1, 1024));
  Accepts(launcher, "nothing", With({Cooperative(), Cluster(2)}, 4));
  Refuses(launcher, "nothing", With({Cooperative()}, most + 1, 1024),
          CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  CheckRefused(launcher, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, kLost, [&](CUstream stream) {
    return RAW(cuLaunchCooperativeKernel)(launcher.Function("nothing"), most + 1, 1, 1, 1024, 1, 1,
                                          0, stream, nullptr);
  });
  Refuses(launcher, "nothing", With({Cooperative(), Cluster(3)}, 100000, 32),
          CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

BOOST_AUTO_TEST_CASE(attributes_are_checked_before_anything_else) {
  const Launcher launcher;
  const auto accepts = [&](const CUlaunchAttribute& attribute) {
    Accepts(launcher, "nothing", With({attribute}));
  };
  const auto refuses = [&](const CUlaunchAttribute& attribute) {
    BOOST_TEST_CONTEXT(attribute.id) {
      Refuses(launcher, "nothing", With({attribute}), CUDA_ERROR_INVALID_VALUE, kActive);
    }
  };
  accepts(Attribute(CU_LAUNCH_ATTRIBUTE_IGNORE));
  accepts(Attribute(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW));
  accepts(Number(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1));
  for (const int priority : {0, -5, -99, 1}) {
    accepts(Number(CU_LAUNCH_ATTRIBUTE_PRIORITY, priority));
  }
  for (const int id : {15, 17, 99, -1}) {
    refuses(Attribute(OutOfRange<CUlaunchAttributeID>(id)));
  }
  refuses(Number(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, 1));
  accepts(Number(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 2));
  refuses(Number(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 9));
  accepts(Number(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 1));
  refuses(Number(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 9));
  accepts(Number(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
  refuses(Number(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
  refuses(Number(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1));
  Refuses(launcher, "nothing", With({Attribute(OutOfRange<CUlaunchAttributeID>(99))}, 0),
          CUDA_ERROR_INVALID_VALUE, kActive);
  IS(LaunchOn(launcher.stream, nullptr, With({Attribute(OutOfRange<CUlaunchAttributeID>(99))})),
     INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(a_preferred_cluster_needs_a_cluster) {
  const Launcher launcher;
  CUlaunchAttribute preferred = Cluster(4);
  preferred.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
  Accepts(launcher, "nothing", With({Cluster(2), preferred}, 8));
  Refuses(launcher, "nothing", With({preferred}, 8), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

BOOST_AUTO_TEST_CASE(a_launch_can_record_an_event_without_timing) {
  const Launcher launcher;
  CUevent event = nullptr;
  CUevent timed = nullptr;
  OK(RAW(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  OK(RAW(cuEventCreate)(&timed, CU_EVENT_DEFAULT));
  const auto id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
  Accepts(launcher, "nothing", With({Completion(id, event)}));
  OK(RAW(cuEventQuery)(event));
  Accepts(launcher, "nothing",
          With({Completion(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, event)}));
  Refuses(launcher, "nothing", With({Completion(id, timed)}), CUDA_ERROR_NOT_SUPPORTED, kActive);
  Refuses(launcher, "nothing", With({Completion(id, nullptr)}), CUDA_ERROR_INVALID_HANDLE, kActive);
  OK(RAW(cuEventDestroy)(event));
  OK(RAW(cuEventDestroy)(timed));
}

BOOST_AUTO_TEST_CASE(only_a_graph_has_nodes_to_update) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  const Shape shape = With({Number(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 1)});
  IS(LaunchOn(launcher.stream, nothing, shape), NOT_SUPPORTED);
  OK(Begin(launcher.stream));
  OK(LaunchOn(launcher.stream, nothing, shape));
  End(launcher.stream);
}

namespace {

SimLaunch last_launch;
std::uint64_t last_context_id = 0;

CUresult Remember(const SimLaunch& launch) {
  last_launch = launch;
  last_context_id = Sim::KernelContextId();
  return CUDA_SUCCESS;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stand_in_sees_the_launch, *OnlySim()) {
  const Launcher launcher;
  Sim::RegisterKernel("nothing", Remember);
  OK(LaunchOn(launcher.stream, launcher.Function("nothing"),
              With({Cooperative(), Cluster(2)}, 4, 32)));
  BOOST_TEST(last_launch.cluster[0] == 2u);
  BOOST_TEST(last_launch.cluster[2] == 1u);
  BOOST_TEST(last_launch.cooperative);
  BOOST_TEST(last_context_id == IdOf(launcher.context.get()));
  BOOST_TEST(Sim::KernelContextId() == 0u);
  BOOST_TEST(!Sim::KernelReaches(&last_context_id, 1));
  OK(LaunchOn(launcher.stream, launcher.Function("nothing")));
  BOOST_TEST(last_launch.cluster[0] == 1u);
  BOOST_TEST(!last_launch.cooperative);
}

// What a real driver's graph does with it was not measured.
BOOST_AUTO_TEST_CASE(graph_of_what_cannot_run, *OnlySim()) {
  const Launcher launcher;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  OK(Begin(launcher.stream));
  OK(LaunchOn(launcher.stream, launcher.Function("must_cluster"), Grid(4)));
  OK(RAW(cuStreamEndCapture)(launcher.stream, &graph));
  OK(RAW(cuGraphInstantiate)(&exec, graph, 0));
  Sim::ResetCalls();
  IS(RAW(cuGraphLaunch)(exec, launcher.stream), NOT_SUPPORTED);
  BOOST_TEST(Sim::UnmodelledCalls("cuGraphLaunch") == 1u);
  OK(RAW(cuGraphExecDestroy)(exec));
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_SUITE_END()
