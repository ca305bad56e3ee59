// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/memory/array.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "driver/api.h"
#include "driver/context/device.h"
#include "driver/context/stack.h"
#include "driver/handle_table.h"
#include "driver/panic.h"
#include "driver/stream/capture.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {
namespace {

using ArrayTable = HandleTable<CUarray, Array>;
using MipmapTable = HandleTable<CUmipmappedArray, MipmappedArray>;

ArrayTable& Arrays() {
  static auto& table = *new ArrayTable(16);
  return table;
}
// Of mipmapped arrays: apart, because cuArrayDestroy does nothing to them.
ArrayTable& Levels() {
  static auto& table = *new ArrayTable(17);
  return table;
}
MipmapTable& Mipmaps() {
  static auto& table = *new MipmapTable(18);
  return table;
}

Handled Find(CUarray handle, Array* array) {
  const Handled found = Arrays().Find(handle, array);
  return found != Handled::kNever ? found : Levels().Find(handle, array);
}
Handled Find(CUmipmappedArray handle, MipmappedArray* array) {
  return Mipmaps().Find(handle, array);
}

template <typename Handle, typename Value>
CUresult FindOrAnswer(Handle handle, Value* value) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Handled found = Find(handle, value);
  if (found == Handled::kNever) PanicHandle(handle, "this never was an array");
  if (found == Handled::kGone) {
    PanicHandle(handle,
                "the array was destroyed; a real driver crashes here (measured on an H200, driver "
                "580.159.04)");
  }
  if (found == Handled::kAlive) return CUDA_SUCCESS;
  PanicHandle(handle,
              "the array's context was destroyed or reset; a real driver reads memory here that it "
              "has freed, and crashes where MALLOC_PERTURB_ is set (measured on an H200, driver "
              "580.159.04)");
}

template <typename Handle, typename Value>
Value FindOrPanic(Handle handle) {
  Value value;
  if (FindOrAnswer(handle, &value) != CUDA_SUCCESS) PanicHandle(handle, "no array");
  return value;
}

// Given back to the device when the last reference goes. Null if there is none left.
std::shared_ptr<unsigned char> TakeMemory(CUdevice device, size_t size) {
  if (!DeviceMemory::Take(device, size)) return nullptr;
  auto* bytes = static_cast<unsigned char*>(std::calloc(size, 1));
  const auto give_back = [device, size](unsigned char* memory) {
    std::free(memory);
    DeviceMemory::GiveBack(device, size);
  };
  if (bytes != nullptr) return {bytes, give_back};
  DeviceMemory::GiveBack(device, size);
  return nullptr;
}

CUresult Add(const Incarnation& incarnation, const CUDA_ARRAY3D_DESCRIPTOR& shape,
             ArrayTable* table, CUarray* handle) {
  Array array;
  array.incarnation = incarnation;
  array.shape = shape;
  const size_t size = array.RowBytes() * array.Rows() * array.Slices();
  array.bytes = TakeMemory(incarnation.context->device(), size);
  return array.bytes != nullptr ? table->Add(array, handle) : CUDA_ERROR_OUT_OF_MEMORY;
}

void RemoveLevels(const MipmappedArray& array) {
  for (const CUarray level : array.levels) Levels().Remove(level);
}

CUresult AddLevels(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned count, MipmappedArray* array) {
  for (unsigned i = 0; i < count; ++i) {
    CUarray level = nullptr;
    const CUresult code = Add(array->incarnation, ShapeOfLevel(shape, i), &Levels(), &level);
    if (code != CUDA_SUCCESS) return code;
    array->levels.push_back(level);
  }
  return CUDA_SUCCESS;
}

CUDA_ARRAY3D_DESCRIPTOR ToShape(const CUDA_ARRAY_DESCRIPTOR& description) {
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  shape.Width = description.Width;
  shape.Height = description.Height;
  shape.Format = description.Format;
  shape.NumChannels = description.NumChannels;
  return shape;
}

// The lower 32 bits of each size are all that the driver looks at.
CUDA_ARRAY3D_DESCRIPTOR Seen(CUDA_ARRAY3D_DESCRIPTOR shape) {
  for (size_t* size : {&shape.Width, &shape.Height, &shape.Depth}) {
    *size = static_cast<unsigned>(*size);
  }
  return shape;
}

struct FormatRow {
  CUarray_format format;
  size_t channel_bytes;
  unsigned channels;  // 0: one, two or four
};

constexpr FormatRow kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 1, 0},  {CU_AD_FORMAT_UNSIGNED_INT16, 2, 0},
    {CU_AD_FORMAT_UNSIGNED_INT32, 4, 0}, {CU_AD_FORMAT_SIGNED_INT8, 1, 0},
    {CU_AD_FORMAT_SIGNED_INT16, 2, 0},   {CU_AD_FORMAT_SIGNED_INT32, 4, 0},
    {CU_AD_FORMAT_HALF, 2, 0},           {CU_AD_FORMAT_FLOAT, 4, 0},
    {CU_AD_FORMAT_UNORM_INT8X1, 1, 1},   {CU_AD_FORMAT_UNORM_INT8X2, 1, 2},
    {CU_AD_FORMAT_UNORM_INT8X4, 1, 4},   {CU_AD_FORMAT_UNORM_INT16X1, 2, 1},
    {CU_AD_FORMAT_UNORM_INT16X2, 2, 2},  {CU_AD_FORMAT_UNORM_INT16X4, 2, 4},
    {CU_AD_FORMAT_SNORM_INT8X1, 1, 1},   {CU_AD_FORMAT_SNORM_INT8X2, 1, 2},
    {CU_AD_FORMAT_SNORM_INT8X4, 1, 4},   {CU_AD_FORMAT_SNORM_INT16X1, 2, 1},
    {CU_AD_FORMAT_SNORM_INT16X2, 2, 2},  {CU_AD_FORMAT_SNORM_INT16X4, 2, 4},
};

}  // namespace

ElementFormat ElementFormatOf(CUarray_format format, unsigned channels) {
  const auto row = std::find_if(std::begin(kFormats), std::end(kFormats),
                                [=](const FormatRow& known) { return known.format == format; });
  if (row == std::end(kFormats)) return {};
  const bool any = channels == 1 || channels == 2 || channels == 4;
  const bool valid = row->channels == 0 ? any : channels == row->channels;
  return valid ? ElementFormat{channels, row->channel_bytes} : ElementFormat{};
}

size_t Array::RowBytes() const {
  return shape.Width * ElementFormatOf(shape.Format, shape.NumChannels).bytes();
}

CUresult FindArray(CUarray handle, Array* array) { return FindOrAnswer(handle, array); }
CUresult FindMipmappedArray(CUmipmappedArray handle, MipmappedArray* array) {
  return FindOrAnswer(handle, array);
}

Array UseArray(CUarray handle) { return FindOrPanic<CUarray, Array>(handle); }
MipmappedArray UseMipmappedArray(CUmipmappedArray handle) {
  return FindOrPanic<CUmipmappedArray, MipmappedArray>(handle);
}

bool IsThere(CUarray handle) {
  Array array;
  return Find(handle, &array) == Handled::kAlive;
}

void DropArraysOf(std::uint64_t context_id) {
  Mipmaps().ForEachOf(context_id, [](MipmappedArray*) {
    Panic(
        "a context was destroyed or reset with a mipmapped array in it; a real driver's heap is "
        "corrupt afterwards (measured on an H200, driver 580.159.04): destroy the array first");
  });
  const auto drop = [](Array* array) { array->bytes.reset(); };
  Arrays().ForEachOf(context_id, drop);
  Levels().ForEachOf(context_id, drop);
}

size_t CountArrays() { return Arrays().CountAlive() + Mipmaps().CountAlive(); }

CUresult Array3DCreate(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  Incarnation incarnation;
  CUresult code = CurrentReady(&incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr || shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR seen = Seen(*shape);
  code = CheckArrayShape(seen);
  if (code != CUDA_SUCCESS) return code;
  return Add(incarnation, seen, &Arrays(), handle);
}

CUresult ArrayCreate(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* description) {
  if (description == nullptr) return Array3DCreate(handle, nullptr);
  const CUDA_ARRAY3D_DESCRIPTOR shape = ToShape(*description);
  return Array3DCreate(handle, &shape);
}

CUresult Array3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* shape, CUarray handle) {
  Array array;
  const CUresult code = FindArray(handle, &array);
  if (code != CUDA_SUCCESS) return code;
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *shape = array.shape;
  return CUDA_SUCCESS;
}

CUresult ArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR* description, CUarray handle) {
  CUDA_ARRAY3D_DESCRIPTOR shape;
  const CUresult code = Array3DGetDescriptor(description != nullptr ? &shape : nullptr, handle);
  if (code != CUDA_SUCCESS) return code;
  description->Width = shape.Width;
  description->Height = shape.Height;
  description->Format = shape.Format;
  description->NumChannels = shape.NumChannels;
  return CUDA_SUCCESS;
}

// Needs no current context. A level stays: it goes with its mipmapped array.
CUresult ArrayDestroy(CUarray handle) {
  Array array;
  CUresult code = FindArray(handle, &array);
  if (code == CUDA_SUCCESS) code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  Schedule::WaitForContext(array.incarnation.id);
  Arrays().Remove(handle);
  return CUDA_SUCCESS;
}

// 0 levels are one, and too many are as many as there can be (measured on an H200,
// driver 580.159.04).
CUresult MipmappedArrayCreate(CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                              unsigned levels) {
  MipmappedArray array;
  CUresult code = CurrentReady(&array.incarnation);
  if (code != CUDA_SUCCESS) return code;
  if (handle == nullptr || shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  code = CheckArrayShape(*shape);
  if (code != CUDA_SUCCESS) return code;
  code = AddLevels(*shape, std::clamp(levels, 1u, MaxLevels(*shape)), &array);
  if (code == CUDA_SUCCESS) code = Mipmaps().Add(array, handle);
  if (code != CUDA_SUCCESS) RemoveLevels(array);
  return code;
}

CUresult MipmappedArrayGetLevel(CUarray* level, CUmipmappedArray handle, unsigned index) {
  MipmappedArray array;
  const CUresult code = FindMipmappedArray(handle, &array);
  if (code != CUDA_SUCCESS) return code;
  if (level == nullptr || index >= array.levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *level = array.levels[index];
  return CUDA_SUCCESS;
}

CUresult MipmappedArrayDestroy(CUmipmappedArray handle) {
  MipmappedArray array;
  CUresult code = FindMipmappedArray(handle, &array);
  if (code == CUDA_SUCCESS) code = AskCaptures();
  if (code != CUDA_SUCCESS) return code;
  Schedule::WaitForContext(array.incarnation.id);
  Mipmaps().Remove(handle);
  RemoveLevels(array);
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
