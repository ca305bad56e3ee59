// SPDX-License-Identifier: Apache-2.0
//
// -----------------------------------------------------------------------------
// internal/fft_layout.h                                                 tier: 0
// -----------------------------------------------------------------------------
//
// Not for embedders. The part of CufftLayout (runtime/cufft.h) that needs no header of cuFFT.

#ifndef CUGUEST_INTERNAL_FFT_LAYOUT_H_
#define CUGUEST_INTERNAL_FFT_LAYOUT_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

struct FftSide {
  const long long* embed;
  long long stride;  // 0: contiguous
  long long distance;
};

struct FftShape {
  int type;  // a cufftType
  int rank;
  const long long* sizes;
  long long batch;
  FftSide input;
  FftSide output;
};

CUGUEST_API absl::Status CheckFftLayout(const FftShape& shape);
CUGUEST_API absl::StatusOr<std::size_t> FftBytes(const FftShape& shape, bool of_input);
CUGUEST_API std::string FftLayoutText(const FftShape& shape);

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_INTERNAL_FFT_LAYOUT_H_
