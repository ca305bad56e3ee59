// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// host LIBRARY:ROW:needed|local|global...
//
// A program of matrix_test.py: loads the libraries that it is not linked with, in the given order,
// lets all work in each other's midst, and closes what it loaded.

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Library {
  std::string file, row, how;
  void* handle = nullptr;

  template <typename Function>
  Function Find(const std::string& name) const {
    void* symbol = dlsym(handle, (name + row).c_str());
    if (symbol == nullptr) std::abort();
    return reinterpret_cast<Function>(symbol);
  }
};

int g_failed = 0;

void Check(bool holds, const Library& library, const std::string& what) {
  if (holds) return;
  std::printf("not ok: row %s: %s\n", library.row.c_str(), what.c_str());
  ++g_failed;
}

CUcontext MakeContext() {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) std::abort();
  const auto call = [](const char* name) { return dlsym(driver, name); };
  reinterpret_cast<CUresult (*)(unsigned)>(call("cuInit"))(0);
  CUcontext context = nullptr;
  reinterpret_cast<CUresult (*)(CUcontext*, unsigned, int)>(call("cuCtxCreate_v2"))(&context, 0, 0);
  return context;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Library> libraries;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t first = word.find(':'), last = word.rfind(':');
    Library library{word.substr(0, first), word.substr(first + 1, last - first - 1),
                    word.substr(last + 1)};
    const int mode = library.how == "needed"   ? RTLD_NOLOAD
                     : library.how == "global" ? RTLD_GLOBAL
                                               : RTLD_LOCAL;
    library.handle = dlopen(library.file.c_str(), RTLD_NOW | mode);
    Check(library.handle != nullptr, library, "is not loaded");
    if (library.handle == nullptr) return 1;
    libraries.push_back(library);
  }
  const CUcontext leaked = MakeContext(), work = MakeContext(), home = MakeContext();
  static_cast<void>(home);  // stays current
  for (int round = 0; round < 3; ++round) {
    for (const Library& library : libraries) {
      const char* wrong = library.Find<const char* (*)(CUcontext, CUcontext)>("Run")(work, leaked);
      Check(wrong == nullptr, library, wrong == nullptr ? "" : wrong);
    }
  }
  for (const Library& library : libraries) {
    const auto caused = library.Find<unsigned long long (*)()>("Caused")();
    const auto counted = library.Find<unsigned long long (*)()>("Counted")();
    Check(caused == counted && caused != 0, library,
          "counted " + std::to_string(counted) + " of " + std::to_string(caused) + " incidents");
  }
  std::reverse(libraries.begin(), libraries.end());
  for (const Library& library : libraries) dlclose(library.handle);
  for (const Library& library : libraries) {
    const bool stays = dlopen(library.file.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr;
    if (stays && library.how != "needed") std::printf("stays: %s\n", library.row.c_str());
  }
  return g_failed == 0 ? 0 : 1;
}
