// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/context/context.h"

#include <mutex>
#include <set>
#include <utility>

#include "driver/api.h"
#include "driver/context/stack.h"

namespace cudasim::driver {
namespace {

std::mutex peer_mutex;

// (from, to), by the ids of the incarnations. Never destroyed.
std::set<std::pair<std::uint64_t, std::uint64_t>>& Pairs() {
  static auto& pairs = *new std::set<std::pair<std::uint64_t, std::uint64_t>>;
  return pairs;
}

CUresult PairWith(CUcontext peer, Incarnation* from, Incarnation* to) {
  const CUresult code = CurrentReady(from);
  if (code != CUDA_SUCCESS) return code;
  if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *to = IncarnationOf(Context::FindOrPanic(peer));
  return to->IsAlive() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

CUresult CtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Incarnation from;
  Incarnation to;
  const CUresult code = PairWith(peer, &from, &to);
  if (code != CUDA_SUCCESS) return code;
  if (from.context->device() == to.context->device()) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const std::lock_guard<std::mutex> lock(peer_mutex);
  if (!from.IsAlive() || !to.IsAlive()) return CUDA_ERROR_INVALID_CONTEXT;
  const bool added = Pairs().emplace(from.id, to.id).second;
  return added ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult CtxDisablePeerAccess(CUcontext peer) {
  Incarnation from;
  Incarnation to;
  const CUresult code = PairWith(peer, &from, &to);
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard<std::mutex> lock(peer_mutex);
  const bool removed = Pairs().erase({from.id, to.id}) != 0;
  return removed ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

bool IsPeer(std::uint64_t from_id, std::uint64_t to_id) {
  const std::lock_guard<std::mutex> lock(peer_mutex);
  return Pairs().count({from_id, to_id}) != 0;
}

void DropPeersOf(std::uint64_t context_id) {
  const std::lock_guard<std::mutex> lock(peer_mutex);
  auto& pairs = Pairs();
  for (auto it = pairs.begin(); it != pairs.end();) {
    const bool dead = it->first == context_id || it->second == context_id;
    it = dead ? pairs.erase(it) : std::next(it);
  }
}

}  // namespace cudasim::driver
