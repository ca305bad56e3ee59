// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The settings that a process is started with.

#ifndef CUDASIM_DRIVER_ENVIRONMENT_H_
#define CUDASIM_DRIVER_ENVIRONMENT_H_

#include <stdlib.h>

#include <string>

namespace cudasim {

// The value of the environment variable CUDASIM_`name`; nullptr if it is not set.
inline const char* Setting(const char* name) {
  return secure_getenv((std::string("CUDASIM_") + name).c_str());
}

}  // namespace cudasim

#endif  // CUDASIM_DRIVER_ENVIRONMENT_H_
