// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
/// \file
/// Options and reports of the driver's compiler and linker, for module.h and linker.h.
///
///   JitOptions options;
///   options.max_registers = 64;
///   options.line_info = true;
///   JitReport report;
///   absl::StatusOr<Module> module = Module::LoadIn(context, image, options, &report);
///
/// Machine code is not compiled: the compiler's options have no effect on it.

#ifndef CUGUEST_OBJECTS_JIT_H_
#define CUGUEST_OBJECTS_JIT_H_

#include <cuda.h>

#include <optional>
#include <string>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// Options of the driver's compiler and linker. What is not set is the driver's choice.
/// Errors: kInvalidArgument, from all that take them: max_registers or threads_per_block of 0, on
///         which drivers crash; optimization_level above 4; split_compile above 4,096, of which a
///         driver does not return; threads_per_block together with target; or the driver refuses a
///         value, without saying which.
/// Source: CUDA Driver API, CUjit_option; docs/guarantees.md.
struct JitOptions {
  CUGUEST_HIDE JitOptions() = default;

  std::optional<unsigned> max_registers;  ///< of a thread
  /// The compiler uses so few registers that blocks of as many can be launched. Not with `target`.
  std::optional<unsigned> threads_per_block;
  std::optional<unsigned> optimization_level;  ///< 0 to 4; the driver's choice is 4
  /// By default that of the context, or of the device where code is loaded.
  std::optional<CUjit_target> target;
  std::optional<CUjit_cacheMode> cache_mode;  ///< of loads from global memory
  /// As the PTX directives .minnctapersm and .maxntid, which win where the code has them, unless
  /// override_directives is set. The first works only together with the second.
  /// Needs: CUDA 12.3, and 12.4. Below that they are kUnimplemented, as are position_independent
  ///        (12.0) and override_directives (12.4), unless nvJitLink links.
  std::optional<unsigned> min_blocks_per_multiprocessor;
  std::optional<unsigned> max_threads_per_block;
  /// Threads of the host that optimise, or load machine code; 0 is all processors.
  /// Needs: CUDA 13.0, and 13.1; an older driver does not receive them, and works with one.
  std::optional<unsigned> split_compile;
  std::optional<unsigned> loader_threads;

  bool debug_info = false;
  bool line_info = false;
  bool verbose = false;  ///< registers, memory and spills of each kernel, in the info log
  bool position_independent = false;
  bool override_directives = false;  ///< max_registers and the like win over PTX directives
};

/// What the driver said while it compiled or linked. Empty and zero where it did neither: with
/// machine code, and with PTX that it had compiled before, in its cache (CUDA_CACHE_PATH).
struct JitReport {
  CUGUEST_HIDE JitReport() = default;
  CUGUEST_HIDE JitReport(const JitReport&) = default;
  CUGUEST_HIDE JitReport(JitReport&&) = default;
  CUGUEST_HIDE JitReport& operator=(const JitReport&) = default;
  CUGUEST_HIDE JitReport& operator=(JitReport&&) = default;
  CUGUEST_HIDE ~JitReport() = default;

  std::string info_log;
  std::string error_log;  ///< also of what succeeded: warnings
  float milliseconds = 0;
  unsigned threads_per_block = 0;  ///< that was made room for, if the options asked for any
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_JIT_H_
