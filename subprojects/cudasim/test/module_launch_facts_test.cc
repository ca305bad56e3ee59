// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules, functions and launches.

#include <cstring>

#include "cudasim/sim.h"
#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(module_launch_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

namespace {

CUresult Store(const SimLaunch& launch) {
  unsigned* to = nullptr;
  std::memcpy(&to, launch.parameters[0], sizeof(to));
  std::memcpy(to, launch.parameters[1], sizeof(unsigned));
  return CUDA_SUCCESS;
}

// A current context with the module of facts.h in it.
struct Loaded {
  Loaded() {
    Sim::RegisterKernel("nothing", [](const SimLaunch&) { return CUDA_SUCCESS; });
    Sim::RegisterKernel("store", Store);
    SetStack({context.get()});
    OK(RAW(cuModuleLoadData)(&module, kPtx));
    OK(RAW(cuModuleGetFunction)(&nothing, module, "nothing"));
    OK(RAW(cuModuleGetFunction)(&store, module, "store"));
    OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuMemAlloc)(&result, sizeof(unsigned)));
  }
  ~Loaded() { SetStack({}); }

  CUresult Launch(CUstream on, unsigned grid = 1, unsigned block = 1, unsigned shared = 0) const {
    return RAW(cuLaunchKernel)(nothing, grid, 1, 1, block, 1, 1, shared, on, nullptr, nullptr);
  }
  CUresult LaunchStore(void** parameters, void** extra) const {
    return RAW(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra);
  }
  unsigned Result() const {
    unsigned value = 0;
    OK(RAW(cuMemcpyDtoH)(&value, result, sizeof(value)));
    return value;
  }

  OwnContext context;
  CUmodule module = nullptr;
  CUfunction nothing = nullptr;
  CUfunction store = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr result = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_image_must_be_one) {
  CUmodule module = nullptr;
  IS(RAW(cuModuleLoadData)(&module, kPtx), INVALID_CONTEXT);
  const OwnContext a;
  SetStack({a.get()});
  static const char kGarbage[64] = "this is not a module";
  static const char kEmpty[64] = "";
  static const char kTooNew[] = ".version 99.0\n.target sm_90\n.address_size 64\n";
  static const char kMistake[] =
      ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k( { nonsense; }\n";
  IS(RAW(cuModuleLoadData)(&module, kGarbage), INVALID_IMAGE);
  IS(RAW(cuModuleLoadData)(&module, kEmpty), INVALID_IMAGE);
  IS(RAW(cuModuleLoadData)(&module, kTooNew), UNSUPPORTED_PTX_VERSION);
  IS(RAW(cuModuleLoadData)(&module, kMistake), INVALID_PTX);
  IS(RAW(cuModuleLoadData)(&module, nullptr), INVALID_VALUE);
  IS(RAW(cuModuleLoadData)(nullptr, kPtx), INVALID_VALUE);
  BOOST_CHECK(module == nullptr);
  SetStack({});
}

// As measured on an H200, driver 580.159.04.
BOOST_AUTO_TEST_CASE(ptx_of_the_first_versions_loads) {
  const OwnContext a;
  SetStack({a.get()});
  for (const char* ptx : {".version 1.4\n.target sm_10\n.entry nothing() { ret; }\n",
                          ".version 2.3\n.target sm_20\n.entry nothing() { ret; }\n",
                          ".version 3.0\n.target sm_20\n.entry nothing() { ret; }\n"}) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    OK(RAW(cuModuleLoadData)(&module, ptx));
    OK(RAW(cuModuleGetFunction)(&function, module, "nothing"));
    OK(RAW(cuModuleUnload)(module));
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(options_are_accepted) {
  const Loaded loaded;
  CUmodule module = nullptr;
  char log[256] = {};
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_OPTIMIZATION_LEVEL};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log)), reinterpret_cast<void*>(2)};
  OK(RAW(cuModuleLoadDataEx)(&module, kPtx, 3, options, values));
  OK(RAW(cuModuleUnload)(module));
}

BOOST_AUTO_TEST_CASE(functions_are_found_by_name) {
  const Loaded loaded;
  auto function = reinterpret_cast<CUfunction>(0x77);
  IS(RAW(cuModuleGetFunction)(&function, loaded.module, "nosuch"), NOT_FOUND);
  BOOST_CHECK(function == nullptr);
  IS(RAW(cuModuleGetFunction)(&function, loaded.module, nullptr), INVALID_VALUE);
  IS(RAW(cuModuleGetFunction)(&function, loaded.module, ""), INVALID_VALUE);
  IS(RAW(cuModuleGetFunction)(nullptr, loaded.module, "store"), INVALID_VALUE);
  IS(RAW(cuModuleGetFunction)(&function, nullptr, "store"), INVALID_HANDLE);
  SetStack({});  // not needed for this
  OK(RAW(cuModuleGetFunction)(&function, loaded.module, "store"));
  BOOST_CHECK(function == loaded.store);
  int value = 0;
  OK(RAW(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  BOOST_TEST(value >= 1);
  IS(RAW(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr), INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(a_module_is_unloaded_without_a_current_context) {
  const Loaded loaded;
  SetStack({});
  IS(RAW(cuModuleUnload)(nullptr), INVALID_HANDLE);
  OK(RAW(cuModuleUnload)(loaded.module));
}

BOOST_AUTO_TEST_CASE(parameters_arrive_in_both_forms) {
  const Loaded loaded;
  CUdeviceptr to = loaded.result;
  unsigned value = 7;
  void* each[] = {&to, &value};
  OK(loaded.LaunchStore(each, nullptr));
  BOOST_TEST(loaded.Result() == 7u);
  struct {
    CUdeviceptr to;
    unsigned value;
  } packed = {loaded.result, 11};
  size_t size = sizeof(CUdeviceptr) + sizeof(unsigned);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  OK(loaded.LaunchStore(nullptr, extra));
  BOOST_TEST(loaded.Result() == 11u);
  IS(loaded.LaunchStore(each, extra), INVALID_VALUE);
  IS(loaded.LaunchStore(nullptr, nullptr), INVALID_VALUE);
  void* hole[] = {&to, nullptr};
  IS(loaded.LaunchStore(hole, nullptr), INVALID_VALUE);
  size = 0;
  IS(loaded.LaunchStore(nullptr, extra), INVALID_VALUE);
  size = 80;
  IS(loaded.LaunchStore(nullptr, extra), LAUNCH_OUT_OF_RESOURCES);
  OK(RAW(cuCtxSynchronize)());
  BOOST_TEST(loaded.Result() == 11u);
}

BOOST_AUTO_TEST_CASE(shapes_are_checked) {
  const Loaded loaded;
  OK(loaded.Launch(nullptr));
  IS(loaded.Launch(nullptr, 0), INVALID_VALUE);
  IS(loaded.Launch(nullptr, 1, 0), INVALID_VALUE);
  IS(loaded.Launch(nullptr, 1, 2048), INVALID_VALUE);
  IS(loaded.Launch(nullptr, 1, 1, (48 << 10) + 1), INVALID_VALUE);
  IS(RAW(cuLaunchKernel)(loaded.nothing, 1, 70000, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
     INVALID_VALUE);
  IS(RAW(cuLaunchKernel)(loaded.nothing, 1, 1, 1, 1, 1, 65, 0, nullptr, nullptr, nullptr),
     INVALID_VALUE);
  IS(RAW(cuLaunchKernel)(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), INVALID_HANDLE);
  OK(RAW(cuCtxSynchronize)());
}

BOOST_AUTO_TEST_CASE(a_function_runs_on_streams_of_its_context) {
  const Loaded a;
  const Loaded b;  // current
  OK(b.Launch(nullptr));
  OK(b.Launch(b.stream));
  IS(a.Launch(nullptr), INVALID_HANDLE);
  IS(a.Launch(b.stream), INVALID_HANDLE);
  OK(a.Launch(a.stream));
  SetStack({});
  OK(a.Launch(a.stream));
  IS(a.Launch(nullptr), INVALID_CONTEXT);
  OK(RAW(cuStreamSynchronize)(a.stream));
}

BOOST_AUTO_TEST_CASE(a_function_of_a_destroyed_context_is_invalid) {
  Loaded gone;
  OK(RAW(cuCtxDestroy)(gone.context.release()));
  // Either code on a real driver, from one process to the next.
  const auto is_gone = [](CUresult code) {
    return code == CUDA_ERROR_INVALID_HANDLE || code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  };
  CUfunction function = nullptr;
  BOOST_TEST(is_gone(RAW(cuModuleGetFunction)(&function, gone.module, "store")));
  BOOST_TEST(is_gone(RAW(cuModuleUnload)(gone.module)));
  const OwnContext other;
  SetStack({other.get()});
  IS(gone.Launch(nullptr), INVALID_HANDLE);
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
