// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/libraries/cufft.h"

#include <cmath>
#include <set>

#include "test/libraries/library_suite.h"

namespace {

using namespace cuguest_library_test;
namespace runtime = cuguest::runtime;
using cuguest::DeviceView;
using Layout = runtime::CufftPlans::Layout;
using runtime::CufftPlans;
using runtime::CufftScope;

constexpr int kSize = 8;
constexpr Layout kSmall = Layout::Line(kSize);
constexpr Layout kLarge = Layout::Line(1 << 16);  // needs a work area

// A transform of ones, which gives their sum and zeros.
class Transform {
 public:
  explicit Transform(const ContextRef& context, long long size = kSize)
      : context_(context),
        size_(static_cast<size_t>(size)),
        memory_(DeviceBuffer<cufftComplex>::Allocate(context, 2 * size_).value()) {
    const std::vector<cufftComplex> ones(size_, cufftComplex{1.0F, 0.0F});
    const ContextGuard guard(context_);
    OK(RAW(cuMemcpyHtoD)(memory_.get(), ones.data(), size_ * sizeof(cufftComplex)));
    OK(RAW(cuCtxSynchronize)());  // the copy of pageable memory may return before it has arrived
  }

  absl::Status Run(CufftScope& scope) {
    auto* const data = reinterpret_cast<cufftComplex*>(memory_.get());
    return runtime::ToStatus(cufftExecC2C(scope.handle(), data, data + size_, CUFFT_FORWARD),
                             "transform");
  }

  bool IsRight() {
    const ContextGuard guard(context_);
    const CUdeviceptr result = memory_.get() + size_ * sizeof(cufftComplex);
    std::vector<cufftComplex> host(size_);
    OK(RAW(cuCtxSynchronize)());
    OK(RAW(cuMemcpyDtoH)(host.data(), result, size_ * sizeof(cufftComplex)));
    OK(RAW(cuMemsetD8)(result, 0, size_ * sizeof(cufftComplex)));
    return std::abs(host[0].x - static_cast<float>(size_)) < 1e-3F && std::abs(host[1].x) < 1e-3F;
  }

 private:
  ContextRef context_;
  size_t size_;
  DeviceBuffer<cufftComplex> memory_;
};

struct Cufft {
  using Handles = CufftPlans;
  using Scope = CufftScope;
  using Work = Transform;
  static constexpr char kSoname[] = "libcufft.so.12";
  static constexpr char kCreate[] = "cufftCreate";
  static constexpr char kDestroy[] = "cufftDestroy";
  static constexpr bool kMakesInCaptures = false;
  static constexpr cufftHandle kNoHandle = -1;
  template <typename AnyStream>
  static Scope Borrow(Handles& plans, const AnyStream& stream) {
    return {plans, kSmall, stream};
  }
  static absl::Status Prepare(Handles& plans, const ContextRef& context, size_t count) {
    return plans.Prepare(context, kSmall, count);
  }
  static cufftHandle Handle(const Scope& scope) { return scope.handle(); }
  static bool IsFresh(const Scope&) { return true; }
  static bool Spoil(const Scope&) { return true; }
  static bool SetStream(const Scope& scope, CUstream stream) {
    return cufftSetStream(scope.handle(), stream) == CUFFT_SUCCESS;
  }
};

std::string NotRefused(const Layout& layout, const std::string& words) {
  return NoRefusal(layout.Check(), StatusCode::kInvalidArgument, {words});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cufft)

LIBRARY_SUITE(Cufft)

BOOST_AUTO_TEST_CASE(layouts_are_checked) {
  constexpr long long kHuge = 1LL << 40;
  Layout half = kSmall;
  half.input.stride = 1;
  Layout rank_0 = kSmall;
  rank_0.rank = 0;
  Layout rank_4 = kSmall;
  rank_4.rank = 4;
  const Layout::Side narrow = {{0, 7, 0}, 1, 64};
  const Layout::Side backwards = {{0, 8, 0}, -1, 64};
  const Layout::Side on_top = {{0, 8, 0}, 1, 0};
  const Layout::Side good = {{0, 8, 0}, 1, 64};
  const Layout plane = Layout::Plane(8, 8, CUFFT_C2C, 2);
  STATUS_OK(Layout::Many(plane, good, good).Check());
  const std::pair<Layout, const char*> rows[] = {
      {rank_0, "rank is 0"},
      {rank_4, "rank is 4"},
      {Layout(), "rank is 0"},
      {Layout::Line(0), "size"},
      {Layout::Plane(4, -1), "size"},
      {Layout::Line(8, CUFFT_C2C, 0), "batch"},
      {Layout::Line(8, static_cast<cufftType>(0)), "no cufftType"},
      {half, "one side has a stride"},
      {Layout::Many(plane, narrow, good), "dimension 1 of the input has 8"},
      {Layout::Many(plane, good, narrow), "dimension 1 of the output"},
      {Layout::Many(plane, backwards, good), "stride is -1"},
      {Layout::Many(plane, on_top, good), "distance 0"},
      {Layout::Volume(kHuge, kHuge, kHuge), "more bytes"},
      {Layout::Line(kHuge, CUFFT_Z2Z, kHuge), "more bytes"},
  };
  const Owner home;
  CufftPlans plans;
  for (const auto& [layout, words] : rows) {
    const std::string not_refused = NotRefused(layout, words);
    BOOST_TEST(not_refused.empty(), not_refused);
    BOOST_TEST((layout.InputBytes().status() == layout.Check() || layout.InputBytes().ok()));
    const CufftScope scope(plans, layout, StreamOf(home));
    BOOST_TEST((scope.status() == layout.Check()), scope.status().ToString());
    BOOST_TEST((plans.WorkBytes(home.ref(), layout).status() == layout.Check()));
  }
}

BOOST_AUTO_TEST_CASE(layouts_know_their_bytes) {
  const auto bytes = [](const Layout& layout, size_t input, size_t output) {
    BOOST_TEST(layout.InputBytes().value() == input);
    BOOST_TEST(layout.OutputBytes().value() == output);
  };
  bytes(Layout::Line(8), 64, 64);
  bytes(Layout::Line(8, CUFFT_Z2Z, 3), 384, 384);
  bytes(Layout::Line(8, CUFFT_R2C), 32, 40);
  bytes(Layout::Line(8, CUFFT_C2R, 2), 80, 64);
  bytes(Layout::Plane(4, 6, CUFFT_D2Z), 192, 256);
  bytes(Layout::Volume(2, 3, 4, CUFFT_R2C), 96, 144);
  const Layout::Side every_other = {{0, 0, 0}, 2, 16};
  bytes(Layout::Many(Layout::Line(8, CUFFT_C2C, 2), every_other, every_other), 248, 248);
  BOOST_TEST(Layout::Plane(4, 6, CUFFT_D2Z, 2).ToString() == "2 x 4x6 D2Z");
  BOOST_TEST((kSmall == Layout::Line(kSize)));
  BOOST_TEST((kSmall != Layout::Line(kSize, CUFFT_Z2Z)));
}

BOOST_AUTO_TEST_CASE(elements_may_lie_apart) {
  const Owner home;
  CufftPlans plans;
  const Layout::Side every_other = {{0, 0, 0}, 2, 2 * kSize};
  const Layout layout = Layout::Many(Layout::Line(kSize), every_other, every_other);
  cufftComplex values[2 * kSize];
  for (int i = 0; i < 2 * kSize; ++i) values[i] = {i % 2 == 0 ? 1.0F : 7.0F, 0.0F};
  auto buffer = DeviceBuffer<cufftComplex>::Allocate(home.ref(), 2 * kSize).value();
  auto* const data = reinterpret_cast<cufftComplex*>(buffer.get());
  home.Enter();
  OK(RAW(cuMemcpyHtoD)(buffer.get(), values, sizeof(values)));
  {
    const CufftScope scope(plans, layout, StreamOf(home));
    BOOST_TEST_REQUIRE(scope.ok(), scope.status().ToString());
    STATUS_OK(
        runtime::ToStatus(cufftExecC2C(scope.handle(), data, data, CUFFT_FORWARD), "transform"));
  }
  OK(RAW(cuCtxSynchronize)());
  OK(RAW(cuMemcpyDtoH)(values, buffer.get(), sizeof(values)));
  SetStack({});
  for (int i = 0; i < 2 * kSize; ++i) {
    const float expected = i % 2 != 0 ? 7.0F : i == 0 ? static_cast<float>(kSize) : 0.0F;
    BOOST_TEST(std::abs(values[i].x - expected) < 1e-3F);
  }
}

BOOST_AUTO_TEST_CASE(plans_are_found_by_their_layout) {
  const Owner home;
  CufftPlans plans;
  cufftHandle small = -1;
  {
    const CufftScope scope(plans, kSmall, StreamOf(home));
    small = scope.handle();
  }
  const CufftScope twice(plans, Layout::Line(kSize, CUFFT_C2C, 2), StreamOf(home));
  BOOST_TEST(twice.ok());
  BOOST_TEST(twice.handle() != small);
  const CufftScope again(plans, kSmall, StreamOf(home));
  BOOST_TEST(again.handle() == small);
}

BOOST_AUTO_TEST_CASE(a_real_transform_goes_there_and_back) {
  const Owner home;
  CufftPlans plans;
  const float values[kSize] = {1, 2, 3, 4, 5, 6, 7, 8};
  const CUdeviceptr real = home.Allocate();
  const CUdeviceptr complex = home.Allocate();
  home.Enter();
  OK(RAW(cuMemcpyHtoD)(real, values, sizeof(values)));
  SetStack({});
  {
    const CufftScope there(plans, Layout::Line(kSize, CUFFT_R2C), StreamOf(home));
    STATUS_OK(runtime::ToStatus(cufftExecR2C(there.handle(), reinterpret_cast<cufftReal*>(real),
                                             reinterpret_cast<cufftComplex*>(complex)),
                                "transform"));
    const CufftScope back(plans, Layout::Line(kSize, CUFFT_C2R), StreamOf(home));
    STATUS_OK(
        runtime::ToStatus(cufftExecC2R(back.handle(), reinterpret_cast<cufftComplex*>(complex),
                                       reinterpret_cast<cufftReal*>(real)),
                          "transform back"));
  }
  float result[kSize] = {};
  home.Enter();
  OK(RAW(cuCtxSynchronize)());
  OK(RAW(cuMemcpyDtoH)(result, real, sizeof(result)));
  SetStack({});
  for (int i = 0; i < kSize; ++i) BOOST_TEST(std::abs(result[i] - kSize * values[i]) < 1e-3F);
}

BOOST_AUTO_TEST_CASE(a_plan_has_a_work_area_of_its_own) {
  const Owner home;
  const auto second = cuguest::Stream::Create(home.ref()).value();
  CufftPlans plans;
  const size_t bytes = plans.WorkBytes(home.ref(), kLarge).value();
  BOOST_TEST(bytes > 0U);
  // Those of the layout, whatever plans there are.
  BOOST_TEST(plans.WorkBytes(home.ref(), kSmall).value() < bytes);
  BOOST_TEST(plans.WorkBytes(home.ref(), kLarge).value() == bytes);
  Transform transform(home.ref(), kLarge.sizes[0]);
  for (const StreamRef& stream :
       {StreamOf(home), second.ref(), second.ref(), StreamRef::Borrow(nullptr, home.ref()),
        StreamRef::Borrow(CU_STREAM_PER_THREAD, home.ref())}) {
    const UndisturbedScope undisturbed(&Fail);
    CufftScope scope(plans, kLarge, stream);
    BOOST_TEST_REQUIRE(scope.ok(), scope.status().ToString());
    STATUS_OK(transform.Run(scope));
    STATUS_OK(scope.Leave());
  }
  BOOST_TEST(transform.IsRight());
}

BOOST_AUTO_TEST_CASE(a_work_area_ends_as_its_plan_does) {
  const auto borrow_once = [](CufftPlans& plans, const ContextRef& context) {
    const CufftScope scope(plans, kLarge, StreamRef::Borrow(nullptr, context));
    BOOST_TEST(scope.ok(), scope.status().ToString());
  };
  CufftPlans plans;
  {
    const PrimaryContext primary = Primary();
    borrow_once(plans, primary.context());
    OK(RAW(cuDevicePrimaryCtxReset)(0));
    BOOST_TEST(plans.DropDead() == 1U);
  }
  const Owner home;
  const auto live = Sim::Live();
  borrow_once(plans, home.ref());
  BOOST_TEST(plans.Forget(home.ref()));
  BOOST_TEST(Sim::Live().allocations == live.allocations);
  BOOST_TEST(Sim::Live().events == live.events);
  borrow_once(plans, home.ref());
  const Capture capture(home.get(), CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_DEFAULT);
  const UndisturbedScope undisturbed(&Fail);
  BOOST_TEST(plans.Forget(home.ref()));
}

// Nobody who borrows later is drawn into a capture that began inside a scope.
BOOST_AUTO_TEST_CASE(a_capture_that_begins_inside_costs_the_plan) {
  const Owner home;
  const auto capturing = cuguest::Stream::Create(home.ref()).value();
  CufftPlans plans;
  STATUS_OK(plans.Prepare(home.ref(), kLarge, 2));
  CufftScope scope(plans, kLarge, capturing.ref());
  BOOST_TEST_REQUIRE(scope.ok(), scope.status().ToString());
  const cufftHandle plan = scope.handle();
  OK(RAW(cuStreamBeginCapture)(capturing.get(), CU_STREAM_CAPTURE_MODE_GLOBAL));
  const std::string no_refusal =
      NoRefusal(scope.Leave(), StatusCode::kFailedPrecondition, {"captures"});
  BOOST_TEST(no_refusal.empty(), no_refusal);
  for (int i = 0; i < 2; ++i) {
    CufftScope later(plans, kLarge, StreamOf(home));
    BOOST_TEST_REQUIRE(later.ok(), later.status().ToString());
    BOOST_TEST(later.handle() != plan);
    STATUS_OK(later.Leave());
    BOOST_TEST((StreamOf(home).capture_status() == CU_STREAM_CAPTURE_STATUS_NONE));
  }
  CUgraph graph = nullptr;
  OK(RAW(cuStreamEndCapture)(capturing.get(), &graph));
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_CASE(a_work_area_that_went_with_its_context_is_refused) {
  const Owner home;
  CufftPlans plans;
  const size_t bytes = plans.WorkBytes(home.ref(), kLarge).value();
  cuguest::DeviceView<std::byte> area;
  {
    const Owner ended;
    area = DeviceBuffer<std::byte>::Allocate(ended.ref(), bytes)->Leak();
  }
  cuguest_test::OwnContext::DestroyIdle();
  const CufftScope scope(plans, kLarge, StreamOf(home), area);
  const std::string no_refusal =
      NoRefusal(scope.status(), StatusCode::kFailedPrecondition, {"work area", "is over"});
  BOOST_TEST(no_refusal.empty(), no_refusal);
}

BOOST_AUTO_TEST_CASE(a_capture_needs_the_callers_work_area) {
  const Owner home;
  CufftPlans plans;
  const size_t bytes = plans.WorkBytes(home.ref(), kLarge).value();
  auto buffer = DeviceBuffer<std::byte>::Allocate(home.ref(), bytes).value();
  Transform transform(home.ref(), kLarge.sizes[0]);
  {
    CufftScope once(plans, kLarge, StreamOf(home), buffer.view());  // loads the code
    STATUS_OK(transform.Run(once));
  }
  BOOST_TEST(transform.IsRight());
  const auto too_small = buffer.view().Subview(0, bytes - 1).value();
  const CufftScope refused(plans, kLarge, StreamOf(home), too_small);
  std::string no_refusal =
      NoRefusal(refused.status(), StatusCode::kInvalidArgument, {std::to_string(bytes - 1)});
  BOOST_TEST(no_refusal.empty(), no_refusal);

  Capture capture(home.get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  const StreamRef stream = StreamRef::Borrow(capture.stream(), home.ref());
  {
    const UndisturbedScope undisturbed(&Fail);
    const CufftScope without(plans, kLarge, stream);
    no_refusal = NoRefusal(without.status(), StatusCode::kFailedPrecondition,
                           {Advised("give the scope a work area of "), std::to_string(bytes)});
    BOOST_TEST(no_refusal.empty(), no_refusal);
    CufftScope scope(plans, kLarge, stream, buffer.view());
    BOOST_TEST_REQUIRE(scope.ok(), scope.status().ToString());
    STATUS_OK(transform.Run(scope));
    const CufftScope another(plans, kLarge, stream, buffer.view());  // would have to be made
    no_refusal = NoRefusal(another.status(), StatusCode::kFailedPrecondition,
                           {"make a cuFFT plan", "Prepare()"});
    BOOST_TEST(no_refusal.empty(), no_refusal);
  }
  capture.End();
  capture.Replay();
  BOOST_TEST(transform.IsRight());
}

// In stream 0, where cuFFT fills its tables: a non-blocking stream does not wait for it.
BOOST_AUTO_TEST_CASE(a_plan_is_complete_when_it_is_made, *cuguest_test::OnlySim()) {
  const Owner home;
  CufftPlans plans;
  Sim::ResetCalls();
  STATUS_OK(plans.Prepare(home.ref(), kSmall));
  BOOST_TEST(Sim::Calls("cuStreamSynchronize") == 1U);
  Sim::FailCall("cuStreamSynchronize", 1, CUDA_ERROR_UNKNOWN);
  BOOST_TEST(!plans.Prepare(home.ref(), kSmall, 2).ok());
  STATUS_OK(plans.Prepare(home.ref(), kSmall, 2));
}

// What a borrowed plan costs where it is wanted again and again.
BOOST_AUTO_TEST_CASE(a_warm_scope_makes_few_calls, *cuguest_test::OnlySim()) {
  const Owner home;
  const StreamRef stream = StreamOf(home);
  CufftPlans plans;
  for (const auto& [layout, calls] : {std::pair(kSmall, 5U), std::pair(kLarge, 16U)}) {
    { const CufftScope first(plans, layout, stream); }
    home.Enter();
    cuguest_test::BeginCount();
    SimLibrary::ResetCalls();
    { const CufftScope scope(plans, layout, stream); }
    BOOST_TEST(Sim::TotalCalls() == calls);
    BOOST_TEST(SimLibrary::Calls("cufftSetStream") == 1U);
    BOOST_TEST(SimLibrary::Calls("cufftSetWorkArea") == (layout == kLarge ? 1U : 0U));
    SetStack({});
  }
}

// cuFFT does not tell which stream a plan has, so that what another setter left cannot be seen.
BOOST_AUTO_TEST_CASE(each_scope_sets_the_stream, *cuguest_test::OnlySim()) {
  const Owner home;
  CufftPlans plans;
  const auto told = [&](const StreamRef& stream) {
    SimLibrary::ResetCalls();
    const CufftScope scope(plans, kSmall, stream);
    BOOST_TEST(scope.ok());
    return SimLibrary::Calls("cufftSetStream");
  };
  const StreamRef legacy = StreamRef::Borrow(nullptr, home.ref());
  const StreamRef per_thread = StreamRef::Borrow(CU_STREAM_PER_THREAD, home.ref());
  for (const StreamRef& stream : {legacy, StreamOf(home), StreamOf(home), per_thread, per_thread}) {
    BOOST_TEST(told(stream) == 1U);
  }
  SimLibrary::FailCall("cufftSetStream", 1, CUFFT_INTERNAL_ERROR);
  BOOST_TEST(!CufftScope(plans, kSmall, StreamOf(home)).ok());
  BOOST_TEST(told(StreamOf(home)) == 1U);
}

// A plan that stays on the stream of its last user outlives that stream
// (JuliaGPU/CUDA.jl#859).
BOOST_AUTO_TEST_CASE(plan_left_on_a_dead_stream) {
  const Owner home;
  CufftPlans plans;
  Transform transform(home.ref());
  {
    const auto task = cuguest::Stream::Create(home.ref()).value();
    const CufftScope scope(plans, kSmall, StreamOf(home));
    BOOST_TEST_REQUIRE(scope.ok(), scope.status().ToString());
    BOOST_TEST(Cufft::SetStream(scope, task.get()));
  }
  CufftScope scope(plans, kSmall, StreamOf(home));
  BOOST_TEST_REQUIRE(scope.ok(), scope.status().ToString());
  STATUS_OK(transform.Run(scope));
  STATUS_OK(scope.Leave());
  BOOST_TEST(transform.IsRight());
}

// Where a stream is destroyed, the next one is often made at its handle.
BOOST_AUTO_TEST_CASE(a_plan_works_on_the_next_stream_at_a_handle) {
  const Owner home;
  CufftPlans plans;
  Transform transform(home.ref());
  std::set<CUstream> handles;
  constexpr int kStreams = 20;
  for (int i = 0; i < kStreams; ++i) {
    const auto stream = cuguest::Stream::Create(home.ref()).value();
    handles.insert(stream.get());
    CufftScope scope(plans, kSmall, stream.ref());
    BOOST_TEST_REQUIRE(scope.ok(), scope.status().ToString());
    STATUS_OK(transform.Run(scope));
    STATUS_OK(scope.Leave());
    STATUS_OK(stream.ref().Synchronize());
    BOOST_TEST(transform.IsRight());
  }
  BOOST_TEST_MESSAGE(handles.size() << " handles for " << kStreams << " streams");
}

BOOST_AUTO_TEST_CASE(statuses_have_names) {
  STATUS_OK(runtime::ToStatus(CUFFT_SUCCESS, "do nothing"));
  const absl::Status status = runtime::ToStatus(CUFFT_INVALID_SIZE, "transform", "a picture");
  const std::string no_refusal = NoRefusal(status, StatusCode::kInvalidArgument,
                                           {"transform, a picture: CUFFT_INVALID_SIZE (8): "});
  BOOST_TEST(no_refusal.empty(), no_refusal);
  BOOST_TEST((runtime::CufftCodeOf(status) == CUFFT_INVALID_SIZE));
  BOOST_TEST((runtime::CufftCodeOf(absl::OkStatus()) == CUFFT_SUCCESS));
  BOOST_TEST(!runtime::CufftCodeOf(absl::InternalError("")).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
