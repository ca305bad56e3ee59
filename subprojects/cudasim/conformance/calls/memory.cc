// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of a context, of the host, copies, fills, and what pointers tell.

#include "conformance/call.h"

namespace conformance {
namespace {

const Param kSize = Number({1, 16, 256, 4096, 4096, 65536, 1 << 21, 0, 1LL << 60});
const Param kBytes = Number({0, 1, 4, 16, 64, 256, 4096});

void Pitched(Frame& frame) {
  OfCurrent(0)(frame);
  if (Object* memory = frame.ObjectOf(0)) memory->size = static_cast<size_t>(frame.Number(2));
}

// An attribute's value is as wide as its type; "-": not written.
int GetAttribute(Frame& frame) {
  unsigned char data[16];
  std::memset(data, Frame::kUntouched, sizeof(data));
  const auto attribute = frame.As<CUpointer_attribute>(1);
  const CUresult code = RAW(cuPointerGetAttribute)(frame.IsNull(0) ? nullptr : data, attribute,
                                                   frame.As<CUdeviceptr>(2));
  if (frame.IsNull(0)) return code;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      frame.SayOut(0, data, 8, false);
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      frame.SayOut(0, data, 4, false);
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      frame.SayOut(0, data, 1, false);
      break;
    default:
      break;
  }
  return code;
}

// Several rows: each kind of attribute has its kind of output.
Call AttributeCall(const char* name, const char* kinds, std::initializer_list<long long> numbers) {
  return {name, GetAttribute, 3, {Out(kinds), Number(numbers), Use("MMHB")}};
}

}  // namespace

Room MemoryRoom() {
  return {
      "memory",
      {
          {DRIVER(cuMemAlloc), 9, {Make("M"), kSize}, Allocated(0, 1)},
          {DRIVER(cuMemAllocPitch),
           2,
           {Make("M"), Out(), Number({1, 100, 4096, 0}), Number({1, 3, 16, 0}),
            Number({4, 8, 16, 5})},
           Pitched},
          {DRIVER(cuMemAllocManaged),
           1,
           {Make("M"), kSize, Number({1, 1, 2, 0, 3})},
           Allocated(0, 1)},
          {DRIVER(cuMemFree), 6, {Use("M")}, Ends(0), IsFree(0)},
          {DRIVER(cuMemAllocHost), 2, {Make("H"), Number({16, 4096, 65536, 0})}, Allocated(0, 1)},
          {DRIVER(cuMemHostAlloc),
           3,
           {Make("H"), Number({16, 4096, 65536, 0}), Number({0, 1, 2, 4, 7, 8})},
           Allocated(0, 1)},
          {DRIVER(cuMemFreeHost), 3, {Use("HHHB")}, Ends(0), IsFree(0)},
          {DRIVER(cuMemHostRegister),
           3,
           {Use("B"), Number({4096, 65536, 0}), Number({0, 1, 2, 3, 16})},
           {},
           IsFree(0)},
          {DRIVER(cuMemHostUnregister), 3, {Use("BBBH")}, {}, IsFree(0)},
          {DRIVER(cuMemHostGetDevicePointer), 2, {Out("MHB"), Use("HB"), Number({0, 0, 0, 1})}},
          {DRIVER(cuMemHostGetFlags), 1, {Hidden(), Use("HB")}},
          {DRIVER(cuMemGetAddressRange), 3, {Out("MHB"), Out(), Use("MMHB")}},
          {DRIVER(cuMemGetInfo), 1, {Hidden(), Hidden()}},
          {DRIVER(cuMemcpyHtoD), 3, {Use("M"), Use("HB", 0), kBytes}, Done(2), Fits({0, 1}, 2)},
          {DRIVER(cuMemcpyDtoH), 3, {Use("HB", 0), Use("M"), kBytes}, {}, Fits({0, 1}, 2)},
          {DRIVER(cuMemcpyDtoD), 3, {Use("M"), Use("M"), kBytes}, Done(2), Fits({0, 1}, 2)},
          {DRIVER(cuMemcpy), 3, {Use("MHB", 0), Use("MHB", 0), kBytes}, Done(2), Fits({0, 1}, 2)},
          {DRIVER(cuMemcpyHtoDAsync),
           3,
           {Use("M", 0), Use("HB", 0), kBytes, UseStream()},
           Used({0, 1}, 3),
           Fits({0, 1}, 2)},
          {DRIVER(cuMemcpyDtoHAsync),
           3,
           {Use("HB", 0), Use("M", 0), kBytes, UseStream()},
           Used({0, 1}, 3),
           Fits({0, 1}, 2)},
          {DRIVER(cuMemcpyDtoDAsync),
           3,
           {Use("M", 0), Use("M", 0), kBytes, UseStream()},
           Used({0, 1}, 3),
           Fits({0, 1}, 2)},
          {DRIVER(cuMemsetD8), 3, {Use("M"), Number({0, 255}), kBytes}, Done(2), Fits({0}, 2)},
          {DRIVER(cuMemsetD8Async),
           6,
           {Use("M", 0), Number({0, 255}), kBytes, UseStream()},
           Used({0}, 3),
           Fits({0}, 2)},
          AttributeCall("cuPointerGetAttribute.context", "CPG", {CU_POINTER_ATTRIBUTE_CONTEXT}),
          AttributeCall("cuPointerGetAttribute.address", "MHB",
                        {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER}),
          AttributeCall("cuPointerGetAttribute.id", "b", {CU_POINTER_ATTRIBUTE_BUFFER_ID}),
          AttributeCall("cuPointerGetAttribute.pool", "Q", {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE}),
          AttributeCall("cuPointerGetAttribute.value", "",
                        {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                         CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                         CU_POINTER_ATTRIBUTE_MAPPED,
                         CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 0, 77}),
      },
  };
}

}  // namespace conformance
