// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pools, and memory that is allocated in the order of a stream. Not in captures: the memory is
// then a graph's.

#include <algorithm>

#include "conformance/call.h"

namespace conformance {
namespace {

const Param kSize = Number({16, 256, 4096, 65536, 1 << 21, 0, 1LL << 60});
const Param kDevice = Number({0, 0, 0, 0, 7, -1});
const Param kAttribute = Number({1, 2, 3, 4, 4, 0, 77});

When Uncaptured(When also = {}) {
  return [=](const World& world, const Values& values) {
    return world.captures == 0 && (!also || also(world, values));
  };
}

// It belongs to no context. Other streams may use it once it is there. `pool` is an argument; 0:
// the device's pool.
Then FromPool(size_t bytes, size_t stream, size_t pool = 0) {
  return [=](Frame& frame) {
    RAW(cuStreamSynchronize)(frame.As<CUstream>(stream));
    frame.world.SeeCurrent(SeenCurrent(frame.world));
    Object* memory = frame.ObjectOf(0);
    if (memory == nullptr) return;
    memory->size = static_cast<size_t>(frame.Number(bytes));
    memory->place = pool != 0 ? frame.value(pool) : frame.world.pool;
  };
}

int CreatePool(Frame& frame) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = frame.As<int>(1);
  CUmemoryPool pool;
  std::memset(&pool, Frame::kUntouched, sizeof(pool));
  frame.code = RAW(cuMemPoolCreate)(frame.IsNull(0) ? nullptr : &pool, &properties);
  if (!frame.IsNull(0)) frame.SayOut(0, &pool, sizeof(pool), frame.code == 0);
  return frame.code;
}

bool IsSize(int attribute) { return attribute >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD; }

int GetAttribute(Frame& frame) {
  cuuint64_t value;
  std::memset(&value, Frame::kUntouched, sizeof(value));
  const CUresult code =
      RAW(cuMemPoolGetAttribute)(frame.As<CUmemoryPool>(0), frame.As<CUmemPool_attribute>(1),
                                 frame.IsNull(2) ? nullptr : &value);
  if (!frame.IsNull(2)) frame.SayOut(2, &value, IsSize(frame.As<int>(1)) ? 8 : 4, false);
  return code;
}
int SetAttribute(Frame& frame) {
  auto value = frame.As<cuuint64_t>(2);
  return RAW(cuMemPoolSetAttribute)(frame.As<CUmemoryPool>(0), frame.As<CUmemPool_attribute>(1),
                                    &value);
}

// The default pool stays; so does one with memory in use: freed later in the order of another
// stream, it was seen to crash the driver at a call that has nothing to do with it (H100, driver
// 580.159.04).
bool IsUnused(const World& world, const Values& values) {
  const std::vector<Value> memory = world.Usable("M");
  return values[0].number != 1 &&
         std::none_of(memory.begin(), memory.end(),
                      [&](const Value& name) { return world.Find(name)->place == values[0]; });
}
void PoolDestroyed(Frame& frame) {
  frame.world.End(frame.value(0));
  if (frame.world.pool == frame.value(0)) frame.world.pool = {'Q', 1};
}
void PoolSet(Frame& frame) { frame.world.pool = frame.value(1); }

}  // namespace

Room PoolRoom() {
  return {
      "pools",
      {
          {"cuMemPoolCreate", CreatePool, 3, {Make("Q"), kDevice}},
          {DRIVER(cuMemPoolDestroy), 2, {Use("Q")}, PoolDestroyed, IsUnused},
          {DRIVER(cuDeviceGetDefaultMemPool), 2, {Out("Q"), kDevice}},
          {DRIVER(cuDeviceGetMemPool), 2, {Out("Q"), kDevice}},
          {DRIVER(cuDeviceSetMemPool), 2, {kDevice, Use("Q")}, PoolSet},
          {"cuMemPoolGetAttribute", GetAttribute, 3, {Use("Q"), kAttribute, Out()}},
          {"cuMemPoolSetAttribute",
           SetAttribute,
           3,
           {Use("Q"), kAttribute, Number({0, 1, 2, 1 << 20})}},
          {DRIVER(cuMemPoolTrimTo), 2, {Use("Q"), Number({0, 1 << 20})}},
          {DRIVER(cuMemAllocAsync),
           6,
           {Make("M"), kSize, UseStream()},
           FromPool(1, 2),
           Uncaptured()},
          {DRIVER(cuMemAllocFromPoolAsync),
           4,
           {Make("M"), kSize, Use("Q"), UseStream()},
           FromPool(1, 3, 2),
           Uncaptured()},
          {DRIVER(cuMemFreeAsync), 5, {Use("M"), UseStream()}, Ends(0), Uncaptured(IsFree(0))},
          {RUNTIME(cudaMallocAsync),
           2,
           {Make("M"), kSize, UseStream()},
           FromPool(1, 2),
           Uncaptured()},
          {RUNTIME(cudaFreeAsync), 2, {Use("M"), UseStream()}, Ends(0), Uncaptured(IsFree(0))},
      },
  };
}

}  // namespace conformance
