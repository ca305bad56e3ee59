// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cufft/plan.h"

#include <algorithm>
#include <iterator>

namespace cudasim::cufft {
namespace {

bool IsType(cufftType type) {
  constexpr cufftType kTypes[] = {CUFFT_C2C, CUFFT_R2C, CUFFT_C2R, CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

// One transform behind the other, whose rows are of `last` elements.
Side Packed(const Number size[3], Number last) {
  return {{size[0], size[1], last}, 1, size[0] * size[1] * last};
}

Number HalfOf(Number size) { return size / 2 + 1; }

template <typename N>
Side Strided(int rank, const N* embed, N stride, N distance) {
  Side side = {{1, 1, 1}, stride, distance};
  std::copy_n(embed, rank, side.embed + 3 - rank);
  return side;
}

// More numbers than any memory holds; their bytes can still be counted.
constexpr double kTooMany = 1e16;

// A plan is asked for with any numbers. Whether these can be calculated with; that it is
// rounded here does not matter.
bool IsCountable(const Number size[3], Number batch) {
  double numbers = static_cast<double>(batch);
  for (int i = 0; i < 3; ++i) numbers *= static_cast<double>(size[i]);
  return numbers < kTooMany;
}

bool IsCountable(const Side& side, const Layout& layout) {
  if (side.embed[1] < 0 || side.embed[2] < 0 || side.stride < 0 || side.distance < 0) return false;
  const auto number = [](Number value) { return static_cast<double>(value); };
  const double planes = number(layout.size[0]) * number(side.embed[1]) + number(layout.size[1]);
  const double one =
      (planes * number(side.embed[2]) + number(layout.size[2])) * number(side.stride);
  return one + number(layout.batch) * number(side.distance) < kTooMany;
}

// Of sizes and a type that are valid.
template <typename N>
void SetSides(const Description<N>& from, Layout* layout) {
  const Number last = layout->size[2];
  if (layout->is_packed) {
    layout->input = Packed(layout->size, layout->IsToReal() ? HalfOf(last) : last);
    layout->output = Packed(layout->size, layout->IsFromReal() ? HalfOf(last) : last);
  } else {
    layout->input = Strided(from.rank, from.input_embed, from.input_stride, from.input_distance);
    layout->output =
        Strided(from.rank, from.output_embed, from.output_stride, from.output_distance);
  }
}

template <typename N>
Status Make(const Description<N>& from, Layout* layout) {
  if (from.rank < 1 || from.rank > 3 || from.size == nullptr) return CUFFT_INVALID_VALUE;
  if (!IsType(from.type)) return CUFFT_INVALID_TYPE;
  if (from.batch <= 0) return CUFFT_INVALID_SIZE;
  *layout = {};
  std::fill_n(layout->size, 3, 1);
  std::copy_n(from.size, from.rank, layout->size + 3 - from.rank);
  layout->batch = from.batch;
  layout->rank = from.rank;
  layout->type = from.type;
  const bool is_positive =
      std::all_of(layout->size, layout->size + 3, [](Number n) { return n > 0; });
  if (!is_positive || !IsCountable(layout->size, layout->batch)) return CUFFT_INVALID_SIZE;
  layout->is_packed = from.input_embed == nullptr || from.output_embed == nullptr;
  SetSides(from, layout);
  const bool are_sides =
      IsCountable(layout->input, *layout) && IsCountable(layout->output, *layout);
  return are_sides ? CUFFT_SUCCESS : CUFFT_INVALID_SIZE;
}

bool HasFactorAbove(Number limit, Number number) {
  for (Number factor = 2; factor <= limit; ++factor) {
    while (number % factor == 0) number /= factor;
  }
  return number > 1;
}

}  // namespace

Status MakeLayout(const Description<int>& from, Layout* layout) { return Make(from, layout); }
Status MakeLayout(const Description<Number>& from, Layout* layout) { return Make(from, layout); }

Layout Layout::InPlace() const {
  Layout result = *this;
  if (is_packed == 0) return result;
  const Number padded = 2 * HalfOf(size[2]);
  if (IsFromReal()) result.input = Packed(size, padded);
  if (IsToReal()) result.output = Packed(size, padded);
  return result;
}

size_t Layout::WorkBytes() const {
  if (Elements() <= 4096) return 0;
  const size_t one = IsDouble() ? 16 : 8;
  return static_cast<size_t>(Elements() * batch) * one * (HasLargeFactor() ? 4 : 1);
}

bool Layout::HasLargeFactor() const {
  return std::any_of(size, size + 3, [](Number n) { return HasFactorAbove(127, n); });
}

}  // namespace cudasim::cufft
