// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For a Boost.Test program some of whose cases need a process of their own: one that
// has not called cuInit, or one that is to abort.
//
//   CHILD(pushes_a_destroyed_context) {
//     CHECK(RAW(cuInit)(0) == CUDA_SUCCESS);
//     ...
//     return 0;  // the exit code
//   }
//   BOOST_AUTO_TEST_CASE(...) {
//     const cudasim_test::Ended ended = cudasim_test::RunChild("pushes_a_destroyed_context");
//
// The child is this very program, run with --child=NAME. It never reaches main(), so
// nothing has called cuInit there.

#ifndef CUDASIM_TEST_SUPPORT_CHILD_H_
#define CUDASIM_TEST_SUPPORT_CHILD_H_

#include <cuda.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

namespace cudasim_test {

// How a child ended: an exit code, or minus the signal.
struct Ended {
  int code = 0;
  std::string output;  // stdout and stderr together
};

// Runs this program anew with `arguments`; "NAME=VALUE" entries of `environment` are
// set, and "NAME" ones unset.
Ended RunSelf(const std::vector<std::string>& arguments,
              const std::vector<std::string>& environment = {});

// "NAME=" and the bytes of a value as text, for the environment of a child; and there, the bytes.
std::string VariableOfBytes(const char* name, const void* bytes, std::size_t size);
void ReadVariableOfBytes(const char* name, void* bytes, std::size_t size);
template <typename T>
std::string VariableOf(const char* name, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return VariableOfBytes(name, &value, sizeof(value));
}
template <typename T>
T ReadVariable(const char* name) {
  T value = {};
  static_assert(std::is_trivially_copyable_v<T>);
  ReadVariableOfBytes(name, &value, sizeof(value));
  return value;
}

// For the child: a context of its own, floating. Initialises the driver.
CUcontext MakeContext();

// Prints the place and what was expected, and ends the child with 1.
void CheckFailed(const char* file, int line, const char* what);

// Ends the process with the child's exit code if this process is that child.
inline bool RunIfChild(const char* name, int (*child)()) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string wanted = std::string(1, '\0') + "--child=" + name + '\0';
  if (line.find(wanted) != std::string::npos) std::exit(child());
  return true;
}

inline Ended RunChild(const std::string& name) { return RunSelf({"--child=" + name}); }

}  // namespace cudasim_test

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) ::cudasim_test::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

// With C linkage: the linker refuses two children of one name in a program.
#define CHILD(name)                                           \
  extern "C" int cudasim_child_##name();                      \
  static const bool ran_##name [[maybe_unused]] =             \
      cudasim_test::RunIfChild(#name, &cudasim_child_##name); \
  extern "C" int cudasim_child_##name()

// The child ran to its end and found everything as expected.
#define REQUIRE_CHILD_PASSES(name)                                  \
  do {                                                              \
    const cudasim_test::Ended ended = cudasim_test::RunChild(name); \
    BOOST_TEST(ended.code == 0, name << ": " << ended.output);      \
  } while (false)

#endif  // CUDASIM_TEST_SUPPORT_CHILD_H_
