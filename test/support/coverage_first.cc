// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For test/coverage, in each program and library: counts before static objects are made. Tests run
// children in constructors of theirs (subprojects/cudasim/test/support/child.h), which LLVM's
// runtime would start to count only after.

extern "C" void __llvm_profile_initialize();  // any number of times

namespace {

__attribute__((constructor(101))) void Count() { __llvm_profile_initialize(); }

}  // namespace
