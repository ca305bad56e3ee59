// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/support/runner.h"

int main(int argc, char** argv) { return cudasim_test::RunCases(argc, argv); }
