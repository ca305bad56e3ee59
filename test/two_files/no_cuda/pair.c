/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Compiled twice for one program, with CUGUEST_NO_CUDA and without. */

#include "pair.h"

#include "cuguest_core.h"

#ifdef CUGUEST_NO_CUDA
int ask_c_without_cuda(void) {
#else
int ask_c_with_cuda(void) {
#endif
  cuguest_guard guard = CUGUEST_INIT(cuguest_guard);
  const int code = cuguest_guard_enter(&guard, NULL, CUGUEST_ELIDE, CUGUEST_HERE);
  cuguest_guard_cleanup(&guard);
  return code;
}
