// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Can many threads use both APIs, cuBLAS and cuFFT in many contexts, without disturbing others?
//
// The threads of a host, each with contexts and a last error of its own, call a library that works
// in other contexts: one for each thread, or shared ones. The library allocates through the driver
// and the runtime, copies, launches, multiplies and transforms, in random order, and checks every
// result. After each call the context that was current is current; at the end each thread's stack
// and last error are what they were, and no primary context was created.
//
//   --threads N   16; 4 on the simulation
//   --contexts N   4; 2
//   --seconds N    5; 1
//
//   2. While they work
//
//      0.5 s                         927             1854 a second
//      ...
//      5.0 s                         45103           9020 a second
//
//   3. What they did
//
//      cuMemAlloc, copies            7484            1497 a second
//      ...
//      cublasSgemm                   7442            1488 a second
//      all results, every stack      right           P is inactive

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cufft.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cudasim/sim.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/driver.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/runtime/cublas.h"
#include "cuguest/runtime/cufft.h"
#include "cuguest/runtime/device_guard.h"
#include "cuguest/runtime/error.h"
#include "cuguest/runtime/handle.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/libraries/multiply.h"
#include "examples/libraries/product.h"
#include "examples/libraries/tones.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"

// The library works in its own context, whatever is current.
namespace library {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::runtime::CublasHandles;
using cuguest::runtime::CublasScope;
using Layout = cuguest::runtime::CufftPlans::Layout;
using cuguest::runtime::CufftPlans;
using cuguest::runtime::CufftScope;
using cuguest::runtime::DeviceGuard;
using cuguest::runtime::ToStatus;
using support::DeviceProduct;
using support::Product;
using support::Ramp;
using support::Samples;

// What all threads share.
struct Tools {
  CublasHandles handles;
  CufftPlans plans;
  Kernel saxpy;
  Product product;
  Samples signal;
  Samples spectrum;

  Tools(Kernel kernel, int n, int samples)
      : saxpy(std::move(kernel)),
        product(n, /*seed=*/1),
        signal(support::MakeTones(samples)),
        spectrum(support::SpectrumOfTones(samples)) {}
};

absl::Status CheckThat(bool right, const char* what) {
  return right ? absl::OkStatus() : absl::DataLossError(std::string(what) + " is wrong");
}

// What one thread has in a context.
class Client {
 public:
  [[nodiscard]] static absl::StatusOr<Client> Open(const ContextRef& home, Device device,
                                                   Tools* tools) {
    absl::StatusOr<DeviceProduct> product = DeviceProduct::Upload(home, tools->product);
    CUGUEST_RETURN_IF_ERROR(product);
    absl::StatusOr<DeviceBuffer<float>> x = DeviceBuffer<float>::CopyOf(home, Ramp(1));
    CUGUEST_RETURN_IF_ERROR(x);
    absl::StatusOr<DeviceBuffer<float>> y = DeviceBuffer<float>::CopyOf(home, Ramp(1));
    CUGUEST_RETURN_IF_ERROR(y);
    absl::StatusOr<DeviceBuffer<std::complex<float>>> samples =
        DeviceBuffer<std::complex<float>>::CopyOf(home, tools->signal);
    CUGUEST_RETURN_IF_ERROR(samples);
    return Client(home, device, tools, *std::move(product), *std::move(x), *std::move(y),
                  *std::move(samples));
  }

  // Each waits for its work, and leaves the caller's stack unchanged.

  // Memory of the driver.
  absl::Status Copy() {
    CUGUEST_ASSIGN_OR_RETURN(const DeviceBuffer<float> buffer,
                             DeviceBuffer<float>::CopyOf(home_, Ramp(2)));
    CUGUEST_ASSIGN_OR_RETURN(const std::vector<float> values, cuguest::Download(buffer.view()));
    return CheckThat(values == Ramp(2), "a copy");
  }

  // Memory of the runtime, on a stream of the driver.
  absl::Status CopyByRuntime() {
    const ContextGuard guard(home_);
    CUGUEST_RETURN_IF_ERROR(guard);
    float* memory = nullptr;
    const std::vector<float> ramp = Ramp(3);
    const std::size_t bytes = ramp.size() * sizeof(float);
    absl::Status status =
        ToStatus(cudaMalloc(reinterpret_cast<void**>(&memory), bytes), "allocate");
    if (!status.ok()) return status;
    std::vector<float> values(ramp.size());
    const cudaStream_t stream = cuguest::runtime::ToRuntime(product_.stream().get());
    cudaError_t code = cudaMemcpyAsync(memory, ramp.data(), bytes, cudaMemcpyHostToDevice, stream);
    if (code == cudaSuccess) {
      code = cudaMemcpyAsync(values.data(), memory, bytes, cudaMemcpyDeviceToHost, stream);
    }
    if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
    const cudaError_t freed = cudaFree(memory);
    status = ToStatus(code != cudaSuccess ? code : freed, "copy and free");
    return status.ok() ? CheckThat(values == ramp, "a copy of the runtime's") : status;
  }

  // y = 2 x + y, twice.
  absl::Status Launch() {
    CUGUEST_RETURN_IF_ERROR(cuguest::Copy(y_.view(), x_.view()));
    const auto n = static_cast<unsigned>(x_.size());
    absl::Status status;
    for (int i = 0; i < 2 && status.ok(); ++i) {
      status = cuguest::LaunchForElements(tools_->saxpy, n, product_.stream(), n, 2.0F,
                                          DevicePtr(x_.view()), DevicePtr(y_.view()));
    }
    if (status.ok()) status = product_.stream().Synchronize();
    if (!status.ok()) return status;
    CUGUEST_ASSIGN_OR_RETURN(const std::vector<float> y, cuguest::Download(y_.view()));
    return CheckThat(y == Ramp(5), "a kernel's result");
  }

  absl::Status Multiply() {
    {
      const CublasScope blas(tools_->handles, product_.stream());
      CUGUEST_RETURN_IF_ERROR(blas);
      absl::Status status = ToStatus(product_.Multiply(blas.handle()), "multiply");
      if (!status.ok()) return status;
    }
    return CheckThat(product_.IsRight(), "a product");
  }

  absl::Status Transform() {
    if (absl::Status status = cuguest::Upload(samples_.view(), tools_->signal); !status.ok()) {
      return status;
    }
    const int count = static_cast<int>(samples_.size());
    {
      const CufftScope fft(tools_->plans, Layout::Line(count), product_.stream());
      CUGUEST_RETURN_IF_ERROR(fft);
      auto* const data = reinterpret_cast<cufftComplex*>(samples_.data());
      absl::Status status =
          ToStatus(cufftExecC2C(fft.handle(), data, data, CUFFT_FORWARD), "transform");
      if (!status.ok()) return status;
    }
    CUGUEST_RETURN_IF_ERROR(product_.stream().Synchronize());
    CUGUEST_ASSIGN_OR_RETURN(const Samples spectrum, cuguest::Download(samples_.view()));
    return CheckThat(
        support::RelativeError(spectrum, tools_->spectrum) <= support::TransformTolerance(count),
        "a spectrum");
  }

  // Instead of cudaSetDevice.
  absl::Status AskForDevice() {
    const DeviceGuard guard(device_);
    CUGUEST_RETURN_IF_ERROR(guard);
    int ordinal = -1;
    const absl::Status status = ToStatus(cudaGetDevice(&ordinal), "ask for the device");
    return status.ok() ? CheckThat(ordinal == 0, "the device") : status;
  }

 private:
  Client(const ContextRef& home, Device device, Tools* tools, DeviceProduct product,
         DeviceBuffer<float> x, DeviceBuffer<float> y, DeviceBuffer<std::complex<float>> samples)
      : home_(home),
        device_(device),
        tools_(tools),
        product_(std::move(product)),
        x_(std::move(x)),
        y_(std::move(y)),
        samples_(std::move(samples)) {}

  ContextRef home_;
  Device device_;
  Tools* tools_;
  DeviceProduct product_;
  DeviceBuffer<float> x_;
  DeviceBuffer<float> y_;
  DeviceBuffer<std::complex<float>> samples_;
};

struct Operation {
  const char* name;
  absl::Status (Client::*run)();
};
constexpr Operation kOperations[] = {
    {"cuMemAlloc, copies", &Client::Copy}, {"cudaMalloc, cudaMemcpyAsync", &Client::CopyByRuntime},
    {"kernels", &Client::Launch},          {"cublasSgemm", &Client::Multiply},
    {"cufftExecC2C", &Client::Transform},  {"DeviceGuard", &Client::AskForDevice},
};

}  // namespace library

namespace host {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Driver;
using cuguest::SharedContext;
using cuguest::testing::UndisturbedScope;
using library::Client;
using library::kOperations;
using library::Tools;
using support::PrintRow;
using support::PrintScene;

struct Options {
  int threads = 0;
  int contexts = 0;
  double seconds = 0;
};
Options g_options;

struct House {
  const Driver& driver;
  Device device;
  CUcontext x;  // the host's own context
  std::vector<SharedContext> homes;
  Tools tools;
};

struct Tally {
  std::array<std::atomic<long long>, std::size(kOperations)> done = {};
  std::atomic<int> failed{0};  // threads

  [[nodiscard]] long long total() const {
    long long sum = 0;
    for (const std::atomic<long long>& count : done) sum += count;
    return sum;
  }
};

CUcontext Current(const Driver& driver) {
  CUcontext current = nullptr;
  CHECK(driver.CtxGetCurrent(&current) == CUDA_SUCCESS);
  return current;
}

// Runs operations in random order until it is stopped or one fails.
absl::Status Work(const House& house, unsigned seed, const std::atomic<bool>& stop, Client* client,
                  Tally* tally) {
  std::mt19937 random(seed);
  const CUcontext mine = Current(house.driver);
  while (!stop) {
    const std::size_t next = random() % std::size(kOperations);
    absl::Status status = (client->*kOperations[next].run)();
    if (!status.ok()) return status;
    if (Current(house.driver) != mine) {
      return absl::InternalError(std::string(kOperations[next].name) + ": another context now");
    }
    ++tally->done[next];
  }
  return absl::OkStatus();
}

// One of the host's threads. Every second one has the library's context current above the host's;
// every third one has a last error of the runtime, which it reads at the end.
void RunThread(House& house, unsigned index, const std::atomic<bool>& stop, Tally* tally) {
  const ContextRef home = house.homes[index % house.homes.size()].context();
  std::vector<CUcontext> caller = {house.x};
  if (index % 2 == 1) caller.push_back(home.get());
  const support::HostStack stack(house.driver, caller);
  constexpr int kNoSuchDevice = 1'000'000;
  const bool mistaken = index % 3 == 2;
  if (mistaken) CHECK(cudaSetDevice(kNoSuchDevice) == cudaErrorInvalidDevice);
  {
    const UndisturbedScope undisturbed(&support::ReportDisturbance);
    absl::StatusOr<Client> client = Client::Open(home, house.device, &house.tools);
    const absl::Status status =
        client.ok() ? Work(house, index, stop, &*client, tally) : client.status();
    if (!CHECK_OK(status)) ++tally->failed;
  }
  CHECK(cudaGetLastError() == (mistaken ? cudaErrorInvalidDevice : cudaSuccess));
}

void PrintCount(const std::string& what, long long count, double seconds) {
  char rate[40];
  std::snprintf(rate, sizeof(rate), "%.0f a second", static_cast<double>(count) / seconds);
  PrintRow(what, std::to_string(count), rate);
}

std::string Seconds(double seconds) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.1f s", seconds);
  return text;
}

// Prints ten times at even intervals; returns the seconds that passed.
double ShowProgress(const Tally& tally) {
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (int step = 1; step <= 10 && tally.failed == 0; ++step) {
    std::this_thread::sleep_until(
        start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                    std::chrono::duration<double>(g_options.seconds * step / 10)));
    PrintCount(Seconds(passed()), tally.total(), passed());
    std::fflush(stdout);
  }
  return passed();
}

void WorkTogether(House& house) {
  PrintScene("While they work");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  Tally tally;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < g_options.threads; ++i) {
    threads.emplace_back(
        [&house, &stop, &tally, i] { RunThread(house, static_cast<unsigned>(i), stop, &tally); });
  }
  const double seconds = ShowProgress(tally);
  stop = true;
  for (std::thread& thread : threads) thread.join();

  PrintScene("What they did");
  for (std::size_t i = 0; i < std::size(kOperations); ++i) {
    PrintCount(kOperations[i].name, tally.done[i], seconds);
    CHECK(tally.done[i] > 0);
  }
  PrintRow("all results, every stack", tally.failed == 0 ? "right" : "WRONG",
           support::Activity(house.device));
  CHECK(!support::IsActive(house.device));
}

absl::StatusOr<std::vector<SharedContext>> MakeHomes(Device device) {
  PrintScene("Contexts for the library");
  std::vector<SharedContext> homes;
  for (int i = 0; i < g_options.contexts; ++i) {
    SharedContext home = SharedContext::Create(device);
    CUGUEST_RETURN_IF_ERROR(home);
    homes.push_back(std::move(home));
  }
  PrintRow("made", std::to_string(homes.size()),
           "for " + std::to_string(g_options.threads) + " threads");
  return homes;
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  const bool sim = Sim::IsActive();
  if (g_options.threads == 0) g_options.threads = sim ? 4 : 16;
  if (g_options.contexts == 0) g_options.contexts = sim ? 2 : 4;
  if (g_options.seconds == 0) g_options.seconds = sim ? 1 : 5;

  CUGUEST_ASSIGN_OR_RETURN(const support::HostContext x,
                           support::HostContext::Create(driver, device));
  absl::StatusOr<std::vector<SharedContext>> homes = MakeHomes(device);
  CUGUEST_RETURN_IF_ERROR(homes);
  CUGUEST_ASSIGN_OR_RETURN(
      const cuguest::Module module,
      cuguest::Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size},
                            "saxpy"));
  absl::StatusOr<cuguest::Kernel> saxpy = module.GetKernel("saxpy");
  CUGUEST_RETURN_IF_ERROR(saxpy);
  const support::HostStack stack(driver, {x.get()});
  House house{driver, device, x.get(), *std::move(homes),
              Tools(*std::move(saxpy), sim ? 16 : 128, sim ? 64 : 4096)};
  WorkTogether(house);
  return absl::OkStatus();
}

// Whether the command line is valid.
bool Parse(int argc, char** argv) {
  for (int i = 1; i < argc; i += 2) {
    const double value = i + 1 < argc ? std::min(std::atof(argv[i + 1]), 1e6) : 0;
    if (std::strcmp(argv[i], "--seconds") == 0 && value > 0) {
      g_options.seconds = value;
    } else if (std::strcmp(argv[i], "--threads") == 0 && value >= 1) {
      g_options.threads = static_cast<int>(value);
    } else if (std::strcmp(argv[i], "--contexts") == 0 && value >= 1) {
      g_options.contexts = static_cast<int>(value);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace host

int main(int argc, char** argv) {
  if (!host::Parse(argc, argv)) {
    std::fprintf(stderr, "usage: %s [--threads N] [--contexts N] [--seconds N]\n", argv[0]);
    return 2;
  }
  return support::RunExample(
      "Can many threads use both APIs, cuBLAS and cuFFT in many contexts, without disturbing "
      "others?",
      &host::Demonstrate);
}
