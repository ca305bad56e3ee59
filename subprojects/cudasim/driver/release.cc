// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/release.h"

#include "driver/process.h"

namespace cudasim::driver {
namespace {

// Read off <cuda.h> of 11.7, 11.8, 12.0 to 12.6, 12.8, 12.9 and 13.0 to 13.5. Of drivers
// before 11.8 that is 11.7's: what an older one lacks besides is not simulated.
constexpr Release kReleases[] = {
    {0, 125, 10, 7, 0x1f, 30},      {11080, 125, 16, 7, 0x1f, 30},  {12000, 130, 16, 7, 0x1f, 31},
    {12010, 133, 16, 7, 0xff, 31},  {12020, 135, 16, 7, 0xff, 31},  {12030, 135, 16, 7, 0xff, 32},
    {12040, 135, 16, 7, 0xff, 34},  {12050, 136, 16, 10, 0xff, 34}, {12080, 144, 16, 10, 0xff, 34},
    {13000, 148, 16, 10, 0xff, 35}, {13010, 149, 16, 10, 0xff, 36}, {13030, 157, 17, 10, 0xff, 36},
    {13040, 162, 18, 11, 0xff, 36},
};
constexpr Release kModelled = kReleases[9];
static_assert(kModelled.version == 13000);
#if CUDA_VERSION >= 13000 && CUDA_VERSION < 13010
static_assert(kModelled.device_attributes == CU_DEVICE_ATTRIBUTE_MAX);
static_assert(kModelled.function_attributes == CU_FUNC_ATTRIBUTE_MAX);
static_assert(kModelled.limits == CU_LIMIT_MAX);
static_assert(kModelled.context_flags == CU_CTX_FLAGS_MASK);
static_assert(kModelled.jit_options == CU_JIT_NUM_OPTIONS);
#endif

struct ErrorRelease {
  CUresult code;
  int version;
};

constexpr ErrorRelease kErrorReleases[] = {
    {CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 13000},
    {CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, 12010},
    {CUDA_ERROR_CONTAINED, 12080},
    {CUDA_ERROR_LOSSY_QUERY, 12030},
    {CUDA_ERROR_TENSOR_MEMORY_LEAK, 12080},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, 11080},
    {CUDA_ERROR_CDP_NOT_SUPPORTED, 12000},
    {CUDA_ERROR_CDP_VERSION_MISMATCH, 12000},
    {CUDA_ERROR_INVALID_CLUSTER_SIZE, 11080},
    {CUDA_ERROR_FUNCTION_NOT_LOADED, 12040},
    {CUDA_ERROR_INVALID_RESOURCE_TYPE, 12040},
    {CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, 12040},
    {CUDA_ERROR_KEY_ROTATION, 12080},
};

}  // namespace

const Release& ThisRelease() {
  const Release* found = &kReleases[0];
  for (const Release& release : kReleases) {
    if (release.version <= Process::DriverVersion()) found = &release;
  }
  return *found;
}

const Release& ModelledRelease() { return kModelled; }

int ReleaseOfError(CUresult code) {
  for (const ErrorRelease& row : kErrorReleases) {
    if (row.code == code) return row.version;
  }
  return 0;
}

}  // namespace cudasim::driver
