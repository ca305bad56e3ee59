// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans, by their numbers: what each transforms, where its numbers are, and the memory that it
// holds.

#ifndef CUDASIM_CUFFT_PLAN_H_
#define CUDASIM_CUFFT_PLAN_H_

#include <cuda.h>
#include <cufft.h>

#include <cstddef>

#include "library/kernel.h"

namespace cudasim::cufft {

using Status = cufftResult;
using Number = long long;

// One side, in elements. Of rank 1 and 2 the last dimensions are used, and the others are 1.
struct Side {
  Number embed[3];  // [0] is not looked at
  Number stride;
  Number distance;  // between transforms of a batch

  Number IndexOf(const Number at[3]) const {
    return ((at[0] * embed[1] + at[1]) * embed[2] + at[2]) * stride;
  }
};

// Without padding, since plans are found by their bytes.
struct Layout {
  Number size[3];
  Number batch;
  Side input;
  Side output;
  int rank;
  cufftType type;
  Number is_packed;  // made without strides: a transform in place has its rows padded

  bool IsDouble() const { return type == CUFFT_Z2Z || type == CUFFT_D2Z || type == CUFFT_Z2D; }
  bool IsFromReal() const { return type == CUFFT_R2C || type == CUFFT_D2Z; }
  bool IsToReal() const { return type == CUFFT_C2R || type == CUFFT_Z2D; }
  Number Elements() const { return size[0] * size[1] * size[2]; }

  // As it is when input and output are the same memory.
  Layout InPlace() const;

  // Bytes of the work area: as measured for powers of two and for sizes up to 4096.
  size_t WorkBytes() const;

  // Whether a dimension has so large a prime factor that a real library compiles code at
  // run time.
  bool HasLargeFactor() const;
};

// How cufftMakePlanMany describes one.
template <typename N>
struct Description {
  int rank;
  const N* size;
  const N* input_embed;
  N input_stride;
  N input_distance;
  const N* output_embed;
  N output_stride;
  N output_distance;
  cufftType type;
  N batch;
};

// INVALID_VALUE, INVALID_TYPE or INVALID_SIZE. A real library takes a third dimension of 0, and
// has other codes for sizes that are too large.
Status MakeLayout(const Description<int>& from, Layout* layout);
Status MakeLayout(const Description<Number>& from, Layout* layout);

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

// The work of one call: an operation of library/kernel.h.
struct Transform {
  Layout layout;
  bool is_inverse;
  const void* input;
  void* output;
  const void* tables;  // the plan's, which must still be there
  const void* area;
  size_t area_bytes;

  CUresult Run() const;
};

}  // namespace cudasim::cufft

#endif  // CUDASIM_CUFFT_PLAN_H_
