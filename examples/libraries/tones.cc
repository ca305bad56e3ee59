// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/libraries/tones.h"

#include <cmath>
#include <cstddef>
#include <limits>

namespace support {
namespace {

using Complex = std::complex<double>;

constexpr int kTones = 4;

// Low, high (and so also a negative one), and no power of two among them.
int FrequencyOf(int tone, int count) {
  const int frequencies[kTones] = {3, count / 5, count / 2 + 7, count - 11};
  return frequencies[tone];
}

Complex AmplitudeOf(int tone) {
  constexpr Complex kAmplitudes[kTones] = {{1.0, 0.0}, {0.0, 0.5}, {-0.25, 0.25}, {0.125, -1.0}};
  return kAmplitudes[tone];
}

// e^(2 pi i turns / count)
Complex Turn(long long turns, int count) {
  constexpr double kTwoPi = 6.283185307179586;
  return std::polar(1.0, kTwoPi * static_cast<double>(turns % count) / count);
}

}  // namespace

Samples MakeTones(int count) {
  Samples samples;
  samples.reserve(static_cast<std::size_t>(count));
  for (long long i = 0; i < count; ++i) {
    Complex sum = 0;
    for (int tone = 0; tone < kTones; ++tone) {
      sum += AmplitudeOf(tone) * Turn(i * FrequencyOf(tone, count), count);
    }
    samples.emplace_back(sum);
  }
  return samples;
}

Samples SpectrumOfTones(int count) {
  Samples spectrum(static_cast<std::size_t>(count));
  for (int tone = 0; tone < kTones; ++tone) {
    spectrum[static_cast<std::size_t>(FrequencyOf(tone, count))] =
        std::complex<float>(AmplitudeOf(tone) * static_cast<double>(count));
  }
  return spectrum;
}

double RelativeError(const Samples& values, const Samples& expected) {
  if (values.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::norm(Complex(values[i]) - Complex(expected[i]));
    norm += std::norm(Complex(expected[i]));
  }
  return std::sqrt(error / norm);
}

double TransformTolerance(int count) {
  constexpr double kUnitRoundoff = std::numeric_limits<float>::epsilon() / 2;
  return (7 * std::log2(count) + 1) * kUnitRoundoff;
}

}  // namespace support
