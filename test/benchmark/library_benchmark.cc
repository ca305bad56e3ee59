// SPDX-License-Identifier: Apache-2.0
//
// What the bridge to the toolkit's libraries costs: a product of two matrices through a
// CublasScope, beside the same one in a plain runtime program's primary context; then the
// scopes alone, beside what people write today, from 1, 4 and 16 threads in one context. It
// ends with tables as Markdown.
//
// With --check it fails if the bridge costs more than it promises (on a real driver, since the
// simulation's times mean nothing, and what is promised of 16 threads where there are as many
// processors for them).

#include <benchmark/benchmark.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cufft.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/driver.h"
#include "cuguest/primary_context.h"
#include "cuguest/runtime/cublas.h"
#include "cuguest/runtime/cufft.h"
#include "cuguest/runtime/device_guard.h"
#include "cuguest/stream.h"
#include "cuguest/testing/sim.h"
#include "test/benchmark/harness.h"

namespace {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::Driver;
using cuguest::PrimaryContext;
using cuguest::Stream;
using cuguest::StreamRef;
using cuguest::runtime::CublasHandles;
using cuguest::runtime::CublasScope;
using cuguest::runtime::CufftLayout;
using cuguest::runtime::CufftPlans;
using cuguest::runtime::CufftScope;
using cuguest::runtime::DeviceGuard;
using cuguest::testing::Sim;
using cuguest_benchmark::kThreads;

constexpr int kMostThreads = 16;
constexpr int kSamples = 1024;

void Require(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

#define REQUIRE(claim) Require((claim), #claim)

template <typename T>
T Take(absl::StatusOr<T> result) {
  Require(result.ok(), result.status().ToString().c_str());
  return *std::move(result);
}

// Square matrices of ones in a context, and a stream there.
class Product {
 public:
  Product(const ContextRef& context, int n)
      : n_(n),
        stream_(Take(Stream::Create(context))),
        a_(Ones(context)),
        b_(Ones(context)),
        c_(Ones(context)) {}

  [[nodiscard]] const StreamRef& stream() const { return stream_.ref(); }
  [[nodiscard]] double operations() const { return 2.0 * n_ * n_ * n_; }

  void Submit(cublasHandle_t handle) {
    const float one = 1;
    const float zero = 0;
    REQUIRE(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n_, n_, n_, &one, a_.data(), n_,
                        b_.data(), n_, &zero, c_.data(), n_) == CUBLAS_STATUS_SUCCESS);
  }

  void CheckResult() const {
    std::vector<float> c(c_.size());
    REQUIRE(cuguest::Copy(c, c_.view()).ok());
    for (const float element : c) REQUIRE(element == static_cast<float>(n_));
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
};

// What one thread uses when it does without a pool.
struct Own {
  Stream stream;
  cublasHandle_t handle = nullptr;
  cufftHandle plan = 0;
};

// What every thread works with. Filled before the first measurement.
struct World {
  const Driver* driver;
  CUcontext user;     // a context of cuCtxCreate, which the scopes enter
  CUcontext primary;  // of device 0, where the runtime's idioms work
  CublasHandles* handles;
  CufftPlans* plans;
  std::vector<Own> own;
  Product* in_user;
  Product* in_primary;
  cublasHandle_t primarys_handle;
};
World g_world;

// A thread on which `current` is current, or nothing.
class CallerStack {
 public:
  explicit CallerStack(CUcontext current) : current_(current) {
    if (current != nullptr) g_world.driver->CtxPushCurrent(current);
  }
  CallerStack(const CallerStack&) = delete;
  CallerStack& operator=(const CallerStack&) = delete;
  ~CallerStack() {
    CUcontext popped;
    if (current_ != nullptr) g_world.driver->CtxPopCurrent(&popped);
  }

 private:
  CUcontext current_;
};

// The idioms. Each enters the user's context, if it has to do with contexts, and comes back.

// What people write: the context pushed, the library told the stream.
template <typename Work>
void Pushed(Work work) {
  CUcontext popped;
  g_world.driver->CtxPushCurrent(g_world.user);
  work();
  g_world.driver->CtxPopCurrent(&popped);
}

struct BlasScope {
  static constexpr char kName[] = "CublasScope";
  static void Run(Own& own) {
    const CublasScope blas(*g_world.handles, own.stream.ref());
    benchmark::DoNotOptimize(blas.handle());
  }
};

struct BareBlas {
  static constexpr char kName[] = "push, cublasSetStream, pop";
  static void Run(Own& own) {
    Pushed([&] { cublasSetStream(own.handle, own.stream.get()); });
  }
};

struct NaiveBlas {
  static constexpr char kName[] = "a handle for each call";
  static void Run(Own& own) {
    Pushed([&] {
      cublasHandle_t handle = nullptr;
      REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
      cublasSetStream(handle, own.stream.get());
      cublasDestroy(handle);
    });
  }
};

struct FftScope {
  static constexpr char kName[] = "CufftScope";
  static void Run(Own& own) {
    const CufftScope fft(*g_world.plans, CufftLayout::Line(kSamples), own.stream.ref());
    benchmark::DoNotOptimize(fft.plan());
  }
};

struct BareFft {
  static constexpr char kName[] = "push, cufftSetStream, pop";
  static void Run(Own& own) {
    Pushed([&] { cufftSetStream(own.plan, own.stream.get()); });
  }
};

struct NaiveFft {
  static constexpr char kName[] = "a plan for each call";
  static void Run(Own& own) {
    Pushed([&] {
      cufftHandle plan = 0;
      REQUIRE(cufftPlan1d(&plan, kSamples, CUFFT_C2C, 1) == CUFFT_SUCCESS);
      cufftSetStream(plan, own.stream.get());
      cufftDestroy(plan);
    });
  }
};

struct ForDevice {
  static constexpr char kName[] = "DeviceGuard";
  static void Run(Own&) { const DeviceGuard guard(Device::Borrow(0)); }
};

struct SetDevice {
  static constexpr char kName[] = "cudaGetDevice, Set, Set";
  static void Run(Own&) {
    int before = 0;
    cudaGetDevice(&before);
    cudaSetDevice(0);
    cudaSetDevice(before);
  }
};

struct Idiom {
  const char* name;
  void (*measure)(benchmark::State&, CUcontext current);
};

template <typename I>
constexpr Idiom Describe() {
  return {I::kName, [](benchmark::State& state, CUcontext current) {
            const CallerStack stack(current);
            Own& own = g_world.own[static_cast<std::size_t>(state.thread_index())];
            for (auto _ : state) I::Run(own);
          }};
}

constexpr Idiom kLibraryIdioms[] = {Describe<BlasScope>(), Describe<BareBlas>(),
                                    Describe<NaiveBlas>(), Describe<FftScope>(),
                                    Describe<BareFft>(),   Describe<NaiveFft>()};
constexpr Idiom kDeviceIdioms[] = {Describe<ForDevice>(), Describe<SetDevice>()};

enum class Caller { kUser, kNone, kPrimary };

CUcontext CurrentOf(Caller caller) {
  return caller == Caller::kUser      ? g_world.user
         : caller == Caller::kPrimary ? g_world.primary
                                      : nullptr;
}

// A table: what the callers have current, and the idioms.
struct Table {
  const char* title;
  Caller caller;
  const Idiom* begin;
  const Idiom* end;
};
const Table kTables[] = {
    {"context current already", Caller::kUser, std::begin(kLibraryIdioms),
     std::end(kLibraryIdioms)},
    {"none current", Caller::kNone, std::begin(kLibraryIdioms), std::end(kLibraryIdioms)},
    {"the primary current already", Caller::kPrimary, std::begin(kDeviceIdioms),
     std::end(kDeviceIdioms)},
};

std::string KeyOf(const Table& table, const char* idiom, int threads) {
  return std::string(table.title) + "/" + idiom + "/" + std::to_string(threads);
}

// The products, each done when it is counted.

void MultiplyPlainly() {
  const CallerStack stack(g_world.primary);
  g_world.in_primary->Submit(g_world.primarys_handle);
  REQUIRE(cudaStreamSynchronize(g_world.in_primary->stream().get()) == cudaSuccess);
}

void MultiplyInAScope() {
  {
    const CublasScope blas(*g_world.handles, g_world.in_user->stream());
    g_world.in_user->Submit(blas.handle());
  }
  REQUIRE(g_world.in_user->stream().Synchronize().ok());
}

// The best of all turns, in seconds.
struct Race {
  const char* name;
  void (*multiply)();
  double best = 0;

  // The first product is not timed: the device comes from the other one's context.
  void TakeTurn() {
    multiply();
    const auto start = std::chrono::steady_clock::now();
    multiply();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = best == 0 ? taken.count() : std::min(best, taken.count());
  }
};
Race g_plain{"plain runtime program", &MultiplyPlainly};
Race g_bridged{"CublasScope, in a user's context", &MultiplyInAScope};

// In turns, so that a clock that changes changes for both.
void RaceProducts(int turns) {
  for (int turn = 0; turn < turns; ++turn) {
    g_plain.TakeTurn();
    g_bridged.TakeTurn();
  }
}

void RegisterAll(const cuguest_benchmark::Options& options) {
  for (const Table& table : kTables) {
    for (const Idiom* idiom = table.begin; idiom != table.end; ++idiom) {
      for (const int threads : kThreads) {
        cuguest_benchmark::Register(KeyOf(table, idiom->name, threads), threads, options,
                                    [&table, idiom](benchmark::State& state) {
                                      idiom->measure(state, CurrentOf(table.caller));
                                    });
      }
    }
  }
}

void PrintProducts() {
  std::printf("\n| cublasSgemm                      |      time |        rate |\n");
  std::printf("|:---------------------------------|----------:|------------:|\n");
  for (const Race& race : {g_plain, g_bridged}) {
    std::printf("| %-32s | %6.3f ms | %.2f TFLOP/s |\n", race.name, race.best * 1e3,
                g_world.in_user->operations() / race.best / 1e12);
  }
}

void PrintScopes(const cuguest_benchmark::Times& times) {
  for (const Table& table : kTables) {
    std::printf("\n| %-27s | 1 thread | 4 threads | 16 threads |\n", table.title);
    std::printf("|:----------------------------|---------:|----------:|-----------:|\n");
    for (const Idiom* idiom = table.begin; idiom != table.end; ++idiom) {
      std::printf("| %-27s |", idiom->name);
      for (const int threads : kThreads) {
        std::printf(" %.0f ns |", times.Best(KeyOf(table, idiom->name, threads)));
      }
      std::printf("\n");
    }
  }
  std::printf("\nnanoseconds a scope (best of 9)\n");
}

bool Keeps(const std::string& what, double ratio, double most) {
  const bool kept = ratio <= most;
  std::printf("%s: %s: %.3fx, at most %.2fx promised\n", kept ? "kept" : "BROKEN", what.c_str(),
              ratio, most);
  return kept;
}

// Of the first, beside the second.
struct Promise {
  const Table& table;
  const char* idiom;
  const char* beside;
  int threads;
  double most;

  [[nodiscard]] bool Check(const cuguest_benchmark::Times& times) const {
    if (std::thread::hardware_concurrency() < static_cast<unsigned>(threads)) {
      std::printf("not checked: %s, %d threads: too few processors\n", idiom, threads);
      return true;
    }
    const double ratio =
        times.Best(KeyOf(table, idiom, threads)) / times.Best(KeyOf(table, beside, threads));
    return Keeps(std::string(idiom) + ", beside " + beside + "; " + table.title + ", " +
                     std::to_string(threads) + " thread(s)",
                 ratio, most);
  }
};
const Promise kPromises[] = {
    {kTables[0], BlasScope::kName, BareBlas::kName, 16, 0.5},
    {kTables[1], BlasScope::kName, NaiveBlas::kName, 1, 0.01},
    {kTables[1], FftScope::kName, NaiveFft::kName, 1, 0.01},
    {kTables[2], ForDevice::kName, SetDevice::kName, 16, 0.2},
};

bool Check(const cuguest_benchmark::Times& times) {
  bool kept = Keeps("a product through a CublasScope, beside a plain runtime program's",
                    g_bridged.best / g_plain.best, 1.01);
  for (const Promise& promise : kPromises) kept = promise.Check(times) && kept;
  return kept;
}

Own MakeOwn(const ContextRef& context) {
  Own own;
  own.stream = Take(Stream::Create(context));
  const ContextGuard guard(context);
  REQUIRE(cublasCreate(&own.handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cufftPlan1d(&own.plan, kSamples, CUFFT_C2C, 1) == CUFFT_SUCCESS);
  return own;
}

void Destroy(const Own& own) {
  const ContextGuard guard(own.stream.context());
  REQUIRE(cublasDestroy(own.handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cufftDestroy(own.plan) == CUFFT_SUCCESS);
}

// In the user's context, with as many handles and plans as there are threads.
void Prepare(const ContextRef& context) {
  REQUIRE(g_world.handles->Prepare(context, kMostThreads).ok());
  REQUIRE(g_world.plans->Prepare(context, CufftLayout::Line(kSamples), kMostThreads).ok());
  for (int i = 0; i < kMostThreads; ++i) g_world.own.push_back(MakeOwn(context));
}

bool MeasureAndCheck(const char* program, const cuguest_benchmark::Options& options) {
  RaceProducts(options.smoke ? 2 : 40);
  RegisterAll(options);
  cuguest_benchmark::Times times;
  cuguest_benchmark::Run(program, &times);
  g_world.in_user->CheckResult();
  g_world.in_primary->CheckResult();
  PrintProducts();
  PrintScopes(times);
  return !options.check || Sim::IsActive() || Check(times);
}

}  // namespace

int main(int argc, char** argv) {
  const cuguest_benchmark::Options options = cuguest_benchmark::Parse(argc, argv);
  g_world.driver = cuguest_benchmark::FindDriver();
  if (g_world.driver == nullptr) return 77;
  const PrimaryContext primary = Take(PrimaryContext::Retain(Device::Borrow(0)));
  g_world.primary = primary.get();
  g_world.user = cuguest_benchmark::MakeContext(*g_world.driver);
  if (g_world.user == nullptr) return 1;
  bool kept = false;
  {
    const ContextRef user = ContextRef::Borrow(g_world.user);
    CublasHandles handles;
    CufftPlans plans;
    g_world.handles = &handles;
    g_world.plans = &plans;
    Prepare(user);
    const int n = Sim::IsActive() ? 32 : 4096;
    Product in_user(user, n);
    Product in_primary(primary.incarnation(), n);
    g_world.in_user = &in_user;
    g_world.in_primary = &in_primary;
    {
      const ContextGuard guard(primary.incarnation());
      REQUIRE(cublasCreate(&g_world.primarys_handle) == CUBLAS_STATUS_SUCCESS);
      REQUIRE(cublasSetStream(g_world.primarys_handle, in_primary.stream().get()) ==
              CUBLAS_STATUS_SUCCESS);
    }
    kept = MeasureAndCheck(argv[0], options);
    const ContextGuard guard(primary.incarnation());
    REQUIRE(cublasDestroy(g_world.primarys_handle) == CUBLAS_STATUS_SUCCESS);
    for (const Own& own : g_world.own) Destroy(own);
    g_world.own.clear();
  }
  g_world.driver->CtxDestroy(g_world.user);
  return kept ? 0 : 1;
}
