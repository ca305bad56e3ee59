/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the programs of this folder count, in C and C++. */

#ifndef CUGUEST_TEST_TWO_FILES_NO_CUDA_CHECK_H_
#define CUGUEST_TEST_TWO_FILES_NO_CUDA_CHECK_H_

#include <stdio.h>
#include <string.h>

static int g_checks, g_failures;

#define CHECK(condition)                                             \
  do {                                                               \
    ++g_checks;                                                      \
    if (!(condition)) {                                              \
      ++g_failures;                                                  \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                \
  } while (0)

static inline int Conclude(void) {
  printf("%d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 && g_checks > 0 ? 0 : 1;
}

#endif /* CUGUEST_TEST_TWO_FILES_NO_CUDA_CHECK_H_ */
