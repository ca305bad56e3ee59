// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations of the functions behind the entries, made from entry_list.h.

#ifndef CUDASIM_DRIVER_API_H_
#define CUDASIM_DRIVER_API_H_

#include <cuda.h>

#include "driver/entry_list.h"

namespace cudasim::driver {

// CU_DEV_SM_RESOURCE_GROUP_PARAMS, which headers have from 13.1 on.
struct SmGroup {
  unsigned count;
  unsigned coscheduled;
  unsigned preferred_coscheduled;
  unsigned flags;
  unsigned reserved[12];
};

#define CUDASIM_DECLARE(Base, version, suffix, Function, floor, parameters, arguments) \
  CUresult Function parameters;
#define CUDASIM_DECLARE_TWIN(Base, version, suffix, twin_version, twin_suffix, Function, floor, \
                             parameters, arguments)                                             \
  CUresult Function parameters;
CUDASIM_ENTRIES(CUDASIM_DECLARE, CUDASIM_DECLARE_TWIN)
#undef CUDASIM_DECLARE
#undef CUDASIM_DECLARE_TWIN

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_API_H_
