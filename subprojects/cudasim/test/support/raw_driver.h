// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver itself, nothing linked: for tests that say what the driver does.
//
//   CUcontext context = nullptr;
//   BOOST_TEST(RAW(cuCtxGetCurrent)(&context) == CUDA_SUCCESS);
//
// RAW(name) is the function that <cuda.h> means by that name (RAW(cuMemAlloc) is
// cuMemAlloc_v2), looked up in libcuda.so.1: nothing is linked. RAW_AS names a
// symbol that <cuda.h> no longer declares, and its type.

#ifndef CUDASIM_TEST_SUPPORT_RAW_DRIVER_H_
#define CUDASIM_TEST_SUPPORT_RAW_DRIVER_H_

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace cudasim_test {

inline void* FindRawSymbol(const char* symbol) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? dlsym(library, symbol) : nullptr;
}

inline void* RawSymbol(const char* symbol) {
  void* address = FindRawSymbol(symbol);
  if (address == nullptr) {
    std::fprintf(stderr, "libcuda.so.1 is missing, or has no %s\n", symbol);
    std::abort();
  }
  return address;
}

}  // namespace cudasim_test

#define CUDASIM_TEST_STRING_(text) #text
#define CUDASIM_TEST_STRING(text) CUDASIM_TEST_STRING_(text)

// One lookup per place and process; then a load.
#define RAW_AS(Type, symbol)                                                                  \
  ([]() -> Type {                                                                             \
    static const Type raw_function = reinterpret_cast<Type>(cudasim_test::RawSymbol(symbol)); \
    return raw_function;                                                                      \
  }())
#define RAW(name) RAW_AS(decltype(&::name), CUDASIM_TEST_STRING(name))

#endif  // CUDASIM_TEST_SUPPORT_RAW_DRIVER_H_
