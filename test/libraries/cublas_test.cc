// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/libraries/cublas.h"

#include <atomic>
#include <thread>
#include <vector>

#include "cuguest/objects/scratch_buffer.h"
#include "test/libraries/library_suite.h"

namespace {

using namespace cuguest_library_test;
namespace runtime = cuguest::runtime;
using cuguest::DeviceView;
using runtime::CublasHandles;
using runtime::CublasScope;

constexpr int kSize = 16;
constexpr size_t kCount = kSize * kSize;

// A product that needs no workspace, of a matrix and twice the identity.
class Product {
 public:
  explicit Product(const ContextRef& context)
      : context_(context), memory_(DeviceBuffer<float>::Allocate(context, 3 * kCount).value()) {
    std::vector<float> host(3 * kCount, 0.0F);
    for (size_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(i);
    for (size_t i = 0; i < kSize; ++i) host[kCount + i * (kSize + 1)] = 2.0F;
    const ContextGuard guard(context_);
    OK(RAW(cuMemcpyHtoD)(memory_.get(), host.data(), host.size() * sizeof(float)));
  }

  absl::Status Run(CublasScope& scope) {
    const float one = 1.0F;
    const float zero = 0.0F;
    auto* const a = reinterpret_cast<float*>(memory_.get());
    return runtime::ToStatus(
        cublasSgemm(scope.handle(), CUBLAS_OP_N, CUBLAS_OP_N, kSize, kSize, kSize, &one, a, kSize,
                    a + kCount, kSize, &zero, a + 2 * kCount, kSize),
        "multiply");
  }

  bool IsRight() {
    const ContextGuard guard(context_);
    std::vector<float> host(kCount);
    OK(RAW(cuCtxSynchronize)());
    OK(RAW(cuMemcpyDtoH)(host.data(), memory_.get() + 2 * kCount * sizeof(float),
                         kCount * sizeof(float)));
    OK(RAW(cuMemsetD8)(memory_.get() + 2 * kCount * sizeof(float), 0, kCount * sizeof(float)));
    for (size_t i = 0; i < kCount; ++i) {
      if (host[i] != 2.0F * static_cast<float>(i)) return false;
    }
    return true;
  }

 private:
  ContextRef context_;
  DeviceBuffer<float> memory_;
};

struct Cublas {
  using Handles = CublasHandles;
  using Scope = CublasScope;
  using Work = Product;
  static constexpr char kSoname[] = "libcublas.so.13";
  static constexpr char kCreate[] = "cublasCreate_v2";
  static constexpr char kDestroy[] = "cublasDestroy_v2";
  static constexpr bool kMakesInCaptures = true;
  static constexpr cublasHandle_t kNoHandle = nullptr;
  template <typename AnyStream>
  static Scope Borrow(Handles& handles, const AnyStream& stream) {
    return {handles, stream};
  }
  static absl::Status Prepare(Handles& handles, const ContextRef& context, size_t count) {
    return handles.Prepare(context, count);
  }
  static cublasHandle_t Handle(const Scope& scope) { return scope.handle(); }

  static bool IsFresh(const Scope& scope) {
    cublasPointerMode_t pointer = CUBLAS_POINTER_MODE_DEVICE;
    cublasMath_t math = CUBLAS_PEDANTIC_MATH;
    cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_ALLOWED;
    int sm_count = -1;
    return cublasGetPointerMode(scope.handle(), &pointer) == CUBLAS_STATUS_SUCCESS &&
           cublasGetMathMode(scope.handle(), &math) == CUBLAS_STATUS_SUCCESS &&
           cublasGetAtomicsMode(scope.handle(), &atomics) == CUBLAS_STATUS_SUCCESS &&
           cublasGetSmCountTarget(scope.handle(), &sm_count) == CUBLAS_STATUS_SUCCESS &&
           pointer == CUBLAS_POINTER_MODE_HOST && math == CUBLAS_DEFAULT_MATH &&
           atomics == CUBLAS_ATOMICS_NOT_ALLOWED && sm_count == 0;
  }
  static bool Spoil(const Scope& scope) {
    return cublasSetPointerMode(scope.handle(), CUBLAS_POINTER_MODE_DEVICE) ==
               CUBLAS_STATUS_SUCCESS &&
           cublasSetMathMode(scope.handle(), CUBLAS_PEDANTIC_MATH) == CUBLAS_STATUS_SUCCESS &&
           cublasSetAtomicsMode(scope.handle(), CUBLAS_ATOMICS_ALLOWED) == CUBLAS_STATUS_SUCCESS &&
           cublasSetSmCountTarget(scope.handle(), 8) == CUBLAS_STATUS_SUCCESS;
  }
  static bool SetStream(const Scope& scope, CUstream stream) {
    return cublasSetStream(scope.handle(), stream) == CUBLAS_STATUS_SUCCESS;
  }
};

cudaStream_t StreamOf(cublasHandle_t handle) {
  cudaStream_t stream = nullptr;
  BOOST_TEST(cublasGetStream(handle, &stream) == CUBLAS_STATUS_SUCCESS);
  return stream;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cublas)

LIBRARY_SUITE(Cublas)

BOOST_AUTO_TEST_CASE(a_handle_goes_back_as_it_was_made) {
  const Owner home;
  CublasHandles handles;
  cublasHandle_t handle = nullptr;
  {
    const CublasScope scope(handles, cuguest_library_test::StreamOf(home));
    handle = scope.handle();
    BOOST_TEST(Cublas::IsFresh(scope));
    BOOST_TEST(Cublas::Spoil(scope));
    BOOST_TEST(StreamOf(handle) == reinterpret_cast<cudaStream_t>(home.stream()));
  }
  const CublasScope again(handles, StreamRef::Borrow(nullptr, home.ref()));
  BOOST_TEST(StreamOf(handle) == nullptr);
  BOOST_TEST(again.handle() == handle);
  BOOST_TEST(Cublas::IsFresh(again));
}

BOOST_AUTO_TEST_CASE(a_workspace_is_checked) {
  const Owner home;
  CublasHandles handles;
  auto buffer = DeviceBuffer<std::byte>::Allocate(home.ref(), 1 << 20).value();
  const DeviceView<std::byte> workspace = buffer.view();
  Product product(home.ref());
  for (const DeviceView<std::byte>& good : {workspace, DeviceView<std::byte>()}) {
    CublasScope scope(handles, cuguest_library_test::StreamOf(home), good);
    BOOST_TEST_REQUIRE(scope.ok(), scope.status().ToString());
    STATUS_OK(product.Run(scope));
    STATUS_OK(scope.Leave());
    BOOST_TEST(product.IsRight());
  }
  const UndisturbedScope undisturbed(&Fail);
  const CublasScope misaligned(handles, cuguest_library_test::StreamOf(home),
                               workspace.Subview(16, 4096).value());
  const std::string no_refusal =
      NoRefusal(misaligned.status(), StatusCode::kInvalidArgument, {"aligned to 256"});
  BOOST_TEST(no_refusal.empty(), no_refusal);
}

// Of one call, whether its stream captures or not: the graph has it at each launch.
BOOST_AUTO_TEST_CASE(a_workspace_in_scratch_memory,
                     *cuguest_test::NeedsDriver(11040, "memory nodes")) {
  const Owner home;
  CublasHandles handles;
  Product product(home.ref());
  const auto multiply = [&](const StreamRef& stream) -> absl::Status {
    CUGUEST_ASSIGN_OR_RETURN(auto workspace,
                             cuguest::ScratchBuffer<std::byte>::Allocate(stream, 4 << 20));
    CublasScope scope(handles, stream, workspace.view());
    CUGUEST_RETURN_IF_ERROR(scope);
    CUGUEST_RETURN_IF_ERROR(product.Run(scope));
    CUGUEST_RETURN_IF_ERROR(scope.Leave());
    return workspace.Release();
  };
  STATUS_OK(multiply(cuguest_library_test::StreamOf(home)));
  BOOST_TEST(product.IsRight());
  Capture capture(home.get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  STATUS_OK(multiply(StreamRef::Borrow(capture.stream(), home.ref())));
  capture.End();
  for (int i = 0; i < 2; ++i) {
    capture.Replay();
    BOOST_TEST(product.IsRight());
  }
}

BOOST_AUTO_TEST_CASE(a_workspace_of_another_device_is_refused, *cuguest_test::NeedsDevices(2)) {
  const Owner home;
  const Owner far(1);
  CublasHandles handles;
  auto buffer = DeviceBuffer<std::byte>::Allocate(far.ref(), 1 << 20).value();
  const CublasScope scope(handles, cuguest_library_test::StreamOf(home), buffer.view());
  const std::string no_refusal =
      NoRefusal(scope.status(), StatusCode::kInvalidArgument, {"memory of device 1"});
  BOOST_TEST(no_refusal.empty(), no_refusal);
}

BOOST_AUTO_TEST_CASE(a_workspace_that_went_with_its_context_is_refused) {
  const Owner home;
  CublasHandles handles;
  DeviceView<std::byte> workspace;
  {
    const Owner ended;
    workspace = DeviceBuffer<std::byte>::Allocate(ended.ref(), 1 << 20)->Leak();
  }
  cuguest_test::OwnContext::DestroyIdle();
  const UndisturbedScope undisturbed(&Fail);
  const CublasScope scope(handles, cuguest_library_test::StreamOf(home), workspace);
  const std::string no_refusal =
      NoRefusal(scope.status(), StatusCode::kFailedPrecondition, {"work area", "is over"});
  BOOST_TEST(no_refusal.empty(), no_refusal);
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_named) {
  const Owner home;
  CublasHandles handles;
  const CublasScope scope(handles, cuguest_library_test::StreamOf(home));
  const float one = 1.0F;
  const auto multiply = [&](int rows, int leading, const float* alpha) {
    return runtime::ToStatus(cublasSgemm(scope.handle(), CUBLAS_OP_N, CUBLAS_OP_N, rows, 4, 4,
                                         alpha, nullptr, leading, nullptr, 4, &one, nullptr, 4),
                             "multiply", "layer 3");
  };
  for (const absl::Status& status :
       {multiply(-1, 4, &one), multiply(4, 3, &one), multiply(4, 4, nullptr)}) {
    const std::string no_refusal =
        NoRefusal(status, StatusCode::kInvalidArgument,
                  {"multiply, layer 3: CUBLAS_STATUS_INVALID_VALUE (7): ", "leading dimensions"});
    BOOST_TEST(no_refusal.empty(), no_refusal);
    BOOST_TEST((runtime::CublasCodeOf(status) == CUBLAS_STATUS_INVALID_VALUE));
    BOOST_TEST(!cuguest::CodeOf(status).has_value());
  }
}

// The words of cuguest are cuBLAS's.
BOOST_AUTO_TEST_CASE(statuses_have_the_librarys_words) {
  STATUS_OK(runtime::ToStatus(CUBLAS_STATUS_SUCCESS, "do nothing"));
  BOOST_TEST((runtime::CublasCodeOf(absl::OkStatus()) == CUBLAS_STATUS_SUCCESS));
  BOOST_TEST(!runtime::CublasCodeOf(absl::InternalError("")).has_value());
  int known = 0;
  for (int code = 1; code < 32; ++code) {
    const auto status = static_cast<cublasStatus_t>(code);
    const std::string name = cublasGetStatusName(status);
    const bool is_known = name.find("CUBLAS_STATUS_") == 0;
    known += is_known ? 1 : 0;
    const std::string number = " (" + std::to_string(code) + "): ";
    const std::string no_refusal =
        NoRefusal(runtime::ToStatus(status, "try"), runtime::ToStatus(status, "").code(),
                  {"try: " + (is_known ? name + number + cublasGetStatusString(status)
                                       : "an unrecognized code" + number)});
    BOOST_TEST(no_refusal.empty(), no_refusal);
  }
  BOOST_TEST(known == 9);
}

// Pools come and go under their users' hands.
BOOST_AUTO_TEST_CASE(threads_borrow_what_others_forget) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 25;
  const Owner homes[2];
  CublasHandles handles;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        const Owner& home = homes[(i + round) % 2];
        const CublasScope scope(handles, cuguest_library_test::StreamOf(home));
        const CublasScope another(handles, cuguest_library_test::StreamOf(home));
        if (!scope.ok() || !another.ok() || scope.handle() == another.handle()) ++wrong;
        if (i == 0) handles.Forget(home.ref());
        if (i == 1) handles.DropDead();
        if (i == 2 && !handles.Prepare(homes[0].ref(), 2).ok()) ++wrong;
        if (!Cublas::IsFresh(scope)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
}

// What a borrowed handle costs where it is wanted again and again.
BOOST_AUTO_TEST_CASE(a_warm_scope_makes_few_calls, *cuguest_test::OnlySim()) {
  const Owner home;
  CublasHandles handles;
  const StreamRef stream = cuguest_library_test::StreamOf(home);
  STATUS_OK(handles.Prepare(home.ref()));
  for (const bool is_current : {true, false}) {
    SetStack(is_current ? std::vector<CUcontext>{home.get()} : std::vector<CUcontext>{});
    cuguest_test::BeginCount();
    SimLibrary::ResetCalls();
    { const CublasScope scope(handles, stream); }
    BOOST_TEST(Sim::TotalCalls() == (is_current ? 5U : 8U));
    BOOST_TEST(SimLibrary::Calls("cublasSetStream_v2") == 1U);
    cuguest_test::BeginCount();
    { const CublasScope scope(handles, StreamRef::Borrow(nullptr, stream.context())); }
    BOOST_TEST(Sim::TotalCalls() == (is_current ? 6U : 9U));
    cuguest_test::BeginCount();
    STATUS_OK(handles.Prepare(stream.context()));
    BOOST_TEST(Sim::TotalCalls() == (is_current ? 5U : 7U));
    BOOST_TEST(SimLibrary::Calls("cublasCreate_v2") == 0U);
  }
  SetStack({});
}

// Behind a library that was only asked for its settings the scope does not ask what is current.
BOOST_AUTO_TEST_CASE(a_setter_that_disturbs_is_noticed) {
  const Owner home;
  static CUcontext other = nullptr;
  const Owner others;
  other = others.get();
  runtime::CublasLibrary library = runtime::CublasLibrary::Linked();
  library.SetMathMode = [](cublasHandle_t handle, cublasMath_t mode) {
    OK(RAW(cuCtxPushCurrent)(other));
    return cublasSetMathMode(handle, mode);
  };
  CublasHandles handles(library);
  SetStack({home.get()});
  {
    CublasScope scope(handles, cuguest_library_test::StreamOf(home));
    BOOST_TEST(cublasSetMathMode(scope.handle(), CUBLAS_PEDANTIC_MATH) == CUBLAS_STATUS_SUCCESS);
  }
  BOOST_TEST(TakeIncidents().size() == 1U);
  BOOST_TEST(GetStack() == (std::vector<CUcontext>{home.get()}));
  SetStack({});
}

BOOST_AUTO_TEST_CASE(what_cannot_be_put_back_is_not_lent_again, *cuguest_test::OnlySim()) {
  const Owner home;
  CublasHandles handles;
  cublasHandle_t bad = nullptr;
  {
    CublasScope scope(handles, cuguest_library_test::StreamOf(home));
    bad = scope.handle();
    SimLibrary::FailCall("cublasGetMathMode", 1, CUBLAS_STATUS_INTERNAL_ERROR);
    const absl::Status status = scope.Leave();
    BOOST_TEST((runtime::CublasCodeOf(status) == CUBLAS_STATUS_INTERNAL_ERROR));
  }
  SimLibrary::ResetCalls();
  STATUS_OK(handles.Prepare(home.ref(), 1));
  BOOST_TEST(SimLibrary::Calls("cublasCreate_v2") == 1U, "the spoiled one does not count");
  const CublasScope scope(handles, cuguest_library_test::StreamOf(home));
  BOOST_TEST_REQUIRE(scope.ok());
  BOOST_TEST(scope.handle() != bad);
  BOOST_TEST(SimLibrary::Calls("cublasCreate_v2") == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
