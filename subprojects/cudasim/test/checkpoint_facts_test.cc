// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a process has before another one checkpoints it, it has after the restore.

#include <unistd.h>

#include <future>
#include <thread>
#include <vector>

#include "test/facts.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(checkpoint_facts)

using namespace cudasim_facts;

namespace {

unsigned long long IdOf(CUcontext context) {
  unsigned long long id = 0;
  OK(RAW(cuCtxGetId)(context, &id));
  return id;
}

CUcontext ContextOf(CUdeviceptr memory) {
  CUcontext context = nullptr;
  OK(RAW(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
  return context;
}

CUcontext ContextOf(CUstream stream) {
  CUcontext context = nullptr;
  OK(RAW(cuStreamGetCtx)(stream, &context));
  return context;
}

}  // namespace

CHILD(checkpoints_its_parent) {
  const int parent = getppid();
  CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
  CUcheckpointLockArgs patience = {};
  patience.timeoutMs = 10000;
  CHECK(RAW(cuCheckpointProcessLock)(parent, &patience) == CUDA_SUCCESS);
  CUcheckpointCheckpointArgs checkpoint = {};
  CHECK(RAW(cuCheckpointProcessCheckpoint)(parent, &checkpoint) == CUDA_SUCCESS);
  CUprocessState state = CU_PROCESS_STATE_RUNNING;
  CHECK(RAW(cuCheckpointProcessGetState)(parent, &state) == CUDA_SUCCESS);
  CHECK(state == CU_PROCESS_STATE_CHECKPOINTED);
  CUcheckpointRestoreArgs restore = {};
  CHECK(RAW(cuCheckpointProcessRestore)(parent, &restore) == CUDA_SUCCESS);
  CUcheckpointUnlockArgs unlock = {};
  CHECK(RAW(cuCheckpointProcessUnlock)(parent, &unlock) == CUDA_SUCCESS);
  return 0;
}

// A context's id is what tells its incarnations apart.
BOOST_AUTO_TEST_CASE(contexts_stacks_and_memory_are_as_before, *cudasim_test::OnlyReal()) {
  const OwnContext a;
  const OwnContext b;
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  SetStack({primary, a.get()});
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  constexpr size_t kBytes = size_t{1} << 20;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  OK(RAW(cuMemAlloc)(&memory, kBytes));
  OK(RAW(cuMemsetD8)(memory, 0x5a, kBytes));
  OK(RAW(cuCtxSynchronize)());
  const std::vector<unsigned long long> ids = {IdOf(a.get()), IdOf(b.get()), IdOf(primary)};
  std::promise<void> is_set, is_restored;
  Entries others;
  std::thread other([&] {
    RAW(cuCtxSetCurrent)(b.get());
    is_set.set_value();
    is_restored.get_future().wait();
    others = GetStack();
    RAW(cuCtxSetCurrent)(nullptr);
  });
  is_set.get_future().wait();

  REQUIRE_CHILD_PASSES("checkpoints_its_parent");

  is_restored.set_value();
  other.join();
  BOOST_CHECK(others == Entries{b.get()});
  BOOST_CHECK((GetStack() == Entries{primary, a.get()}));
  const std::vector<unsigned long long> ids_now = {IdOf(a.get()), IdOf(b.get()), IdOf(primary)};
  BOOST_TEST(ids_now == ids);
  BOOST_TEST(ContextOf(stream) == a.get());
  BOOST_TEST(ContextOf(memory) == a.get());
  std::vector<unsigned char> content(kBytes);
  OK(RAW(cuMemcpyDtoH)(content.data(), memory, kBytes));
  BOOST_TEST((content == std::vector<unsigned char>(kBytes, 0x5a)));
  OK(RAW(cuMemFree)(memory));
  OK(RAW(cuStreamDestroy)(stream));
  SetStack({});
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_SUITE_END()
