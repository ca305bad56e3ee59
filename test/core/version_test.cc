// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuguest/version.h"

#include <string>

#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(version)

// CUGUEST_PROJECT_VERSION comes from meson.build, where the version is decided.
BOOST_AUTO_TEST_CASE(header_agrees_with_the_build) {
  BOOST_TEST(std::string(CUGUEST_VERSION) == CUGUEST_PROJECT_VERSION);
  const std::string numbers = std::to_string(CUGUEST_VERSION_MAJOR) + "." +
                              std::to_string(CUGUEST_VERSION_MINOR) + "." +
                              std::to_string(CUGUEST_VERSION_PATCH);
  BOOST_TEST(numbers == CUGUEST_VERSION);
}

BOOST_AUTO_TEST_SUITE_END()
