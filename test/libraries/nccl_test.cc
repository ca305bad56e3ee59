// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/libraries/nccl.h"

#include <thread>
#include <utility>

#include "cuguest/devices.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/stream.h"
#include "test/libraries/library_suite.h"

BOOST_AUTO_TEST_SUITE(nccl)

namespace {

using namespace cuguest_library_test;
namespace runtime = cuguest::runtime;
using cuguest::Device;
using cuguest_test::NeedsDevices;
using runtime::NcclCommunicator;
using runtime::NcclLibrary;
using runtime::NcclScope;

ncclUniqueId NewId() {
  ncclUniqueId id = {};
  BOOST_TEST(ncclGetUniqueId(&id) == ncclSuccess);
  return id;
}

absl::StatusOr<NcclCommunicator> MakeAlone(int rank = 0) {
  return NcclCommunicator::Make(NcclLibrary::Linked(), Primary(), 1, rank, NewId());
}

// The sum over the ranks of 1, 2, 3, ... times the rank's number from 1.
absl::StatusOr<std::vector<float>> Add(const NcclCommunicator& comm, float number) {
  std::vector<float> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = number * static_cast<float>(i + 1);
  CUGUEST_ASSIGN_OR_RETURN(auto memory, DeviceBuffer<float>::CopyOf(comm.context(), numbers));
  CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(comm.context()));
  {
    const NcclScope scope(comm, stream);
    if (!scope.ok()) return scope.status();
    CUGUEST_RETURN_IF_ERROR(
        runtime::ToStatus(ncclAllReduce(memory.data(), memory.data(), numbers.size(), ncclFloat,
                                        ncclSum, scope.comm(), stream.get()),
                          "add over the ranks"));
  }
  return cuguest::Download(memory.view(), stream);
}

bool IsSum(const absl::StatusOr<std::vector<float>>& sum, float of) {
  bool is_right = sum.ok() && !sum->empty();
  for (size_t i = 0; is_right && i < sum->size(); ++i) {
    is_right = (*sum)[i] == of * static_cast<float>(i + 1);
  }
  return is_right;
}

bool PrimaryIsActive() { return cuguest::PrimaryContext::Query(Device::Borrow(0)).active; }

// The driver calls of `use`, which are as many as the contracts of NcclScope and Check() say.
template <typename Use>
std::vector<std::pair<std::string, std::uint64_t>> CallsOf(const Use& use) {
  Sim::ResetCalls();
  STATUS_OK(use());
  std::vector<std::pair<std::string, std::uint64_t>> calls;
  std::uint64_t total = 0;
  for (size_t i = 0; const char* entry = Sim::EntryName(i); ++i) {
    if (const std::uint64_t count = Sim::Calls(entry)) calls.emplace_back(entry, count);
    total += Sim::Calls(entry);
  }
  BOOST_TEST(total == 7U);
  return calls;
}

void Refuses(const absl::Status& status, StatusCode code, const std::vector<std::string>& words) {
  const std::string no_refusal = NoRefusal(status, code, words);
  BOOST_TEST(no_refusal.empty(), no_refusal);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_callers_contexts_stay_as_they_were) {
  const Owner a;
  const cuguest::PrimaryContext held = Primary();  // as NCCL holds it from its first call on
  for (const bool has_context : {true, false}) {
    SetStack(has_context ? std::vector<CUcontext>{a.ref().get()} : std::vector<CUcontext>{});
    const UndisturbedScope undisturbed(&Fail);
    auto comm = MakeAlone();
    BOOST_TEST_REQUIRE(comm.ok(), comm.status().ToString());
    BOOST_TEST(comm->get() != nullptr);
    BOOST_TEST(IsSum(Add(*comm, 3), 3));
    STATUS_OK(comm->Check());
    STATUS_OK(comm->Release());
    BOOST_TEST(comm->get() == nullptr);
    BOOST_TEST(comm->context().get() == nullptr);
  }
  SetStack({});
  BOOST_TEST(TakeIncidents().empty());
}

BOOST_AUTO_TEST_CASE(its_end_leaves_nothing, *cuguest_test::OnlySim()) {
  BOOST_TEST(MakeAlone().ok());  // what NCCL keeps
  const cudasim::SimLive live = Sim::Live();
  BOOST_TEST(MakeAlone().ok());
  BOOST_TEST(MakeAlone()->Abort().ok());
  BOOST_TEST(!MakeAlone(1).ok());
  BOOST_TEST((Sim::Live() == live));
}

BOOST_AUTO_TEST_CASE(any_thread_may_use_and_destroy_one) {
  auto comm = MakeAlone();
  BOOST_TEST_REQUIRE(comm.ok());
  absl::StatusOr<std::vector<float>> sum = absl::UnknownError("");
  absl::Status released;
  std::vector<CUcontext> left(1);
  std::thread([&] {
    sum = Add(*comm, 2);
    released = comm->Release();
    left = GetStack();
  }).join();
  BOOST_TEST(IsSum(sum, 2));
  STATUS_OK(released);
  BOOST_TEST(left.empty());
}

BOOST_AUTO_TEST_CASE(a_stream_of_another_context_is_refused) {
  const Owner a;
  auto comm = MakeAlone();
  BOOST_TEST_REQUIRE(comm.ok());
  const NcclScope scope(*comm, StreamOf(a));
  BOOST_TEST(scope.comm() == nullptr);
  Refuses(scope.status(), StatusCode::kInvalidArgument,
          {"another context",
           Advised("the primary one that NCCL works in; make it there, and wait for events of "
                   "others")});
  const auto there = cuguest::Stream::Create(comm->context()).value();
  auto event = cuguest::Event::Create(a.ref()).value();
  STATUS_OK(event.Record(StreamOf(a)));
  STATUS_OK(there.ref().WaitFor(event));
  STATUS_OK(NcclScope(*comm, there.ref()).status());
}

BOOST_AUTO_TEST_CASE(one_that_was_released_is_refused) {
  auto comm = MakeAlone();
  BOOST_TEST_REQUIRE(comm.ok());
  const cuguest::PrimaryContext primary = Primary();
  const StreamRef stream = StreamRef::Borrow(CU_STREAM_LEGACY, primary.context());
  STATUS_OK(comm->Release());
  STATUS_OK(comm->Release());
  Refuses(NcclScope(*comm, stream).status(), StatusCode::kFailedPrecondition, {"it was released"});
  Refuses(comm->Check(), StatusCode::kFailedPrecondition, {"it was released"});
}

BOOST_AUTO_TEST_CASE(it_moves_and_can_be_let_go) {
  auto first = MakeAlone();
  auto second = MakeAlone();
  BOOST_TEST_REQUIRE((first.ok() && second.ok()));
  NcclCommunicator moved(std::move(*first));
  BOOST_TEST(IsSum(Add(moved, 1), 1));
  moved = std::move(*second);  // releases the first
  BOOST_TEST(IsSum(Add(moved, 1), 1));
  ncclComm_t const comm = moved.Leak();
  BOOST_TEST(comm != nullptr);
  BOOST_TEST(moved.get() == nullptr);
  BOOST_TEST(PrimaryIsActive());  // the reference was let go, too
  const cuguest::PrimaryContext primary = Primary();
  const ContextGuard guard(primary);
  BOOST_TEST(ncclCommDestroy(comm) == ncclSuccess);
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

BOOST_AUTO_TEST_CASE(it_can_be_aborted) {
  auto comm = MakeAlone();
  BOOST_TEST_REQUIRE(comm.ok());
  STATUS_OK(comm->Abort());
  BOOST_TEST(comm->get() == nullptr);
}

BOOST_AUTO_TEST_CASE(one_of_a_context_that_was_reset_is_given_up) {
  auto comm = MakeAlone();
  auto unreleased = MakeAlone();
  BOOST_TEST_REQUIRE((comm.ok() && unreleased.ok()));
  const StreamRef stream = StreamRef::Borrow(CU_STREAM_LEGACY, comm->context());
  OK(RAW(cuDevicePrimaryCtxReset)(0));
  Refuses(NcclScope(*comm, stream).status(), StatusCode::kFailedPrecondition, {});
  Refuses(comm->Check(), StatusCode::kFailedPrecondition, {});
  Refuses(comm->Release(), StatusCode::kFailedPrecondition, {});
  BOOST_TEST(comm->get() == nullptr);
  // `unreleased` ends here.
}

BOOST_AUTO_TEST_CASE(in_a_stream_callback_it_stays) {
  const Owner a;
  auto comm = MakeAlone();
  BOOST_TEST_REQUIRE(comm.ok());
  struct Call {
    NcclCommunicator* comm;
    absl::Status status;
  } call = {&*comm, {}};
  const auto release = [](void* data) {
    auto* const made = static_cast<Call*>(data);
    made->status = made->comm->Release();
  };
  const ContextGuard guard(a.ref());
  OK(RAW(cuLaunchHostFunc)(a.stream(), release, &call));
  OK(RAW(cuStreamSynchronize)(a.stream()));
  Refuses(call.status, StatusCode::kPermissionDenied, {});
  BOOST_TEST(comm->get() != nullptr);
  STATUS_OK(comm->Release());
}

BOOST_AUTO_TEST_CASE(a_callback_destructor_is_reported) {
  const Owner a;
  auto made = MakeAlone();
  BOOST_TEST_REQUIRE(made.ok());
  std::optional<NcclCommunicator> comm = *std::move(made);
  const auto end = [](void* data) { static_cast<std::optional<NcclCommunicator>*>(data)->reset(); };
  const ContextGuard guard(a.ref());
  OK(RAW(cuLaunchHostFunc)(a.stream(), end, &comm));
  OK(RAW(cuStreamSynchronize)(a.stream()));
  const std::vector<cuguest::Incident> incidents = cuguest_test::TakeIncidents();
  BOOST_TEST_REQUIRE(incidents.size() == 1U);
  BOOST_TEST(incidents[0].file == std::string("an NcclCommunicator"));
  BOOST_TEST(incidents[0].result == CUDA_ERROR_NOT_SUPPORTED);
  BOOST_TEST(PrimaryIsActive());
}

BOOST_AUTO_TEST_CASE(what_cannot_be_made_holds_nothing) {
  const absl::Status status = MakeAlone(1).status();
  Refuses(status, StatusCode::kInvalidArgument,
          {"make a communicator", "ncclInvalidArgument (4)", "NCCL_DEBUG"});
  BOOST_TEST((runtime::NcclCodeOf(status) == ncclInvalidArgument));
  const auto none =
      NcclCommunicator::Make(NcclLibrary::Linked(), cuguest::PrimaryContext(), 1, 0, NewId());
  Refuses(none.status(), StatusCode::kFailedPrecondition, {});
}

BOOST_AUTO_TEST_CASE(codes_have_names_and_advice) {
  BOOST_TEST(runtime::ToStatus(ncclSuccess, "add").ok());
  Refuses(runtime::ToStatus(ncclRemoteError, "add"), StatusCode::kUnavailable,
          {"add: ncclRemoteError (6)", Advised("; abort the communicator")});
  Refuses(runtime::ToStatus(ncclInProgress, "add"), StatusCode::kUnavailable,
          {"ncclInProgress (7)", Advised("; ask ncclCommGetAsyncError until it is over")});
  auto comm = MakeAlone();
  BOOST_TEST_REQUIRE(comm.ok());
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    BOOST_TEST_REQUIRE(ncclCommGetAsyncError(comm->get(), &state) == ncclSuccess);
  }
  BOOST_TEST(state == ncclSuccess);
  STATUS_OK(comm->Abort());
  BOOST_TEST(!runtime::NcclCodeOf(absl::InternalError("of somebody else's")).has_value());
}

BOOST_AUTO_TEST_CASE(it_may_be_loaded_at_run_time) {
  const auto library = NcclLibrary::Open();
  BOOST_TEST_REQUIRE(library.ok(), library.status().ToString());
  auto comm = NcclCommunicator::Make(*library, Primary(), 1, 0, NewId());
  BOOST_TEST_REQUIRE(comm.ok(), comm.status().ToString());
  const auto count = library->Find<decltype(&ncclCommCount)>("ncclCommCount");
  BOOST_TEST_REQUIRE(count.ok());
  int ranks = 0;
  BOOST_TEST((*count)(comm->get(), &ranks) == ncclSuccess);
  BOOST_TEST(ranks == 1);
}

BOOST_AUTO_TEST_CASE(what_check_costs, *cuguest_test::OnlySim()) {
  const Owner a;
  auto comm = MakeAlone();
  BOOST_TEST_REQUIRE(comm.ok());
  SetStack({a.ref().get()});
  BOOST_TEST(!CallsOf([&] { return comm->Check(); }).empty());
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_call_of_the_scopes_that_fails_is_told, *cuguest_test::OnlySim()) {
  const Owner a;
  auto comm = MakeAlone();
  BOOST_TEST_REQUIRE(comm.ok());
  const StreamRef stream = StreamRef::Borrow(CU_STREAM_LEGACY, comm->context());
  SetStack({a.ref().get()});
  const auto use = [&] {
    NcclScope scope(*comm, stream);
    return scope.ok() ? scope.Leave() : scope.status();
  };
  const auto calls = CallsOf(use);
  for (const auto& [entry, count] : calls) {
    for (unsigned nth = 1; nth <= count; ++nth) {
      Sim::FailCall(entry.c_str(), nth, CUDA_ERROR_UNKNOWN);
      const absl::Status status = use();
      Sim::ClearFaults();
      const bool is_as_before = GetStack() == std::vector<CUcontext>{a.ref().get()};
      const bool was_reported = !TakeIncidents().empty();
      BOOST_TEST((!status.ok() || was_reported || is_as_before), entry << ", call " << nth);
      SetStack({a.ref().get()});
    }
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(a_rank_on_each_device_adds, *NeedsDevices(2)) {
  const ncclUniqueId id = NewId();
  const int ranks = cuguest::CountDevices().value();
  struct Rank {
    absl::StatusOr<std::vector<float>> sum = absl::UnknownError("");
    std::vector<CUcontext> left = {nullptr};
  };
  std::vector<Rank> all(static_cast<std::size_t>(ranks));
  const auto add = [&](int rank) -> absl::StatusOr<std::vector<float>> {
    CUGUEST_ASSIGN_OR_RETURN(
        const auto comm,
        NcclCommunicator::Make(NcclLibrary::Linked(),
                               cuguest::PrimaryContext::Retain(Device::Borrow(rank)), ranks, rank,
                               id));
    return Add(comm, static_cast<float>(rank + 1));
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&add, rank, mine = &all[static_cast<std::size_t>(rank)]] {
      mine->sum = add(rank);
      mine->left = GetStack();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Rank& rank : all) {
    BOOST_TEST(IsSum(rank.sum, static_cast<float>(ranks * (ranks + 1)) / 2),
               rank.sum.status().ToString());
    BOOST_TEST(rank.left.empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()
