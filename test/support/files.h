// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where tests find what is not linked into them.

#ifndef CUGUEST_TEST_SUPPORT_FILES_H_
#define CUGUEST_TEST_SUPPORT_FILES_H_

#include "subprojects/cudasim/test/support/files.h"

namespace cuguest_test {
using cudasim_test::FindBeside;
using cudasim_test::FindInToolkit;
using cudasim_test::FindToolkitStub;
}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_FILES_H_
