// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For tests of execution contexts: they compile with the headers of any toolkit, start with any
// runtime of its major version, and are skipped with one older than 13.1.

#ifndef CUDASIM_TEST_SUPPORT_EXECUTION_CONTEXT_H_
#define CUDASIM_TEST_SUPPORT_EXECUTION_CONTEXT_H_

#include <cstdlib>

#include "../../runtime/execution.h"
#include "runner.h"

#pragma weak cudaDeviceGetExecutionCtx
#pragma weak cudaGreenCtxCreate
#pragma weak cudaExecutionCtxDestroy
#pragma weak cudaExecutionCtxGetDevResource
#pragma weak cudaExecutionCtxGetDevice
#pragma weak cudaExecutionCtxGetId
#pragma weak cudaExecutionCtxRecordEvent
#pragma weak cudaExecutionCtxStreamCreate
#pragma weak cudaExecutionCtxSynchronize
#pragma weak cudaExecutionCtxWaitEvent
#pragma weak cudaDeviceGetDevResource
#pragma weak cudaDevSmResourceSplitByCount
#pragma weak cudaDevResourceGenerateDesc

namespace cudasim_test {

// The simulated runtime has the toolkit's version, unless the environment asks for another one
// before its first call. Returns true.
inline bool AskForExecutionContexts() {
  return setenv("CUDASIM_RUNTIME_VERSION", "13.5", /*overwrite=*/0) == 0;
}

inline bool HasExecutionContexts() {
  AskForExecutionContexts();
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return version >= 13010 && cudaDeviceGetExecutionCtx != nullptr;
}

inline boost::unit_test::precondition NeedsExecutionContexts() {
  return OnlyIf(&HasExecutionContexts, "execution contexts need a CUDA runtime of 13.1 or newer");
}

// One with 16 multiprocessors of device 0.
inline cudaExecutionContext_t CreateGreenExecutionContext() {
  cudaDevResource whole = {};
  cudaDevResource part = {};
  unsigned count = 1;
  cudaDevResourceDesc_t description = nullptr;
  cudaExecutionContext_t green = nullptr;
  constexpr auto kType = static_cast<cudaDevResourceType>(CU_DEV_RESOURCE_TYPE_SM);
  BOOST_CHECK_EQUAL(cudaDeviceGetDevResource(0, &whole, kType), cudaSuccess);
  BOOST_CHECK_EQUAL(cudaDevSmResourceSplitByCount(&part, &count, &whole, nullptr, 0, 16),
                    cudaSuccess);
  BOOST_CHECK_EQUAL(cudaDevResourceGenerateDesc(&description, &part, 1), cudaSuccess);
  BOOST_CHECK_EQUAL(cudaGreenCtxCreate(&green, description, 0, 0), cudaSuccess);
  return green;
}

}  // namespace cudasim_test

#endif  // CUDASIM_TEST_SUPPORT_EXECUTION_CONTEXT_H_
