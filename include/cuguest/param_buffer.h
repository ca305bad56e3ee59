// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
/// \file
/// The parameters of a launch in one piece, laid out as the kernel reads them
/// (CU_LAUNCH_PARAM_BUFFER_POINTER). `PackedParams` has types that are known to the compiler:
///
///   PackedParams params(n, 2.0F, DevicePtr(x), DevicePtr(y));   // once
///   params.Set<1>(3.0F);                                        // and changed
///   absl::Status status = Launch(kernel, shape, stream, params);
///
/// `ParamBuffer` has sizes that are known only at run time, as in a server that compiles requests:
///
///   ParamBuffer params;
///   for (const Value& value : request.values()) {
///     absl::Status status = params.AddBytes(value.data(), value.size(), value.alignment());
///     if (!status.ok()) return status;
///   }
///
/// Padding between parameters is zero and leaks no host memory; that in a struct is the struct's.
/// Threads: values; one object needs outside locking.

#ifndef CUGUEST_PARAM_BUFFER_H_
#define CUGUEST_PARAM_BUFFER_H_

#include <array>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cuguest/export.h"
#include "cuguest/param_layout.h"

CUGUEST_BEGIN_NAMESPACE

/// Cost: a copy of the bytes; no allocation.
template <typename... Ts>
class PackedParams {
 public:
  using Layout = ParamLayout<Ts...>;
  template <std::size_t kIndex>
  using Type = std::tuple_element_t<kIndex, std::tuple<Ts...>>;

  CUGUEST_HIDE explicit PackedParams(const Ts&... values) noexcept {
    std::size_t index = 0;
    (Write(index++, values), ...);
    static_cast<void>(index);
  }

  template <std::size_t kIndex, CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE void Set(const Type<kIndex>& value) noexcept {
    Write(kIndex, value);
  }

  [[nodiscard]] CUGUEST_HIDE const unsigned char* data() const noexcept { return bytes_.data(); }
  [[nodiscard]] CUGUEST_HIDE static constexpr std::size_t size() noexcept {
    return Layout::kBytes;
  }  // bytes
  [[nodiscard]] CUGUEST_HIDE static constexpr internal::ParamLayoutView layout() noexcept {
    return Layout::View();
  }

 private:
  template <typename T, CUGUEST_HIDE_TEMPLATE>
  CUGUEST_HIDE void Write(std::size_t index, const T& value) noexcept {
    std::memcpy(bytes_.data() + Layout::kPlaces[index].offset, &value, sizeof(T));
  }

  std::array<unsigned char, Layout::kBytes> bytes_{};
};

template <typename... Ts>
PackedParams(const Ts&...) -> PackedParams<Ts...>;

/// Cost: allocates as a vector does; no driver call.
class CUGUEST_API ParamBuffer {
 public:
  CUGUEST_HIDE ParamBuffer(const ParamBuffer&) = default;
  CUGUEST_HIDE ParamBuffer(ParamBuffer&&) = default;
  CUGUEST_HIDE ParamBuffer& operator=(const ParamBuffer&) = default;
  CUGUEST_HIDE ParamBuffer& operator=(ParamBuffer&&) = default;
  CUGUEST_HIDE ~ParamBuffer() = default;

  CUGUEST_HIDE ParamBuffer() = default;

  /// Adds the next parameter.
  /// Errors: kOutOfRange  more than kMaxParamBytes in all; nothing is added then
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
  [[nodiscard]] CUGUEST_HIDE std::size_t count() const noexcept {
    return places_.size();
  }  // parameters

  /// Of parameter `index`, which must be less than count().
  [[nodiscard]] CUGUEST_HIDE const ParamPlace& place(std::size_t index) const noexcept {
    return places_[index];
  }

  [[nodiscard]] CUGUEST_HIDE internal::ParamLayoutView layout() const noexcept {
    return {places_.data(), places_.size(), can_be_packed_};
  }

 private:
  std::vector<unsigned char> bytes_;
  std::vector<ParamPlace> places_;
  bool can_be_packed_ = true;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_PARAM_BUFFER_H_
