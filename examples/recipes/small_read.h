// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that reads a file into device memory of whatever context, with a stream and pinned
// memory for each. test/cache/small_read_test.cc counts its driver calls.

#ifndef SMALL_READ_H_
#define SMALL_READ_H_

#include <cuda.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/capture.h"
#include "cuguest/context_ref.h"
#include "cuguest/objects/driver.h"
#include "cuguest/objects/pinned_buffer.h"
#include "cuguest/objects/stream.h"
#include "cuguest/per_context.h"
#include "cuguest/relaxed.h"
#include "cuguest/status.h"

struct Staging {
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  static absl::StatusOr<Staging> Make(const cuguest::ContextRef& context) {
    CUGUEST_ASSIGN_OR_RETURN(cuguest::Stream stream, cuguest::Stream::Create(context));
    CUGUEST_ASSIGN_OR_RETURN(auto pages, cuguest::PinnedBuffer<char>::Allocate(context, kBytes));
    return Staging{std::move(stream), std::move(pages), std::make_unique<std::mutex>()};
  }
  void Leak() noexcept {  // the context is over
    static_cast<void>(stream.Leak());
    static_cast<void>(pages.Leak());
  }

  cuguest::Stream stream;
  cuguest::PinnedBuffer<char> pages;
  std::unique_ptr<std::mutex> busy;
};

class FileReader {
 public:
  // Reads `bytes` of `file` from `at` on to device memory.
  absl::Status Read(int file, off_t at, CUdeviceptr to, std::size_t bytes) {
    const cuguest::CaptureModeGuard relaxed;  // the wait breaks nobody's capture
    const cuguest::Acquired found = cuguest::AcquireFromPointer(to);
    CUGUEST_RETURN_IF_ERROR(ToStatus(found));
    return ReadIn(found.context(), file, at, to, bytes);
  }

  // The same with the context current: for what takes the current one, as cuMemAlloc or cuBLAS.
  absl::Status ReadInside(int file, off_t at, CUdeviceptr to, std::size_t bytes) {
    const cuguest::Relaxed<cuguest::AcquiredGuard> guard(to);
    CUGUEST_RETURN_IF_ERROR(guard);
    return ReadIn(guard.context(), file, at, to, bytes);
  }

 private:
  // `context` is the key of the cache: neither it nor the current context is asked for again.
  absl::Status ReadIn(const cuguest::ContextRef& context, int file, off_t at, CUdeviceptr to,
                      std::size_t bytes) {
    CUGUEST_ASSIGN_OR_RETURN(const auto mine, staging_.GetOrMake(context, &Staging::Make));
    CUGUEST_ASSIGN_OR_RETURN(const cuguest::ObjectDriver* const driver,
                             cuguest::ObjectDriver::Get());
    const std::lock_guard<std::mutex> lock(*mine->busy);
    while (bytes > 0) {
      const ssize_t got =
          pread(file, mine->pages.data(), std::min(bytes, mine->pages.size_bytes()), at);
      if (got < 0) return absl::ErrnoToStatus(errno, "read a file");
      if (got == 0) return absl::OutOfRangeError("the file ends before");
      const auto part = static_cast<std::size_t>(got);
      // Both work in the stream's context, whatever is current.
      CUGUEST_RETURN_IF_ERROR(cuguest::ToStatus(
          driver->MemcpyHtoDAsync(to, mine->pages.data(), part, mine->stream.get()), "copy"));
      CUGUEST_RETURN_IF_ERROR(
          cuguest::ToStatus(driver->StreamSynchronize(mine->stream.get()), "wait for a copy"));
      at += got;
      to += part;
      bytes -= part;
    }
    return absl::OkStatus();
  }

  cuguest::PerContext<Staging> staging_;
};

#endif  // SMALL_READ_H_
