// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// Where a kernel finds its parameters: each at the next multiple of its type's alignment in device
/// code, nothing behind the last. `ParamLayout` computes this for types at compile time.
///
///   using Layout = cuguest::ParamLayout<int, float4, char>;
///   static_assert(Layout::kPlaces[1].offset == 16 && Layout::kBytes == 33);

#ifndef CUGUEST_PARAM_LAYOUT_H_
#define CUGUEST_PARAM_LAYOUT_H_

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "cuguest/export.h"
#include "cuguest/host_span.h"

CUGUEST_BEGIN_NAMESPACE

template <typename T>
class DeviceBuffer;
template <typename T>
class DeviceView;

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

/// The driver's limit in bytes on the newest devices; 4,096 on others, and before CUDA 12.1.
CUGUEST_HIDE inline constexpr std::size_t kMaxParamBytes = 32764;

/// The place of a parameter, in bytes from the start of the parameters.
struct ParamPlace {
  std::size_t offset;
  std::size_t size;
};

namespace internal {

template <typename T>
struct IsOfTheHost : std::false_type {};
template <typename T>
struct IsOfTheHost<DeviceBuffer<T>> : std::true_type {};
template <typename T>
struct IsOfTheHost<DeviceView<T>> : std::true_type {};
template <typename T>
struct IsOfTheHost<HostSpan<T>> : std::true_type {};

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
  static_assert((... && (IsOfTheHost<Values>::value || HoldsPointers<Values>::value ||
                         !RefersToElements<Values>::value)),
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
                "this object is for the host: pass DevicePtr<T>(view), of a DeviceBuffer its "
                "view()");
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

CUGUEST_HIDE constexpr std::size_t AlignUp(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) & ~(alignment - 1);
}

struct ParamShape {
  std::size_t size;
  std::size_t alignment;
};

template <std::size_t kCount>
CUGUEST_HIDE constexpr std::array<ParamPlace, kCount> PlacesOf(const ParamShape (&shapes)[kCount]) {
  std::array<ParamPlace, kCount> places{};
  std::size_t end = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    places[i].offset = AlignUp(end, shapes[i].alignment);
    places[i].size = shapes[i].size;
    end = places[i].offset + places[i].size;
  }
  return places;
}

// What is aligned to more lies elsewhere on each architecture, and cannot be packed for all.
constexpr std::size_t kMaxPackedAlignment = 16;

struct ParamLayoutView {
  const ParamPlace* places;
  std::size_t count;
  bool can_be_packed;
};

}  // namespace internal

/// A type that cannot be a parameter does not compile; the error explains why.
template <typename... Ts>
struct ParamLayout {
  static_assert((internal::IsParam<Ts>() && ...));

  CUGUEST_HIDE static constexpr std::size_t kCount = sizeof...(Ts);
  CUGUEST_HIDE static constexpr std::array<ParamPlace, kCount> kPlaces =
      internal::PlacesOf<kCount>({{sizeof(Ts), ParamTraits<Ts>::kAlignment}...});
  /// Without padding behind the last, which a struct would have.
  CUGUEST_HIDE static constexpr std::size_t kBytes =
      kPlaces[kCount - 1].offset + kPlaces[kCount - 1].size;
  static_assert(kBytes <= kMaxParamBytes, "a kernel takes at most 32,764 bytes of parameters");

  [[nodiscard]] CUGUEST_HIDE static constexpr internal::ParamLayoutView View() noexcept {
    return {kPlaces.data(), kCount,
            ((ParamTraits<Ts>::kAlignment <= internal::kMaxPackedAlignment) && ...)};
  }
};

/// Of a kernel without parameters.
template <>
struct ParamLayout<> {
  CUGUEST_HIDE static constexpr std::size_t kCount = 0;
  CUGUEST_HIDE static constexpr std::array<ParamPlace, 0> kPlaces{};
  CUGUEST_HIDE static constexpr std::size_t kBytes = 0;

  [[nodiscard]] CUGUEST_HIDE static constexpr internal::ParamLayoutView View() noexcept {
    return {nullptr, 0, true};
  }
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_PARAM_LAYOUT_H_
