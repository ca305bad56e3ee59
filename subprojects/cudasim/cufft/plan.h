// SPDX-License-Identifier: Apache-2.0
//
// Plans, by their numbers, and the memory that they hold.

#ifndef CUDASIM_CUFFT_PLAN_H_
#define CUDASIM_CUFFT_PLAN_H_

#include <cuda.h>

#include "cufft/layout.h"
#include "library/kernel.h"

namespace cudasim::cufft {

struct Plan {
  bool is_made = false;
  bool allocates = true;
  CUstream stream = nullptr;
  void* area = nullptr;
  bool owns_area = false;

  // Of one that is made.
  Layout layout = {};
  cudasim::library::Code code;
  unsigned long long context_id = 0;
  CUdeviceptr tables = 0;
};

// The plans of the process: 1, 2, 3, ...; the lowest number that is free is the next.
// Threads: any.
class Plans {
 public:
  static cufftHandle Add();
  static bool Find(cufftHandle number, Plan* plan);
  static void Set(cufftHandle number, const Plan& plan);
  static bool Remove(cufftHandle number, Plan* plan);
};

// What the plans of one layout in one context share: it is made for the first, which is
// when the driver is asked for memory, and goes with the last.
CUresult TakeTables(unsigned long long context_id, const Layout& layout, CUdeviceptr* tables);
void ReturnTables(unsigned long long context_id, const Layout& layout);

}  // namespace cudasim::cufft

#endif  // CUDASIM_CUFFT_PLAN_H_
