// SPDX-License-Identifier: Apache-2.0
//
// Peer access between contexts: who was allowed to reach whom. Copies between
// devices work without it (measured on two H200, driver 580.159.04).

#ifndef CUDASIM_DRIVER_CONTEXT_PEER_H_
#define CUDASIM_DRIVER_CONTEXT_PEER_H_

#include <cstdint>

namespace cudasim::driver {

// Whether the one was allowed to reach the other, by the ids of their incarnations.
bool IsPeer(std::uint64_t from_id, std::uint64_t to_id);

void DropPeersOf(std::uint64_t context_id);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_PEER_H_
