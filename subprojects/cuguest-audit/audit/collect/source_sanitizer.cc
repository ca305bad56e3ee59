// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The callbacks of NVIDIA's Compute Sanitizer API, for programs whose CUPTI another tool has. It
// comes with the toolkit's compute-sanitizer.

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdio>
#include <initializer_list>

#include "audit/channel.h"
#include "audit/collect/source.h"
#include "audit/collect/source_callbacks.h"

namespace cuguest::audit {
namespace {

constexpr const char* kSanitizerLibraries[] = {
    "libsanitizer-public.so", "/usr/local/cuda/compute-sanitizer/libsanitizer-public.so"};

CallbackInterface sanitizer_interface = {3, 4, true, false, nullptr, nullptr};

void* OpenSanitizer() {
  if (const char* path = secure_getenv(kSanitizerVariable)) return dlopen(path, RTLD_NOW);
  for (const char* name : kSanitizerLibraries) {
    if (void* library = dlopen(name, RTLD_NOW)) return library;
  }
  return nullptr;
}

bool StartSanitizer(char* why, std::size_t size) {
  if (secure_getenv(kSanitizerVariable) == nullptr && IsSimulated()) {
    std::snprintf(why, size, "sanitizer: the driver is the simulated one.");
    return false;
  }
  void* library = OpenSanitizer();
  const auto find = [=](const char* name) {
    return library != nullptr ? dlsym(library, name) : nullptr;
  };
  const auto subscribe =
      reinterpret_cast<int (*)(void**, CallbackFunction, void*)>(find("sanitizerSubscribe"));
  const auto enable_domain =
      reinterpret_cast<int (*)(std::uint32_t, void*, int)>(find("sanitizerEnableDomain"));
  if (subscribe == nullptr || enable_domain == nullptr) {
    std::snprintf(why, size, "sanitizer: libsanitizer-public.so cannot be loaded (%s names one).",
                  kSanitizerVariable);
    return false;
  }
  void* subscriber = nullptr;
  int code = subscribe(&subscriber, OnCallback, &sanitizer_interface);
  for (const int domain : {kDriverDomain, kRuntimeDomain, kResourceDomain}) {
    if (code == 0) code = enable_domain(1, subscriber, domain);
  }
  if (code != 0) std::snprintf(why, size, "sanitizer: refused with SanitizerResult %d.", code);
  return code == 0;
}

constexpr const char* kSanitizerBlindSpots[] = {
    "sanitizer: what the runtime does through the driver's private tables is seen as the runtime's "
    "call.",
    nullptr};

}  // namespace

const Source kSanitizerSource = {"sanitizer", StartSanitizer, kSanitizerBlindSpots};

}  // namespace cuguest::audit
