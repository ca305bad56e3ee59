// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel is in one context, and how it is found there.           tier: 3

#ifndef CUGUEST_LIB_OBJECTS_CODE_FUNCTION_IN_CONTEXT_H_
#define CUGUEST_LIB_OBJECTS_CODE_FUNCTION_IN_CONTEXT_H_

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <utility>

#include "cuguest/export.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/kernel.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Three sizes as one number, so that one comparison compares them: the low 16 bits of each.
constexpr std::uint64_t PackSizes(std::uint64_t x, std::uint64_t y, std::uint64_t z) noexcept {
  return (x & 0xffff) | (y & 0xffff) << 16 | (z & 0xffff) << 32;
}

// Of dimension 0, 1 or 2.
constexpr unsigned SizeOf(std::uint64_t packed, int dimension) noexcept {
  return static_cast<unsigned>(packed >> 16 * dimension & 0xffff);
}

// What the device of a context allows a launch there; 0 where it cannot do that at all.
struct DeviceLimits {
  int max_block[3] = {};  // x, y, z
  int max_grid[3] = {};
  int cluster_launch = 0;
  // What every launch reads ends here: see FunctionInContext.
  CUdevice device = 0;
  int max_threads_per_block = 0;
  int opt_in_shared_bytes = 0;  // of a block: the most that can be asked for
  int multiprocessors = 0;      // that the context has: of a green one, a part of the device's
  int cooperative_launch = 0;
};

// What its image says of a kernel.
struct KernelInImage {
  static constexpr std::size_t kUnknown = ~std::size_t{0};

  // As PackSizes(): the only block that the kernel takes beside one of a single thread; 0 if it
  // takes others, or nobody knows.
  std::uint64_t required_block = 0;
  std::size_t parameters = kUnknown;  // how many it takes
};

constexpr std::size_t kCodeLine = 64;  // of a processor's cache

// One block of memory, whose first line is all of it that a launch reads: the driver's own work
// puts out of the cache what was there.
struct alignas(kCodeLine) FunctionInContext {
  CUfunction function = nullptr;
  int max_threads_per_block = 0;
  // Changes with SetMaxDynamicSharedBytes(), and behind our back with cuFuncSetAttribute: to
  // be asked again (AskMaxDynamicShared) before a launch is refused for it, and before one that a
  // capture would be lost with.
  std::atomic<int> max_dynamic_shared_bytes{0};
  std::uint64_t required_block = 0;  // as of KernelInImage
  // As PackSizes(): what the grid must be a multiple of; 0 if nothing. Changes behind our back with
  // cuFuncSetAttribute, unless the kernel was compiled with it: to be asked again likewise.
  std::atomic<std::uint64_t> required_cluster{0};
  std::atomic<bool> is_found{false};
  DeviceLimits device;
  int static_shared_bytes = 0;
  // The most that SetMaxDynamicSharedBytes() was asked for, which stays allowed.
  std::atomic<int> allowed_shared_bytes{0};
  std::size_t parameters = KernelInImage::kUnknown;  // as of KernelInImage
};
static_assert(offsetof(FunctionInContext, device) + offsetof(DeviceLimits, device) == kCodeLine);

// Asks for each of `wanted` until one fails: by FuncGetAttribute or DeviceGetAttribute.
template <typename Attribute, typename Object>
CUresult AskEach(CUresult (*ask)(int*, Attribute, Object), Object object,
                 std::initializer_list<std::pair<Attribute, int*>> wanted) {
  for (const auto& [attribute, value] : wanted) {
    if (const CUresult code = ask(value, attribute, object); code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

// The device of the current context, and its compute capability: 90 is 9.0.
CUresult AskComputeCapability(const ObjectDriver& driver, CUdevice* device,
                              int* capability) noexcept;

// Of `context`, which is current, and its device.
CUresult AskDeviceLimits(const ObjectDriver& driver, CUcontext context,
                         DeviceLimits* limits) noexcept;

// What there is to know of function->function, whose context is current; the second only
// what may have changed, the third only a part of that.
CUresult AskFunctionLimits(const ObjectDriver& driver, FunctionInContext* function) noexcept;
CUresult AskChangingLimits(const ObjectDriver& driver, FunctionInContext* function) noexcept;
CUresult AskMaxDynamicShared(const ObjectDriver& driver, FunctionInContext* function) noexcept;

// Sets the limit to `bytes`, or what others were allowed if that is more; nothing if it is as much.
// The driver has cuFuncSetAttribute.
CUresult AllowDynamicShared(const ObjectDriver& driver, FunctionInContext* function,
                            int bytes) noexcept;

// What a code is in one context: its functions by the numbers of their kernels, and, where
// the driver has modules only, the module they are of. The value of a PerContext.
class CodeInContext {
 public:
  // Without a module: the functions come from elsewhere, unless it adopts one.
  explicit CodeInContext(const DeviceLimits& limits) noexcept : limits_(limits) {}
  // Of one in which nothing was found yet.
  CodeInContext(CodeInContext&& other) noexcept
      : limits_(other.limits_), module_(other.Adopt(nullptr)) {}
  CodeInContext& operator=(CodeInContext&&) = delete;
  ~CodeInContext();
  void Leak() noexcept { static_cast<void>(Adopt(nullptr)); }  // it is gone with its context

  // Owns `module`, and returns what it owned before.
  CUmodule Adopt(CUmodule module) noexcept { return std::exchange(module_, module); }

  [[nodiscard]] CUmodule module() const noexcept { return module_; }

  // nullptr if it was not found yet.
  [[nodiscard]] FunctionInContext* At(std::uint32_t number) noexcept {
    const Place place = PlaceOf(number);
    FunctionInContext* const chunk = Chunk(place.chunk);
    if (chunk == nullptr) return nullptr;
    FunctionInContext& function = chunk[place.slot];
    return function.is_found.load(std::memory_order_acquire) ? &function : nullptr;
  }

  // Keeps `found` as the one of `number`, unless another thread was first; returns the one
  // that is kept. It lives as long as this object.
  FunctionInContext* Keep(std::uint32_t number, const FunctionInContext& found);

 private:
  // Chunk c has room for kFirst << c, so that there may be more without moving what readers see.
  static constexpr std::uint32_t kFirst = 4;
  static constexpr int kChunks = 30;
  static constexpr std::uint32_t SlotsOf(int chunk) noexcept { return kFirst << chunk; }
  struct Place {
    int chunk;
    std::uint32_t slot;
  };
  [[nodiscard]] FunctionInContext* Chunk(int chunk) noexcept {
    return chunk == 0 ? first_ : chunks_[chunk].load(std::memory_order_acquire);
  }
  static constexpr Place PlaceOf(std::uint32_t number) noexcept {
    const std::uint32_t biased = number + kFirst;
    const int chunk = __builtin_clz(kFirst) - __builtin_clz(biased);
    return {chunk, biased - SlotsOf(chunk)};
  }

  FunctionInContext first_[kFirst];
  std::atomic<FunctionInContext*> chunks_[kChunks] = {};  // 0: none, that is first_
  const DeviceLimits limits_;
  CUmodule module_ = nullptr;
  std::mutex mutex_;  // held while a function becomes one that is found
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_OBJECTS_CODE_FUNCTION_IN_CONTEXT_H_
