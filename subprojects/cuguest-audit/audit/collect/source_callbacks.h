// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What CUPTI's callback interface and that of the Sanitizer API have in common, as an ABI: nothing
// of them is linked, and neither needs its headers. The collector's test stands on CUPTI's.

#ifndef CUGUEST_AUDIT_COLLECT_SOURCE_CALLBACKS_H_
#define CUGUEST_AUDIT_COLLECT_SOURCE_CALLBACKS_H_

#include <cstddef>
#include <cstdint>

namespace cuguest::audit {

enum CallbackDomain : int { kDriverDomain = 1, kRuntimeDomain = 2, kResourceDomain = 3 };

// CUpti_CallbackData, and but for the last member Sanitizer_CallbackData: the beginning of them.
struct CallbackData {
  int site;  // 0: entry, 1: return
  const char* function;
  const void* parameters;  // the structure of generated_cuda_meta.h
  const void* result;      // at a return
  const char* symbol;
  const void* context;
  std::uint32_t context_id;  // CUPTI only: cuCtxGetId's; 0 for a primary context that is not active
};

// CUpti_ResourceData, Sanitizer_ResourceContextData.
struct ResourceData {
  const void* context;
  const void* green_context;  // Sanitizer API only
  int device;                 // the same
};

// CUpti_SubscriberParams: of CUPTI 13.0 without the last field.
struct CuptiSubscriberParameters {
  std::size_t size;
  const char* name;
  char* old_name;
  std::size_t old_name_size;
  std::uint8_t allows_others;  // CUPTI 13.3
  std::uint8_t padding[7];
};
inline constexpr std::size_t kFirstParametersSize = 32;
inline constexpr int kCuptiTaken = 39;  // CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
inline constexpr std::uint32_t kCuptiWithOthers = 130300;

using CallbackFunction = void (*)(void* user, int domain, std::uint32_t id, const void* data);

// What is different between them.
struct CallbackInterface {
  std::uint32_t context_created;  // ids of the resource domain
  std::uint32_t context_destroyed;
  bool tells_device;
  bool tells_context_id;
  // cuptiGetDeviceId; null where the data tell.
  int (*get_device)(const void* context, std::uint32_t* device);
  // cuptiGetContextId; null where contexts are counted.
  int (*get_context_id)(const void* context, std::uint32_t* id);
};

// The callback that both subscribe; `user` is their CallbackInterface.
void OnCallback(void* user, int domain, std::uint32_t id, const void* data);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COLLECT_SOURCE_CALLBACKS_H_
