// SPDX-License-Identifier: Apache-2.0
//
// The simulation does not execute kernels; these host functions stand in there for those
// of kernels/, of this directory, and of the PTX in examples.

#ifndef CUGUEST_EXAMPLES_SUPPORT_HOST_KERNELS_H_
#define CUGUEST_EXAMPLES_SUPPORT_HOST_KERNELS_H_

namespace support {

// Does nothing on a real driver.
void RegisterHostKernels();

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_HOST_KERNELS_H_
