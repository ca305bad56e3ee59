// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function of a library that is loaded when it is first needed.

#ifndef CUDAIMAGE_LIBRARY_FUNCTION_H_
#define CUDAIMAGE_LIBRARY_FUNCTION_H_

#include <dlfcn.h>

#include <atomic>

CUDAIMAGE_BEGIN_NAMESPACE

// LibraryFunction
//
// For static storage: constant-initialised, trivially destroyed. The library stays loaded.
//
// Threads: any, without a lock: see Note [No lock while a library is loaded]. Threads that race
//          for the first use each load the library, which the linker counts, and find the same
//          address.
template <typename Function>
class LibraryFunction {
 public:
  constexpr LibraryFunction(const char* soname, const char* symbol)
      : soname_(soname), symbol_(symbol) {}

  const char* soname() const noexcept { return soname_; }

  // nullptr if the library cannot be loaded or has no such function; the next call tries again.
  Function Find() noexcept {
    void* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = Load();
      function_.store(function, std::memory_order_release);
    }
    return reinterpret_cast<Function>(function);
  }

 private:
  void* Load() const noexcept {
    void* const library = dlopen(soname_, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library != nullptr ? dlsym(library, symbol_) : nullptr;
  }

  const char* soname_;
  const char* symbol_;
  std::atomic<void*> function_{nullptr};
};

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_LIBRARY_FUNCTION_H_
