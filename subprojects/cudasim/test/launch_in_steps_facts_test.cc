// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches as CUDA 3 had them: block, shared memory and parameters are set of the function one by
// one.
//
// As cuda.h says. On an H100 (driver 580.159.04) the launch in a capture ended with an illegal
// address; why was not found, and it is left out there.

#include <cstring>

#include "cudasim/sim.h"
#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(launch_in_steps_facts)

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // all of them are

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim::SimLaunch;

namespace {

SimLaunch last;

CUresult Store(const SimLaunch& launch) {
  last = launch;
  unsigned* to = nullptr;
  std::memcpy(&to, launch.parameters[0], sizeof(to));
  std::memcpy(to, launch.parameters[1], sizeof(unsigned));
  return CUDA_SUCCESS;
}

struct Loaded {
  Loaded() {
    Sim::RegisterKernel("store", Store);
    SetStack({context.get()});
    OK(RAW(cuModuleLoadData)(&module, kPtx));
    OK(RAW(cuModuleGetFunction)(&store, module, "store"));
    OK(RAW(cuMemAlloc)(&result, sizeof(unsigned)));
  }
  ~Loaded() {
    OK(RAW(cuMemFree)(result));
    OK(RAW(cuModuleUnload)(module));
    SetStack({});
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  void SetTo() {
    OK(RAW(cuParamSetSize)(store, 12));
    OK(RAW(cuParamSetv)(store, 0, &result, sizeof(result)));
  }
  unsigned Result() const {
    unsigned value = 0;
    OK(RAW(cuMemcpyDtoH)(&value, result, sizeof(value)));
    return value;
  }

  OwnContext context;
  CUmodule module = nullptr;
  CUfunction store = nullptr;
  CUdeviceptr result = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_set_of_a_function_stays_set) {
  Loaded loaded;
  OK(RAW(cuFuncSetBlockShape)(loaded.store, 4, 3, 2));
  OK(RAW(cuFuncSetSharedSize)(loaded.store, 64));
  loaded.SetTo();
  OK(RAW(cuParamSeti)(loaded.store, 8, 7));
  OK(RAW(cuLaunch)(loaded.store));
  BOOST_TEST(loaded.Result() == 7u);
  OK(RAW(cuParamSeti)(loaded.store, 8, 8));
  OK(RAW(cuLaunchGrid)(loaded.store, 6, 5));
  BOOST_TEST(loaded.Result() == 8u);
  if (!Sim::IsActive()) return;
  BOOST_TEST((last.grid[0] == 6 && last.grid[1] == 5 && last.grid[2] == 1));
  BOOST_TEST((last.block[0] == 4 && last.block[1] == 3 && last.block[2] == 2));
  BOOST_TEST(last.shared_bytes == 64u);
}

BOOST_AUTO_TEST_CASE(a_parameter_may_be_a_float) {
  Loaded loaded;
  OK(RAW(cuFuncSetBlockShape)(loaded.store, 1, 1, 1));
  loaded.SetTo();
  OK(RAW(cuParamSetf)(loaded.store, 8, 1.5f));
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  OK(RAW(cuLaunchGridAsync)(loaded.store, 1, 1, stream));
  OK(RAW(cuStreamSynchronize)(stream));
  const unsigned bits = loaded.Result();
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  BOOST_TEST(value == 1.5f);
  OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(each_function_has_its_own) {
  Loaded first;
  Loaded second;
  IS(RAW(cuParamSeti)(first.store, 8, 1), INVALID_HANDLE);  // its context is not current
  OK(RAW(cuFuncSetBlockShape)(second.store, 1, 1, 1));
  second.SetTo();
  OK(RAW(cuParamSeti)(second.store, 8, 2));
  SetStack({first.context.get()});
  OK(RAW(cuFuncSetBlockShape)(first.store, 1, 1, 1));
  first.SetTo();
  OK(RAW(cuParamSeti)(first.store, 8, 1));
  OK(RAW(cuLaunch)(first.store));
  SetStack({second.context.get()});
  OK(RAW(cuLaunch)(second.store));
  SetStack({first.context.get()});
  BOOST_TEST(first.Result() == 1u);
  SetStack({second.context.get()});
  BOOST_TEST(second.Result() == 2u);
  SetStack({first.context.get(), second.context.get()});
}

BOOST_AUTO_TEST_CASE(a_capture_takes_what_was_set, *cudasim_test::OnlySim()) {
  Loaded loaded;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  OK(RAW(cuFuncSetBlockShape)(loaded.store, 1, 1, 1));
  loaded.SetTo();
  OK(RAW(cuParamSeti)(loaded.store, 8, 5));
  OK(RAW(cuMemsetD8)(loaded.result, 0, sizeof(unsigned)));
  OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(RAW(cuLaunchGridAsync)(loaded.store, 1, 1, stream));
  OK(RAW(cuStreamEndCapture)(stream, &graph));
  OK(RAW(cuParamSeti)(loaded.store, 8, 6));  // too late
  BOOST_TEST(loaded.Result() == 0u);
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  OK(RAW(cuGraphLaunch)(executable, stream));
  OK(RAW(cuStreamSynchronize)(stream));
  BOOST_TEST(loaded.Result() == 5u);
  OK(RAW(cuGraphExecDestroy)(executable));
  OK(RAW(cuGraphDestroy)(graph));
  OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(a_lost_capture_takes_no_launch, *cudasim_test::OnlySim()) {
  Loaded loaded;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  OK(RAW(cuFuncSetBlockShape)(loaded.store, 1, 1, 1));
  loaded.SetTo();
  OK(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  IS(RAW(cuStreamQuery)(stream), STREAM_CAPTURE_UNSUPPORTED);
  IS(RAW(cuLaunchGridAsync)(loaded.store, 1, 1, stream), STREAM_CAPTURE_INVALIDATED);
  IS(RAW(cuStreamEndCapture)(stream, &graph), STREAM_CAPTURE_INVALIDATED);
  OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_set_is_refused, *cudasim_test::OnlySim()) {
  Loaded loaded;
  IS(RAW(cuFuncSetBlockShape)(nullptr, 1, 1, 1), INVALID_HANDLE);
  IS(RAW(cuFuncSetBlockShape)(loaded.store, 0, 1, 1), INVALID_VALUE);
  IS(RAW(cuFuncSetBlockShape)(loaded.store, 1, 1, -1), INVALID_VALUE);
  IS(RAW(cuParamSetv)(loaded.store, -1, &loaded.result, 8), INVALID_VALUE);
  IS(RAW(cuParamSetv)(loaded.store, 4090, &loaded.result, 8), INVALID_VALUE);
  IS(RAW(cuParamSetSize)(loaded.store, 4097), INVALID_VALUE);
  OK(RAW(cuFuncSetBlockShape)(loaded.store, 1, 1, 1));
  IS(RAW(cuLaunchGrid)(loaded.store, 0, 1), INVALID_VALUE);
  IS(RAW(cuLaunch)(loaded.store), INVALID_VALUE);  // no parameters were set
  OK(RAW(cuFuncSetBlockShape)(loaded.store, 2048, 1, 1));
  loaded.SetTo();
  IS(RAW(cuLaunch)(loaded.store), INVALID_VALUE);
}

BOOST_AUTO_TEST_SUITE_END()
