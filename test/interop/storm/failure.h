// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an operation throws when something is not as it should be.

#ifndef CUGUEST_TEST_INTEROP_STORM_FAILURE_H_
#define CUGUEST_TEST_INTEROP_STORM_FAILURE_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/status.h"

namespace storm {

struct Failure {
  std::string what;
};

inline void Require(bool condition, const std::string& what) {
  if (!condition) throw Failure{"not so: " + what};
}
inline void Require(const absl::Status& status) {
  if (!status.ok()) throw Failure{status.ToString()};
}
inline void Require(CUresult code, const char* call) {
  if (code != CUDA_SUCCESS) throw Failure{std::string(call) + ": " + cuguest::ErrorName(code)};
}
inline void Require(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw Failure{std::string(call) + ": " + cudaGetErrorName(code)};
}
// A guard, or another that carries a result.
template <typename T>
void RequireOk(const T& carrier) {
  if (!carrier.ok()) throw Failure{cuguest::ToStatus(carrier).ToString()};
}
template <typename T>
T Value(T object) {
  Require(ToStatus(object));
  return object;
}
template <typename T>
T Value(absl::StatusOr<T> result) {
  Require(result.status());
  return *std::move(result);
}

}  // namespace storm

// REQUIRE_CALL(RAW(cuCtxPushCurrent)(context))
#define REQUIRE_CALL(call) ::storm::Require((call), #call)

#endif  // CUGUEST_TEST_INTEROP_STORM_FAILURE_H_
