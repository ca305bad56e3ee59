// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What graphs own of the application's, and instantiation with parameters.

#include <atomic>
#include <chrono>

#include "test/capture.h"

BOOST_AUTO_TEST_SUITE(graph_object_facts)

using namespace cudasim_facts;

namespace {

std::atomic<int> destroyed{0};
std::atomic<CUresult> in_destroy{CUDA_SUCCESS};

void Destroy(void* data) {
  CUdevice device = 0;
  in_destroy = RAW(cuCtxGetDevice)(&device);
  destroyed += *static_cast<int*>(data);
}

// A driver destroys on a thread of its own.
bool BecomeDestroyed(int sum) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (destroyed != sum && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return destroyed == sum;
}

struct Owner : Guest {
  Owner() {
    destroyed = 0;
    OK(RAW(cuStreamBeginCapture)(stream, kRelaxed));
    OK(RAW(cuMemsetD8Async)(memory, 1, 16, stream));
    OK(RAW(cuStreamEndCapture)(stream, &graph));
  }

  CUuserObject Make(unsigned references) {
    CUuserObject object = nullptr;
    OK(RAW(cuUserObjectCreate)(&object, &weight, Destroy, references,
                               CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    return object;
  }

  int weight = 7;
  CUgraph graph = nullptr;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_object_goes_with_its_last_reference) {
  Owner owner;
  const CUuserObject object = owner.Make(2);
  OK(RAW(cuUserObjectRetain)(object, 3));
  OK(RAW(cuUserObjectRelease)(object, 4));
  BOOST_TEST(destroyed == 0);
  OK(RAW(cuUserObjectRelease)(object, 1));
  BOOST_TEST(BecomeDestroyed(7));
  OK(RAW(cuGraphDestroy)(owner.graph));
}

BOOST_AUTO_TEST_CASE(the_destructor_may_not_call_the_driver, *cudasim_test::OnlySim()) {
  Owner owner;
  OK(RAW(cuUserObjectRelease)(owner.Make(1), 1));
  BOOST_TEST(BecomeDestroyed(7));
  IS(in_destroy.load(), NOT_PERMITTED);
  OK(RAW(cuGraphDestroy)(owner.graph));
}

BOOST_AUTO_TEST_CASE(a_graph_keeps_an_object) {
  for (const unsigned flags : {0u, unsigned{CU_GRAPH_USER_OBJECT_MOVE}}) {
    Owner owner;
    const CUuserObject object = owner.Make(1);
    OK(RAW(cuGraphRetainUserObject)(owner.graph, object, 1, flags));
    if (flags == 0) OK(RAW(cuUserObjectRelease)(object, 1));
    BOOST_TEST(destroyed == 0);
    OK(RAW(cuGraphDestroy)(owner.graph));
    BOOST_TEST(BecomeDestroyed(7));
  }
}

BOOST_AUTO_TEST_CASE(a_graph_gives_an_object_back) {
  Owner owner;
  const CUuserObject object = owner.Make(2);
  OK(RAW(cuGraphRetainUserObject)(owner.graph, object, 2, CU_GRAPH_USER_OBJECT_MOVE));
  OK(RAW(cuGraphReleaseUserObject)(owner.graph, object, 1));
  BOOST_TEST(destroyed == 0);
  OK(RAW(cuGraphReleaseUserObject)(owner.graph, object, 1));
  BOOST_TEST(BecomeDestroyed(7));
  OK(RAW(cuGraphDestroy)(owner.graph));
}

BOOST_AUTO_TEST_CASE(what_was_instantiated_keeps_it_too) {
  Owner owner;
  const CUuserObject object = owner.Make(1);
  OK(RAW(cuGraphRetainUserObject)(owner.graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphExec first = nullptr;
  CUgraphExec second = nullptr;
  OK(RAW(cuGraphInstantiateWithFlags)(&first, owner.graph, 0));
  OK(RAW(cuGraphInstantiateWithFlags)(&second, owner.graph, 0));
  OK(RAW(cuGraphDestroy)(owner.graph));
  OK(RAW(cuGraphLaunch)(second, owner.stream));
  OK(RAW(cuStreamSynchronize)(owner.stream));
  OK(RAW(cuGraphExecDestroy)(first));
  BOOST_TEST(destroyed == 0);
  OK(RAW(cuGraphExecDestroy)(second));
  BOOST_TEST(BecomeDestroyed(7));
}

BOOST_AUTO_TEST_CASE(counts_and_flags_are_checked) {
  Owner owner;
  const CUuserObject object = owner.Make(1);
  CUuserObject none = nullptr;
  constexpr unsigned kTooMany = 1u << 31;
  const auto create = [&](CUhostFn destroy, unsigned references, unsigned flags) {
    return RAW(cuUserObjectCreate)(&none, &owner.weight, destroy, references, flags);
  };
  IS(create(Destroy, 1, 0), INVALID_VALUE);
  IS(create(Destroy, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), INVALID_VALUE);
  IS(create(nullptr, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), INVALID_VALUE);
  for (const unsigned count : {0u, kTooMany}) {
    IS(RAW(cuUserObjectRetain)(object, count), INVALID_VALUE);
    IS(RAW(cuUserObjectRelease)(object, count), INVALID_VALUE);
    IS(RAW(cuGraphRetainUserObject)(owner.graph, object, count, 0), INVALID_VALUE);
    IS(RAW(cuGraphReleaseUserObject)(owner.graph, object, count), INVALID_VALUE);
  }
  IS(RAW(cuGraphRetainUserObject)(owner.graph, object, 1, 2), INVALID_VALUE);
  BOOST_TEST(destroyed == 0);
  OK(RAW(cuUserObjectRelease)(object, 1));
  BOOST_TEST(BecomeDestroyed(7));
  OK(RAW(cuGraphDestroy)(owner.graph));
}

BOOST_AUTO_TEST_CASE(instantiation_with_parameters_says_how_it_went) {
  Owner owner;
  CUgraphExec executable = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  params.hUploadStream = owner.stream;
  params.hErrNode_out = reinterpret_cast<CUgraphNode>(&params);
  params.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  OK(RAW(cuGraphInstantiateWithParams)(&executable, owner.graph, &params));
  BOOST_CHECK_EQUAL(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
  BOOST_TEST(params.hErrNode_out == nullptr);
  cuuint64_t flags = 0;
  OK(RAW(cuGraphExecGetFlags)(executable, &flags));
  BOOST_TEST(flags == 0u);  // of this one nothing is said
  OK(RAW(cuGraphUpload)(executable, owner.stream));
  OK(RAW(cuGraphLaunch)(executable, owner.stream));
  unsigned char byte = 0;
  OK(RAW(cuStreamSynchronize)(owner.stream));
  OK(RAW(cuMemcpyDtoH)(&byte, owner.memory, 1));
  BOOST_TEST(byte == 1);
  OK(RAW(cuGraphExecDestroy)(executable));
  params.flags = 1u << 20;
  IS(RAW(cuGraphInstantiateWithParams)(&executable, owner.graph, &params), INVALID_VALUE);
  BOOST_CHECK_EQUAL(params.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
  OK(RAW(cuGraphDestroy)(owner.graph));
}

BOOST_AUTO_TEST_SUITE_END()
