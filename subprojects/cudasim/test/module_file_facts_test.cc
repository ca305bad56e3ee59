// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code that is loaded from files, and the other names of cuModuleLoadData.

#include <cudaProfiler.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "test/facts.h"

BOOST_AUTO_TEST_SUITE(module_file_facts)

using namespace cudasim_facts;

namespace {

// A file with these bytes, for as long as it lives.
class File {
 public:
  explicit File(const std::string& bytes) {
    const int file = mkstemp(path_);
    BOOST_TEST_REQUIRE(file >= 0);
    BOOST_TEST_REQUIRE(write(file, bytes.data(), bytes.size()) ==
                       static_cast<ssize_t>(bytes.size()));
    close(file);
  }
  ~File() { unlink(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/cudasim-module-XXXXXX";
};

struct Current {
  Current() { SetStack({context.get()}); }
  ~Current() { SetStack({}); }
  OwnContext context;
};

CUresult LoadLibrary(CUlibrary* library, const char* path) {
  return RAW(cuLibraryLoadFromFile)(library, path, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_module_is_loaded_from_a_file) {
  const Current current;
  const File file(kPtx);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  OK(RAW(cuModuleLoad)(&module, file.path()));
  OK(RAW(cuModuleGetFunction)(&function, module, "store"));
  OK(RAW(cuModuleUnload)(module));
  OK(RAW(cuModuleLoadFatBinary)(&module, kPtx));
  OK(RAW(cuModuleGetFunction)(&function, module, "nothing"));
  OK(RAW(cuModuleUnload)(module));
}

BOOST_AUTO_TEST_CASE(a_library_is_loaded_from_a_file) {
  const Current current;
  const File file(kPtx);
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  OK(LoadLibrary(&library, file.path()));
  OK(RAW(cuLibraryGetKernel)(&kernel, library, "store"));
  OK(RAW(cuLibraryUnload)(library));
}

BOOST_AUTO_TEST_CASE(a_file_must_be_there) {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  IS(RAW(cuModuleLoad)(&module, "/nowhere"), INVALID_CONTEXT);
  const Current current;
  IS(RAW(cuModuleLoad)(&module, "/nowhere"), FILE_NOT_FOUND);
  IS(RAW(cuModuleLoad)(&module, nullptr), INVALID_VALUE);
  IS(LoadLibrary(&library, "/nowhere"), FILE_NOT_FOUND);
  IS(LoadLibrary(&library, nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(a_file_must_be_an_image) {
  const Current current;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  const File empty("");
  IS(RAW(cuModuleLoad)(&module, empty.path()), INVALID_IMAGE);
  IS(LoadLibrary(&library, empty.path()), INVALID_IMAGE);
  const File text("text");
  IS(RAW(cuModuleLoad)(&module, text.path()), INVALID_IMAGE);
  OK(LoadLibrary(&library, text.path()));  // which says so when it is used
  CUkernel kernel = nullptr;
  IS(RAW(cuLibraryGetKernel)(&kernel, library, "store"), INVALID_IMAGE);
  OK(RAW(cuLibraryUnload)(library));
}

// What its header says goes on behind its end. An H100 (driver 580.159.04) says NO_BINARY_FOR_GPU,
// or crashes.
BOOST_AUTO_TEST_CASE(a_file_must_be_whole, *cudasim_test::OnlySim()) {
  const Current current;
  const std::string elf("\177ELF\2\1\1\063\7\0\0\0\0\0\0\0\2\0\276\0", 20);
  const std::string fatbin("\x50\xed\x55\xba\1\0\20\0\0\20\0\0\0\0\0\0", 16);
  for (const std::string& bytes : {elf, fatbin}) {
    const File file(bytes);
    CUmodule module = nullptr;
    BOOST_TEST(RAW(cuModuleLoad)(&module, file.path()) != CUDA_SUCCESS);
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    OK(LoadLibrary(&library, file.path()));
    BOOST_TEST(RAW(cuLibraryGetKernel)(&kernel, library, "store") != CUDA_SUCCESS);
    OK(RAW(cuLibraryUnload)(library));
  }
}

BOOST_AUTO_TEST_CASE(the_profiler_needs_a_context) {
  IS(RAW(cuProfilerStart)(), INVALID_CONTEXT);
  IS(RAW(cuProfilerStop)(), INVALID_CONTEXT);
  const Current current;
  OK(RAW(cuProfilerStart)());
  OK(RAW(cuProfilerStop)());
}

BOOST_AUTO_TEST_SUITE_END()
