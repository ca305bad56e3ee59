// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The built-in vector types and their alignment in device code, from the CUDA Programming
// Guide's table: X(type, scalar, elements, alignment).

#ifndef CUGUEST_KERNELS_LAYOUT_TYPES_H_
#define CUGUEST_KERNELS_LAYOUT_TYPES_H_

#define CUGUEST_VECTOR_TYPES(X)            \
  X(char1, signed char, 1, 1)              \
  X(uchar1, unsigned char, 1, 1)           \
  X(char2, signed char, 2, 2)              \
  X(uchar2, unsigned char, 2, 2)           \
  X(char3, signed char, 3, 1)              \
  X(uchar3, unsigned char, 3, 1)           \
  X(char4, signed char, 4, 4)              \
  X(uchar4, unsigned char, 4, 4)           \
  X(short1, short, 1, 2)                   \
  X(ushort1, unsigned short, 1, 2)         \
  X(short2, short, 2, 4)                   \
  X(ushort2, unsigned short, 2, 4)         \
  X(short3, short, 3, 2)                   \
  X(ushort3, unsigned short, 3, 2)         \
  X(short4, short, 4, 8)                   \
  X(ushort4, unsigned short, 4, 8)         \
  X(int1, int, 1, 4)                       \
  X(uint1, unsigned, 1, 4)                 \
  X(int2, int, 2, 8)                       \
  X(uint2, unsigned, 2, 8)                 \
  X(int3, int, 3, 4)                       \
  X(uint3, unsigned, 3, 4)                 \
  X(int4, int, 4, 16)                      \
  X(uint4, unsigned, 4, 16)                \
  X(long1, long, 1, 8)                     \
  X(ulong1, unsigned long, 1, 8)           \
  X(long2, long, 2, 16)                    \
  X(ulong2, unsigned long, 2, 16)          \
  X(long3, long, 3, 8)                     \
  X(ulong3, unsigned long, 3, 8)           \
  X(long4, long, 4, 16)                    \
  X(ulong4, unsigned long, 4, 16)          \
  X(longlong1, long long, 1, 8)            \
  X(ulonglong1, unsigned long long, 1, 8)  \
  X(longlong2, long long, 2, 16)           \
  X(ulonglong2, unsigned long long, 2, 16) \
  X(longlong3, long long, 3, 8)            \
  X(ulonglong3, unsigned long long, 3, 8)  \
  X(longlong4, long long, 4, 16)           \
  X(ulonglong4, unsigned long long, 4, 16) \
  X(float1, float, 1, 4)                   \
  X(float2, float, 2, 8)                   \
  X(float3, float, 3, 4)                   \
  X(float4, float, 4, 16)                  \
  X(double1, double, 1, 8)                 \
  X(double2, double, 2, 16)                \
  X(double3, double, 3, 8)                 \
  X(double4, double, 4, 16)

// Since CUDA 13.0.
#define CUGUEST_VECTOR_TYPES_WITH_ALIGNMENT(X) \
  X(long4_16a, long, 4, 16)                    \
  X(long4_32a, long, 4, 32)                    \
  X(ulong4_16a, unsigned long, 4, 16)          \
  X(ulong4_32a, unsigned long, 4, 32)          \
  X(longlong4_16a, long long, 4, 16)           \
  X(longlong4_32a, long long, 4, 32)           \
  X(ulonglong4_16a, unsigned long long, 4, 16) \
  X(ulonglong4_32a, unsigned long long, 4, 32) \
  X(double4_16a, double, 4, 16)                \
  X(double4_32a, double, 4, 32)

#endif  // CUGUEST_KERNELS_LAYOUT_TYPES_H_
