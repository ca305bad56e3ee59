// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -----------------------------------------------------------------------------
// cudasim/sim_runtime.h
// -----------------------------------------------------------------------------
/// \file
/// Control of the simulated CUDA runtime: a `libcudart.so.13` beside the simulated driver
/// (cudasim/sim.h), written on that driver's public calls, for programs that are linked
/// with NVIDIA's shared runtime. With its directory on LD_LIBRARY_PATH such a program runs
/// without a GPU, and does to contexts, stacks, counts and the last error what was measured
/// of the runtime of CUDA 13.0. This header links no runtime.
///
///   SimRuntime::FailCall("cudaMalloc", /*nth=*/1, cudaErrorMemoryAllocation);
///
/// A kernel that nvcc compiled into the program is launched by the host function that
/// Sim::RegisterKernel has under its mangled name; the simulation takes its parameters from its
/// PTX, which must be there uncompressed (nvcc --no-compress). As with the real runtime the
/// code stays loaded to the end of the process once a kernel of it was used: one of
/// SimLive::libraries.
///
/// The environment variable CUDASIM_RUNTIME_VERSION ("12.0" to "13.5") makes it claim another
/// version than the toolkit's: cudaRuntimeGetVersion, the entries of cudaGetDriverEntryPoint, and a
/// driver of that major version suffices; with an older one every call is
/// cudaErrorInsufficientDriver, as the runtime's documentation has it (CUDA Compatibility, "Minor
/// Version Compatibility"). Signatures stay those of the toolkit's headers. Execution contexts
/// (cudaDeviceGetExecutionCtx and its like) are there from 13.1 on; a program that asks an older
/// version for one gets cudaErrorNotSupported, where a real runtime of then has no such symbol.
///
/// It exports every symbol of NVIDIA's. What is not modelled returns cudaErrorNotSupported, and
/// Sim::UnmodelledCalls() counts it.
///
/// A runtime that is linked statically is part of the program and cannot be replaced; it
/// does not work on the simulated driver, which has none of the driver's private tables.

#ifndef CUDASIM_SIM_RUNTIME_H_
#define CUDASIM_SIM_RUNTIME_H_

#include <driver_types.h>

#include <cstddef>
#include <cstdint>

namespace cudasim {

/// SimRuntime
///
/// Entry names are the runtime's ("cudaMemcpyAsync", also for the variant whose default
/// stream is per thread). Every function but IsActive() does nothing, or returns zero, where
/// the simulation is not the process's runtime. An injected code is also the thread's last
/// error afterwards, as if the call had failed by itself; counted are all calls from outside,
/// also failing ones. An unknown name aborts with a message.
///
/// Threads: any.
class SimRuntime {
 public:
  /// Whether the shared runtime in this process is the simulation. Loads none: false until
  /// somebody has.
  [[nodiscard]] static bool IsActive();

  /// The `nth` call from now of `entry` (1 is the next) returns `code` and does nothing
  /// else; later ones work again. Several may be armed at a time. `from_any_thread` false
  /// counts only the calling thread's calls.
  static void FailCall(const char* entry, unsigned nth, cudaError_t code,
                       bool from_any_thread = true);
  static void ClearFaults();

  /// As Sim::OnEveryCall, of the runtime's calls; the driver's beneath them are the driver's
  /// hook's.
  static void OnEveryCall(void (*hook)(const char* entry));

  /// Calls since the start or the last ResetCalls(), from every thread.
  [[nodiscard]] static std::uint64_t Calls(const char* entry);
  [[nodiscard]] static std::uint64_t TotalCalls();
  static void ResetCalls();

  /// The name of entry `index`, in no particular order; nullptr past the last.
  [[nodiscard]] static const char* EntryName(size_t index);

  /// Whether execution contexts (cudaExecutionContext_t) are other values than the driver's
  /// contexts, as the documentation allows and no runtime up to 13.5 does: a program that takes the
  /// one for the other is then stopped by the driver's report of an unknown handle. Handles that
  /// were given out before are not good afterwards.
  static void TagExecutionContexts(bool tagged);
};

}  // namespace cudasim

#endif  // CUDASIM_SIM_RUNTIME_H_
