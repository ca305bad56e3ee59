// SPDX-License-Identifier: Apache-2.0
//
// The settings that a process is started with.

#ifndef CUDASIM_DRIVER_ENVIRONMENT_H_
#define CUDASIM_DRIVER_ENVIRONMENT_H_

#include <cstdlib>
#include <string>

namespace cudasim {

// The value of the environment variable CUDASIM_`name`; nullptr if it is not set. A build may
// know a second prefix (Meson option `second_prefix`), which counts where the first is not set.
inline const char* Setting(const char* name) {
  const char* value = std::getenv((std::string("CUDASIM_") + name).c_str());
#ifdef CUDASIM_SECOND_PREFIX
  if (value == nullptr) value = std::getenv((std::string(CUDASIM_SECOND_PREFIX) + name).c_str());
#endif
  return value;
}

}  // namespace cudasim

#endif  // CUDASIM_DRIVER_ENVIRONMENT_H_
