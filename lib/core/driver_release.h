// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// API versions (13000) and driver releases ("580.65.06"): which needs which, and how they
// are written.

#ifndef CUGUEST_LIB_CORE_DRIVER_RELEASE_H_
#define CUGUEST_LIB_CORE_DRIVER_RELEASE_H_

#include <charconv>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// The first driver of each API version that something may need, from the table "CUDA
// Toolkit and Corresponding Driver Versions" of the CUDA Toolkit release notes (Linux).
struct DriverFloor {
  int version;
  const char* driver;
};
inline constexpr DriverFloor kDriverFloors[] = {
    {13010, "590.44.01"}, {13000, "580.65.06"}, {12090, "575.51.03"}, {12080, "570.26"},
    {12050, "555.42"},    {12040, "550.54"},    {12030, "545.23.06"}, {12000, "525.60.13"},
    {11070, "515.43.04"}, {11060, "510.39.01"}, {11040, "470.42.01"}, {11020, "460.27.03"},
    {11000, "450.80.02"}, {10020, "440.33"},    {10010, "418.39"},    {10000, "410.48"},
    {9020, "396.26"},     {9000, "384.81"},     {8000, "367.48"},     {0, "346.46"},
};

inline const DriverFloor& FloorOf(int version) {
  const DriverFloor* floor = kDriverFloors;
  while (floor->version > version) ++floor;
  return *floor;
}

inline std::string VersionText(int version) {
  return absl::StrCat("CUDA ", version / 1000, ".", version % 1000 / 10);
}

// What a driver of version `present` would have to be for a function of `version` that it does not
// give. One that is new enough has the function: something in front of it hides it.
inline std::string NeededFor(int version, int present) {
  if (present < version)
    return absl::StrCat("driver ", FloorOf(version).driver, " or newer is needed");
  return absl::StrCat("a driver of ", VersionText(present),
                      " has it, and what answers for this one does not give it: a preloaded "
                      "library, one that the library path has first, or an adopted lookup");
}

// The numbers of a release: two or more, with dots between them. None if `word` is something else.
inline std::vector<unsigned> ReleaseNumbers(std::string_view word) {
  std::vector<unsigned> numbers;
  const char* const end = word.data() + word.size();
  for (const char* at = word.data();; ++at) {
    const auto parsed = std::from_chars(at, end, numbers.emplace_back());
    if (parsed.ec != std::errc()) return {};
    at = parsed.ptr;
    if (at == end && numbers.size() > 1) return numbers;
    if (at == end || *at != '.') return {};
  }
}

// The first word that is a release; empty if there is none.
inline std::string FindRelease(std::istream& words) {
  for (std::string word; words >> word;) {
    if (!ReleaseNumbers(word).empty()) return word;
  }
  return "";
}

// "580.65.06" of ".../libcuda.so.580.65.06"; empty if the name ends otherwise.
inline std::string ReleaseOfFile(std::string_view path) {
  constexpr std::string_view kStem = "libcuda.so.";
  const std::size_t at = path.rfind(kStem);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = path.substr(at + kStem.size());
  return std::string(ReleaseNumbers(rest).empty() ? "" : rest);
}

// Whether release `a` is newer than release `b`, number by number. Both are releases.
inline bool IsNewer(std::string_view a, std::string_view b) {
  return ReleaseNumbers(a) > ReleaseNumbers(b);
}

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CORE_DRIVER_RELEASE_H_
