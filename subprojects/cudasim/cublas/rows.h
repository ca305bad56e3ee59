// SPDX-License-Identifier: Apache-2.0
//
// What each file that exports calls of cuBLAS needs.

#ifndef CUGUEST_LIB_SIM_CUBLAS_ROWS_H_
#define CUGUEST_LIB_SIM_CUBLAS_ROWS_H_

#include "lib/sim/cublas/entry_list.h"
#include "lib/sim/cublas/handle.h"
#include "lib/sim/library/exports.h"

namespace cuguest_sim_cublas {

CUGUEST_SIM_LIBRARY_ROWS(CUGUEST_SIM_CUBLAS_ENTRIES)

}  // namespace cuguest_sim_cublas

#endif  // CUGUEST_LIB_SIM_CUBLAS_ROWS_H_
