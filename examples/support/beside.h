// SPDX-License-Identifier: Apache-2.0

#ifndef CUGUEST_EXAMPLES_SUPPORT_BESIDE_H_
#define CUGUEST_EXAMPLES_SUPPORT_BESIDE_H_

#include <string>

namespace support {

// The path of `file` in the directory of the running program.
[[nodiscard]] std::string Beside(const std::string& file);

}  // namespace support

#endif  // CUGUEST_EXAMPLES_SUPPORT_BESIDE_H_
