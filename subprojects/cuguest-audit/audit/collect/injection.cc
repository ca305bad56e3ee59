// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library that CUDA_INJECTION64_PATH names: begins to collect when the driver is initialized.
// Or a program loads it, to collect for a while (audit/in_process/own_channel.h).

#include <stdlib.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "audit/channel.h"
#include "audit/collect/collector.h"
#include "audit/collect/source.h"

namespace cuguest::audit {
namespace {

constexpr const Source* kSources[] = {&kCudasimSource, &kCuptiSource, &kSanitizerSource};

bool Try(const Source& source) {
  char why[512] = {};
  if (!source.start(why, sizeof(why))) {
    if (*why != '\0') Collector::Note(why);
    return false;
  }
  Collector::NameSource(source.name);
  for (const char* const* line = source.blind_spots; *line != nullptr; ++line) {
    Collector::Note(*line);
  }
  return true;
}

// Whether the next name of the list is the source's.
bool IsNamed(const Source& source, const char* list) {
  const std::size_t length = std::strcspn(list, ",");
  return std::strlen(source.name) == length && std::strncmp(source.name, list, length) == 0;
}

// The first of the list that can be had.
bool TryInOrder(const char* list) {
  for (; *list != '\0'; list += std::strcspn(list, ","), list += *list == ',' ? 1 : 0) {
    const Source* named = nullptr;
    for (const Source* source : kSources) {
      if (IsNamed(*source, list)) named = source;
    }
    if (named != nullptr && Try(*named)) return true;
    if (named != nullptr) continue;
    char note[256];
    std::snprintf(note, sizeof(note), "%s=%.100s: no such source.", kSourceVariable, list);
    Collector::Note(note);
  }
  return false;
}

bool StartSource() {
  const char* wanted = secure_getenv(kSourceVariable);
  if (wanted != nullptr && *wanted != '\0') return TryInOrder(wanted);
  for (const Source* source : kSources) {
    if (Try(*source)) return true;
  }
  return false;
}

bool is_injected = false;

void CollectAlways(std::uintptr_t frame) {
  const char* address = secure_getenv(kChannelVariable);
  if (address == nullptr || *address == '\0' || !Collector::Start(address)) return;
  is_injected = true;
  if (const char* watched = secure_getenv(kWatchVariable)) WatchCalls(watched);
  if (secure_getenv(kNoiseVariable) != nullptr) Collector::TellNoise();
  StartSource();
  Collector::OnInitialized(frame);
}

}  // namespace
}  // namespace cuguest::audit

// The driver calls it inside cuInit. It always succeeds: a program runs as well without the audit.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  cuguest::audit::CollectAlways(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  return 1;
}

// See kCollectFunction.
extern "C" __attribute__((visibility("default"))) int CuguestAuditCollectInto(int memory) {
  using namespace cuguest::audit;
  static bool is_open = false;
  static bool has_source = false;
  if (is_injected) return static_cast<int>(Collecting::kForAnother);
  if (memory == kPauseCollecting) {
    Collector::Pause();
    return static_cast<int>(Collecting::kStarted);
  }
  is_open = is_open || (memory >= 0 && Collector::StartWith(memory));
  if (!is_open) return static_cast<int>(Collecting::kNoChannel);
  Collector::Resume();
  has_source = has_source || StartSource();
  return static_cast<int>(Collecting::kStarted);
}
