// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every source of the program includes by way of conformance/call.h, and its sources include
// all the same.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
