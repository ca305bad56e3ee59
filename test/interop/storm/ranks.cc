// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/interop/storm/ranks.h"

#include <nccl.h>

#include <cstddef>
#include <thread>

#include "cuguest/device.h"
#include "cuguest/primary_context.h"
#include "cuguest/status.h"
#include "test/interop/storm/failure.h"
#include "test/interop/storm/worker.h"
#include "test/support/raw_driver.h"

namespace storm {

using cuguest::Device;
using cuguest::PrimaryContext;
using cuguest::runtime::NcclLibrary;

namespace {

// `step` on a thread that had nothing current, and has nothing afterwards.
absl::Status OnNewThread(const std::function<absl::Status()>& step) {
  absl::Status status = step();
  CUcontext left = nullptr;
  RAW(cuCtxGetCurrent)(&left);
  if (left != nullptr) status.Update(absl::InternalError("a rank's thread was left a context"));
  if (!TakeIncidents().empty()) status.Update(absl::InternalError("a rank had an incident"));
  return status;
}

}  // namespace

Ranks::Ranks(int devices) : ranks_(static_cast<std::size_t>(devices)) {
  ncclUniqueId id = {};
  Require(cuguest::runtime::ToStatus(ncclGetUniqueId(&id), "ncclGetUniqueId"));
  RunEach(0, [&](int rank) -> absl::Status {
    CUGUEST_ASSIGN_OR_RETURN(
        ranks_[static_cast<std::size_t>(rank)],
        Communicator::Make(NcclLibrary::Linked(), PrimaryContext::Retain(Device::Borrow(rank)),
                           devices, rank, id));
    return absl::OkStatus();
  });
}

void Ranks::Run(int mine, const Work& work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  RunEach(mine, [&](int rank) { return work(*ranks_[static_cast<std::size_t>(rank)], rank); });
}

void Ranks::Release() {
  RunEach(0, [&](int rank) { return ranks_[static_cast<std::size_t>(rank)]->Release(); });
}

void Ranks::RunEach(int mine, const Step& step) {
  std::vector<absl::Status> results(ranks_.size());
  std::vector<std::thread> others;
  for (int rank = 0; rank < size(); ++rank) {
    absl::Status* const result = &results[static_cast<std::size_t>(rank)];
    if (rank == mine) continue;
    others.emplace_back([=, &step] { *result = OnNewThread([&] { return step(rank); }); });
  }
  results[static_cast<std::size_t>(mine)] = step(mine);
  for (std::thread& other : others) other.join();
  for (const absl::Status& result : results) Require(result);
}

}  // namespace storm
