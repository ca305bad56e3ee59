// SPDX-License-Identifier: Apache-2.0
//
// What every copy and fill checks.

#ifndef CUDASIM_DRIVER_MEMORY_COPY_H_
#define CUDASIM_DRIVER_MEMORY_COPY_H_

#include <cuda.h>

#include <cstddef>

namespace cudasim::driver {

// What must lie at one end of a copy.
enum class End {
  kDevice,  // an allocation of this driver
  kHost,    // anything but null
  kEither,  // an allocation, or memory that the driver does not know
};

// The whole of a range in one allocation, or INVALID_VALUE: a byte more is refused,
// however far the device's page goes (measured on an H100, driver 580.159.04).
bool IsRange(CUdeviceptr address, size_t bytes, End end, unsigned access);

// For work of a graph, which may run long after it was checked.
void PanicUnless(bool valid);

// The bytes of `rows` rows of `width` bytes, each `pitch` behind the one before: the
// last row ends where its own bytes do. False if they are more than can be.
bool AreaBytes(size_t width, size_t rows, size_t pitch, size_t* bytes);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_MEMORY_COPY_H_
