// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What each file that exports calls of cuBLAS needs.

#ifndef CUDASIM_CUBLAS_ROWS_H_
#define CUDASIM_CUBLAS_ROWS_H_

#include "cublas/entry_list.h"
#include "cublas/handle.h"
#include "library/exports.h"

namespace cudasim::cublas {

CUDASIM_LIBRARY_ROWS(CUDASIM_CUBLAS_ENTRIES)

}  // namespace cudasim::cublas

#endif  // CUDASIM_CUBLAS_ROWS_H_
