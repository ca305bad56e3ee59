// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/support/check.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "cuguest/error.h"
#include "cuguest/status.h"

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
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, claim);
  return false;
}

bool CheckOk(const absl::Status& status, const char* call, const char* file, int line) {
  if (Check(status.ok(), call, file, line)) return true;
  std::fprintf(stderr, "  %s\n", status.ToString().c_str());
  return false;
}

bool IsRefused(const std::string& what, const absl::Status& status, absl::StatusCode code,
               const std::string& words) {
  const std::string message(status.message());
  const auto drivers = cuguest::CodeOf(status);
  PrintRow(what, status.ok() ? "NOT REFUSED" : "refused",
           drivers ? cuguest::ErrorName(*drivers) : "");
  PrintText(message);
  return status.code() == code && message.find(words) != std::string::npos;
}

void PrintScene(const char* title) {
  static int scene = 0;
  std::printf("\n%d. %s\n\n", ++scene, title);
}

void PrintRow(const std::string& when, const std::string& picture, const std::string& remark) {
  if (remark.empty()) {
    std::printf("   %-29s %s\n", when.c_str(), picture.c_str());
  } else {
    std::printf("   %-29s %-14s  %s\n", when.c_str(), picture.c_str(), remark.c_str());
  }
}

void PrintText(std::string_view text) {
  constexpr std::size_t kWidth = 75;
  while (!text.empty()) {
    std::size_t end = std::min(text.find('\n'), text.size());
    if (end > kWidth) end = text.rfind(' ', kWidth);
    if (end == std::string_view::npos) end = std::min(text.find_first_of(" \n"), text.size());
    if (end > 0) std::printf("     %.*s\n", static_cast<int>(end), text.data());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

int PrintVerdict() {
  const bool passed = checks_failed == 0;
  std::printf("\n%s (%d checks)\n", passed ? "Every check passed." : "A CHECK FAILED.",
              checks_made.load());
  return passed ? 0 : 1;
}

}  // namespace support
