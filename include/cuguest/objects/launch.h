// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `Launch` runs a kernel on a stream, in that stream's context, whatever is current. It validates
/// shape and parameters, by the kernel's and the device's limits, before they reach the driver.
///
///   LaunchShape shape{/*grid=*/{64, 64}, /*block=*/{16, 16}};
///   absl::Status status = Launch(blur, shape, stream, pixels, radius);
///   // One thread for each element:
///   status = LaunchForElements(saxpy, x.size(), stream, n, a, x, y);   // buffers, or views

#ifndef CUGUEST_OBJECTS_LAUNCH_H_
#define CUGUEST_OBJECTS_LAUNCH_H_

#include <cuda.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/export.h"
#include "cuguest/objects/host_span.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/param_buffer.h"
#include "cuguest/objects/stream.h"

CUGUEST_BEGIN_NAMESPACE

/// How many threads a launch has, in what blocks, and what else it asks for.
///
///   LaunchShape shape{/*grid=*/{64, 64}, /*block=*/{16, 16}};
///   shape.shared_bytes = 16 << 10;
struct LaunchShape {
  /// A number of blocks or threads in each dimension.
  struct Dim3 {
    CUGUEST_HIDE constexpr Dim3(unsigned x_count = 1, unsigned y_count = 1,
                                unsigned z_count = 1) noexcept
        : x(x_count), y(y_count), z(z_count) {}
    unsigned x;
    unsigned y;
    unsigned z;
  };

  CUGUEST_HIDE LaunchShape() = default;
  CUGUEST_HIDE constexpr LaunchShape(Dim3 blocks, Dim3 threads,
                                     std::size_t dynamic_shared_bytes = 0) noexcept
      : grid(blocks), block(threads), shared_bytes(dynamic_shared_bytes) {}

  Dim3 grid;   ///< blocks
  Dim3 block;  ///< threads
  /// Bytes of dynamic shared memory per block; over 48 KiB see Kernel::SetMaxDynamicSharedBytes().
  std::size_t shared_bytes = 0;
  /// Blocks of a cluster; the grid must be a multiple. Unset: as the kernel was compiled.
  /// Needs: CUDA 11.8, compute capability 9.0.
  std::optional<Dim3> cluster = {};
  /// All blocks run at the same time, and may wait for one another. Needs: CUDA 11.6.
  bool cooperative = false;
  /// Further attributes, passed on as they are; read at the launch. Needs: CUDA 11.6.
  HostSpan<const CUlaunchAttribute> attributes = {};

  /// A row of blocks of `block` threads, for one thread for each of `count` elements. See also
  /// LaunchForElements().
  /// Requires: the kernel checks bounds: the last block may have more threads than there are
  ///           elements.
  /// Errors: kInvalidArgument  no elements, or a block of no threads
  ///         kOutOfRange       more than 2,147,483,647 blocks
  [[nodiscard]] CUGUEST_API static absl::StatusOr<LaunchShape> ForElements(std::size_t count,
                                                                           unsigned block);
};

namespace internal {

// Where parameters of these types lie, and in one more element where they end.
template <typename... Ts>
CUGUEST_HIDE constexpr std::array<Kernel::Parameter, sizeof...(Ts) + 1> PlaceParams() {
  static_assert((IsParam<Ts>() && ...));
  std::array<Kernel::Parameter, sizeof...(Ts) + 1> places = {{{0, sizeof(Ts)}..., {}}};
  const std::size_t alignments[] = {ParamTraits<Ts>::kAlignment..., 1};
  std::size_t end = 0;
  for (std::size_t i = 0; i <= sizeof...(Ts); ++i) {
    places[i].offset = AlignUp(end, alignments[i]);
    end = places[i].offset + places[i].size;
  }
  return places;
}
template <typename... Ts>
CUGUEST_HIDE inline constexpr auto kParamPlaces = PlaceParams<Ts...>();

// The parameters of a launch as cuLaunchKernel takes them, the address of each or all in one piece;
// and where each lies.
struct LaunchParams {
  void** each;                      // or null
  void** extra;                     // or null
  const Kernel::Parameter* places;  // null if the caller does not tell
  std::size_t count;
  const CUdevice* devices;  // whose memory each is, or kNoDeviceMemory; null if none is any
};
CUGUEST_HIDE inline constexpr CUdevice kNoDeviceMemory = -1;

// What a kernel is given for a value: of a view or a buffer the address of its elements.
template <typename T>
CUGUEST_HIDE decltype(auto) Passed(const T& value) noexcept {
  if constexpr (IsDeviceMemory<T>::value) {
    return value.get();
  } else {
    return static_cast<const T&>(value);
  }
}
template <typename T>
CUGUEST_HIDE CUdevice DeviceOf(const T& value) noexcept {
  if constexpr (IsDeviceMemory<T>::value) {
    return value.empty() ? kNoDeviceMemory : value.device().get();
  } else {
    return kNoDeviceMemory;
  }
}

// use(LaunchParams) of values of types that the caller has named.
template <typename Use, typename... Ts>
CUGUEST_HIDE auto WithPassed(const Use& use, const CUdevice* devices, const Ts&... values) {
  static_assert(kParamPlaces<Ts...>.back().offset <= ParamBuffer::kMaxBytes,
                "a kernel takes at most 32,764 bytes of parameters");
  const void* each[] = {static_cast<const void*>(std::addressof(values))..., nullptr};
  // The driver reads through them.
  return use(LaunchParams{const_cast<void**>(each), nullptr, kParamPlaces<Ts...>.data(),
                          sizeof...(Ts), devices});
}
template <typename Use, typename... Ts>
CUGUEST_HIDE auto WithParams(const Use& use, const Ts&... values) {
  if constexpr ((IsDeviceMemory<Ts>::value || ...)) {
    const CUdevice devices[] = {DeviceOf(values)...};
    return WithPassed(use, devices, Passed(values)...);
  } else {
    return WithPassed(use, nullptr, values...);
  }
}

CUGUEST_API absl::Status LaunchWith(const Kernel& kernel, const LaunchShape& shape,
                                    const StreamRef& stream, const LaunchParams& params);

template <typename... Ts>
CUGUEST_HIDE absl::Status LaunchTyped(const Kernel& kernel, const LaunchShape& shape,
                                      const StreamRef& stream, const Ts&... values) {
  return WithParams(
      [&](const LaunchParams& params) { return LaunchWith(kernel, shape, stream, params); },
      values...);
}

// Of LaunchForElements(); `count` is not 0.
CUGUEST_API absl::StatusOr<LaunchShape> ShapeForElements(const Kernel& kernel, std::size_t count,
                                                         const StreamRef& stream);

}  // namespace internal

/// Submits a launch; the parameters are copied before it returns. What the kernel does wrong, such
/// as using an illegal address, is the error of a later call. In a capture the launch becomes a
/// node of the graph. Of a DeviceView or a DeviceBuffer the kernel gets the address. A launch that
/// is refused here does not invalidate the capture; the driver,
/// given a bad shape, would. See Note [What is checked of a shape].
/// Requires: the stream and the code (a Module, a Kernel of it, or what owns borrowed code) are
///           kept until the kernel has run and, if it was captured, until the graph runs no more.
/// Stack:   as it was.
/// Count:   none.
/// Threads: any; not from a stream callback: kPermissionDenied.
/// Errors:  those of ObjectDriver::Get(), Kernel and StreamRef, and these. Nothing was launched
/// then.
///          kInvalidArgument     the shape: a dimension that is zero or more than the device or the
///                               kernel allows, too much shared memory, a grid that is no multiple
///                               of its cluster; or the parameters: see Note [What is checked of
///                               parameters]. The text names it, what was given and what is
///                               allowed. A view or a buffer of another device than the stream's,
///                               unless every device reaches its memory (managed, pinned host
///                               memory): where peer access is enabled, pass a DevicePtr of it.
///                               Memory of another context of the same device is not noticed.
///          kResourceExhausted   a cooperative grid whose blocks cannot all run at once on the
///                               multiprocessors of the stream's context (of a green one, its part
///                               of the device), or a cluster that does not fit on the device
///          kUnimplemented       a driver or a device without what the shape asks for
///          kFailedPrecondition  stream 0, while a blocking stream of its context captures; or the
///                               stream's capture was invalidated and was not ended
///          kDataLoss            an earlier sticky error
/// Cost:    three driver calls, two of them contention-free, no lock, no allocation. Two on a
///          device without clusters, for a launch without dynamic shared memory; then at most 1.03
///          times cuLaunchKernel alone (docs/cost.md). The third asks whether the stream captures,
///          and has not been measured beside a launch. In a capture four more ask what the kernel
///          allows, which other code can change. On stream 0, CU_STREAM_LEGACY and
///          CU_STREAM_PER_THREAD five, and seven if its context is not current. The first launch of
///          a kernel in a context asks more, and so does the first with each list of types. A
///          cluster adds four, or six if the context is not current, and so does a cooperative
///          grid.
/// Source:  CUDA Driver API, cuLaunchKernel, cuLaunchKernelEx.
template <typename... Values>
CUGUEST_HIDE absl::Status Launch(const Kernel& kernel, const LaunchShape& shape,
                                 const StreamRef& stream, const Values&... values) {
  static_assert(internal::AreParams<Values...>());
  return internal::LaunchTyped(kernel, shape, stream, values...);
}

/// The same with the parameters in one piece.
CUGUEST_API absl::Status Launch(const Kernel& kernel, const LaunchShape& shape,
                                const StreamRef& stream, const ParamBuffer& params);

/// The type-erased overload: a pointer to each parameter (kInvalidArgument if null). Name the
/// HostSpan: a container of pointers could be a parameter, and does not compile.
///
///   absl::Status status = Launch(kernel, shape, stream, HostSpan<void* const>(pointers));
/// Requires: each pointer is to an object as large as the kernel's parameter.
CUGUEST_API absl::Status Launch(const Kernel& kernel, const LaunchShape& shape,
                                const StreamRef& stream, HostSpan<void* const> params);

/// All of them on a stream that was handed in, in its context: StreamRef::Borrow() first, with its
/// errors and its two driver calls. Where a library launches often on one stream, keep the ref.
///
///   absl::Status Scale(CUstream callers, ...) { return Launch(scale, shape, callers, n, a, x); }
template <typename... Params>
CUGUEST_HIDE absl::Status Launch(const Kernel& kernel, const LaunchShape& shape,
                                 internal::CallersStream stream, const Params&... params) {
  const absl::StatusOr<StreamRef> ref =
      StreamRef::Borrow(stream.handle, internal::ZeroStream::kLegacy);
  return ref.ok() ? Launch(kernel, shape, *ref, params...) : ref.status();
}

/// Launches `kernel` with one thread for each of `count` elements: in a row of blocks of 256
/// threads, or of fewer if the kernel allows no more in the stream's context (by its launch bounds
/// or registers), or of the size that it is compiled for (.reqntid, __block_size__). `params` are
/// those of any form of Launch(). Where the block matters to the kernel's speed, see occupancy.h.
///
///   absl::Status status = LaunchForElements(scale, x.size(), stream, n, a, DevicePtr(x));
///
/// No elements: success; nothing is launched or checked, and the driver is not called.
/// Requires: that of Launch(), and the kernel checks bounds: the last block may have more threads
///           than there are elements.
/// Errors: those of Launch(), and as follows. Nothing was launched then.
///         kOutOfRange       more elements than 2,147,483,647 blocks have threads
///         kInvalidArgument  a kernel that is compiled for blocks of more than one dimension, or
///                           for clusters of which the grid is no multiple
/// Stack, count, captures, cost: those of Launch(). The block costs no driver call.
/// Threads: any; as Launch().
template <typename... Params>
CUGUEST_HIDE absl::Status LaunchForElements(const Kernel& kernel, std::size_t count,
                                            const StreamRef& stream, const Params&... params) {
  if (count == 0) return absl::OkStatus();
  const absl::StatusOr<LaunchShape> shape = internal::ShapeForElements(kernel, count, stream);
  if (!shape.ok()) return shape.status();
  return Launch(kernel, *shape, stream, params...);
}
template <typename... Params>
CUGUEST_HIDE absl::Status LaunchForElements(const Kernel& kernel, std::size_t count,
                                            internal::CallersStream stream,
                                            const Params&... params) {
  if (count == 0) return absl::OkStatus();
  const absl::StatusOr<StreamRef> ref =
      StreamRef::Borrow(stream.handle, internal::ZeroStream::kLegacy);
  return ref.ok() ? LaunchForElements(kernel, count, *ref, params...) : ref.status();
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_LAUNCH_H_
