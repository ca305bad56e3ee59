// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names of kernels, as a person means them: C++ ones are in an image as the compiler mangled
// them.

#ifndef CUDAIMAGE_KERNEL_NAMES_H_
#define CUDAIMAGE_KERNEL_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

#include "namespace.h"

CUDAIMAGE_BEGIN_NAMESPACE

// Why an image whose kernels have `names` has none that is called `wanted`: the one that was meant,
// perhaps, and all that there are, the nearest first.
std::string ExplainMissingKernel(std::string_view wanted, const std::vector<std::string>& names);

CUDAIMAGE_END_NAMESPACE

#endif  // CUDAIMAGE_KERNEL_NAMES_H_
