// SPDX-License-Identifier: Apache-2.0
//
// The library that CUDA_INJECTION64_PATH names: begins to collect when the driver is initialized.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lib/audit/channel.h"
#include "lib/audit/collect/collector.h"
#include "lib/audit/collect/source.h"

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
void TryInOrder(const char* list) {
  for (; *list != '\0'; list += std::strcspn(list, ","), list += *list == ',' ? 1 : 0) {
    const Source* named = nullptr;
    for (const Source* source : kSources) {
      if (IsNamed(*source, list)) named = source;
    }
    if (named != nullptr && Try(*named)) return;
    if (named != nullptr) continue;
    char note[256];
    std::snprintf(note, sizeof(note), "%s=%.100s: no such source.", kSourceVariable, list);
    Collector::Note(note);
  }
}

void Collect() {
  const char* directory = std::getenv(kDirectoryVariable);
  if (directory == nullptr || *directory == '\0' || !Collector::Start(directory)) return;
  const char* wanted = std::getenv(kSourceVariable);
  if (wanted != nullptr && *wanted != '\0') return TryInOrder(wanted);
  for (const Source* source : kSources) {
    if (Try(*source)) return;
  }
}

}  // namespace
}  // namespace cuguest::audit

// The driver calls it inside cuInit. It always succeeds: a program runs as well without the audit.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  cuguest::audit::Collect();
  return 1;
}
