// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/context/context.h"

#include <mutex>

#include "driver/context/device.h"
#include "driver/memory/array.h"
#include "driver/memory/memory.h"
#include "driver/memory/texture.h"
#include "driver/panic.h"
#include "driver/stream/capture.h"
#include "driver/stream/schedule.h"
#include "driver/tool.h"

namespace cudasim::driver {
namespace {

// What must be given back when a context dies. (Streams, events and modules need no sweep: their
// incarnation tells that they are orphans.) Call after the incarnation is marked dead: a table
// refuses to add to a dead one while it holds its lock, so nothing is added behind the sweep.
void SweepEverythingIn(std::uint64_t context_id, bool is_green) {
  // A capture in a created stream of a green context goes on for ever (measured on
  // an H100, driver 580.159.04).
  Captures::DropIncarnation(context_id, /*also_created=*/!is_green);
  Memory::DropIncarnation(context_id);
  DropTexturesOf(context_id);
  DropArraysOf(context_id);
  DropPeersOf(context_id);
}

}  // namespace

// The slots. In static storage and constant-initialised: a handle stays inside the
// arena for the life of the process, and nothing is freed at its end.
class Arena {
 public:
  static constexpr size_t kUserSlots = 4096;

  Context* Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    Context* slot = free_;
    if (slot != nullptr) {
      free_ = slot->next_free_;
      return slot;
    }
    return used_ < kUserSlots ? &slots_[used_++] : nullptr;
  }

  void GiveBack(Context* slot) {
    const std::lock_guard<std::mutex> lock(mutex_);
    slot->next_free_ = free_;
    free_ = slot;
  }

  Context* Find(const void* handle) { return Context::SlotIn(slots_, kUserSlots, handle); }

 private:
  std::mutex mutex_;
  Context* free_ = nullptr;  // last freed first
  size_t used_ = 0;
  Context slots_[kUserSlots];
};

// The primary slots, apart because they are not all zeros.
class PrimaryArena {
 public:
  constexpr PrimaryArena() {
    for (int device = 0; device < kMaxDevices; ++device) {
      slots_[device].device_ = device;
      slots_[device].primary_ = true;
      slots_[device].api_version_ = kApiVersion;
      slots_[device].partition_ = Partition();
      slots_[device].memory_ = kContextMemory;
    }
  }

  Context* At(CUdevice device) { return &slots_[device]; }
  Context* Find(const void* handle) { return Context::SlotIn(slots_, kMaxDevices, handle); }

 private:
  Context slots_[kMaxDevices];
};

namespace {

Arena arena;
PrimaryArena primary_arena;
std::atomic<std::uint64_t> next_context_id{1};
std::atomic<size_t> live_users{0};
std::atomic<size_t> live_greens{0};

}  // namespace

Context* Context::SlotIn(Context* slots, size_t count, const void* handle) {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(slots);
  if (offset >= count * sizeof(Context) || offset % sizeof(Context) != 0) return nullptr;
  return &slots[offset / sizeof(Context)];
}

Context* Context::Find(CUcontext handle) {
  Context* user = arena.Find(handle);
  return user != nullptr ? user : primary_arena.Find(handle);
}

Context* Context::FindOrPanic(CUcontext handle) {
  Context* context = Find(handle);
  if (context == nullptr || (!context->primary_ && context->id() == 0)) {
    PanicHandle(handle,
                "this never was a context; a real driver reads the memory it points at and "
                "crashes (measured on an H100, driver 580.159.04)");
  }
  return context;
}

CUresult Context::FindNamed(CUcontext handle, Context** context) {
  *context = FindOrPanic(handle);
  const bool is_hidden = !(*context)->is_shown_.load() && (*context)->HasMemory();
  return is_hidden ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

Context* Context::Primary(CUdevice device) { return primary_arena.At(device); }

size_t Context::CountUser() { return live_users.load(); }
size_t Context::CountGreen() { return live_greens.load(); }

Context* Context::Create(CUdevice device, unsigned flags, unsigned api_version) {
  Context* context = TakeSlot(device, kContextMemory);
  if (context == nullptr) return nullptr;
  context->api_version_ = api_version;
  live_users.fetch_add(1);
  context->BeginIncarnation(flags);
  return context;
}

Context* Context::CreateGreen(Context* primary, const Partition& partition) {
  Context* context = TakeSlot(primary->device(), kGreenContextMemory);
  if (context == nullptr) return nullptr;
  context->api_version_ = kApiVersion;
  context->owner_ = primary;
  context->is_shown_.store(false);
  context->partition_ = partition;
  live_greens.fetch_add(1);
  context->BeginIncarnation(0);
  return context;
}

// A slot of a user context, until the caller says otherwise.
Context* Context::TakeSlot(CUdevice device, size_t memory) {
  if (!DeviceMemory::Take(device, memory)) return nullptr;
  Context* context = arena.Take();
  if (context == nullptr) {
    DeviceMemory::GiveBack(device, memory);
    return nullptr;
  }
  context->device_ = device;
  context->memory_ = memory;
  context->owner_ = nullptr;
  context->is_shown_.store(true);
  context->partition_ = Partition();
  return context;
}

void Context::SetNextId(std::uint64_t id) { next_context_id.store(id); }

void Context::BeginIncarnation(unsigned flags_of_incarnation) {
  flags.store(flags_of_incarnation);
  ResetSettings(this);
  attached_.store(1);
  id_.store(next_context_id.fetch_add(1), std::memory_order_release);
  // The hold of the incarnation itself, so that a slot is not freed while it is swept.
  word_.fetch_add(kAlive + 1, std::memory_order_acq_rel);
  ReportCreated(this);
}

bool Context::Hold() {
  std::uint64_t now = word_.load(std::memory_order_relaxed);
  do {
    if (!primary_ && now == 0) return false;
  } while (!word_.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel));
  return true;
}

void Context::Unhold() {
  const std::uint64_t after = word_.fetch_sub(1, std::memory_order_acq_rel) - 1;
  if (after == 0 && !primary_) arena.GiveBack(this);
}

bool Context::Destroy() {
  if (IsAlive()) Schedule::WaitForContext(id());
  std::uint64_t now = word_.load(std::memory_order_relaxed);
  do {
    if ((now & kAlive) == 0) return false;
  } while (!word_.compare_exchange_weak(now, now & ~kAlive, std::memory_order_acq_rel));
  flags.store(0);
  SweepIncarnation();
  (is_green() ? live_greens : live_users).fetch_sub(1);
  Unhold();
  return true;
}

bool Context::Activate(unsigned flags_of_incarnation) {
  if (!DeviceMemory::Take(device_, memory_)) return false;
  BeginIncarnation(flags_of_incarnation);
  return true;
}

void Context::Deactivate() {
  Schedule::WaitForContext(id());
  word_.fetch_and(~kAlive, std::memory_order_acq_rel);
  flags.store(0);
  SweepIncarnation();
  Unhold();
}

void Context::SweepIncarnation() {
  ReportDestroyed(this);
  SweepEverythingIn(id(), is_green());
  DeviceMemory::GiveBack(device_, memory_);
}

}  // namespace cudasim::driver
