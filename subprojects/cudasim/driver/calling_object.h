// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The caller of the driver.

#ifndef CUDASIM_DRIVER_CALLING_OBJECT_H_
#define CUDASIM_DRIVER_CALLING_OBJECT_H_

#include <string>

namespace cudasim::driver {

// The path of the program or library whose code called into this library; empty if that cannot be
// told. Walks the thread's stack.
std::string CallingObject();

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CALLING_OBJECT_H_
