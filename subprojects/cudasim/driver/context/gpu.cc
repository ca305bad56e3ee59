// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/context/gpu.h"

#include <cstring>
#include <iterator>

#include "driver/environment.h"
#include "driver/panic.h"

namespace cudasim::driver {
namespace {

// By number, from 1: an H200's, driver 580.159.04.
constexpr int kOfH200[] = {
    1024,      1024,       1024,   64,        2147483647, 65535,     65535,  49152, 65536,
    32,        2147483647, 65536,  1980000,   512,        1,         132,    0,     0,
    1,         0,          131072, 131072,    65536,      16384,     16384,  16384, 32768,
    32768,     2048,       512,    1,         1,          0,         6,      0,     3201000,
    6016,      62914560,   2048,   3,         1,          32768,     2048,   1,     32768,
    32768,     8192,       8192,   32768,     0,          32,        32768,  32768, 2046,
    32768,     131072,     65536,  16384,     16384,      16384,     32768,  2048,  32768,
    32768,     2048,       32768,  32768,     2046,       268435456, 131072, 65000, 2097120,
    32768,     32768,      9,      0,         32768,      1,         1,      1,     233472,
    65536,     1,          0,      0,         0,          2,         0,      1,     1,
    1,         0,          0,      0,         1,          1,         232448, 0,     1,
    0,         0,          1,      1,         0,          0,         32,     1,     39321600,
    134217728, 1,          1024,   1,         1,          1,         1,      1,     1,
    100,       9,          1,      1,         1,          1,         1,      1,     4,
    1,         1,          1,      0,         -1,         0,         0,      0,     0,
    0,         0,          0,      590680286, 415174878,  1,         1,      0,     1,
    1,         0,          0,
};

struct Difference {
  CUdevice_attribute attribute;
  int value;
};
// An H100 SXM5's, the same driver. What is not here was measured on both, or on the H200 only: the
// PCI identifiers, which surely differ, are an H200's.
constexpr Difference kOfH100[] = {
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 32768000},
};

// The memory is about theirs, not measured to the byte.
constexpr Gpu kH100 = {"NVIDIA H100 80GB HBM3 (cudasim)", size_t{80} << 30};
constexpr Gpu kH200 = {"NVIDIA H200 (cudasim)", size_t{140} << 30};

const Gpu& Choose() {
  const char* name = Setting("GPU");
  if (name == nullptr || std::strcmp(name, "H100") == 0) return kH100;
  if (std::strcmp(name, "H200") == 0) return kH200;
  Panic("CUDASIM_GPU: \"%s\" is neither H100 nor H200", name);
}

}  // namespace

const Gpu& ThisGpu() {
  static const Gpu& gpu = Choose();
  return gpu;
}

int Gpu::Attribute(CUdevice_attribute attribute) const {
  if (this == &kH100) {
    for (const Difference& difference : kOfH100) {
      if (difference.attribute == attribute) return difference.value;
    }
  }
  const auto number = static_cast<size_t>(attribute);
  return number >= 1 && number <= std::size(kOfH200) ? kOfH200[number - 1] : 0;
}

}  // namespace cudasim::driver
