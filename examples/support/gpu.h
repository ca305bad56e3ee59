// SPDX-License-Identifier: Apache-2.0
//
// The utilities that a library which launches kernels has somewhere of its own: memory
// on the device, a kernel from an embedded image, a stream. Plain driver entries, no
// CUDA library on the link line, and not a word about contexts: they work in the one
// that is current, and whoever uses them holds a ContextGuard.

#ifndef CUGUEST_EXAMPLES_SUPPORT_GPU_H_
#define CUGUEST_EXAMPLES_SUPPORT_GPU_H_

#include <cuda.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/driver.h"

namespace support {

// Floats in device memory. Freed on destruction.
class Buffer {
 public:
  [[nodiscard]] static absl::StatusOr<Buffer> Make(const cuguest::Driver& driver,
                                                   std::size_t count);
  // The same, filled.
  [[nodiscard]] static absl::StatusOr<Buffer> CopyOf(const cuguest::Driver& driver,
                                                     const std::vector<float>& values);
  Buffer(Buffer&& other) noexcept
      : driver_(other.driver_), count_(other.count_), pointer_(std::exchange(other.pointer_, 0)) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();

  // Fills it, from as many values as it has floats.
  [[nodiscard]] absl::Status CopyFrom(const std::vector<float>& values) const;
  [[nodiscard]] absl::Status CopyTo(std::vector<float>* values) const;

  // What cuLaunchKernel wants: the address of the parameter.
  [[nodiscard]] void* parameter() { return &pointer_; }
  [[nodiscard]] CUdeviceptr at(std::size_t index) const { return pointer_ + index * sizeof(float); }

  // Forgets the memory without a driver call: its context is gone, and it with it.
  void Leak() { pointer_ = 0; }

 private:
  Buffer(const cuguest::Driver* driver, std::size_t count, CUdeviceptr pointer)
      : driver_(driver), count_(count), pointer_(pointer) {}

  const cuguest::Driver* driver_;
  std::size_t count_;
  CUdeviceptr pointer_;
};

// A kernel of a module of its own, and a stream of its own to launch it on: a guest
// does not use the default stream of a context that others work in.
class Kernel {
 public:
  // `image` is PTX text or a fatbin.
  [[nodiscard]] static absl::StatusOr<Kernel> Load(const cuguest::Driver& driver, const void* image,
                                                   const char* name);
  Kernel(Kernel&& other) noexcept
      : driver_(other.driver_),
        function_(other.function_),
        module_(std::exchange(other.module_, nullptr)),
        stream_(std::exchange(other.stream_, nullptr)) {}
  Kernel& operator=(Kernel&& other) noexcept;
  ~Kernel() { Unload(); }

  // Runs it over `count` elements, on the kernel's own stream or on `stream`, and waits.
  //
  // Threads: any, also at the same time.
  [[nodiscard]] absl::Status Run(std::size_t count, void** parameters) const {
    return Run(count, parameters, stream_);
  }
  [[nodiscard]] absl::Status Run(std::size_t count, void** parameters, CUstream stream) const;

  // The same on `stream`, without waiting.
  [[nodiscard]] absl::Status Submit(std::size_t count, void** parameters, CUstream stream) const;

  void Unload();

  // Forgets the handles without a driver call: their context is gone, and they with it.
  void Leak() {
    module_ = nullptr;
    stream_ = nullptr;
  }

 private:
  explicit Kernel(const cuguest::Driver* driver) : driver_(driver) {}

  const cuguest::Driver* driver_;
  CUfunction function_ = nullptr;
  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
};

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_GPU_H_
