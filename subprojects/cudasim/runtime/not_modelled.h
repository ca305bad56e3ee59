// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a call that is not modelled does, of the simulated runtime and of each toolkit library.

#ifndef CUDASIM_RUNTIME_NOT_MODELLED_H_
#define CUDASIM_RUNTIME_NOT_MODELLED_H_

namespace cudasim::runtime {

// Counts the call of `symbol` in the simulated driver, and returns the library's own code for what
// is not supported; of the runtime it is the thread's last error, too. Each library defines it.
//
// Threads: any.
int NotModelled(const char* symbol);

}  // namespace cudasim::runtime

#endif  // CUDASIM_RUNTIME_NOT_MODELLED_H_
