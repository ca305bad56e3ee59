// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What code says of a function, and what can be set of it.

#ifndef CUDASIM_DRIVER_CODE_FUNCTION_ATTRIBUTE_H_
#define CUDASIM_DRIVER_CODE_FUNCTION_ATTRIBUTE_H_

#include <cuda.h>

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace cudasim::driver {

// Of a device of 9.0.
inline constexpr unsigned kMaxThreadsPerBlock = 1024;
inline constexpr size_t kSharedPerBlock = size_t{48} << 10;        // without asking for more
inline constexpr size_t kSharedPerBlockOptIn = size_t{227} << 10;  // static and dynamic

// What a compiler decided. Where nothing compiles PTX, its registers are assumed to be so few
// that they limit nothing.
struct FunctionTraits {
  unsigned max_threads = kMaxThreadsPerBlock;  // .maxntid
  unsigned required_block[3] = {};             // .reqntid; zeros: any
  unsigned required_cluster[3] = {};           // .reqnctapercluster; zeros: any
  bool must_have_cluster = false;              // .explicitcluster
  unsigned max_cluster_rank = 0;               // .maxclusterrank; 0: any
  unsigned registers = 32;                     // per thread
  size_t static_shared = 0;
  size_t local = 0;
  size_t constant = 0;  // of its module
  int ptx_version = 90;

  unsigned MaxThreads() const;  // with that many registers, too
};

// FunctionSettings
//
// What cuFuncSetAttribute or cuKernelSetAttribute set. A function that a kernel became
// follows the kernel, also later, in what was not set of itself (measured on an H100,
// driver 580.159.04).
//
// Threads: any.
class FunctionSettings {
 public:
  explicit FunctionSettings(std::shared_ptr<const FunctionSettings> kernel = nullptr)
      : kernel_(std::move(kernel)) {}

  // INVALID_VALUE for an attribute that cannot be set, or not to that.
  CUresult Set(const FunctionTraits& traits, CUfunction_attribute attribute, int value);

  // INVALID_VALUE for an attribute that there is not.
  CUresult Get(const FunctionTraits& traits, CUfunction_attribute attribute, int* value) const;

  // The same, for what there is.
  int Of(const FunctionTraits& traits, CUfunction_attribute attribute) const;

 private:
  std::optional<int> Find(CUfunction_attribute attribute) const;

  const std::shared_ptr<const FunctionSettings> kernel_;
  mutable std::mutex mutex_;
  std::array<std::optional<int>, CU_FUNC_ATTRIBUTE_MAX> own_;
};

// CUDA_SUCCESS for a preference that there is.
CUresult CheckCacheConfig(CUfunc_cache config);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CODE_FUNCTION_ATTRIBUTE_H_
