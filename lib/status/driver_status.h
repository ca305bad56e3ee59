// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table as a Driver, and the statuses of its calls that concern no context.        tier: 1

#ifndef CUGUEST_LIB_STATUS_DRIVER_STATUS_H_
#define CUGUEST_LIB_STATUS_DRIVER_STATUS_H_

#include <cuda.h>

#include "absl/status/status.h"
#include "cuguest/driver.h"
#include "lib/core/driver_entries.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// A `Driver` is a DriverTable with functions, and no more.
inline const Driver* AsDriver(const DriverTable* table) noexcept {
  static_assert(sizeof(Driver) == sizeof(DriverTable));
  return static_cast<const Driver*>(table);
}

// A table of `driver` lacks the required entry `missing`: kTooOld.
absl::Status MissingEntryStatus(const Driver& driver, const DriverEntry& missing);
// It lacks an optional one, which was asked for: kEntryMissing.
absl::Status EntryNeedsNewer(const Driver& driver, const DriverEntry& entry);
// There was no memory for a table, with `code`: kOther.
absl::Status NoTableStatus(CUresult code);

// Where a driver may be that the loader has not found.
inline constexpr char kElsewhereText[] =
    "; if the driver is installed, put its folder on the loader's search path (LD_LIBRARY_PATH, or "
    "a file in /etc/ld.so.conf.d and ldconfig): under WSL it is /usr/lib/wsl/lib, in containers "
    "often /usr/local/nvidia/lib64, on NixOS /run/opengl-driver/lib";

// cuInit failed with `code`.
absl::Status InitStatus(CUresult code);

// cuDeviceGet of `ordinal` did (in device.cc).
absl::Status NoDeviceStatus(CUresult code, int ordinal);

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_STATUS_DRIVER_STATUS_H_
