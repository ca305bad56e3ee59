// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library with a context of its own communicate with NCCL, beside the application's
// communicator?
//
// Two ranks, started with MPI, have a GPU each. The application works in a context A of its own and
// has a communicator; so has the library, which averages numbers over the ranks, in a context B.
// NCCL works in the primary context P of the device and makes it current on the thread that calls
// it (issues 565 and 1736 of NVIDIA/nccl); a collective that is called with nothing current makes
// and leaves that of device 0 (cudasim/test/nccl_facts_test.cc). The library therefore calls it
// inside a guard of P, with memory and a stream of P. No rank has a context on the other's device.
//
// Started alone, the program starts itself with `mpirun -n 2`. Without two GPUs it is skipped.
//
//   1. The application calls NCCL with A current
//
//      before ncclCommInitRank       [A]<
//      after it                      [P]<            NCCL replaced A
//
//   2. The library makes a communicator, and averages over the ranks
//
//      before                        [A]<
//      in the application's callback [A]<            as it was
//      after                         [A]<            as it was
//   ...
//   3. The devices of the other ranks
//
//      primary contexts made there   0               counted over all ranks

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <mpi.h>
#include <nccl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/copy.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/module.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "kernels/saxpy.h"

// The library. It knows nothing of MPI, and nothing of the application's communicator.
namespace guest {

using cuguest::ContextGuard;
using cuguest::DeviceBuffer;
using cuguest::DevicePtr;
using cuguest::Kernel;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest::Stream;
using Numbers = std::vector<float>;

// Hands rank 0's id to the library in every rank: the application's, called on its own stack.
using ShareId = std::function<void(ncclUniqueId* id)>;

absl::Status ToStatus(ncclResult_t result, const char* doing) {
  if (result == ncclSuccess) return absl::OkStatus();
  return absl::InternalError(std::string(doing) + ": " + ncclGetErrorString(result));
}

class Averager {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Averager>> Create(cuguest::Device device,
                                                                        int ranks, int rank,
                                                                        const ShareId& share);
  Averager(const Averager&) = delete;
  Averager& operator=(const Averager&) = delete;
  ~Averager();

  // The average of `mine` over the ranks. Every rank calls it, with as many.
  [[nodiscard]] absl::StatusOr<Numbers> Average(const Numbers& mine);

 private:
  Averager(SharedContext own, PrimaryContext nccls, int ranks)
      : own_(std::move(own)), nccls_(std::move(nccls)), ranks_(ranks) {}

  [[nodiscard]] absl::Status Join(int rank, const ShareId& share);
  [[nodiscard]] absl::Status LoadKernel();

  SharedContext own_;     // B
  PrimaryContext nccls_;  // P
  const int ranks_;
  ncclComm_t comm_ = nullptr;
  Kernel saxpy_;
};

absl::StatusOr<std::unique_ptr<Averager>> Averager::Create(cuguest::Device device, int ranks,
                                                           int rank, const ShareId& share) {
  SharedContext own = SharedContext::Create(device);
  CUGUEST_RETURN_IF_ERROR(own);
  PrimaryContext nccls = PrimaryContext::Retain(device);
  CUGUEST_RETURN_IF_ERROR(nccls);
  std::unique_ptr<Averager> averager(new Averager(std::move(own), std::move(nccls), ranks));
  CUGUEST_RETURN_IF_ERROR(averager->LoadKernel());
  CUGUEST_RETURN_IF_ERROR(averager->Join(rank, share));
  return averager;
}

absl::Status Averager::LoadKernel() {
  CUGUEST_ASSIGN_OR_RETURN(
      const cuguest::Module module,
      cuguest::Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size},
                            "saxpy"));
  absl::StatusOr<Kernel> saxpy = module.GetKernel("saxpy");
  CUGUEST_RETURN_IF_ERROR(saxpy);
  saxpy_ = *std::move(saxpy);
  return absl::OkStatus();
}

absl::Status Averager::Join(int rank, const ShareId& share) {
  ContextGuard guard(nccls_.context());
  CUGUEST_RETURN_IF_ERROR(guard);
  ncclUniqueId id = {};
  if (rank == 0) {
    CUGUEST_RETURN_IF_ERROR(ToStatus(ncclGetUniqueId(&id), "make an id"));
  }
  {
    const cuguest::HostScope host(guard);
    CUGUEST_RETURN_IF_ERROR(host);
    share(&id);
  }
  CUGUEST_RETURN_IF_ERROR(guard);
  return ToStatus(ncclCommInitRank(&comm_, ranks_, id, rank), "make the communicator");
}

Averager::~Averager() {
  const ContextGuard guard(nccls_.context());
  if (guard.ok() && comm_ != nullptr) ncclCommDestroy(comm_);
}

absl::StatusOr<Numbers> Averager::Average(const Numbers& mine) {
  // In B: 1 / ranks of each number.
  CUGUEST_ASSIGN_OR_RETURN(const Stream stream, Stream::Create(own_.context()));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> x,
                           DeviceBuffer<float>::CopyOf(own_.context(), mine));
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> share,
                           DeviceBuffer<float>::CopyOf(own_.context(), Numbers(mine.size())));
  const auto count = static_cast<unsigned>(mine.size());
  absl::Status status = cuguest::LaunchForElements(saxpy_, count, stream.ref(), count,
                                                   1.0F / static_cast<float>(ranks_),
                                                   DevicePtr(x.view()), DevicePtr(share.view()));
  if (status.ok()) status = stream.ref().Synchronize();
  if (!status.ok()) return status;

  // In P: their sum over the ranks.
  CUGUEST_ASSIGN_OR_RETURN(DeviceBuffer<float> sum,
                           DeviceBuffer<float>::Allocate(nccls_.context(), mine.size()));
  status = cuguest::Copy(sum.view(), share.view());
  if (!status.ok()) return status;
  CUGUEST_ASSIGN_OR_RETURN(const Stream nccls_stream, Stream::Create(nccls_.context()));
  {
    const ContextGuard guard(nccls_.context());
    CUGUEST_RETURN_IF_ERROR(guard);
    auto* numbers = reinterpret_cast<float*>(sum.get());
    status = ToStatus(
        ncclAllReduce(numbers, numbers, mine.size(), ncclFloat, ncclSum, comm_, nccls_stream.get()),
        "add over the ranks");
  }
  if (status.ok()) status = nccls_stream.ref().Synchronize();
  if (!status.ok()) return status;
  return cuguest::Download(sum.view());
}

}  // namespace guest

// The application: the program that MPI starts in each rank.
namespace host {

using cuguest::Device;
using cuguest::Driver;
using cuguest::PrimaryContext;
using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;

constexpr char kOwn[] = "[A]<";

struct World {
  int ranks = 0;
  int rank = 0;
};
World world;

void ShareId(ncclUniqueId* id) {
  CHECK(MPI_Bcast(id, sizeof(*id), MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
}

// Prints the stack, and returns whether it is the application's own.
bool Show(const Cast& cast, const char* when) {
  const std::string stack = cast.Draw();
  PrintRow(when, stack, stack == kOwn ? "as it was" : "WRONG CONTEXT");
  return stack == kOwn;
}

// The application's own communicator.
class OwnCommunicator {
 public:
  OwnCommunicator() {
    ncclUniqueId id = {};
    if (world.rank == 0) CHECK(ncclGetUniqueId(&id) == ncclSuccess);
    ShareId(&id);
    CHECK(ncclCommInitRank(&comm_, world.ranks, id, world.rank) == ncclSuccess);
  }
  OwnCommunicator(const OwnCommunicator&) = delete;
  OwnCommunicator& operator=(const OwnCommunicator&) = delete;
  ~OwnCommunicator() { CHECK(ncclCommDestroy(comm_) == ncclSuccess); }

  // 1 + 2 + ... of the ranks, in memory of the primary context.
  void AddRanks() const {
    float* number = nullptr;
    const auto mine = static_cast<float>(world.rank + 1);
    CHECK(cudaMalloc(reinterpret_cast<void**>(&number), sizeof(*number)) == cudaSuccess);
    CHECK(cudaMemcpy(number, &mine, sizeof(mine), cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(ncclAllReduce(number, number, 1, ncclFloat, ncclSum, comm_, nullptr) == ncclSuccess);
    float sum = 0;
    CHECK(cudaMemcpy(&sum, number, sizeof(sum), cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(sum == static_cast<float>(world.ranks * (world.ranks + 1) / 2));
    CHECK(cudaFree(number) == cudaSuccess);
  }

 private:
  ncclComm_t comm_ = nullptr;
};

void CallGuest(Device device, const Cast& cast) {
  PrintScene("The library makes a communicator, and averages over the ranks");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  PrintRow("before", cast.Draw());
  const absl::StatusOr<std::unique_ptr<guest::Averager>> averager =
      guest::Averager::Create(device, world.ranks, world.rank, [&](ncclUniqueId* id) {
        CHECK(Show(cast, "in the application's callback"));
        ShareId(id);
      });
  if (!CHECK_OK(averager.status())) return;
  CHECK(Show(cast, "its communicator is made"));
  // Rank r has 0, r + 1, 2 (r + 1), ...: of two ranks the average is 0, 1.5, 3, ...
  const absl::StatusOr<guest::Numbers> average = (*averager)->Average(Ramp(world.rank + 1));
  CHECK(Show(cast, "after the average"));
  if (!CHECK_OK(average.status())) return;
  guest::Numbers expected;
  for (const float number : Ramp(1)) {
    expected.push_back(number * static_cast<float>(world.ranks + 1) / 2);
  }
  CHECK(*average == expected);
}

// Over all ranks, how many primary contexts are active on devices of others.
void CountStrayContexts() {
  PrintScene("The devices of the other ranks");
  int mine = 0;
  for (int i = 0; i < world.ranks; ++i) {
    const absl::StatusOr<Device> device = DeviceAt(cuguest::Device::Ordinal{i});
    if (i != world.rank && CHECK_OK(device.status()) && support::IsActive(*device)) ++mine;
  }
  int all = 0;
  CHECK(MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
  PrintRow("primary contexts made there", std::to_string(all), "counted over all ranks");
  CHECK(all == 0);
}

absl::Status Demonstrate(const Driver& driver, Device) {
  CUGUEST_ASSIGN_OR_RETURN(const Device device, DeviceAt(cuguest::Device::Ordinal{world.rank}));
  CHECK(cudaSetDevice(world.rank) == cudaSuccess);
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const CUcontext p, support::HandleOfPrimary(device));
  Cast cast;
  cast.Name("A", a.get());
  cast.Name("P", p);
  HostStack stack(driver, {p});
  {
    const OwnCommunicator own;
    own.AddRanks();

    PrintScene("The application calls NCCL with A current");
    stack.Set({a.get()});
    PrintRow("before ncclCommInitRank", cast.Draw());
    {
      const OwnCommunicator another;
      PrintRow("after it", cast.Draw(), "NCCL replaced A");
      CHECK(cast.Draw() == "[P]<");
    }

    stack.Set({a.get()});
    CallGuest(device, cast);
    stack.Set({p});
    own.AddRanks();  // beside the library's
  }
  CountStrayContexts();
  CHECK(cuguest::IncidentCount() == 0);  // NCCL makes P current, which is the guard's context
  CHECK(cudaDeviceReset() == cudaSuccess);
  return absl::OkStatus();
}

// This program, twice. Returns if that cannot be.
void StartRanks() {
  const std::string program = support::Beside("ranks_with_nccl");
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);  // in a container, say
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  execlp("mpirun", "mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", program.c_str(),
         static_cast<char*>(nullptr));
}

}  // namespace host

int main(int argc, char** argv) {
  if (argc == 1 && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) {
    host::StartRanks();
  }
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return support::kSkipped;
  MPI_Comm_size(MPI_COMM_WORLD, &host::world.ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &host::world.rank);
  int devices = 0;
  int code = support::kSkipped;
  if (host::world.ranks < 2 || cudaGetDeviceCount(&devices) != cudaSuccess ||
      devices < host::world.ranks) {
    std::fprintf(stderr, "skipped: %d ranks have %d devices, and each of two or more needs one\n",
                 host::world.ranks, devices);
  } else {
    // Rank 0 prints; what another rank finds wrong, it prints to stderr.
    if (host::world.rank != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
    code = support::RunExample(
        "How does a library with a context of its own communicate with NCCL?", &host::Demonstrate);
  }
  MPI_Finalize();
  return code;
}
