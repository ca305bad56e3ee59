// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface between the host and its plugins: plain C, without cuguest. A plugin is a sound
// effect that works on the GPU.

#ifndef CUGUEST_EXAMPLES_GUEST_PLUGIN_ATTACH_PLUGIN_H_
#define CUGUEST_EXAMPLES_GUEST_PLUGIN_ATTACH_PLUGIN_H_

#include <cuda.h>
#include <stddef.h>

// The functions that return text return null on success, and otherwise an error message that is
// valid until the plugin's next call or its unloading.
struct Effect {
  // The first call. `*context` is where the effects of this host work together. If it is null,
  // this effect creates the context and stores it here for the others.
  const char* (*init)(CUdevice device, CUcontext* context);

  // Changes `count` numbers in host memory.
  const char* (*process)(float* numbers, size_t count);

  // The last call.
  const char* (*shutdown)(void);

  // For the pictures: the context's reference count.
  unsigned long long (*count_users)(void);
};

// What a plugin exports.
#define PLUGIN_ENTRY "plugin_effect"

#endif  // CUGUEST_EXAMPLES_GUEST_PLUGIN_ATTACH_PLUGIN_H_
