// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/graph/replacement.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "driver/memory/memory.h"
#include "driver/stream/event.h"

namespace cudasim::driver {
namespace {

CUgraphNodeParams Describe(const Work& work) {
  CUgraphNodeParams params = {};
  work.describe(&params);
  return params;
}

bool IsCooperative(const Work& work) {
  bool is_cooperative = false;
  for (const CUlaunchAttribute& attribute : work.attributes) {
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      is_cooperative = attribute.value.cooperative != 0;
    }
  }
  return is_cooperative;
}

// Whether there is an allocation; then also its context, unless it has none, as a pool's.
bool FindContextAt(CUdeviceptr address, std::uint64_t* context) {
  Allocation allocation;
  if (!Memory::Find(address, &allocation)) return false;
  if (allocation.incarnation.id != 0) *context = allocation.incarnation.id;
  return true;
}

// What must stay as it is when a copy is changed.
struct CopyHome {
  CopyHome(const CUDA_MEMCPY3D& copy, const Work& work)
      : types(copy.srcMemoryType, copy.dstMemoryType), access(work.access) {
    const Incarnation& named = work.incarnation;
    const std::uint64_t owner = named.context != nullptr ? OwnerOf(named).id : 0;
    std::uint64_t from = owner;
    std::uint64_t to = owner;
    const bool has_source = FindContextAt(copy.srcDevice, &from);
    FindContextAt(copy.dstDevice, &to);
    context = has_source ? from : to;
  }
  // Whether memory of it is in no context.
  bool NeedsContext() const { return access.first != 0 || access.second != 0; }

  std::pair<CUmemorytype, CUmemorytype> types;
  std::pair<std::uint32_t, std::uint32_t> access;
  std::uint64_t context;  // of the source, or else of the destination, or else the one named
};

// Whether a copy may name `now` where it named `before`: another context matters to memory that is
// in none, and a copy stays in its green context.
bool MayName(const Incarnation& before, const Incarnation& now, bool needs_context) {
  if (before.id == now.id) return true;
  if (before.context != nullptr && before.context->is_green()) return false;
  return !needs_context || (now.context != nullptr && OwnerOf(now).id == before.id);
}

// What is named is looked at where something changes.
bool IsLikeCopy(const Work& old, const CUDA_MEMCPY3D& old_copy, const Work& work,
                const CUDA_MEMCPY3D& copy) {
  if (std::memcmp(&old_copy, &copy, sizeof(copy)) == 0) return true;
  const CopyHome before(old_copy, old);
  const CopyHome now(copy, work);
  return before.types == now.types && before.access == now.access &&
         before.context == now.context &&
         MayName(old.incarnation, work.incarnation, now.NeedsContext());
}

// Of one row, all may change; in no other context, where something changes.
bool IsLikeFill(const CUDA_MEMSET_NODE_PARAMS_v2& old, const CUDA_MEMSET_NODE_PARAMS_v2& fill,
                bool is_same_context) {
  const bool is_same = old.elementSize == fill.elementSize && old.pitch == fill.pitch &&
                       old.width == fill.width && old.height == fill.height;
  if (is_same && old.dst == fill.dst && old.value == fill.value) return true;
  return is_same_context && (is_same || (old.height == 1 && fill.height == 1));
}

}  // namespace

CUgraphExecUpdateResult CheckReplacement(const Work& old, const Work& work) {
  const bool is_same_context = old.incarnation.id == work.incarnation.id;
  if (work.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    if (!is_same_context) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    return IsCooperative(old) == IsCooperative(work)
               ? CU_GRAPH_EXEC_UPDATE_SUCCESS
               : CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  }
  const CUgraphNodeParams before = Describe(old);
  const CUgraphNodeParams params = Describe(work);
  bool is_like = true;
  switch (work.type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      is_like = IsLikeCopy(old, before.memcpy.copyParams, work, params.memcpy.copyParams);
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      is_like = IsLikeFill(before.memset, params.memset, is_same_context);
      break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      is_like = AreOfOneContext(before.eventRecord.event, params.eventRecord.event);
      break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      is_like = AreOfOneContext(before.eventWait.event, params.eventWait.event);
      break;
    default:
      break;
  }
  return is_like ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

bool CanWorkOn(CUdevice device, const Work& work) {
  if (work.type != CU_GRAPH_NODE_TYPE_MEMCPY || work.incarnation.context != nullptr) return true;
  const CUDA_MEMCPY3D copy = Describe(work).memcpy.copyParams;
  std::uint64_t context = 0;
  FindContextAt(copy.srcDevice, &context);
  FindContextAt(copy.dstDevice, &context);
  if (context != 0) return true;
  const auto has_access = [=](std::uint32_t side) {
    return side == 0 || (side >> device & 1) != 0;
  };
  return has_access(work.access.first) && has_access(work.access.second);
}

CUgraphExecUpdateResult Replace(Work* old, const Work& work) {
  const CUgraphExecUpdateResult result = CheckReplacement(*old, work);
  if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return result;
  // A copy takes the context that is named, but not a green one for its own.
  const bool takes = work.type == CU_GRAPH_NODE_TYPE_MEMCPY &&
                     (work.incarnation.context == nullptr || !work.incarnation.context->is_green());
  const Incarnation named = takes ? work.incarnation : old->incarnation;
  *old = work;
  old->incarnation = named;
  return result;
}

}  // namespace cudasim::driver
