// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver itself, without cuguest, for tests that say what the driver does: RAW and RAW_AS.

#ifndef CUGUEST_TEST_SUPPORT_RAW_DRIVER_H_
#define CUGUEST_TEST_SUPPORT_RAW_DRIVER_H_

#include "subprojects/cudasim/test/support/raw_driver.h"

namespace cuguest_test {
using cudasim_test::FindRawSymbol;
}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_RAW_DRIVER_H_
