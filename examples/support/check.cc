// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/support/check.h"

#include <atomic>
#include <cstdio>
#include <cstring>

namespace support {
namespace {

std::atomic<int> checks_made{0};
std::atomic<int> checks_failed{0};

}  // namespace

bool Check(bool holds, const char* claim, const char* file, int line) {
  ++checks_made;
  if (holds) return true;
  ++checks_failed;
  std::fflush(stdout);
  std::fprintf(stderr, "%s:%d: check failed: %s\n", BaseName(file), line, claim);
  return false;
}

bool CheckOk(const absl::Status& status, const char* call, const char* file, int line) {
  if (Check(status.ok(), call, file, line)) return true;
  std::fprintf(stderr, "  %s\n", status.ToString().c_str());
  return false;
}

const char* BaseName(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

void ReportDisturbance(const std::string& difference) {
  Check(false, "the host was left undisturbed", __FILE__, __LINE__);
  std::fprintf(stderr, "%s\n", difference.c_str());
}

int ChecksMade() { return checks_made; }
int ExitCode() { return checks_failed == 0 ? 0 : 1; }

}  // namespace support
