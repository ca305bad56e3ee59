/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What each half of a program says, of which one is compiled with CUGUEST_NO_CUDA. */

#ifndef CUGUEST_TEST_TWO_FILES_NO_CUDA_PAIR_H_
#define CUGUEST_TEST_TWO_FILES_NO_CUDA_PAIR_H_

#ifdef __cplusplus
extern "C" {
#endif

/* A guard of no context, which the library refuses: its code in C++, in C, and in C from C++. */
struct answers {
  int cxx, c, c_from_cxx;
  int error_of_cache; /* of a PerContext<int> and no context */
};
struct answers ask_with_cuda(void);
struct answers ask_without_cuda(void);
int ask_c_with_cuda(void);
int ask_c_without_cuda(void);

#ifdef __cplusplus
}
#endif

#endif /* CUGUEST_TEST_TWO_FILES_NO_CUDA_PAIR_H_ */
