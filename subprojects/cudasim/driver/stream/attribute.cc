// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of streams. They change nothing here, but are remembered. Source:
// test/stream_attribute_facts_test.cc.

#include <cstring>
#include <map>
#include <mutex>

#include "driver/api.h"
#include "driver/panic.h"
#include "driver/stream/stream.h"

namespace cudasim::driver {
namespace {

// What can be set of a stream.
struct Attributes {
  CUaccessPolicyWindow window = {};
  int policy = -1;  // until it is set
  CUlaunchMemSyncDomainMap domain_map = {0, 1};
  CUlaunchMemSyncDomain domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
};

std::mutex attribute_mutex;

// By the id of the stream, which no later one gets. Those of a destroyed stream stay: they are
// small, and seldom set.
std::map<std::uint64_t, Attributes>& AllAttributes() {
  static auto& all = *new std::map<std::uint64_t, Attributes>;
  return all;
}

bool IsWindow(const CUaccessPolicyWindow& window) {
  return window.hitRatio >= 0 && window.hitRatio <= 1 &&
         window.hitProp >= CU_ACCESS_PROPERTY_NORMAL &&
         window.hitProp <= CU_ACCESS_PROPERTY_PERSISTING &&
         (window.missProp == CU_ACCESS_PROPERTY_NORMAL ||
          window.missProp == CU_ACCESS_PROPERTY_STREAMING);
}

CUresult Set(CUstreamAttrID id, const CUstreamAttrValue& value, Attributes* attributes) {
  switch (id) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      if (!IsWindow(value.accessPolicyWindow)) return CUDA_ERROR_INVALID_VALUE;
      attributes->window = value.accessPolicyWindow;
      return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      if (value.syncPolicy < CU_SYNC_POLICY_AUTO ||
          value.syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      attributes->policy = value.syncPolicy;
      return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      attributes->domain_map = value.memSyncDomainMap;
      return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
      attributes->domain = value.memSyncDomain;
      return CUDA_SUCCESS;
    // Not modelled: another priority for a stream that is there.
    case CU_STREAM_ATTRIBUTE_PRIORITY:
      return NotModelled();
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Get(CUstreamAttrID id, const Stream& stream, const Attributes& attributes,
             CUstreamAttrValue* value) {
  switch (id) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value->accessPolicyWindow = attributes.window;
      return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      std::memcpy(&value->syncPolicy, &attributes.policy, sizeof(value->syncPolicy));
      return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      value->memSyncDomainMap = attributes.domain_map;
      return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
      value->memSyncDomain = attributes.domain;
      return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_PRIORITY:
      value->priority = stream.priority;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult StreamGetAttribute(CUstream handle, CUstreamAttrID id, CUstreamAttrValue* value) {
  if (value == nullptr) PanicNull();
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard<std::mutex> lock(attribute_mutex);
  const auto found = AllAttributes().find(stream.id);
  return Get(id, stream, found != AllAttributes().end() ? found->second : Attributes(), value);
}

CUresult StreamSetAttribute(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue* value) {
  if (value == nullptr) PanicNull();
  Stream stream;
  const CUresult code = FindStream(handle, &stream);
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard<std::mutex> lock(attribute_mutex);
  return Set(id, *value, &AllAttributes()[stream.id]);
}

// Of one context, or INVALID_VALUE.
CUresult StreamCopyAttributes(CUstream to_handle, CUstream from_handle) {
  Stream to;
  Stream from;
  CUresult code = FindStream(to_handle, &to);
  if (code == CUDA_SUCCESS) code = FindStream(from_handle, &from);
  if (code != CUDA_SUCCESS) return code;
  if (to.incarnation.id != from.incarnation.id) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(attribute_mutex);
  AllAttributes()[to.id] = AllAttributes()[from.id];
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
