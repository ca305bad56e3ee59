// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The devices that the environment lets a process see.

#ifndef CUDASIM_DRIVER_CONTEXT_VISIBLE_DEVICES_H_
#define CUDASIM_DRIVER_CONTEXT_VISIBLE_DEVICES_H_

#include <cuda.h>

#include <vector>

namespace cudasim::driver {

// `list` is the value of CUDA_VISIBLE_DEVICES: indices and UUIDs ("GPU-" and the beginning of one
// that no other device has), with commas between them; nullptr shows all of the machine's `count`
// devices. What follows an entry that names no device is not seen. `devices` is then what each
// ordinal stands for. The result is cuInit's.
//
// NO_DEVICE       none is seen
// INVALID_DEVICE  one is named twice
//
// Source: CUDA Programming Guide, "CUDA Environment Variables"; the results as measured on an H200,
// driver 580.159.04.
CUresult FindVisibleDevices(const char* list, int count, std::vector<int>* devices);

// Of the machine's device `index`.
CUuuid UuidOfDevice(int index);

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_CONTEXT_VISIBLE_DEVICES_H_
