// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device code in CUDA's own libraries, and in whatever else one asks for: every image is
// recognised, and none is found damaged.
//
//   CUDAIMAGE_TEST_DEVICE_CODE          files, and directories of libraries and archives, ':'
//   between
//                                       them (default: CUDAIMAGE_TEST_LIBRARIES, which the build
//                                       sets to where the toolkit's libraries are)
//   CUDAIMAGE_TEST_DEVICE_CODE_SECONDS  of CPU, after which the rest is left out (default: 40; the
//                                       toolkit of CUDA 13.0 takes 15 on one core); 0: no limit

#include "test/device_code.h"

#include <dirent.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <set>
#include <string>
#include <vector>

namespace {

using cudaimage_test::DeviceCodeCounts;
using cudaimage_test::DeviceCodeWalk;

std::string Setting(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

bool IsLibrary(const std::string& name) {
  const auto ends_in = [&name](const std::string& end) {
    return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
  };
  return name.find(".so") != std::string::npos || ends_in(".a");
}

// The path without links, so that a library of several names is looked at once.
std::string RealPath(const std::string& path) {
  char* const real = realpath(path.c_str(), nullptr);
  const std::string found = real != nullptr ? real : "";
  std::free(real);
  return found;
}

// Libraries in a directory, or the file of that name.
void Find(const std::string& path, std::set<std::string>* files) {
  DIR* const directory = opendir(path.c_str());
  if (directory == nullptr) {
    files->insert(RealPath(path));
    return;
  }
  while (const dirent* const entry = readdir(directory)) {
    if (IsLibrary(entry->d_name)) files->insert(RealPath(path + "/" + entry->d_name));
  }
  closedir(directory);
}

std::set<std::string> Files() {
  std::set<std::string> files;
  const std::string paths =
      Setting("CUDAIMAGE_TEST_DEVICE_CODE", Setting("CUDAIMAGE_TEST_LIBRARIES", "").c_str());
  for (std::size_t begin = 0; begin < paths.size();) {
    const std::size_t end = std::min(paths.find(':', begin), paths.size());
    if (end > begin) Find(paths.substr(begin, end - begin), &files);
    begin = end + 1;
  }
  files.erase("");
  return files;
}

std::string Summary(const DeviceCodeCounts& counts, int left_out) {
  std::string text = std::to_string(counts.files) + " files, " + std::to_string(counts.images) +
                     " images of " + std::to_string(counts.bytes / 1000000) + " MB, " +
                     std::to_string(counts.kernels) + " kernels (" +
                     std::to_string(counts.counted) + " with the parameters of their names, " +
                     std::to_string(counts.uncounted) + " without a number of them), " +
                     std::to_string(counts.refused.size()) + " refused, " +
                     std::to_string(left_out) + " left out for time; in them";
  for (const auto& entry : counts.entries) {
    text += "\n  " + std::to_string(entry.second) + " x " + entry.first;
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(device_code)

BOOST_AUTO_TEST_CASE(every_real_image_is_accepted_and_sound) {
  const double seconds = std::atof(Setting("CUDAIMAGE_TEST_DEVICE_CODE_SECONDS", "40").c_str());
  const std::clock_t start = std::clock();
  int left_out = 0;
  DeviceCodeWalk walk([&](std::size_t /*bytes*/) {
    const double spent = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (seconds == 0 || spent < seconds) return true;
    ++left_out;
    return false;
  });
  for (const std::string& file : Files()) walk.File(file);
  const DeviceCodeCounts& counts = walk.counts();
  BOOST_TEST_MESSAGE(Summary(counts, left_out));
  for (const std::string& refusal : counts.refused) BOOST_ERROR(refusal);
  BOOST_TEST(counts.images > 0);
  BOOST_TEST(counts.kernels > 0);
  BOOST_TEST(counts.uncounted == 0);
}

BOOST_AUTO_TEST_SUITE_END()

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  if (Files().empty()) {
    std::puts(
        "skipped: device_code/every_real_image_is_accepted_and_sound: no file to look at: set "
        "CUDAIMAGE_TEST_DEVICE_CODE\ncases: 0 passed, 0 failed, 1 skipped");
    return kSkipped;
  }
  const int code = boost::unit_test::unit_test_main([] { return true; }, argc, argv);
  std::printf("cases: %d passed, %d failed, 0 skipped\n", code == 0 ? 1 : 0, code == 0 ? 0 : 1);
  return code;
}
