// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `ParamBuffer` is the parameters of a launch in one piece, laid out as the kernel reads them
/// (CU_LAUNCH_PARAM_BUFFER_POINTER). It is for types and sizes that are known only at run time, as
/// in a server that compiles requests. Where the compiler knows them, pass values to Launch().
///
///   ParamBuffer params;
///   for (const Value& value : request.values()) {
///     absl::Status status = params.AddBytes(value.data(), value.size(), value.alignment());
///     if (!status.ok()) return status;
///   }
///   absl::Status status = Launch(kernel, shape, stream, params);
///
/// `ParamTraits` says how a type is aligned in device code, where the host aligns it to less.

#ifndef CUGUEST_OBJECTS_PARAM_BUFFER_H_
#define CUGUEST_OBJECTS_PARAM_BUFFER_H_

#include <cstddef>
#include <type_traits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "cuguest/export.h"
#include "cuguest/objects/host_span.h"
#include "cuguest/objects/kernel.h"

CUGUEST_BEGIN_NAMESPACE

template <typename T>
class DeviceBuffer;
template <typename T>
class DeviceView;
template <typename T>
class ScratchBuffer;

/// The alignment in device code of a parameter of type T. Specialise it for a struct that has less
/// on the host, and the same size and padding:
///
///   struct Quad { float x, y, z, w; };               // a float4 in the kernel
///   template <>
///   struct cuguest::ParamTraits<Quad> { static constexpr std::size_t kAlignment = 16; };
template <typename T>
struct ParamTraits {
  CUGUEST_HIDE static constexpr std::size_t kAlignment =
      sizeof(T) == 8 && (std::is_arithmetic_v<T> || std::is_pointer_v<T>) ? 8 : alignof(T);
};

namespace internal {

template <typename T>
struct IsOfTheHost : std::false_type {};
template <typename T>
struct IsOfTheHost<HostSpan<T>> : std::true_type {};

// A view or a buffer, which is the address of its elements to a kernel.
template <typename T>
struct IsDeviceMemory : std::false_type {};
template <typename T>
struct IsDeviceMemory<DeviceBuffer<T>> : std::true_type {};
template <typename T>
struct IsDeviceMemory<DeviceView<T>> : std::true_type {};
template <typename T>
struct IsDeviceMemory<ScratchBuffer<T>> : std::true_type {};

template <typename T, typename = void>
struct HoldsPointers : std::is_pointer<T> {};
template <typename T>
struct HoldsPointers<T, std::enable_if_t<std::is_pointer_v<decltype(std::declval<T&>().data())> &&
                                         std::is_integral_v<decltype(std::declval<T&>().size())>>>
    : HoldsPointers<std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<T&>().data())>>> {
};

// Explains why values of these types, which the caller has not named, are no parameters.
template <typename... Values>
CUGUEST_HIDE constexpr bool AreParams() {
  static_assert((!std::is_pointer_v<Values> && ...),
                "a pointer may as well be the host's: pass DevicePtr<T>(pointer) if it is one for "
                "the device, or launch a TypedKernel, whose types say that it takes pointers");
  static_assert((... && (std::is_pointer_v<Values> || !HoldsPointers<Values>::value)),
                "a container of pointers would be one parameter, by value: for a pointer to each "
                "parameter pass a HostSpan<void* const> of it to Launch(); for pointers of the "
                "device make it one of DevicePtr<T>, or launch a TypedKernel");
  static_assert(
      (... && (IsOfTheHost<Values>::value || IsDeviceMemory<Values>::value ||
               HoldsPointers<Values>::value || !internal::RefersToElements<Values>::value)),
      "a view may as well be one of the host's memory: pass a DevicePtr<T> and the "
      "number of elements, or launch a TypedKernel, whose types say that it takes views");
  return true;
}

template <typename T>
CUGUEST_HIDE constexpr bool IsParam() {
  static_assert(!std::is_reference_v<T>,
                "a kernel takes its parameters by value: it cannot reach what is on the host");
  static_assert(!std::is_array_v<T>,
                "an array cannot be a parameter by value: put it into a struct, or pass a "
                "DevicePtr to its copy on the device");
  static_assert(!std::is_null_pointer_v<T>, "pass a DevicePtr<T>(), nullptr has no type");
  static_assert(!IsOfTheHost<T>::value,
                "this object is for the host: pass a DeviceView or a DeviceBuffer, or a "
                "DevicePtr<T>");
  static_assert(!IsDeviceMemory<T>::value,
                "only a launch takes a view or a buffer, since it compares their device with the "
                "stream's: pass DevicePtr<T>(view), of a DeviceBuffer its view()");
  static_assert(std::is_trivially_copyable_v<T>,
                "a parameter is copied to the device byte by byte: its type must be trivially "
                "copyable");
  static_assert(sizeof(T) != 0, "a parameter has at least one byte");
  static_assert(!std::is_same_v<T, long double>, "device code has no long double");
  static_assert(ParamTraits<T>::kAlignment != 0 &&
                    (ParamTraits<T>::kAlignment & (ParamTraits<T>::kAlignment - 1)) == 0,
                "ParamTraits<T>::kAlignment must be a power of two");
  static_assert(sizeof(T) % ParamTraits<T>::kAlignment == 0,
                "ParamTraits<T>::kAlignment says that T is larger on the device: declare it on "
                "the host with the same padding");
  return true;
}

// Of a type that the caller has named.
template <typename T>
CUGUEST_HIDE constexpr bool IsLaunchParam() {
  if constexpr (IsDeviceMemory<T>::value && std::is_trivially_copyable_v<T>) {
    return true;
  } else {
    return IsParam<T>();
  }
}

CUGUEST_HIDE constexpr std::size_t AlignUp(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) & ~(alignment - 1);
}

}  // namespace internal

/// Padding between parameters is zero and leaks no host memory; that in a struct is the struct's.
/// Threads: value.
/// Cost: no driver call. Allocates as a vector does, beyond 64 bytes or 8 parameters.
class CUGUEST_API ParamBuffer {
 public:
  /// The driver's limit on the newest devices; 4,096 on others, and before CUDA 12.1.
  CUGUEST_HIDE static constexpr std::size_t kMaxBytes = 32764;

  CUGUEST_HIDE ParamBuffer(const ParamBuffer&) = default;
  CUGUEST_HIDE ParamBuffer(ParamBuffer&&) = default;
  CUGUEST_HIDE ParamBuffer& operator=(const ParamBuffer&) = default;
  CUGUEST_HIDE ParamBuffer& operator=(ParamBuffer&&) = default;
  CUGUEST_HIDE ~ParamBuffer() = default;

  CUGUEST_HIDE ParamBuffer() = default;

  /// Adds the next parameter. A type that cannot be one does not compile.
  /// Errors: kOutOfRange  more than kMaxBytes in all; nothing is added then
  template <typename T>
  CUGUEST_HIDE absl::Status Add(const T& value) {
    static_assert(internal::IsParam<T>());
    return AddBytes(&value, sizeof(T), ParamTraits<T>::kAlignment);
  }

  /// The same by size and alignment in device code, both in bytes. `data` may be in this buffer.
  /// Errors: as Add(), and
  ///         kInvalidArgument  an alignment that is no power of two; a size that is 0 or no
  ///                           multiple of it; null
  absl::Status AddBytes(const void* data, std::size_t size, std::size_t alignment);

  /// Removes all parameters, and keeps the memory.
  void Clear() noexcept;

  [[nodiscard]] CUGUEST_HIDE const unsigned char* data() const noexcept { return bytes_.data(); }
  [[nodiscard]] CUGUEST_HIDE std::size_t size() const noexcept { return bytes_.size(); }  // bytes

  /// Where each lies in data(); those of a kernel are Kernel::ParametersIn().
  [[nodiscard]] CUGUEST_HIDE HostSpan<const Kernel::Parameter> parameters() const noexcept {
    return {parameters_.data(), parameters_.size()};
  }

  /// Whether data() is right on every device. It is not with a parameter that is aligned to more
  /// than 16 bytes: a launch passes each by its address then, and allocates.
  /// See Note [Alignment on the host and on the device].
  [[nodiscard]] CUGUEST_HIDE bool can_be_packed() const noexcept { return can_be_packed_; }

 private:
  absl::InlinedVector<unsigned char, 64> bytes_;
  absl::InlinedVector<Kernel::Parameter, 8> parameters_;
  bool can_be_packed_ = true;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_PARAM_BUFFER_H_
