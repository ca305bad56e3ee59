// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that write the bytes of their parameters, one behind the other, to the memory that
// the last one points to: so it shows where a launch has put them. One thread is enough.

#include "layout_types.h"

namespace {

template <typename T>
__device__ unsigned char* Write(unsigned char* to, const T& value) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&value);
  for (unsigned i = 0; i < sizeof(T); ++i) to[i] = bytes[i];
  return to + sizeof(T);
}

template <typename... Ts>
__device__ void WriteAll(unsigned char* to, const Ts&... values) {
  ((to = Write(to, values)), ...);
}

}  // namespace

// layout_float4 and so on: the vector between two that need no alignment.
#define CUGUEST_LAYOUT_KERNEL(Type, Scalar, elements, alignment)                \
  extern "C" __global__ void layout_##Type(char before, Type value, char after, \
                                           unsigned char* bytes) {              \
    WriteAll(bytes, before, value, after);                                      \
  }
CUGUEST_VECTOR_TYPES(CUGUEST_LAYOUT_KERNEL)
#if CUDART_VERSION >= 13000
CUGUEST_VECTOR_TYPES_WITH_ALIGNMENT(CUGUEST_LAYOUT_KERNEL)
#endif

// The parameters of the guide's example.
extern "C" __global__ void layout_mixed(int i, float4 f4, char c, float f, void* pointer, float2 f2,
                                        unsigned char* bytes) {
  WriteAll(bytes, i, f4, c, f, pointer, f2);
}

// The guide's struct: 12 bytes of padding before f4, which a host without float4 has not.
struct MyStruct {
  float f;
  float4 f4;
};
extern "C" __global__ void layout_struct(char before, MyStruct value, char after,
                                         unsigned char* bytes) {
  WriteAll(bytes, before, value, after);
}

// Padding of every kind, and an alignment that is asked for.
struct Padded {
  char c;
  double d;
  short s;
  void* pointer;
  char3 c3;
};
extern "C" __global__ void layout_padded(short before, Padded value, char after,
                                         unsigned char* bytes) {
  WriteAll(bytes, before, value, after);
}
struct alignas(16) Aligned {
  float xyzw[4];
};
extern "C" __global__ void layout_aligned(char before, Aligned value, char after,
                                          unsigned char* bytes) {
  WriteAll(bytes, before, value, after);
}

// Basic types, each behind one that leaves it in the middle of a word.
extern "C" __global__ void layout_basic(bool b, double d, char c, long long ll, char c2, long l,
                                        char c3, unsigned short us, char c4, float f,
                                        unsigned char* bytes) {
  WriteAll(bytes, b, d, c, ll, c2, l, c3, us, c4, f);
}

// 4,000 bytes by value.
struct Large {
  unsigned words[1000];
};
extern "C" __global__ void layout_large(Large value, unsigned char* bytes) {
  WriteAll(bytes, value);
}
