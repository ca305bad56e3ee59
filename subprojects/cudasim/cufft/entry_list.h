// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every call of the simulated cuFFT, once: see library/exports.h. Each says itself
// what context it needs.
//
// What NVIDIA's exports and is not here (names.inc) is not modelled: see runtime/stubs.cc.

#ifndef CUDASIM_CUFFT_ENTRY_LIST_H_
#define CUDASIM_CUFFT_ENTRY_LIST_H_

// clang-format off
#define CUDASIM_CUFFT_MANY(N)                                                                  \
  int rank, N* size, N* input_embed, N input_stride, N input_distance, N* output_embed,            \
  N output_stride, N output_distance, cufftType type, N batch
#define CUDASIM_CUFFT_MANY_LAYOUT(N)                                                           \
  Description<N>{rank, size, input_embed, input_stride, input_distance, output_embed,              \
                 output_stride, output_distance, type, batch}

#define CUDASIM_CUFFT_ENTRIES(X)                                                               \
  X(cufftCreate, Create, kNothing, (cufftHandle* plan), (plan))                                    \
  X(cufftDestroy, Destroy, kNothing, (cufftHandle plan), (plan))                                   \
  X(cufftPlan1d, PlanAtOnce, kNothing, (cufftHandle* plan, int n, cufftType type, int batch),      \
    (plan, Plain({n}, type, batch)))                                                               \
  X(cufftPlan2d, PlanAtOnce, kNothing, (cufftHandle* plan, int n0, int n1, cufftType type),        \
    (plan, Plain({n0, n1}, type)))                                                                 \
  X(cufftPlan3d, PlanAtOnce, kNothing, (cufftHandle* plan, int n0, int n1, int n2,                 \
    cufftType type), (plan, Plain({n0, n1, n2}, type)))                                            \
  X(cufftPlanMany, PlanAtOnce, kNothing, (cufftHandle* plan, CUDASIM_CUFFT_MANY(int)),         \
    (plan, CUDASIM_CUFFT_MANY_LAYOUT(int)))                                                    \
  X(cufftMakePlan1d, MakePlan, kNothing, (cufftHandle plan, int n, cufftType type, int batch,      \
    size_t* bytes), (plan, Plain({n}, type, batch), bytes))                                        \
  X(cufftMakePlan2d, MakePlan, kNothing, (cufftHandle plan, int n0, int n1, cufftType type,        \
    size_t* bytes), (plan, Plain({n0, n1}, type), bytes))                                          \
  X(cufftMakePlan3d, MakePlan, kNothing, (cufftHandle plan, int n0, int n1, int n2,                \
    cufftType type, size_t* bytes), (plan, Plain({n0, n1, n2}, type), bytes))                      \
  X(cufftMakePlanMany, MakePlan, kNothing, (cufftHandle plan, CUDASIM_CUFFT_MANY(int),         \
    size_t* bytes), (plan, CUDASIM_CUFFT_MANY_LAYOUT(int), bytes))                             \
  X(cufftMakePlanMany64, MakePlan, kNothing, (cufftHandle plan, CUDASIM_CUFFT_MANY(Number),    \
    size_t* bytes), (plan, CUDASIM_CUFFT_MANY_LAYOUT(Number), bytes))                          \
  X(cufftEstimate1d, Estimate, kNothing, (int n, cufftType type, int batch, size_t* bytes),        \
    (Plain({n}, type, batch), bytes))                                                              \
  X(cufftEstimate2d, Estimate, kNothing, (int n0, int n1, cufftType type, size_t* bytes),          \
    (Plain({n0, n1}, type), bytes))                                                                \
  X(cufftEstimate3d, Estimate, kNothing, (int n0, int n1, int n2, cufftType type, size_t* bytes),  \
    (Plain({n0, n1, n2}, type), bytes))                                                            \
  X(cufftEstimateMany, Estimate, kNothing, (CUDASIM_CUFFT_MANY(int), size_t* bytes),           \
    (CUDASIM_CUFFT_MANY_LAYOUT(int), bytes))                                                   \
  X(cufftGetSize1d, GetSizeOf, kNothing, (cufftHandle plan, int n, cufftType type, int batch,      \
    size_t* bytes), (plan, Plain({n}, type, batch), bytes))                                        \
  X(cufftGetSize2d, GetSizeOf, kNothing, (cufftHandle plan, int n0, int n1, cufftType type,        \
    size_t* bytes), (plan, Plain({n0, n1}, type), bytes))                                          \
  X(cufftGetSize3d, GetSizeOf, kNothing, (cufftHandle plan, int n0, int n1, int n2,                \
    cufftType type, size_t* bytes), (plan, Plain({n0, n1, n2}, type), bytes))                      \
  X(cufftGetSizeMany, GetSizeOf, kNothing, (cufftHandle plan, CUDASIM_CUFFT_MANY(int),         \
    size_t* bytes), (plan, CUDASIM_CUFFT_MANY_LAYOUT(int), bytes))                             \
  X(cufftGetSizeMany64, GetSizeOf, kNothing, (cufftHandle plan, CUDASIM_CUFFT_MANY(Number),    \
    size_t* bytes), (plan, CUDASIM_CUFFT_MANY_LAYOUT(Number), bytes))                          \
  X(cufftGetSize, GetSize, kNothing, (cufftHandle plan, size_t* bytes), (plan, bytes))             \
  X(cufftSetAutoAllocation, SetAutoAllocation, kNothing, (cufftHandle plan, int allocates),        \
    (plan, allocates))                                                                             \
  X(cufftSetWorkArea, SetWorkArea, kNothing, (cufftHandle plan, void* area), (plan, area))         \
  X(cufftSetStream, SetStream, kNothing, (cufftHandle plan, cudaStream_t stream), (plan, stream))  \
  X(cufftExecC2C, Exec, kNothing, (cufftHandle plan, cufftComplex* input, cufftComplex* output,    \
    int direction), (plan, input, output, direction))                                              \
  X(cufftExecR2C, Exec, kNothing, (cufftHandle plan, cufftReal* input, cufftComplex* output),      \
    (plan, input, output, CUFFT_FORWARD))                                                          \
  X(cufftExecC2R, Exec, kNothing, (cufftHandle plan, cufftComplex* input, cufftReal* output),      \
    (plan, input, output, CUFFT_INVERSE))                                                          \
  X(cufftExecZ2Z, Exec, kNothing, (cufftHandle plan, cufftDoubleComplex* input,                    \
    cufftDoubleComplex* output, int direction), (plan, input, output, direction))                  \
  X(cufftExecD2Z, Exec, kNothing, (cufftHandle plan, cufftDoubleReal* input,                       \
    cufftDoubleComplex* output), (plan, input, output, CUFFT_FORWARD))                             \
  X(cufftExecZ2D, Exec, kNothing, (cufftHandle plan, cufftDoubleComplex* input,                    \
    cufftDoubleReal* output), (plan, input, output, CUFFT_INVERSE))                                \
  X(cufftGetVersion, GetVersion, kNothing, (int* version), (version))                              \
  X(cufftGetProperty, GetProperty, kNothing, (libraryPropertyType type, int* value),               \
    (type, value))
// clang-format on

#endif  // CUDASIM_CUFFT_ENTRY_LIST_H_
