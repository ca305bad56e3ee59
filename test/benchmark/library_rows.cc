// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the bridge to the toolkit's libraries costs: a scope that borrows a handle or a plan, and a
// product of two matrices in a user's context beside the same one in a plain program of the
// runtime.

#include <benchmark/benchmark.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cufft.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/libraries/cublas.h"
#include "cuguest/libraries/cufft.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/stream.h"
#include "test/benchmark/table.h"

namespace cuguest_benchmark {
namespace {

using cudasim::Sim;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::Stream;
using cuguest::StreamRef;
using cuguest::runtime::CublasHandles;
using cuguest::runtime::CublasScope;
using Layout = cuguest::runtime::CufftPlans::Layout;
using cuguest::runtime::CufftPlans;
using cuguest::runtime::CufftScope;

constexpr int kSamples = 1024;

// What one thread uses that does without a pool.
struct Own {
  explicit Own(const ContextRef& context) : stream(Take(Stream::Create(context))) {
    const ContextGuard guard(context);
    REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cufftPlan1d(&plan, kSamples, CUFFT_C2C, 1) == CUFFT_SUCCESS);
  }
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;
  ~Own() {
    const ContextGuard guard(stream.context());
    REQUIRE(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cufftDestroy(plan) == CUFFT_SUCCESS);
  }

  Stream stream;
  cublasHandle_t handle = nullptr;
  cufftHandle plan = 0;
};

// Square matrices of ones in a context, and a stream there.
class Product {
 public:
  Product(const ContextRef& context, int n)
      : n_(n),
        stream_(Take(Stream::Create(context))),
        a_(Ones(context)),
        b_(Ones(context)),
        c_(Ones(context)) {}
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product() {
    if (!is_computed_) return;
    for (const float element : Take(cuguest::Download(c_.view())))
      REQUIRE(element == static_cast<float>(n_));
  }

  [[nodiscard]] const StreamRef& stream() const { return stream_.ref(); }

  void Submit(cublasHandle_t handle) {
    const float one = 1;
    const float zero = 0;
    REQUIRE(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n_, n_, n_, &one, a_.data(), n_,
                        b_.data(), n_, &zero, c_.data(), n_) == CUBLAS_STATUS_SUCCESS);
    is_computed_ = true;
  }

 private:
  [[nodiscard]] DeviceBuffer<float> Ones(const ContextRef& context) const {
    const auto n = static_cast<std::size_t>(n_);
    auto buffer = Take(DeviceBuffer<float>::Allocate(context, n * n));
    REQUIRE(cuguest::Fill(buffer.view(), 1.0F).ok());
    return buffer;
  }

  int n_;
  Stream stream_;
  DeviceBuffer<float> a_;
  DeviceBuffer<float> b_;
  DeviceBuffer<float> c_;
  bool is_computed_ = false;
};

// With as many handles and plans in the user's context as there are threads, and in each thread's
// own.
struct Objects {
  Objects() {
    REQUIRE(handles.Prepare(user, kMostThreads).ok());
    REQUIRE(plans.Prepare(user, Layout::Line(kSamples), kMostThreads).ok());
    for (int i = 0; i < kMostThreads; ++i) {
      own.push_back(std::make_unique<Own>(user));
      const auto context = ContextRef::Borrow(TheWorld().own[i % kOwnContexts]);
      in_own.push_back(std::make_unique<Own>(context));
      REQUIRE(handles.Prepare(context, kMostThreads / kOwnContexts).ok());
    }
    const ContextGuard guard(primary);
    REQUIRE(cublasCreate(&primarys_handle) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasSetStream(primarys_handle, in_primary.stream().get()) == CUBLAS_STATUS_SUCCESS);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  ~Objects() {
    const ContextGuard guard(primary);
    REQUIRE(cublasDestroy(primarys_handle) == CUBLAS_STATUS_SUCCESS);
  }

  ContextRef user = TheWorld().user_ref;
  ContextRef primary = ContextRef::Borrow(TheWorld().primary);
  CublasHandles handles;
  CufftPlans plans;
  std::vector<std::unique_ptr<Own>> own;
  std::vector<std::unique_ptr<Own>> in_own;
  Product in_user{user, Sim::IsActive() ? 32 : 4096};
  Product in_primary{primary, Sim::IsActive() ? 32 : 4096};
  cublasHandle_t primarys_handle = nullptr;
};

// What people write: the context pushed, the library told the stream.
template <typename Work>
void Pushed(const Work& work) {
  CUcontext popped;
  TheWorld().driver->CtxPushCurrent(TheWorld().user);
  work();
  TheWorld().driver->CtxPopCurrent(&popped);
}

constexpr char kCallsOfCublas[] = "what `CublasScope` calls";
constexpr char kCallsOfCufft[] = "what `CufftScope` calls";

// The calls of driver and library that a scope makes for what it promises, its context current:
// `begin` with the handle at its begin, `end` at its end.
template <typename Begin, typename End>
void CallAsScope(const Begin& begin, const End& end) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUcontext context = nullptr;
  TheWorld().driver->CtxGetCurrent(&context);
  AskForId(context);
  TheWorld().driver->ThreadExchangeStreamCaptureMode(&mode);
  begin();
  AskForId(nullptr);
  end();
  TheWorld().driver->ThreadExchangeStreamCaptureMode(&mode);
}

void AskForSettings(cublasHandle_t handle) {
  cublasPointerMode_t pointer = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
  int multiprocessors = 0;
  cublasGetPointerMode(handle, &pointer);
  cublasGetMathMode(handle, &math);
  cublasGetAtomicsMode(handle, &atomics);
  cublasGetSmCountTarget(handle, &multiprocessors);
  benchmark::DoNotOptimize(multiprocessors);
}

// `add(name, work)` adds a row; `own(thread)` is what that thread has.
template <typename Add, typename Of>
void AddHandles(const Add& add, CublasHandles& handles, const Of& own) {
  add("push, `cublasSetStream`, pop", [own](std::size_t thread) {
    CUcontext popped;
    TheWorld().driver->CtxPushCurrent(own(thread).stream.context().get());
    cublasSetStream(own(thread).handle, own(thread).stream.get());
    TheWorld().driver->CtxPopCurrent(&popped);
  });
  add(kCallsOfCublas, [own](std::size_t thread) {
    const Own& mine = own(thread);
    CallAsScope([&mine] { cublasSetStream(mine.handle, mine.stream.get()); },
                [&mine] { AskForSettings(mine.handle); });
  });
  add("`CublasScope`", [&handles, own](std::size_t thread) {
    const CublasScope blas(handles, own(thread).stream.ref());
    benchmark::DoNotOptimize(blas.handle());
  });
}

Group Handles(Objects& objects) {
  Group group = {"a cuBLAS handle, its context current", TheWorld().user, {1, 4, 16}, 500, {}};
  AddHandles([&group](const char* name, const auto& work) { group.Add(name, work); },
             objects.handles, [&objects](std::size_t i) -> const Own& { return *objects.own[i]; });
  return group;
}

Group HandlesInOwn(Objects& objects) {
  Group group = {
      "a cuBLAS handle, each thread's own context current", TheWorld().user, {1, 16}, 500, {}};
  AddHandles([&group](const char* name, const auto& work) { group.AddInOwn(name, work); },
             objects.handles,
             [&objects](std::size_t i) -> const Own& { return *objects.in_own[i]; });
  return group;
}

Group MadeHandles(Objects& objects) {
  Group group = {"a handle for each call", nullptr, {1}, 1, {}};
  group.Add("push, `cublasCreate`, `cublasSetStream`, `cublasDestroy`, pop",
            [&objects](std::size_t thread) {
              Pushed([&objects, thread] {
                cublasHandle_t handle = nullptr;
                REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
                cublasSetStream(handle, objects.own[thread]->stream.get());
                cublasDestroy(handle);
              });
            });
  group.Add("`CublasScope`", [&objects](std::size_t thread) {
    const CublasScope blas(objects.handles, objects.own[thread]->stream.ref());
    benchmark::DoNotOptimize(blas.handle());
  });
  group.Add("`CufftScope`", [&objects](std::size_t thread) {
    const CufftScope fft(objects.plans, Layout::Line(kSamples), objects.own[thread]->stream.ref());
    benchmark::DoNotOptimize(fft.handle());
  });
  return group;
}

Group Plans(Objects& objects) {
  Group group = {"a cuFFT plan, its context current", TheWorld().user, {1, 4, 16}, 500, {}};
  group.Add("push, `cufftSetStream`, pop", [&objects](std::size_t thread) {
    Own& own = *objects.own[thread];
    Pushed([&own] { cufftSetStream(own.plan, own.stream.get()); });
  });
  group.Add(kCallsOfCufft, [&objects](std::size_t thread) {
    Own& own = *objects.own[thread];
    CallAsScope([&own] { cufftSetStream(own.plan, own.stream.get()); }, [] {});
  });
  group.Add("`CufftScope`", [&objects](std::size_t thread) {
    const CufftScope fft(objects.plans, Layout::Line(kSamples), objects.own[thread]->stream.ref());
    benchmark::DoNotOptimize(fft.handle());
  });
  return group;
}

// Each done when it is counted. The first is not timed: the device comes from the other one's
// context.
Group Products(Objects& objects) {
  Group group = {"`cublasSgemm` of 4096 × 4096", nullptr, {1}, 1, {}};
  group.warms = true;
  group.Add("in a plain program of the runtime", [&objects](std::size_t) {
    CUcontext popped;
    TheWorld().driver->CtxPushCurrent(TheWorld().primary);
    objects.in_primary.Submit(objects.primarys_handle);
    REQUIRE(cudaStreamSynchronize(objects.in_primary.stream().get()) == cudaSuccess);
    TheWorld().driver->CtxPopCurrent(&popped);
  });
  group.Add("in a user's context, by a `CublasScope`", [&objects](std::size_t) {
    {
      const CublasScope blas(objects.handles, objects.in_user.stream());
      objects.in_user.Submit(blas.handle());
    }
    REQUIRE(objects.in_user.stream().Synchronize().ok());
  });
  return group;
}

Rows Make() {
  const auto objects = std::make_shared<Objects>();
  Rows rows;
  rows.groups = {Handles(*objects), Plans(*objects), MadeHandles(*objects), Products(*objects),
                 HandlesInOwn(*objects)};
  const auto title = [&rows](std::size_t group) { return rows.groups[group].title; };
  rows.promises = {{title(0), "`CublasScope`", 1, 4},
                   {title(0), "`CublasScope`", 16, 0.25},
                   {title(0), "`CublasScope`", 1, 1.7, kCallsOfCublas},
                   {title(1), "`CufftScope`", 16, 1.15},
                   {title(1), "`CufftScope`", 1, 2, kCallsOfCufft},
                   {title(2), "`CublasScope`", 1, 0.01},
                   {title(2), "`CufftScope`", 1, 0.01},
                   {title(3), "in a user's context, by a `CublasScope`", 1, 1.005}};
  rows.needs = objects;
  return rows;
}

const RowsOf g_rows(4, &Make);

}  // namespace
}  // namespace cuguest_benchmark
