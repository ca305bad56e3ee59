// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the loader looks for the driver.

#ifndef CUGUEST_TEST_SUPPORT_DRIVER_PATH_H_
#define CUGUEST_TEST_SUPPORT_DRIVER_PATH_H_

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace cuguest_test {

inline std::vector<std::string> LibraryFolders() {
  const char* path = std::getenv("LD_LIBRARY_PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  std::vector<std::string> found;
  for (std::string folder; std::getline(folders, folder, ':');) found.push_back(folder);
  return found;
}

inline std::string DriverIn(const std::string& folder) { return folder + "/libcuda.so.1"; }

inline bool HasDriver(const std::string& folder) {
  return access(DriverIn(folder).c_str(), R_OK) == 0;
}

// The driver's file, by the library path; empty if that has none.
inline std::string DriverOnLibraryPath() {
  for (const std::string& folder : LibraryFolders()) {
    if (HasDriver(folder)) return DriverIn(folder);
  }
  return "";
}

// As a variable of the environment: the library path less folders with a driver, and with `first`
// before it.
inline std::string LibraryPathWithoutDriver(const std::string& first) {
  std::string kept = first;
  for (const std::string& folder : LibraryFolders()) {
    if (!HasDriver(folder)) kept += ":" + folder;
  }
  return "LD_LIBRARY_PATH=" + kept;
}

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_DRIVER_PATH_H_
