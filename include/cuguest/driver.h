// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 1
/// \file
/// `Driver` is a table of driver entry points that was resolved at run time, so that neither
/// cuguest nor its embedder links libcuda: a program without a driver starts, and gets a status
/// when it asks.
///
///   absl::StatusOr<const cuguest::Driver*> driver = cuguest::Driver::Get();
///   if (!driver.ok()) return driver.status();     // says what is missing
///   (*driver)->CtxPushCurrent(context);           // is cuCtxPushCurrent_v2
///
/// driver_table.h lists the entries: those of devices and contexts. Those of streams, memory, code
/// and graphs are ObjectDriver's (objects/driver.h). Nothing happens before the first call: no
/// static constructor, no thread, no environment variable, no dlopen, no cuInit.

#ifndef CUGUEST_DRIVER_H_
#define CUGUEST_DRIVER_H_

#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/driver_table.h"
#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// Stack:   no member touches it.
/// Threads: immutable; every function here may be called from any thread, also at the same time for
///          the first time. None holds a lock, so all of them may be called where the dynamic
///          linker's lock is held: in the constructor of a library that is being loaded. Threads
///          that race for the first use each load the driver library, and keep one table.
struct CUGUEST_API Driver : DriverTable {
  CUGUEST_HIDE Driver() = default;

  /// The process's driver, resolved from "libcuda.so.1" on the first call unless Adopt() has given
  /// one. "The process's" is this copy of cuguest's: each library that embeds cuguest has a table
  /// of its own. Does not call cuInit: enough for work in a context that somebody else made.
  /// Errors: kUnavailable         kNoLibrary: the text holds the loader's words. The next call
  ///                              looks again, so that a driver which the program loads meanwhile,
  ///                              by whatever path, or adopts, is found
  ///         kFailedPrecondition  kStub, with CUDA_ERROR_STUB_LIBRARY
  ///         kUnimplemented       kTooOld: names the entry and the driver that has it
  ///         kResourceExhausted   kOther, with CUDA_ERROR_OUT_OF_MEMORY: no host memory; the next
  ///                              call tries again
  ///         What a library that was opened is, usable or not, is kept for the life of the process.
  /// Cost:   the first call loads the driver library (milliseconds); later ones read one atomic.
  ///         Where there is no driver, each call is a dlopen that fails (microseconds). What gives
  ///         a code or an Error makes one only where the process has loaded a library since the
  ///         last, and eight times a second.
  [[nodiscard]] static absl::StatusOr<const Driver*> Get();

  /// The same, after cuInit(0), which devices and primary contexts need. cuInit is visible to the
  /// host: a child forked afterwards cannot use CUDA, so a library should call this when it is
  /// asked to work, not when it is loaded.
  /// Errors: those of Get(), and
  ///         kFailedPrecondition  kForkedChild, with CUDA_ERROR_NOT_INITIALIZED
  ///         kNotFound            kNoDevice, with CUDA_ERROR_NO_DEVICE
  ///         A failed cuInit is tried again by the next call.
  /// Cost:   cuInit the first time; then a few atomic reads.
  /// Source: CUDA Driver API, "Initialization".
  [[nodiscard]] static absl::StatusOr<const Driver*> GetInitialized();

  /// Whether CUDA is initialised in this process, by whomever: whether a child that is forked now
  /// could not use it. False in such a child, which GetInitialized() refuses by its name. Loads and
  /// initialises nothing.
  /// Cost:   none if no driver library is loaded, or this copy of cuguest has called cuInit; else
  ///         one driver call, which fails if the answer is false: no call says so and succeeds.
  ///         It is no line in the log of errors, which begins with cuInit.
  /// Source: CUDA Driver API, "Initialization"; docs/guarantees.md.
  [[nodiscard]] static bool IsInitialized() noexcept;

  /// Makes the driver that `lookup` knows the process's: for a host that has loaded the driver
  /// itself, a test that replaces entries, a tool that wraps them. Call it before anything else of
  /// this copy of cuguest; "libcuda.so.1" is then never opened. After a use that found none, too.
  ///
  /// `lookup` is called with each name of the table that its driver's version may have during this
  /// call, and later by the first use of an ObjectDriver, by Find() and by
  /// SharedContext::Create(Device, const Options&), on any thread. It may call cuguest, but that is
  /// a first use.
  /// Requires: `lookup` does not throw, and it, `user` and the functions that it gives outlive
  ///           every use of this copy of cuguest.
  /// Errors: the table is as if this had not been called:
  ///         kInvalidArgument     `lookup` is null
  ///         kFailedPrecondition  kInUse: after the first use that found a driver library, or
  ///                              after another Adopt()
  ///                              kStub: cuDriverGetVersion answered CUDA_ERROR_STUB_LIBRARY
  ///         kUnimplemented       kTooOld: `lookup` has no address for a required entry; the text
  ///                              names it
  ///         kResourceExhausted   kOther: no host memory
  /// Cost:   a call of `lookup` for each entry, and cuDriverGetVersion.
  static absl::Status Adopt(DriverLookup lookup, void* user);

  /// Fills `driver` from the library at `path` (a soname or a file), leaving the process's own
  /// table alone. For tests, and tools that look at several drivers. The library is never unloaded.
  /// Errors: those of Get(); `driver` is then unchanged.
  static absl::Status Load(const char* path, Driver* driver);

  /// The entry `member`, or a status that names it and says which driver first has it:
  ///
  ///   auto get_id = driver->Require(&Driver::CtxGetId);
  ///
  /// Errors: kUnimplemented, kEntryMissing.
  template <typename Function>
  [[nodiscard]] CUGUEST_HIDE absl::StatusOr<Function> Require(Function DriverTable::*member) const {
    const Function function = this->*member;
    if (function != nullptr) return function;
    return MissingEntry(static_cast<std::size_t>(reinterpret_cast<const char*>(&(this->*member)) -
                                                 reinterpret_cast<const char*>(this)));
  }

  /// The driver's function `name`, for what the table does not list. One that takes a stream has
  /// the legacy default stream for stream 0:
  ///
  ///   auto create = driver->Find<PFN_cuGraphCreate_v10000>("cuGraphCreate", 10000);
  ///
  /// Drivers before CUDA 11.3 cannot be asked for a version: only functions of the table are found.
  /// Requires: `Function` is the signature that API version `api_version` introduced, which
  ///           <cudaTypedefs.h> names PFN_<name>_v<api_version>.
  /// Errors: kUnimplemented    kEntryMissing: this driver has no such function
  ///         kInvalidArgument  `name` is null, `api_version` is not positive, or the table is empty
  /// Cost:   one cuGetProcAddress or call of the adopted lookup; keep the result.
  template <typename Function>
  [[nodiscard]] CUGUEST_HIDE absl::StatusOr<Function> Find(const char* name,
                                                           int api_version) const {
    static_assert(
        std::is_function_v<std::remove_pointer_t<Function>> && sizeof(Function) == sizeof(void*),
        "Function is a pointer to a function");
    const absl::StatusOr<void*> address = FindAddress(name, api_version);
    if (!address.ok()) return address.status();
    return reinterpret_cast<Function>(*address);
  }

 private:
  absl::Status MissingEntry(std::size_t offset) const;
  absl::StatusOr<void*> FindAddress(const char* name, int api_version) const;
};

/// Which of the problems a status from this header (or from anything that passed it on) reports;
/// `kNone` for any other status.
[[nodiscard]] CUGUEST_API Driver::Problem ProblemOf(const absl::Status& status);

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_DRIVER_H_
