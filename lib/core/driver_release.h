// SPDX-License-Identifier: Apache-2.0
//
// API versions (13000) and driver releases ("580.65.06"): which needs which, and how they
// are written.

#ifndef CUGUEST_LIB_CORE_DRIVER_RELEASE_H_
#define CUGUEST_LIB_CORE_DRIVER_RELEASE_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

// The first driver of each API version that something may need, from the table "CUDA
// Toolkit and Corresponding Driver Versions" of the CUDA Toolkit release notes (Linux).
struct DriverFloor {
  int version;
  const char* driver;
};
inline constexpr DriverFloor kDriverFloors[] = {
    {13000, "580.65.06"}, {12080, "570.26"},    {12050, "555.42"},    {12040, "550.54"},
    {12030, "545.23.06"}, {12000, "525.60.13"}, {11070, "515.43.04"}, {11060, "510.39.01"},
    {11020, "460.27.03"}, {11000, "450.80.02"}, {10020, "440.33"},    {10010, "418.39"},
    {10000, "410.48"},    {9020, "396.26"},     {9000, "384.81"},     {8000, "367.48"},
    {0, "346.46"},
};

inline const DriverFloor& FloorOf(int version) {
  const DriverFloor* floor = kDriverFloors;
  while (floor->version > version) ++floor;
  return *floor;
}

inline std::string VersionText(int version) {
  return absl::StrCat("CUDA ", version / 1000, ".", version % 1000 / 10);
}

// Whether `word` is two numbers or more with dots between them.
inline bool IsRelease(std::string_view word) {
  bool dots = false;
  bool digit = false;  // whether the last letter was one
  for (const char letter : word) {
    if (letter == '.' ? !digit : letter < '0' || letter > '9') return false;
    digit = letter != '.';
    dots = dots || !digit;
  }
  return dots && digit;
}

// The first word of `text` that is a release; empty if there is none.
inline std::string FindRelease(std::string_view text) {
  constexpr char kSpace[] = " \t\n";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (IsRelease(word)) return std::string(word);
    begin = end + 1;
  }
  return "";
}

// "580.65.06" of ".../libcuda.so.580.65.06"; empty if the name ends otherwise.
inline std::string ReleaseOfFile(std::string_view path) {
  constexpr std::string_view kStem = "libcuda.so.";
  const std::size_t at = path.rfind(kStem);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = path.substr(at + kStem.size());
  return IsRelease(rest) ? std::string(rest) : "";
}

// Whether release `a` is newer than release `b`, number by number. Both are releases.
inline bool IsNewer(std::string_view a, std::string_view b) {
  const auto take = [](std::string_view* release) {
    long number = 0;
    std::size_t used = 0;
    for (; used < release->size() && (*release)[used] != '.'; ++used) {
      number = number * 10 + ((*release)[used] - '0');
    }
    release->remove_prefix(std::min(used + 1, release->size()));
    return number;
  };
  while (!a.empty() || !b.empty()) {
    const long first = take(&a);
    const long second = take(&b);
    if (first != second) return first > second;
  }
  return false;
}

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CORE_DRIVER_RELEASE_H_
