// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
/// \file
/// `DriverLog`, while one is open, puts the driver's own reason behind the text of what fails:
/// which argument it was that CUDA_ERROR_INVALID_VALUE means, or what a capture does not allow.
/// Drivers of CUDA 12.9 and newer say so.
///
///   absl::StatusOr<cuguest::DriverLog> log = cuguest::DriverLog::Open();   // keep it
///   ...
///   // INVALID_ARGUMENT: launch kernel 'saxpy', ...: CUDA_ERROR_INVALID_VALUE (1): ...; the driver
///   // says in cuLaunchKernel: ...
///
/// It is of calls that go through this copy of cuguest: its own, and those through the tables of
/// Driver and ObjectDriver that Get() gives meanwhile. It leaves out what the host calls, and
/// what a library calls itself, by symbol or through the runtime. It is off by default: open one
/// for a run that is to be looked into, or for good.

#ifndef CUGUEST_OBJECTS_DRIVER_LOG_H_
#define CUGUEST_OBJECTS_DRIVER_LOG_H_

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// Each one that is open is counted; the first registers a callback with the driver, the last
/// unregisters it. Callbacks of the host and of other copies of cuguest have theirs as before.
///
/// Stack:   not touched. Makes no context, and calls no cuInit except in a forked child.
/// Threads: distinct. The reasons of a thread are its own.
/// Cost:    for each call of the driver that cuguest makes while one is open, two writes of the
///          thread's own memory and one call more; the driver's calls themselves cost the same.
///          Opening asks the driver for two entries, and the first one makes one call more, as the
///          last to close does. While none is open, nothing.
/// Source:  CUDA Driver API, "Error Log Management Functions"; that each line comes on the thread
///          of its call, before that returns: docs/guarantees.md.
class [[nodiscard]] CUGUEST_API DriverLog {
 public:
  /// Errors: those of Driver::Get(), and
  ///         kUnimplemented       kEntryMissing: the driver has no cuLogsRegisterCallback: it is
  ///                              older than CUDA 12.9, or was adopted without
  ///         kFailedPrecondition  kForkedChild, with CUDA_ERROR_NOT_INITIALIZED
  ///         kResourceExhausted   no host memory
  ///         what registering gave. Nothing is open then that was not before.
  [[nodiscard]] static absl::StatusOr<DriverLog> Open();

  DriverLog(DriverLog&& other) noexcept;
  DriverLog& operator=(DriverLog&& other) noexcept;

  /// Close(), whose status is dropped.
  ~DriverLog();

  /// Ends this one; in a child that was forked from the process that opened it, without a call of
  /// the driver. One that was moved from is closed.
  /// Requires: a plugin closes its own before it is unloaded: the driver would call what is gone.
  /// Errors:   what unregistering the last one's callback gave: it stays open, and may be closed
  ///           again. That the driver has shut down is none.
  absl::Status Close();

  /// The driver's reason in one line, "cuLaunchKernel: ...", if this thread's last call of the
  /// driver through cuguest failed with `code` and no status has told it yet; empty otherwise: no
  /// DriverLog was open, or the driver gave no reason. At most 500 bytes, printable ASCII.
  /// Cost: no driver call.
  [[nodiscard]] static std::string Reason(CUresult code);

 private:
  CUGUEST_HIDE explicit DriverLog(int process) noexcept : process_(process) {}

  int process_;  // which has opened it; 0: closed
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_DRIVER_LOG_H_
