// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuGetProcAddress: the entry of a name that is the newest not newer than the
// version asked for.

#include <algorithm>
#include <cstring>

#include "driver/api.h"
#include "driver/entry.h"
#include "driver/panic.h"
#include "driver/process.h"
#include "driver/report.h"

namespace cudasim::driver {
namespace {

struct Answer {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

bool IsBetter(const Entry& candidate, const Entry* best) {
  if (best == nullptr || candidate.version != best->version) {
    return best == nullptr || candidate.version > best->version;
  }
  return candidate.per_thread;  // the twin, where both have the same version
}

bool HasTwin(const char* name) {
  return std::any_of(Entries().begin(), Entries().end(), [=](const Entry& entry) {
    return entry.per_thread && std::strcmp(entry.base, name) == 0;
  });
}

// What has a twin has no other form for callers of the per-thread stream, older ones neither
// (measured on an H100, driver 580.159.04).
Answer Look(const char* name, int version, bool per_thread) {
  Answer answer;
  const Entry* best = nullptr;
  const bool twins = per_thread && HasTwin(name);
  for (const Entry& entry : Entries()) {
    if (std::strcmp(entry.base, name) != 0 || IsHidden(entry.base_index)) continue;
    if (entry.version > Process::DriverVersion()) continue;
    if (entry.per_thread != twins) continue;
    if (answer.status != CU_GET_PROC_ADDRESS_SUCCESS) {
      answer.status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
    if ((version >= 0 && entry.version > version) || !IsBetter(entry, best)) continue;
    best = &entry;
    answer.status = CU_GET_PROC_ADDRESS_SUCCESS;
  }
  if (best != nullptr) answer.function = best->address();
  return answer;
}

// There is no check below: a negative version is treated as a very new one.
bool IsValidQuery(const char* name, void** function, int version, cuuint64_t flags) {
  if (name == nullptr || function == nullptr) PanicNull();
  constexpr cuuint64_t kFlags =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  return version <= Process::DriverVersion() && (flags & ~kFlags) == 0;
}

}  // namespace

CUresult GetProcAddressStatus(const char* name, void** function, int version, cuuint64_t flags,
                              CUdriverProcAddressQueryResult* status) {
  if (!IsValidQuery(name, function, version, flags)) return CUDA_ERROR_INVALID_VALUE;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const Answer answer = Look(name, version, per_thread);
  *function = answer.function;
  if (answer.function == nullptr) NoteMissing(name, version);
  if (status != nullptr) *status = answer.status;
  return CUDA_SUCCESS;
}

// The first form has no status to fill, and says NOT_FOUND instead.
CUresult GetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  if (!IsValidQuery(name, function, version, flags)) return CUDA_ERROR_INVALID_VALUE;
  void* found = nullptr;
  const CUresult code = GetProcAddressStatus(name, &found, version, flags, nullptr);
  if (code != CUDA_SUCCESS) return code;
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  *function = found;
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
