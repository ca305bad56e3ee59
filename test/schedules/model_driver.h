// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model of the driver for sources that enter contexts: handles that are alive as some
// incarnation, or dead, and a stack for each thread of the explored program. Only whether a
// handle is alive is a step of the explored program; a thread's own stack is its own.

#ifndef CUGUEST_TEST_SCHEDULES_MODEL_DRIVER_H_
#define CUGUEST_TEST_SCHEDULES_MODEL_DRIVER_H_

#include <cuda.h>

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cuguest/driver.h"
#include "cuguest/internal/stack_calls.h"
#include "lib/core/driver_access.h"
#include "test/schedules/concurrency.h"

namespace schedules {

class ModelDriver {
 public:
  static constexpr std::size_t kHandles = 4;

  // From now on the process's driver. The one before it must be gone.
  ModelDriver() {
    s_driver = this;
    static const Table s_table = MakeTable();
    cuguest::internal::g_driver.store(&s_table);
    cuguest::internal::g_stack_calls = {&GetCurrent, &Push, &Pop, &GetId};
  }
  ModelDriver(const ModelDriver&) = delete;
  ModelDriver& operator=(const ModelDriver&) = delete;

  static CUcontext Handle(std::size_t index) {
    return reinterpret_cast<CUcontext>((index + 1) * 0x1000);
  }

  // Begins the next incarnation.
  void Create(CUcontext context) { IdOf(context).store(++last_id_); }
  void Destroy(CUcontext context) { IdOf(context).store(0); }
  // Whether it is this incarnation that lives at its handle.
  bool IsAlive(CUcontext context, unsigned long long id) { return IdOf(context).load() == id; }

 private:
  using Id = cuguest::internal::Atomic<unsigned long long>;
  using Stack = std::vector<CUcontext>;

  Id& IdOf(CUcontext context) {
    return ids_[reinterpret_cast<std::uintptr_t>(context) / 0x1000 - 1];
  }

  static CUcontext Top() {
    const Stack& stack = s_stack;
    return stack.empty() ? nullptr : stack.back();
  }
  static CUresult GetCurrent(CUcontext* context) {
    *context = Top();
    return CUDA_SUCCESS;
  }
  static CUresult Push(CUcontext context) {
    Require(s_driver->IdOf(context).load() != 0, "a dead context was pushed");
    static_cast<Stack&>(s_stack).push_back(context);
    return CUDA_SUCCESS;
  }
  static CUresult Pop(CUcontext* context) {
    Stack& stack = s_stack;
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *context = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
  }
  static CUresult GetId(CUcontext context, unsigned long long* id) {
    if (context == nullptr) context = Top();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *id = s_driver->IdOf(context).load();
    return *id == 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
  }
  static CUresult GetDevice(CUdevice* device) {
    *device = 0;
    return Top() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  }

  // The first handle is the primary context's, so that it may be asked about when it is dead.
  static CUresult GetPrimaryState(CUdevice, unsigned* flags, int* active) {
    *flags = 0;
    *active = 1;
    return CUDA_SUCCESS;
  }
  static CUresult RetainPrimary(CUcontext* context, CUdevice) {
    *context = Handle(0);
    return CUDA_SUCCESS;
  }
  static CUresult ReleasePrimary(CUdevice) { return CUDA_SUCCESS; }

  using Table =
      std::remove_const_t<std::remove_pointer_t<decltype(cuguest::internal::g_driver.load())>>;

  static Table MakeTable() {
    Table table = {};
    table.version = 13000;
    table.CtxGetCurrent = &GetCurrent;
    table.CtxPushCurrent = &Push;
    table.CtxPopCurrent = &Pop;
    table.CtxGetId = &GetId;
    table.CtxGetDevice = &GetDevice;
    table.DevicePrimaryCtxGetState = &GetPrimaryState;
    table.DevicePrimaryCtxRetain = &RetainPrimary;
    table.DevicePrimaryCtxRelease = &ReleasePrimary;
    return table;
  }

  static inline ModelDriver* s_driver = nullptr;
  static inline PerThread<Stack> s_stack;

  std::array<Id, kHandles> ids_;
  unsigned long long last_id_ = 0;
};

}  // namespace schedules

#endif  // CUGUEST_TEST_SCHEDULES_MODEL_DRIVER_H_
