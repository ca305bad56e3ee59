// SPDX-License-Identifier: Apache-2.0

#include "driver/calling_object.h"

#include <dlfcn.h>
#include <execinfo.h>

namespace cudasim::driver {

std::string CallingObject() {
  Dl_info own = {};
  dladdr(reinterpret_cast<void*>(&CallingObject), &own);
  void* frames[16];
  const int count = backtrace(frames, 16);
  for (int i = 0; i < count; ++i) {
    Dl_info info = {};
    if (dladdr(frames[i], &info) != 0 && info.dli_fbase != own.dli_fbase) return info.dli_fname;
  }
  return {};
}

}  // namespace cudasim::driver
