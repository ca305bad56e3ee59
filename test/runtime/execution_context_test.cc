// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/runtime/execution_context.h"

#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/match.h"
#include "cudasim/sim.h"
#include "cudasim/sim_runtime.h"
#include "cuguest/acquire.h"
#include "cuguest/context_guard.h"
#include "cuguest/green_context.h"
#include "cuguest/objects/stream.h"
#include "cuguest/runtime/handle.h"
#include "test/runtime/runtime.h"
#include "test/support/advised.h"
#include "test/support/capture.h"

BOOST_AUTO_TEST_SUITE(execution_context)

namespace {

using namespace cuguest_runtime_test;
using cudasim::Sim;
using cudasim::SimRuntime;
using cudasim_test::CreateGreenExecutionContext;
using cudasim_test::NeedsExecutionContexts;
using cuguest::ContextGuard;
using cuguest::IfInactive;
using cuguest::StreamRef;
using cuguest::runtime::ContextOf;
using cuguest::runtime::ExecutionContextOf;
using cuguest_test::OnlySim;

template <typename T>
T ValueOf(const absl::StatusOr<T>& value) {
  BOOST_TEST_REQUIRE(value.ok(), value.status().ToString());
  return *value;
}

cudaExecutionContext_t OfDevice() {
  cudaExecutionContext_t execution = nullptr;
  RT_OK(cudaDeviceGetExecutionCtx(&execution, 0));
  return execution;
}

cuguest::GreenContext MakeGreen() {
  auto green = cuguest::GreenContext::Create(First(), cuguest::SmCount{16});
  BOOST_TEST_REQUIRE(green.ok(), green.status().ToString());
  return *std::move(green);
}

// What somebody made by the runtime alone.
class RuntimesGreen {
 public:
  ~RuntimesGreen() { RT_OK(cudaExecutionCtxDestroy(handle_)); }
  [[nodiscard]] cudaExecutionContext_t get() const { return handle_; }

 private:
  const cudaExecutionContext_t handle_ = CreateGreenExecutionContext();
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_devices_is_its_primary, *NeedsExecutionContexts()) {
  const auto primary = RetainPrimary();
  const cudaExecutionContext_t execution = OfDevice();
  const Undisturbed undisturbed;
  BOOST_TEST((ValueOf(ContextOf(execution)) == primary.context()));
  BOOST_TEST(ValueOf(ExecutionContextOf(primary.context())) == execution);
  BOOST_TEST(ValueOf(ExecutionContextOf(First())) == execution);
}

BOOST_AUTO_TEST_CASE(a_green_one_is_its_context, *NeedsExecutionContexts()) {
  const auto primary = RetainPrimary();
  const RuntimesGreen green;
  const Undisturbed undisturbed;
  const ContextRef context = ValueOf(ContextOf(green.get()));
  BOOST_TEST((context != primary.context()));
  BOOST_TEST(ValueOf(ExecutionContextOf(context)) == green.get());
  const ContextGuard guard(context);
  BOOST_TEST(guard.ok());
  BOOST_TEST(CurrentContext() == context.get());
}

// As a runtime that another library is linked with makes one, too: by the driver.
BOOST_AUTO_TEST_CASE(the_runtime_works_in_our_green_context, *NeedsExecutionContexts()) {
  const auto green = MakeGreen();
  const cudaExecutionContext_t execution = ValueOf(ExecutionContextOf(green.context()));
  BOOST_TEST((ValueOf(ContextOf(execution)) == green.context()));
  int device = -1;
  RT_OK(cudaExecutionCtxGetDevice(&device, execution));
  BOOST_TEST(device == 0);
  RT_OK(cudaExecutionCtxSynchronize(execution));
  cudaStream_t stream = nullptr;
  RT_OK(cudaExecutionCtxStreamCreate(&stream, execution, cudaStreamNonBlocking, 0));
  const StreamRef ref = ValueOf(StreamRef::Borrow(cuguest::runtime::ToDriver(stream)));
  BOOST_TEST((ref.context() == green.context()));
  OK(RAW(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(a_stream_made_in_one_knows_its_context, *NeedsExecutionContexts()) {
  const auto primary = RetainPrimary();
  const RuntimesGreen green;
  for (const cudaExecutionContext_t execution : {OfDevice(), green.get()}) {
    cudaStream_t stream = nullptr;
    RT_OK(cudaExecutionCtxStreamCreate(&stream, execution, cudaStreamNonBlocking, 0));
    const ContextRef context = ValueOf(ContextOf(execution));
    BOOST_TEST((ValueOf(StreamRef::Borrow(stream)).context() == context));
    const cuguest::Acquired acquired = cuguest::AcquireFromStream(stream);
    BOOST_TEST((acquired.context() == context));
    const auto ours = cuguest::Stream::Create(context);
    BOOST_TEST(ours.ok());
    OK(RAW(cuStreamDestroy)(stream));
  }
}

BOOST_AUTO_TEST_CASE(a_description_of_resources_is_one_type, *NeedsExecutionContexts()) {
  static_assert(std::is_same_v<cudaDevResourceDesc_t, CUdevResourceDesc>);
  const auto primary = RetainPrimary();
  CUdevResource whole = {};
  CUdevResource part = {};
  unsigned count = 1;
  OK(RAW(cuDeviceGetDevResource)(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
  OK(RAW(cuDevSmResourceSplitByCount)(&part, &count, &whole, nullptr, 0, 16));
  CUdevResourceDesc drivers = nullptr;
  OK(RAW(cuDevResourceGenerateDesc)(&drivers, &part, 1));
  cudaExecutionContext_t execution = nullptr;
  RT_OK(cudaGreenCtxCreate(&execution, drivers, 0, 0));
  RT_OK(cudaExecutionCtxDestroy(execution));

  cudaDevResource resource = {};
  std::memcpy(static_cast<void*>(&resource), &part, sizeof(part));
  cudaDevResourceDesc_t runtimes = nullptr;
  RT_OK(cudaDevResourceGenerateDesc(&runtimes, &resource, 1));
  CUgreenCtx green = nullptr;
  OK(RAW(cuGreenCtxCreate)(&green, runtimes, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(RAW(cuGreenCtxDestroy)(green));
}

BOOST_AUTO_TEST_CASE(an_inactive_primary_is_not_created_unasked, *NeedsExecutionContexts()) {
  EndPrimary();
  {
    const Undisturbed undisturbed;
    const auto refused = ExecutionContextOf(First());
    BOOST_TEST((refused.status().code() == absl::StatusCode::kFailedPrecondition));
    BOOST_TEST((cuguest::CodeOf(refused.status()) == CUDA_ERROR_INVALID_CONTEXT));
  }
  BOOST_TEST(!PrimaryIsActive());
  const cudaExecutionContext_t made = ValueOf(ExecutionContextOf(First(), IfInactive::kCreate));
  BOOST_TEST(PrimaryIsActive());
  BOOST_TEST(CurrentContext() == nullptr);
  BOOST_TEST(made == OfDevice());
}

BOOST_AUTO_TEST_CASE(a_destroyed_one_is_noticed, *NeedsExecutionContexts()) {
  const auto primary = RetainPrimary();
  const cudaExecutionContext_t green = CreateGreenExecutionContext();
  const ContextRef context = ValueOf(ContextOf(green));
  RT_OK(cudaExecutionCtxDestroy(green));
  const Undisturbed undisturbed;
  for (const absl::Status& status :
       {ContextOf(green).status(), ExecutionContextOf(context).status()}) {
    BOOST_TEST((status.code() == absl::StatusCode::kFailedPrecondition), status.ToString());
    BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_CONTEXT_IS_DESTROYED));
  }
}

BOOST_AUTO_TEST_CASE(a_reset_devices_is_noticed, *NeedsExecutionContexts()) {
  const cudaExecutionContext_t execution = OfDevice();
  const ContextRef context = ValueOf(ContextOf(execution));
  EndPrimary();
  const Undisturbed undisturbed;
  for (const absl::Status& status :
       {ContextOf(execution).status(), ExecutionContextOf(context).status()}) {
    BOOST_TEST((cuguest::CodeOf(status) == CUDA_ERROR_CONTEXT_IS_DESTROYED), status.ToString());
  }
}

BOOST_AUTO_TEST_CASE(a_users_context_has_no_execution_context, *NeedsExecutionContexts()) {
  const OwnContext user;
  const auto primary = RetainPrimary();
  const Undisturbed undisturbed;
  const auto execution = ExecutionContextOf(ContextRef::Borrow(user.get()));
  BOOST_TEST((execution.status().code() == absl::StatusCode::kInvalidArgument));
}

BOOST_AUTO_TEST_CASE(null_and_no_device_are_refused, *NeedsExecutionContexts()) {
  const Undisturbed undisturbed;
  const Device none = Device::Borrow(4711);
  BOOST_TEST((ContextOf(nullptr).status().code() == absl::StatusCode::kInvalidArgument));
  BOOST_TEST(!ExecutionContextOf(ContextRef()).ok());
  for (const IfInactive if_inactive : {IfInactive::kRefuse, IfInactive::kCreate}) {
    const absl::Status status = ExecutionContextOf(none, if_inactive).status();
    BOOST_TEST((status.code() == absl::StatusCode::kNotFound), status.ToString());
  }
}

BOOST_AUTO_TEST_CASE(one_of_another_device_is_that_devices,
                     *NeedsExecutionContexts() * cuguest_test::NeedsDevices(2)) {
  const Device second = Device::Borrow(1);
  const auto first_primary = RetainPrimary();
  const auto second_primary = RetainPrimary(second);
  SetStack({first_primary.get()});
  {
    const Undisturbed undisturbed;
    const cudaExecutionContext_t execution = ValueOf(ExecutionContextOf(second));
    BOOST_TEST((ValueOf(ContextOf(execution)) == second_primary.context()));
    BOOST_TEST(ValueOf(ExecutionContextOf(second_primary.context())) == execution);
  }
  SetStack({});
}

// Another incarnation begins between the answer of the runtime and that of the driver.
BOOST_AUTO_TEST_CASE(a_reset_meanwhile_is_noticed, *NeedsExecutionContexts() * OnlySim()) {
  EndPrimary();
  const cudaExecutionContext_t execution = OfDevice();
  static int answers;
  answers = 0;
  Sim::OnEveryCall([](const char* entry) {
    if (std::string(entry) != "cuCtxGetId" || ++answers != 2) return;
    OK(RAW(cuDevicePrimaryCtxReset)(0));
    CUcontext primary = nullptr;
    OK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0));
  });
  const auto context = ContextOf(execution);
  Sim::OnEveryCall(nullptr);
  BOOST_TEST((cuguest::CodeOf(context.status()) == CUDA_ERROR_CONTEXT_IS_DESTROYED),
             context.status().ToString());
  OK(RAW(cuDevicePrimaryCtxRelease)(0));
}

// As of a runtime whose handles are its own. A driver that is given one ends the process. The
// runtime's own green context is what the refusal advises.
BOOST_AUTO_TEST_CASE(the_driver_sees_no_opaque_handle, *NeedsExecutionContexts() * OnlySim()) {
  const auto primary = RetainPrimary();
  const auto drivers = MakeGreen();
  SimRuntime::TagExecutionContexts(true);
  {
    const RuntimesGreen green;
    const Undisturbed undisturbed;
    const cudaExecutionContext_t execution = ValueOf(ExecutionContextOf(First()));
    BOOST_TEST(static_cast<void*>(execution) != static_cast<void*>(primary.get()));
    BOOST_TEST((ValueOf(ContextOf(execution)) == primary.context()));
    BOOST_TEST(ValueOf(ExecutionContextOf(primary.context())) == execution);
    const ContextRef context = ValueOf(ContextOf(green.get()));
    BOOST_TEST((context != primary.context()));
    BOOST_TEST(ContextGuard(context).ok());
    const char* const advice =
        Advised("Make it by cudaGreenCtxCreate, and ask runtime::ContextOf() for its context");
    for (const ContextRef& one : {context, drivers.context()}) {
      const absl::Status status = ExecutionContextOf(one).status();
      BOOST_TEST((status.code() == absl::StatusCode::kUnimplemented), status.ToString());
      BOOST_TEST(absl::StrContains(std::string(status.message()), advice), status.ToString());
    }
  }
  SimRuntime::TagExecutionContexts(false);
}

BOOST_AUTO_TEST_CASE(streams_end_and_captures_go_on, *NeedsExecutionContexts()) {
  const auto primary = RetainPrimary();
  const auto green = MakeGreen();
  const cudaExecutionContext_t execution = ValueOf(ExecutionContextOf(green.context()));
  for (const CUstreamCaptureMode mode : cuguest_test::kModes) {
    SetStack({primary.get()});
    CUstream captured = nullptr;
    OK(RAW(cuStreamCreate)(&captured, CU_STREAM_NON_BLOCKING));
    OK(cuguest_test::Begin(captured, mode));
    const auto live = Sim::Live();
    {
      const Undisturbed undisturbed;
      BOOST_TEST((ValueOf(ContextOf(execution)) == green.context()));
      BOOST_TEST(ValueOf(ExecutionContextOf(green.context())) == execution);
      BOOST_TEST((ValueOf(ContextOf(OfDevice())) == primary.context()));
    }
    BOOST_TEST((Sim::Live() == live));
    OK(cuguest_test::End(captured));
    OK(RAW(cuStreamDestroy)(captured));
  }
  SetStack({});
}

BOOST_AUTO_TEST_CASE(calls_cost_what_is_promised, *NeedsExecutionContexts() * OnlySim()) {
  const auto primary = RetainPrimary();
  const auto green = MakeGreen();
  const cudaExecutionContext_t execution = ValueOf(ExecutionContextOf(green.context()));
  static_cast<void>(OfDevice());  // for the first one the runtime takes its reference
  const auto driver_calls = [](const auto& call) {
    const auto before = Sim::TotalCalls();
    BOOST_TEST(call());
    return Sim::TotalCalls() - before;
  };
  unsigned long long id = 0;
  const auto of_id =
      driver_calls([&] { return cudaExecutionCtxGetId(execution, &id) == cudaSuccess; });
  const auto of_device = driver_calls([] { return OfDevice() != nullptr; });
  constexpr auto kGuard = 5u;
  cudaStream_t stream = nullptr;
  const auto of_stream = driver_calls([&] {
    return cudaExecutionCtxStreamCreate(&stream, execution, cudaStreamNonBlocking, 0) ==
           cudaSuccess;
  });
  OK(RAW(cuStreamDestroy)(stream));
  const auto of_context = of_id + of_stream + 3;
  BOOST_TEST(driver_calls([&] { return ContextOf(execution).ok(); }) == of_context);
  BOOST_TEST(driver_calls([&] { return ExecutionContextOf(primary.context()).ok(); }) ==
             kGuard + of_device + of_id + 2);
  const auto of_green = driver_calls([&] { return ExecutionContextOf(green.context()).ok(); });
  const cudaExecutionContext_t devices = OfDevice();
  const auto of_devices_context = driver_calls([&] { return ContextOf(devices).ok(); });
  BOOST_TEST(of_green == kGuard + of_device + of_devices_context + of_id + 5);
  const auto refuse = driver_calls([] { return ExecutionContextOf(First()).ok(); });
  BOOST_TEST(refuse - of_device == 4u);
  const auto create =
      driver_calls([] { return ExecutionContextOf(First(), IfInactive::kCreate).ok(); });
  BOOST_TEST(create == of_device);
}

BOOST_AUTO_TEST_SUITE_END()
