// SPDX-License-Identifier: Apache-2.0
//
// Peer access between contexts: who was allowed to reach whom. Copies between
// devices work without it (measured on two H200, driver 580.159.04).

#ifndef CUGUEST_LIB_SIM_PEER_H_
#define CUGUEST_LIB_SIM_PEER_H_

#include <cstdint>

namespace cuguest_sim {

void DropPeersOf(std::uint64_t context_id);

}  // namespace cuguest_sim

#endif  // CUGUEST_LIB_SIM_PEER_H_
