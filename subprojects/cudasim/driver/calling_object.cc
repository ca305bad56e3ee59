// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/calling_object.h"

#include <dlfcn.h>
#include <execinfo.h>

namespace cudasim::driver {

std::string CallingObject() {
  Dl_info own = {};
  dladdr(reinterpret_cast<void*>(&CallingObject), &own);
  void* frames[16];
  const int count = backtrace(frames, 16);
  // A sanitizer has a backtrace() of its own, whose frame comes first.
  bool seen_own = false;
  for (int i = 0; i < count; ++i) {
    Dl_info info = {};
    if (dladdr(frames[i], &info) == 0) continue;
    if (info.dli_fbase != own.dli_fbase && seen_own) return info.dli_fname;
    seen_own = seen_own || info.dli_fbase == own.dli_fbase;
  }
  return {};
}

}  // namespace cudasim::driver
