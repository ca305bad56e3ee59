// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where tests find what is not linked into them. Built files are looked for from the
// program's own place, so that a copied build tree works; see test/hardware/.

#ifndef CUDASIM_TEST_SUPPORT_FILES_H_
#define CUDASIM_TEST_SUPPORT_FILES_H_

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

namespace cudasim_test {

// `path` is relative to the top of the build tree. Empty if it is nowhere above the
// running program.
inline std::string FindBeside(const std::string& path) {
  char self[PATH_MAX] = {};
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0) return "";
  std::string folder = self;
  while (folder.rfind('/') != std::string::npos) {
    folder.resize(folder.rfind('/'));
    const std::string candidate = folder + "/" + path;
    if (access(candidate.c_str(), R_OK) == 0) return candidate;
  }
  return "";
}

// `path` is relative to a directory of the toolkit's libraries. Empty if there is none.
inline std::string FindInToolkit(const std::string& path) {
  const char* home = getenv("CUDA_HOME");
  for (const std::string& root : {std::string(home == nullptr ? "" : home),
                                  std::string("/usr/local/cuda"), std::string("/usr")}) {
#ifdef __aarch64__  // lib64 may be another processor's, on whose machine an emulator runs the test
    for (const char* folder : {"/targets/sbsa-linux/lib/", "/lib/aarch64-linux-gnu/"}) {
#else
    for (const char* folder : {"/lib64/", "/lib/x86_64-linux-gnu/"}) {
#endif
      const std::string candidate = root + folder + path;
      if (access(candidate.c_str(), R_OK) == 0) return candidate;
    }
  }
  return "";
}

inline std::string FindToolkitStub() { return FindInToolkit("stubs/libcuda.so"); }

}  // namespace cudasim_test

#endif  // CUDASIM_TEST_SUPPORT_FILES_H_
