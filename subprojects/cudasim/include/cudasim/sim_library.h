// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -----------------------------------------------------------------------------
// cudasim/sim_library.h
// -----------------------------------------------------------------------------
/// \file
/// Control of the simulated toolkit libraries: `libcublas.so.13`, `libcufft.so.12`,
/// `libcurand.so.10`, `libcusolver.so.12`, `libcusparse.so.12` and `libnccl.so.2` beside the
/// simulated driver (cudasim/sim.h), for programs that are linked with NVIDIA's or open them. They
/// compute on the host, and do to contexts, stacks and captures what was measured of the libraries
/// of CUDA 13.0 (NCCL: what its source says). This header links none of them.
///
///   SimLibrary::FailCall("cublasCreate_v2", /*nth=*/1, CUBLAS_STATUS_ALLOC_FAILED);
///
/// Work of a simulated library is kernels of the simulated driver: it is captured, replayed
/// and lost as kernels are, and memory that its device cannot reach ends in
/// CUDA_ERROR_ILLEGAL_ADDRESS. Their code stays loaded to the end of the process once a
/// library was used: one of SimLive::libraries for each. A function that is not modelled does
/// nothing, and Sim::UnmodelledCalls() counts it; a destroyed handle aborts with a message.

#ifndef CUDASIM_SIM_LIBRARY_H_
#define CUDASIM_SIM_LIBRARY_H_

#include <cstddef>
#include <cstdint>

namespace cudasim {

/// SimLibrary
///
/// Entry names are the libraries' symbols ("cublasSgemm_v2"), which no two share. Every
/// function but IsActive() acts on all simulated libraries that the process has loaded by
/// then, and does nothing, or returns zero, where there is none; where there is one, an entry
/// that none of them models aborts with a message. Counted are all calls from outside, also
/// failing ones.
///
/// Threads: any.
class SimLibrary {
 public:
  /// Whether the library of that name ("libcublas.so.13") in this process is the simulation.
  /// Loads none: false until somebody has.
  [[nodiscard]] static bool IsActive(const char* soname);

  /// The `nth` call from now of `entry` (1 is the next) returns `code`, a value of the
  /// library's own enumeration, and does nothing else; later ones work again. Several may be
  /// armed at a time. `from_any_thread` false counts only the calling thread's calls.
  static void FailCall(const char* entry, unsigned nth, int code, bool from_any_thread = true);
  static void ClearFaults();

  /// Calls since the start or the last ResetCalls(), from every thread.
  [[nodiscard]] static std::uint64_t Calls(const char* entry);
  static void ResetCalls();

  /// The name of entry `index` over all of them, in no particular order; nullptr past the
  /// last.
  [[nodiscard]] static const char* EntryName(size_t index);
};

}  // namespace cudasim

#endif  // CUDASIM_SIM_LIBRARY_H_
