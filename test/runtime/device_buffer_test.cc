// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/runtime/device_buffer.h"

#include <numeric>

#include "cudasim/sim.h"
#include "cudasim/sim_runtime.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/host_span.h"
#include "test/runtime/everywhere.h"
#include "test/support/advised.h"

BOOST_AUTO_TEST_SUITE(device_buffer)

namespace {

using namespace cuguest_runtime_test;
using cudasim::Sim;
using cudasim::SimRuntime;
using cuguest::DeviceBuffer;
using cuguest::HostSpan;
using cuguest::runtime::AllocateBuffer;
using cuguest::runtime::FreeBuffer;
using cuguest_test::OnlySim;
using Buffer = DeviceBuffer<int>;

constexpr size_t kCount = 1000;

std::vector<int> Numbers() {
  std::vector<int> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), -3);
  return numbers;
}

Buffer Value(absl::StatusOr<Buffer> buffer) {
  BOOST_TEST_REQUIRE(buffer.ok(), buffer.status().ToString());
  return *std::move(buffer);
}

void CheckOk(const absl::Status& status) { BOOST_TEST(status.ok(), status.ToString()); }

void CheckHoldsWhatIsWritten(Buffer& buffer) {
  CheckOk(Upload(buffer.view(), Numbers()));
  std::vector<int> numbers(kCount);
  CheckOk(Download(buffer.view(), numbers));
  BOOST_TEST(numbers == Numbers());
}

}  // namespace

BOOST_AUTO_TEST_CASE(either_api_allocates_and_either_frees) {
  const OwnContext user;
  const OwnContext other;
  const auto primary = RetainPrimary();
  for (const CUcontext home : {user.get(), primary.get()}) {
    for (const std::vector<CUcontext>& stack :
         {std::vector<CUcontext>{home}, {other.get()}, std::vector<CUcontext>{}}) {
      const ContextRef context = ContextRef::Borrow(home);
      SetStack(stack);
      {
        const Undisturbed undisturbed;
        Buffer by_runtime = Value(AllocateBuffer<int>(context, kCount));
        BOOST_TEST((by_runtime.context() == context));
        CheckHoldsWhatIsWritten(by_runtime);
        CheckOk(by_runtime.Release());
        BOOST_TEST(by_runtime.empty());
        Buffer by_driver = Value(Buffer::Allocate(context, kCount));
        CheckHoldsWhatIsWritten(by_driver);
        CheckOk(FreeBuffer(by_driver));
        BOOST_TEST(by_driver.empty());
        Buffer left_to_itself = Value(AllocateBuffer<int>(context, kCount));
      }
      SetStack({});
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_an_empty_buffer) {
  const OwnContext context;
  Buffer buffer = Value(AllocateBuffer<int>(ContextRef::Borrow(context.get()), 0));
  BOOST_TEST(buffer.empty());
  CheckOk(FreeBuffer(buffer));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_allocated_is_refused_and_leaves_no_error) {
  const OwnContext context;
  const ContextRef home = ContextRef::Borrow(context.get());
  const Undisturbed undisturbed;
  using absl::StatusCode;
  BOOST_TEST(
      (AllocateBuffer<int>(home, SIZE_MAX / 2).status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST((AllocateBuffer<int>(home, size_t{1} << 55).status().code() ==
              StatusCode::kResourceExhausted));
  BOOST_TEST((AllocateBuffer<int>(ContextRef(), kCount).status().code() ==
              StatusCode::kFailedPrecondition));
}

BOOST_AUTO_TEST_CASE(what_ended_with_its_context_is_let_go) {
  auto primary = RetainPrimary();
  Buffer buffer = Value(AllocateBuffer<int>(primary.context(), kCount));
  EndPrimary();
  {
    const Undisturbed undisturbed;
    const absl::Status status = FreeBuffer(buffer);
    BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_CONTEXT_IS_DESTROYED));
    BOOST_TEST(buffer.empty());
  }
  CheckOk(ToStatus(primary.Release()));
}

BOOST_AUTO_TEST_CASE(memory_of_a_pool_is_not_for_cudaFree) {
  const OwnContext context;
  const auto stream =
      cuguest::StreamRef::Borrow(CU_STREAM_PER_THREAD, ContextRef::Borrow(context.get()));
  Buffer buffer = Value(Buffer::AllocateAsync(stream, kCount));
  const absl::Status refused = FreeBuffer(buffer);
  BOOST_TEST((refused.code() == absl::StatusCode::kInvalidArgument));
  BOOST_TEST((refused.message().find(Advised("belongs to no context; call its Release()")) !=
              absl::string_view::npos));
  BOOST_TEST(!buffer.empty());
  CheckOk(buffer.Release());
}

BOOST_AUTO_TEST_CASE(every_failing_call_is_a_status_and_nothing_leaks, *OnlySim()) {
  const OwnContext context;
  const ContextRef home = ContextRef::Borrow(context.get());
  const Undisturbed undisturbed;
  const auto before = Sim::Live();
  SimRuntime::FailCall("cudaMalloc", 1, cudaErrorMemoryAllocation);
  BOOST_TEST(
      (AllocateBuffer<int>(home, kCount).status().code() == absl::StatusCode::kResourceExhausted));
  for (const char* entry : {"cuCtxGetId", "cuCtxGetCurrent", "cuCtxPushCurrent"}) {
    Sim::FailCall(entry, 1, CUDA_ERROR_UNKNOWN);
    BOOST_TEST(!AllocateBuffer<int>(home, kCount).ok(), entry);
    Sim::ClearFaults();
  }
  // Found out only after the allocation, which is freed again.
  Sim::FailCall("cuPointerGetAttributes", 1, CUDA_ERROR_UNKNOWN);
  BOOST_TEST((cuguest::CodeOf(AllocateBuffer<int>(home, kCount).status()) == CUDA_ERROR_UNKNOWN));
  Sim::ClearFaults();
  BOOST_TEST((Sim::Live() == before));

  Buffer buffer = Value(AllocateBuffer<int>(home, kCount));
  SimRuntime::FailCall("cudaFree", 1, cudaErrorUnknown);
  BOOST_TEST((cuguest::CodeOf(FreeBuffer(buffer)) == CUDA_ERROR_UNKNOWN));
  BOOST_TEST(!buffer.empty());
  CheckOk(FreeBuffer(buffer));
  BOOST_TEST((Sim::Live() == before));
}

BOOST_AUTO_TEST_SUITE_END()
