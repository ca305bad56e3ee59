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

void Collect() {
  const char* directory = std::getenv(kDirectoryVariable);
  if (directory == nullptr || *directory == '\0' || !Collector::Start(directory)) return;
  const char* wanted = std::getenv(kSourceVariable);
  const bool wants_one = wanted != nullptr && *wanted != '\0';
  bool is_known = !wants_one;
  for (const Source* source : kSources) {
    if (wants_one && std::strcmp(wanted, source->name) != 0) continue;
    is_known = true;
    if (Try(*source)) return;
  }
  if (is_known) return;
  char note[256];
  std::snprintf(note, sizeof(note), "%s=%.100s: no such source.", kSourceVariable, wanted);
  Collector::Note(note);
}

}  // namespace
}  // namespace cuguest::audit

// The driver calls it inside cuInit. It always succeeds: a program runs as well without the audit.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  cuguest::audit::Collect();
  return 1;
}
