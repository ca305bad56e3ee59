// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A communicator of NCCL with a rank on each device, in one process: each rank calls on a thread of
// its own.

#ifndef CUGUEST_TEST_INTEROP_STORM_RANKS_H_
#define CUGUEST_TEST_INTEROP_STORM_RANKS_H_

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "cuguest/libraries/nccl.h"

namespace storm {

// The operation that needs them.
inline constexpr const char* kCollective = "collective";

class Ranks {
 public:
  using Communicator = cuguest::runtime::NcclCommunicator;
  using Work = std::function<absl::Status(const Communicator& comm, int rank)>;

  // Each keeps the primary context of its device.
  explicit Ranks(int devices);

  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }

  // `work` of every rank, that of rank `mine` on the calling thread. One at a time, since all ranks
  // must have the collectives in one order. Throws what is wrong in any of them.
  void Run(int mine, const Work& work);

  // Destroys the communicator: before a reset.
  void Release();

 private:
  using Step = std::function<absl::Status(int rank)>;
  void RunEach(int mine, const Step& step);

  std::mutex mutex_;
  std::vector<std::optional<Communicator>> ranks_;
};

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_RANKS_H_
