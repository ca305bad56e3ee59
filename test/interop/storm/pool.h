// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A host's pool of one device's memory, which other devices may use.

#ifndef CUGUEST_TEST_INTEROP_STORM_POOL_H_
#define CUGUEST_TEST_INTEROP_STORM_POOL_H_

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "cuguest/device.h"
#include "cuguest/objects/stream.h"

namespace storm {

class Pool {
 public:
  // Open to those of `devices` devices that have a link to `device`.
  Pool(cuguest::Device device, int devices);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  [[nodiscard]] cuguest::Device device() const { return device_; }
  [[nodiscard]] bool IsOpenTo(CUdevice device) const {
    return is_open_to_[static_cast<std::size_t>(device)];
  }

  // In the order of `stream`, of any device.
  [[nodiscard]] CUdeviceptr Allocate(std::size_t bytes, const cuguest::StreamRef& stream) const;
  static void Free(CUdeviceptr memory, const cuguest::StreamRef& stream);

  // Gives back what nothing uses.
  void Trim() const;

 private:
  const cuguest::Device device_;
  CUmemoryPool pool_ = nullptr;
  std::vector<bool> is_open_to_;  // by device
};

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_POOL_H_
