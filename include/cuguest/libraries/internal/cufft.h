// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
//
// Not for embedders. The part of libraries/cufft.h that needs no header of cuFFT: what a layout is
// in bytes, and the work area of a plan.

#ifndef CUGUEST_LIBRARIES_INTERNAL_CUFFT_H_
#define CUGUEST_LIBRARIES_INTERNAL_CUFFT_H_

#include <cuda.h>

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/libraries/internal/handle_pool.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

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

// The work area of a plan's own, and what its next user waits for.
class CUGUEST_API FftArea {
 public:
  CUGUEST_HIDE FftArea() = default;
  CUGUEST_HIDE ~FftArea() = default;

  // Where a plan of `shape`, which needs `bytes`, is to work for `request`: in the area that is
  // brought, or in its own, from now on until End().
  [[nodiscard]] absl::StatusOr<CUdeviceptr> Begin(const HandleRequest& request, std::size_t bytes,
                                                  const FftShape& shape);
  // As HandleType::end.
  PutBack End(absl::Status* why, std::size_t bytes, const FftShape& shape);
  void Leak() noexcept;

 private:
  absl::Status Make(const ContextRef& context, std::size_t bytes);

  DeviceBuffer<std::byte> area_;   // made when it is first needed
  Event used_;                     // behind the last work in area_
  std::optional<StreamRef> user_;  // of area_, while a scope has the plan
};

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIBRARIES_INTERNAL_CUFFT_H_
