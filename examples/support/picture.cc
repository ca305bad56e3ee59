// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/support/picture.h"

#include <algorithm>
#include <cstdio>

namespace support {

using cuguest::testing::StackProbe;

void Cast::Name(const std::string& name, CUcontext context) {
  const auto stale = [&](const auto& entry) {
    return entry.first == name || entry.second == context;
  };
  names_.erase(std::remove_if(names_.begin(), names_.end(), stale), names_.end());
  names_.emplace_back(name, context);
}

std::string Cast::Draw() const { return Draw(StackProbe::Take()); }

std::string Cast::Draw(const StackProbe& probe) const {
  return probe.Draw([this](CUcontext context) { return NameOf(context); });
}

std::string Cast::NameOf(CUcontext context) const {
  for (const auto& [name, handle] : names_) {
    if (handle == context) return name;
  }
  return "?";
}

void PrintRow(const std::string& when, const std::string& picture, const std::string& remark) {
  if (remark.empty()) {
    std::printf("   %-29s %s\n", when.c_str(), picture.c_str());
  } else {
    std::printf("   %-29s %-14s  %s\n", when.c_str(), picture.c_str(), remark.c_str());
  }
}

void PrintParagraph(std::string_view text) {
  constexpr std::size_t kWidth = 75;
  while (!text.empty()) {
    std::size_t end = text.size() <= kWidth ? text.size() : text.rfind(' ', kWidth);
    if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
    std::printf("     %.*s\n", static_cast<int>(end), text.data());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void PrintLines(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    PrintParagraph(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void PrintScene(const char* title) {
  static int scene = 0;
  std::printf("\n%d. %s\n\n", ++scene, title);
}

}  // namespace support
