// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL, as a program with contexts of its own sees it.

#include <nccl.h>

#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(nccl_facts)

using namespace cudasim_facts;
using cudasim::Sim;
using cudasim_test::NeedsDevices;
using cudasim_test::OnlySim;

namespace {

#define FINE(call) BOOST_CHECK_EQUAL((call), ncclSuccess)

ncclUniqueId NewId() {
  ncclUniqueId id = {};
  FINE(ncclGetUniqueId(&id));
  return id;
}

CUcontext Primary(CUdevice device) {
  CUcontext primary = nullptr;
  OK(RAW(cuDevicePrimaryCtxRetain)(&primary, device));
  OK(RAW(cuDevicePrimaryCtxRelease)(device));
  return primary;
}

// A communicator of one rank, on the device that is current. Its end empties the stack.
class Alone {
 public:
  Alone() { FINE(ncclCommInitRank(&comm_, 1, NewId(), 0)); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ~Alone() {
    Destroy();
    SetStack({});
  }
  void Destroy() { FINE(ncclCommDestroy(std::exchange(comm_, nullptr))); }
  ncclComm_t get() const { return comm_; }

 private:
  ncclComm_t comm_ = nullptr;
};

// A stream and numbers of the context that is current.
class Numbers {
 public:
  static constexpr size_t kCount = 100000;  // more than the ranks hand over at a time

  explicit Numbers(float value) {
    OK(RAW(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING));
    OK(RAW(cuMemAlloc)(&memory_, kCount * sizeof(float)));
    const std::vector<float> values(kCount, value);
    OK(RAW(cuMemcpyHtoD)(memory_, values.data(), kCount * sizeof(float)));
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  ~Numbers() {
    OK(RAW(cuMemFree)(memory_));
    OK(RAW(cuStreamDestroy)(stream_));
  }

  ncclResult_t Sum(ncclComm_t comm) {
    auto* memory = reinterpret_cast<float*>(memory_);
    return ncclAllReduce(memory, memory, kCount, ncclFloat, ncclSum, comm, stream_);
  }
  bool AreAll(float value) {
    OK(RAW(cuStreamSynchronize)(stream_));
    std::vector<float> values(kCount);
    OK(RAW(cuMemcpyDtoH)(values.data(), memory_, kCount * sizeof(float)));
    return values == std::vector<float>(kCount, value);
  }

 private:
  CUstream stream_ = nullptr;
  CUdeviceptr memory_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(making_and_destroying_one_leaves_the_primary_current) {
  Alone alone;
  BOOST_CHECK(GetStack() == Entries{Primary(0)});
  SetStack({});
  alone.Destroy();
  BOOST_CHECK(GetStack() == Entries{Primary(0)});
}

BOOST_AUTO_TEST_CASE(making_one_replaces_a_user_context) {
  const OwnContext a;
  const OwnContext b;
  SetStack({a.get(), b.get()});
  const Alone alone;
  BOOST_CHECK((GetStack() == Entries{a.get(), Primary(0)}));
}

BOOST_AUTO_TEST_CASE(a_collective_of_one_rank_knows_no_context) {
  const Alone alone;
  const OwnContext a;
  SetStack({a.get()});
  Numbers numbers(3);
  FINE(numbers.Sum(alone.get()));
  BOOST_CHECK(GetStack() == Entries{a.get()});
  BOOST_CHECK(numbers.AreAll(3));
}

BOOST_AUTO_TEST_CASE(where_a_green_context_is_current_it_is_the_primarys) {
  CUdevResource whole = {};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  OK(RAW(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
  OK(RAW(cuDevResourceGenerateDesc)(&description, &whole, 1));
  OK(RAW(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(RAW(cuCtxFromGreenCtx)(&context, green));
  SetStack({context});
  {
    const Alone alone;
    BOOST_CHECK(GetStack() == Entries{Primary(0)});
    SetStack({context});
    Numbers numbers(3);
    FINE(numbers.Sum(alone.get()));
    BOOST_CHECK(GetStack() == Entries{context});
    BOOST_CHECK(numbers.AreAll(3));
  }
  OK(RAW(cuGreenCtxDestroy)(green));
}

BOOST_AUTO_TEST_CASE(one_belongs_to_the_device_that_is_current, *NeedsDevices(2)) {
  const OwnContext b(1);
  SetStack({b.get()});
  const Alone alone;
  int device = -1;
  FINE(ncclCommCuDevice(alone.get(), &device));
  BOOST_TEST(device == 1);
  BOOST_CHECK(GetStack() == Entries{Primary(1)});
}

namespace {

// What a rank of two found; looked at when both threads have ended, since Boost.Test is for one.
struct Outcome {
  ncclResult_t made = ncclNumResults;
  ncclResult_t added = ncclNumResults;
  ncclResult_t destroyed = ncclNumResults;
  Entries left;  // on the stack by the collective
  std::vector<float> sums = std::vector<float>(Numbers::kCount);
};

// 0, of, 2 * of, ...: each part of them is another one.
std::vector<float> Multiples(int of) {
  std::vector<float> multiples;
  for (size_t i = 0; i < Numbers::kCount; ++i) {
    multiples.push_back(static_cast<float>(i) * static_cast<float>(of));
  }
  return multiples;
}

// How each rank makes its sum.
struct Way {
  bool is_a_context_current;
  bool is_the_stream_its;  // instead of the primary's
};

// In the calling thread, with a context of its own of its device: adds the multiples of its number,
// which is 1 or 2, to those of the other, in memory of the primary.
void RunRank(const ncclUniqueId& id, int rank, CUcontext own, Way way, Outcome* outcome) {
  ncclComm_t comm = nullptr;
  RAW(cuCtxSetCurrent)(own);
  outcome->made = ncclCommInitRank(&comm, 2, id, rank);
  if (outcome->made == ncclSuccess) {  // and the primary is current
    CUdeviceptr memory = 0;
    constexpr size_t kBytes = Numbers::kCount * sizeof(float);
    const std::vector<float> mine = Multiples(rank + 1);
    RAW(cuMemAlloc)(&memory, kBytes);
    RAW(cuMemcpyHtoD)(memory, mine.data(), kBytes);
    auto* numbers = reinterpret_cast<float*>(memory);
    CUcontext primary = nullptr;
    RAW(cuCtxGetCurrent)(&primary);
    CUstream stream = nullptr;
    if (way.is_the_stream_its) RAW(cuCtxSetCurrent)(own);
    RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    RAW(cuCtxSetCurrent)(way.is_a_context_current ? own : nullptr);
    outcome->added =
        ncclAllReduce(numbers, numbers, Numbers::kCount, ncclFloat, ncclSum, comm, stream);
    outcome->left = GetStack();
    RAW(cuCtxSetCurrent)(primary);
    RAW(cuStreamSynchronize)(stream);
    RAW(cuStreamDestroy)(stream);
    RAW(cuMemcpyDtoH)(outcome->sums.data(), memory, kBytes);
    RAW(cuMemFree)(memory);
    outcome->destroyed = ncclCommDestroy(comm);
  }
  RAW(cuCtxPopCurrent)(nullptr);
}

// A rank on each of the devices.
void RunBoth(int first_device, int second_device, Way way, Outcome outcomes[2]) {
  const ncclUniqueId id = NewId();
  const OwnContext first(first_device);
  const OwnContext second(second_device);
  SetStack({});
  std::thread other(RunRank, id, 1, second.get(), way, &outcomes[1]);
  RunRank(id, 0, first.get(), way, &outcomes[0]);
  other.join();
  BOOST_CHECK(GetStack().empty());
}

}  // namespace

BOOST_AUTO_TEST_CASE(two_ranks_add_their_numbers_in_the_primaries, *NeedsDevices(2)) {
  Outcome outcomes[2];
  RunBoth(0, 1, {true, false}, outcomes);
  for (int rank = 0; rank < 2; ++rank) {
    const Outcome& outcome = outcomes[rank];
    FINE(outcome.made);
    FINE(outcome.added);
    FINE(outcome.destroyed);
    BOOST_CHECK(outcome.left == Entries{Primary(rank)});
    BOOST_CHECK(outcome.sums == Multiples(3));
  }
}

BOOST_AUTO_TEST_CASE(where_nothing_is_current_the_primary_of_device_0_is_left, *NeedsDevices(2)) {
  Outcome outcomes[2];
  RunBoth(0, 1, {false, false}, outcomes);
  for (const Outcome& outcome : outcomes) {
    FINE(outcome.added);
    BOOST_CHECK(outcome.left == Entries{Primary(0)});
    BOOST_CHECK(outcome.sums == Multiples(3));
  }
}

BOOST_AUTO_TEST_CASE(a_stream_of_another_context_is_refused, *NeedsDevices(2)) {
  Outcome outcomes[2];
  RunBoth(0, 1, {true, true}, outcomes);
  for (int rank = 0; rank < 2; ++rank) {
    BOOST_CHECK_EQUAL(outcomes[rank].added, ncclUnhandledCudaError);
    BOOST_CHECK(outcomes[rank].left == Entries{Primary(rank)});
    BOOST_CHECK(outcomes[rank].sums == Multiples(rank + 1));
    FINE(outcomes[rank].destroyed);
  }
}

BOOST_AUTO_TEST_CASE(two_ranks_on_one_device_are_refused) {
  Outcome outcomes[2];
  RunBoth(0, 0, {true, false}, outcomes);
  for (const Outcome& outcome : outcomes) BOOST_CHECK_EQUAL(outcome.made, ncclInvalidUsage);
}

BOOST_AUTO_TEST_CASE(arguments_out_of_range_are_refused) {
  ncclComm_t comm = nullptr;
  BOOST_CHECK_EQUAL(ncclCommInitRank(&comm, 0, NewId(), 0), ncclInvalidArgument);
  BOOST_CHECK_EQUAL(ncclCommInitRank(&comm, 1, NewId(), 1), ncclInvalidArgument);
  BOOST_CHECK_EQUAL(ncclGetUniqueId(nullptr), ncclInvalidArgument);
  const Alone alone;
  const auto sum = [&](ncclDataType_t type, ncclRedOp_t op) {
    return ncclAllReduce(nullptr, nullptr, 1, type, op, alone.get(), nullptr);
  };
  BOOST_CHECK_EQUAL(sum(ncclNumTypes, ncclSum), ncclInvalidArgument);
  BOOST_CHECK_EQUAL(sum(ncclFloat, ncclMaxRedOp), ncclInvalidArgument);
  BOOST_CHECK_EQUAL(ncclBroadcast(nullptr, nullptr, 1, ncclFloat, 1, alone.get(), nullptr),
                    ncclInvalidArgument);
}

BOOST_AUTO_TEST_CASE(halves_are_not_modelled, *OnlySim()) {
  const Alone alone;
  Sim::ResetCalls();
  BOOST_CHECK_EQUAL(ncclAllReduce(nullptr, nullptr, 1, ncclFloat16, ncclSum, alone.get(), nullptr),
                    ncclInvalidUsage);
  BOOST_CHECK_EQUAL(ncclBroadcast(nullptr, nullptr, 1, ncclFloat16, 0, alone.get(), nullptr),
                    ncclInvalidUsage);
  BOOST_TEST(Sim::UnmodelledCalls("ncclAllReduce") == 1u);
  BOOST_TEST(Sim::UnmodelledCalls("ncclBroadcast") == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
