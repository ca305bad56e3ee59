// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A signal with a known spectrum, for the examples of cuFFT.

#ifndef CUGUEST_EXAMPLES_LIBRARIES_TONES_H_
#define CUGUEST_EXAMPLES_LIBRARIES_TONES_H_

#include <complex>
#include <vector>

namespace support {

using Samples = std::vector<std::complex<float>>;

// `count` samples, a power of two of at least 64, of four pure tones. Tone t turns f(t) times
// while the signal lasts, so that its spectrum is count * amplitude(t) at f(t), and 0
// elsewhere.
[[nodiscard]] Samples MakeTones(int count);
[[nodiscard]] Samples SpectrumOfTones(int count);

// |values - expected| / |expected|, each the root of the sum of squares.
[[nodiscard]] double RelativeError(const Samples& values, const Samples& expected);

// The relative error, as above, that a float transform of a power of two of samples may have: its
// input rounded once, u, and log2(count) passes of no more than 7 u each (Higham, Accuracy
// and Stability of Numerical Algorithms, theorem 24.2, with weights that are rounded once).
[[nodiscard]] double TransformTolerance(int count);

}  // namespace support

#endif  // CUGUEST_EXAMPLES_LIBRARIES_TONES_H_
