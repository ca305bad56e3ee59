// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
/// \file
/// What the core says of a failure, without Abseil: the name and meaning of each `CUresult`, and
/// `Error`, which the objects of the core have if they are not ok(). For statuses see status.h.
///
///   const cuguest::SharedContext shared = cuguest::SharedContext::Attach(handle);
///   char text[400];
///   shared.error().Write(text, sizeof(text));   // nothing if it is ok()
///   std::fputs(text, stderr);   // "attach, context 0x5581...: its last holder is destroying ..."

#ifndef CUGUEST_ERROR_H_
#define CUGUEST_ERROR_H_

#include <cuda.h>

#include <cstddef>

#include "cuguest/export.h"

CUGUEST_BEGIN_NAMESPACE

/// ErrorName(), ErrorText()
///
/// The name ("CUDA_ERROR_OUT_OF_MEMORY") and one sentence that says what it means and what to do.
/// Never null; a code newer than cuguest gives "CUDA_ERROR_UNRECOGNIZED". Calls no driver.
[[nodiscard]] CUGUEST_API const char* ErrorName(CUresult code) noexcept;
[[nodiscard]] CUGUEST_API const char* ErrorText(CUresult code) noexcept;

/// True for the errors after which every context of the process on that device is lost: allocation,
/// context creation and cuDevicePrimaryCtxRetain all return them from then on, while the stack can
/// still be pushed, popped and restored.
[[nodiscard]] CUGUEST_API bool IsSticky(CUresult code) noexcept;

/// What came of an operation of the core: success, or what failed, at what, and why.
/// Threads: value.
struct [[nodiscard]] Error {
  enum class Reason : unsigned char {
    kDriver,          ///< the driver answered `code`
    kNoDriver,        ///< there is no usable driver: see Driver::Get()
    kNotInitialized,  ///< cuInit answered `code`
    kTooOld,          ///< the driver lacks what is needed
    kEmpty,           ///< an object that holds nothing, or nullptr
    kNoContext,       ///< no context can be at this address
    kClosing,         ///< the last holder is destroying the context
    kNoMemory,        ///< of the host
    kDestroyed,       ///< destroyed or reset while it was held
    kNobodyHolds,     ///< the primary context is not active
    kBothOptions,     ///< two options that exclude each other
    kNoSms,           ///< a context of no multiprocessors
    kNoData,          ///< an option whose data is null
    kUnknownMemory,   ///< CUDA does not know the memory
    kNoRange,         ///< no bytes, or more than there are addresses
    kOutside,         ///< a range that no allocation holds
    kNoDevice,        ///< memory of a device that this process does not see
    kOtherDevice,     ///< what is current is on another device
    kInactive,        ///< nothing is current on the device, and its primary context is not active
    kBeingMade,       ///< a value that this thread, or one that waits for it, is making
  };
  /// What `handle` and `device` name.
  enum class Subject : unsigned char {
    kNothing,
    kAdvice,  ///< `handle` is the address of a phrase
    kContext,
    kPrimary,  ///< the primary context of `device`
    kDevice,
    kDeviceOfMemory,  ///< `device`, of the memory at `handle`, which no context owns
    kStream,
    kPointer,
    kRange,     ///< `bytes` at `handle`
    kOwner,     ///< memory that belongs to the context `handle`
    kCreation,  ///< a context on `device`: flags in `handle`, SMs in `bytes`, and `cig_type`
  };

  CUresult code = CUDA_SUCCESS;
  Reason reason = Reason::kDriver;
  Subject subject = Subject::kNothing;
  unsigned short cig_type = 0;  ///< 1 more than the CUcigDataType; 0: none
  const char* doing = "";       ///< a verb phrase ("attach"), in static storage
  unsigned long long handle = 0;
  CUcontext current = nullptr;  ///< kOtherDevice, kInactive: what is current, on `current_device`
  CUdevice device = 0;
  CUdevice current_device = 0;
  unsigned long long bytes = 0;        ///< of kRange; the SMs of kCreation
  unsigned long long found_at = 0;     ///< kOutside: where the allocation there begins,
  unsigned long long found_bytes = 0;  ///< and its size

  CUGUEST_HIDE Error() = default;

  [[nodiscard]] CUGUEST_HIDE bool ok() const noexcept { return code == CUDA_SUCCESS; }

  /// Writes what ToStatus() says, as far as it fits, with a NUL behind it, and returns the number
  /// of bytes without that which the whole has. ToStatus() says more of kNoDriver and
  /// kNotInitialized, of which this writes the code alone, of kTooOld (which driver has it) and of
  /// kNoDevice (how many there are), and the driver's reason, where a DriverLog is open. Calls no
  /// driver, allocates nothing.
  CUGUEST_API std::size_t Write(char* text, std::size_t size) const noexcept;
};

namespace internal {
// Of an object that has a result(), and says these two of it.
[[nodiscard]] CUGUEST_API Error MakeError(CUresult code, const char* doing,
                                          const char* advice) noexcept;
}  // namespace internal

CUGUEST_END_NAMESPACE

// In a class whose objects are ok() or have an error(): such an object does not become an
// absl::StatusOr by itself, which would be OK whatever the object is. Where it is known to be ok(),
// write the conversion: absl::StatusOr<T>(std::move(object)).
#define CUGUEST_INTERNAL_IS_NO_STATUS_OR(T)                                    \
  template <template <typename> class StatusOr,                                \
            typename = decltype(static_cast<StatusOr<T>*>(nullptr)->status())> \
  operator StatusOr<T>()&& = delete

#endif  // CUGUEST_ERROR_H_
