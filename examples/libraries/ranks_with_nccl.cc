// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library with a context of its own communicate with NCCL, beside the application's
// communicator?
//
// Each GPU has a rank, which MPI started. The application works in a context A of its own and has a
// communicator; so has the library, which adds numbers over the ranks, in a context B. NCCL works
// in the primary context P of the device and makes it current on the thread that calls it (issues
// 565 and 1736 of NVIDIA/nccl); a collective that is called with nothing current makes and leaves
// that of device 0 (cudasim/test/nccl_facts_test.cc). The library therefore calls it inside a scope
// that makes P current, with memory and a stream of P. No rank has a context on another one's
// device.

#include <nccl.h>

#include <optional>
#include <vector>

#include "cuguest/devices.h"
#include "cuguest/incident.h"
#include "cuguest/libraries/nccl.h"
#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "examples/libraries/ranks.h"
#include "examples/support/stage.h"

// The library. It knows nothing of MPI, and nothing of the application's communicator.
namespace guest {

namespace runtime = cuguest::runtime;
using Numbers = std::vector<float>;

class Adder {
 public:
  // `id` is the same in every rank, and no other communicator's.
  absl::Status Join(cuguest::Device device, int ranks, int rank, const ncclUniqueId& id) {
    CUGUEST_ASSIGN_OR_RETURN(own_, cuguest::SharedContext::Create(device));
    CUGUEST_ASSIGN_OR_RETURN(comm_, runtime::NcclCommunicator::Make(
                                        runtime::NcclLibrary::Linked(),
                                        cuguest::PrimaryContext::Retain(device), ranks, rank, id));
    return absl::OkStatus();
  }

  // The sum over the ranks of what is in B. Every rank calls it, with as many.
  absl::StatusOr<Numbers> Add(const Numbers& mine) {
    using Buffer = cuguest::DeviceBuffer<float>;
    CUGUEST_ASSIGN_OR_RETURN(const Buffer in_b, Buffer::CopyOf(own_, mine));
    CUGUEST_ASSIGN_OR_RETURN(Buffer in_p, Buffer::Allocate(comm_->context(), mine.size()));
    CUGUEST_RETURN_IF_ERROR(cuguest::Copy(in_p.view(), in_b.view()));
    CUGUEST_ASSIGN_OR_RETURN(const auto stream, cuguest::Stream::Create(comm_->context()));
    const runtime::NcclScope scope(*comm_, stream);
    CUGUEST_RETURN_IF_ERROR(scope);
    CUGUEST_RETURN_IF_ERROR(
        runtime::ToStatus(ncclAllReduce(in_p.data(), in_p.data(), mine.size(), ncclFloat, ncclSum,
                                        scope.comm(), stream.get()),
                          "add over the ranks"));
    return cuguest::Download(in_p.view(), stream);
  }

 private:
  cuguest::SharedContext own_;                     // B
  std::optional<runtime::NcclCommunicator> comm_;  // works in P
};

}  // namespace guest

// The application: the program that MPI starts in each rank.
namespace host {

using support::rank;
using support::ranks;

ncclUniqueId MakeId() {
  ncclUniqueId id = {};
  if (rank == 0) SUCCEEDS(ncclGetUniqueId(&id));
  SUCCEEDS(MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD));
  return id;
}

void CallGuest(const support::Stage& stage, cuguest::Device device, const ncclUniqueId& id) {
  support::PrintScene("The library makes a communicator, and adds over the ranks");
  const support::Undisturbed undisturbed;
  guest::Adder adder;
  CHECK_OK(adder.Join(device, ranks, rank, id));
  // Rank r has 0, r + 1, 2 (r + 1), ...
  CHECK(support::Has(adder.Add(support::Ramp(rank + 1)), support::Ramp(ranks * (ranks + 1) / 2)));
  CHECK(stage.Shows("after", "[A]<", "P is active"));
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device) {
  CUGUEST_ASSIGN_OR_RETURN(const auto device, DeviceAt(cuguest::Device::Ordinal{rank}));
  SUCCEEDS(cudaSetDevice(rank));
  const support::Stage stage(driver, device, {"A", "P"});
  stage.Set({"P"});
  const ncclUniqueId id = MakeId();
  const ncclUniqueId guests_id = MakeId();
  stage.Set({"A"});
  support::PrintScene("The application makes a communicator");
  CHECK(stage.Shows("before ncclCommInitRank", "[A]<", "P is active"));
  ncclComm_t comm = nullptr;
  SUCCEEDS(ncclCommInitRank(&comm, ranks, id, rank));
  CHECK(stage.Shows("after it", "[P]<", "P is active"));

  stage.Set({"A"});
  CallGuest(stage, device, guests_id);

  stage.Set({"P"});
  CUGUEST_ASSIGN_OR_RETURN(auto sum, cuguest::DeviceBuffer<float>::CopyOf(
                                         cuguest::ContextRef::Current(), support::Ramp(rank + 1)));
  SUCCEEDS(ncclAllReduce(sum.data(), sum.data(), sum.size(), ncclFloat, ncclSum, comm, nullptr));
  SUCCEEDS(cudaDeviceSynchronize());
  CHECK(support::Has(cuguest::Download(sum.view()), support::Ramp(ranks * (ranks + 1) / 2)));
  CHECK_OK(sum.Release());
  SUCCEEDS(ncclCommDestroy(comm));
  CHECK(cuguest::IncidentCount() == 0);  // NCCL makes P current, which is the guard's context
  for (int i = 0; i < ranks; ++i) {
    CUGUEST_ASSIGN_OR_RETURN(const auto other, DeviceAt(cuguest::Device::Ordinal{i}));
    CHECK(i == rank || !support::IsActive(other));
  }
  SUCCEEDS(cudaDeviceReset());
  return absl::OkStatus();
}

}  // namespace host

int main(int argc, char** argv) {
  return support::RunRanks(argc, argv,
                           "How does a library with a context of its own communicate with NCCL?",
                           &host::Demonstrate);
}
