// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handles, as numbers.

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(handle_facts)

using namespace cudasim_facts;

namespace {

// Programs keep handles in signed 64-bit integers.
template <typename Handle>
bool LooksLikeAnAddress(Handle handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  return value != 0 && value >> 47 == 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(handles_look_like_addresses_below_2_to_the_47) {
  const OwnContext context;
  SetStack({context.get()});
  BOOST_TEST(LooksLikeAnAddress(context.get()));

  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  BOOST_TEST(LooksLikeAnAddress(stream));
  CUevent event = nullptr;
  OK(RAW(cuEventCreate)(&event, 0));
  BOOST_TEST(LooksLikeAnAddress(event));
  CUmodule module = nullptr;
  OK(RAW(cuModuleLoadData)(&module, kPtx));
  BOOST_TEST(LooksLikeAnAddress(module));
  CUfunction function = nullptr;
  OK(RAW(cuModuleGetFunction)(&function, module, "nothing"));
  BOOST_TEST(LooksLikeAnAddress(function));
  CUlibrary library = nullptr;
  OK(RAW(cuLibraryLoadData)(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  BOOST_TEST(LooksLikeAnAddress(library));
  CUkernel kernel = nullptr;
  OK(RAW(cuLibraryGetKernel)(&kernel, library, "nothing"));
  BOOST_TEST(LooksLikeAnAddress(kernel));
  CUgraph graph = nullptr;
  OK(RAW(cuGraphCreate)(&graph, 0));
  BOOST_TEST(LooksLikeAnAddress(graph));
  CUgraphExec executable = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  BOOST_TEST(LooksLikeAnAddress(executable));
  CUmemoryPool pool = nullptr;
  OK(RAW(cuDeviceGetDefaultMemPool)(&pool, 0));
  BOOST_TEST(LooksLikeAnAddress(pool));
  CUarray array = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  shape.Width = 8;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  OK(RAW(cuArray3DCreate)(&array, &shape));
  BOOST_TEST(LooksLikeAnAddress(array));

  OK(RAW(cuArrayDestroy)(array));
  OK(RAW(cuGraphExecDestroy)(executable));
  OK(RAW(cuGraphDestroy)(graph));
  OK(RAW(cuLibraryUnload)(library));
  OK(RAW(cuModuleUnload)(module));
  OK(RAW(cuEventDestroy)(event));
  OK(RAW(cuStreamDestroy)(stream));
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
