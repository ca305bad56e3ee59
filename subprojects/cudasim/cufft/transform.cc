// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cufft/plan.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <unsupported/Eigen/FFT>
#include <utility>
#include <vector>

#include "library/kernel.h"

namespace cudasim::cufft {
namespace {

using cudasim::library::MayAccess;

// Calls with each index of a box, in order.
template <typename Function>
void ForEach(const Number size[3], const Function& function) {
  Number at[3];
  for (at[0] = 0; at[0] < size[0]; ++at[0]) {
    for (at[1] = 0; at[1] < size[1]; ++at[1]) {
      for (at[2] = 0; at[2] < size[2]; ++at[2]) function(at);
    }
  }
}

// One transform of a batch, as complex numbers in order.
template <typename Real>
class Box {
 public:
  using Complex = std::complex<Real>;

  explicit Box(const Layout& layout)
      : layout_(layout), values_(static_cast<size_t>(layout.Elements())) {}

  void Load(const void* input, Number batch) {
    const Number base = batch * layout_.input.distance;
    ForEach(layout_.size, [&](const Number at[3]) { At(at) = Read(input, base, at); });
  }

  void Transform(bool is_inverse) {
    Eigen::FFT<Real> fft(typename Eigen::FFT<Real>::impl_type(), Eigen::FFT<Real>::Unscaled);
    Number apart = 1;
    for (int axis = 2; axis >= 0; --axis) {
      if (layout_.size[axis] > 1) TransformAxis(&fft, layout_.size[axis], apart, is_inverse);
      apart *= layout_.size[axis];
    }
  }

  void Store(void* output, Number batch) const {
    const Number base = batch * layout_.output.distance;
    Number size[3];
    std::copy_n(layout_.size, 3, size);
    if (layout_.IsFromReal()) size[2] = size[2] / 2 + 1;
    ForEach(size, [&](const Number at[3]) {
      const Number index = base + layout_.output.IndexOf(at);
      if (layout_.IsToReal()) {
        static_cast<Real*>(output)[index] = At(at).real();
      } else {
        static_cast<Complex*>(output)[index] = At(at);
      }
    });
  }

 private:
  const Complex& At(const Number at[3]) const {
    return values_[static_cast<size_t>((at[0] * layout_.size[1] + at[1]) * layout_.size[2] +
                                       at[2])];
  }
  Complex& At(const Number at[3]) { return const_cast<Complex&>(std::as_const(*this).At(at)); }

  // Of what becomes real, the half that is not there is the conjugate of the other.
  Complex Read(const void* input, Number base, const Number at[3]) const {
    if (layout_.IsFromReal()) {
      return static_cast<const Real*>(input)[base + layout_.input.IndexOf(at)];
    }
    const auto* values = static_cast<const Complex*>(input) + base;
    if (!layout_.IsToReal() || at[2] <= layout_.size[2] / 2) {
      return values[layout_.input.IndexOf(at)];
    }
    Number mirror[3];
    for (int i = 0; i < 3; ++i) mirror[i] = (layout_.size[i] - at[i]) % layout_.size[i];
    return std::conj(values[layout_.input.IndexOf(mirror)]);
  }

  // Every line of `count` elements that lie `apart`.
  void TransformAxis(Eigen::FFT<Real>* fft, Number count, Number apart, bool is_inverse) {
    std::vector<Complex> line(static_cast<size_t>(count)), result(line.size());
    const Number block = count * apart;
    for (Number start = 0; start < layout_.Elements(); start += block) {
      for (Number first = start; first < start + apart; ++first) {
        for (Number i = 0; i < count; ++i) {
          line[static_cast<size_t>(i)] = values_[static_cast<size_t>(first + i * apart)];
        }
        if (is_inverse) {
          fft->inv(result.data(), line.data(), count);
        } else {
          fft->fwd(result.data(), line.data(), count);
        }
        for (Number i = 0; i < count; ++i) {
          values_[static_cast<size_t>(first + i * apart)] = result[static_cast<size_t>(i)];
        }
      }
    }
  }

  const Layout layout_;
  std::vector<Complex> values_;
};

// Whether the device reaches all of one side.
bool IsThere(const void* data, const Side& side, const Layout& layout, bool is_real, bool is_half) {
  const Number last[3] = {layout.size[0] - 1, layout.size[1] - 1,
                          is_half ? layout.size[2] / 2 : layout.size[2] - 1};
  const Number elements = (layout.batch - 1) * side.distance + side.IndexOf(last) + 1;
  const size_t real_bytes = layout.IsDouble() ? sizeof(double) : sizeof(float);
  return MayAccess(data, static_cast<size_t>(elements) * real_bytes * (is_real ? 1 : 2));
}

template <typename Real>
void TransformAll(const Layout& layout, const void* input, void* output, bool is_inverse) {
  Box<Real> box(layout);
  for (Number i = 0; i < layout.batch; ++i) {
    box.Load(input, i);
    box.Transform(is_inverse);
    box.Store(output, i);
  }
}

}  // namespace

CUresult Transform::Run() const {
  const bool from_real = layout.IsFromReal();
  const bool to_real = layout.IsToReal();
  if (!MayAccess(tables, 1) || !MayAccess(area, area_bytes) ||
      !IsThere(input, layout.input, layout, from_real, to_real) ||
      !IsThere(output, layout.output, layout, to_real, from_real)) {
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(area) % 8 == 0;
  if (area_bytes > 0 && !is_aligned) return CUDA_ERROR_MISALIGNED_ADDRESS;
  const auto transform = layout.IsDouble() ? TransformAll<double> : TransformAll<float>;
  transform(layout, input, output, is_inverse);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::cufft
