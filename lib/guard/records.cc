// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/guard/records.h"

#include <cstdint>
#include <cstdlib>
#include <new>

#include "cuguest/internal/compiler.h"
#include "lib/core/concurrency.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// They stay where they are: a driver call that is made for one of them may come back here, and
// begin and end other scopes.
struct DeepRecords {
  DeepRecords* below;
  Record records[ThisThread::kRoom];
};

#ifdef CUGUEST_SCHEDULED_THREADS
CUGUEST_THREAD_LOCAL(ThisThread) t_this_thread;
#else
CUGUEST_INTERNAL_THREAD ThisThread t_this_thread = {};
#endif
unsigned g_ended_elsewhere = 0;

namespace {

Atomic<unsigned long long> g_serials{0};

}  // namespace

namespace records {
namespace {

using State = Record::State;

// A scope that was ended on another thread. Never freed, so that it outlives both threads, and used
// again: there are never more than scopes that wait at one time. In a list that only grows.
struct Letter {
  static constexpr unsigned long long kTaken = ~0ULL;  // by a thread that writes or reads it

  Atomic<unsigned long long> serial{kTaken};  // 0: free
  Atomic<int> thread{0};
  Letter* next = nullptr;
};
// The first one goes with this copy when it is unloaded.
#ifndef CUGUEST_SCHEDULED_CONCURRENCY
Letter g_first_letter{{0}, {0}, nullptr};
Atomic<Letter*> g_letters{&g_first_letter};
#else
Atomic<Letter*> g_letters{nullptr};
#endif

// Serials below it are of scopes that were entered before this process was forked from another.
Atomic<unsigned long long> g_first_of_process{0};

void ForgetLettersInChild() {
  for (Letter* letter = g_letters.load(std::memory_order_acquire); letter != nullptr;
       letter = letter->next) {
    letter->serial.store(0, std::memory_order_relaxed);
  }
  StoreRelaxed(&g_ended_elsewhere, 0U);
  g_first_of_process.store(g_serials.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// The kRoom records of memory of the C library that `slot` is among.
[[gnu::noinline]] Record* DeepBlockOf(const ThisThread& here, unsigned slot) noexcept {
  DeepRecords* holder = here.deep;
  for (unsigned first = here.room; slot < first; first -= ThisThread::kRoom) holder = holder->below;
  return holder->records;
}

// Those that `slot` is among, or will be.
void BringNear(ThisThread* here, unsigned slot) noexcept {
  if (slot - here->first < ThisThread::kRoom) return;
  here->first = slot - slot % ThisThread::kRoom;
  Record* const block = here->first == 0 ? here->records : DeepBlockOf(*here, slot);
  here->distance =
      reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(here->records);
}

// What the child has of its parent's stacks is nobody's: the driver does not work for it.
void ForgetAllInChild(ThisThread* here) noexcept {
  for (unsigned slot = 0; slot < here->room + ThisThread::kRoom; ++slot) At(slot).serial = 0;
  here->depth = 0;
  here->capture_modes = 0;
  BringNear(here, 0);
  here->kernel_thread = 0;
}

// Once for a thread, and then once in kSerialsAtOnce uses of a record.
unsigned long long NewSerials(ThisThread* here) noexcept {
  if (here->kernel_thread == 0) here->kernel_thread = KernelThread();
  return g_serials.fetch_add(ThisThread::kSerialsAtOnce, std::memory_order_relaxed);
}

bool MakeRoom(ThisThread* here) noexcept {
  if (here->depth < ThisThread::kRoom + here->room) return true;
  auto* const added = static_cast<DeepRecords*>(std::calloc(1, sizeof(DeepRecords)));
  if (added == nullptr) return false;
  added->below = here->deep;
  here->deep = added;
  here->room += ThisThread::kRoom;
  return true;
}

// All of it where the thread's own room is enough, since the thread may end then. Deeper, a block
// more than is needed stays: a scope that begins and ends where one is full would allocate each
// time.
void GiveRoomBack(ThisThread* here) noexcept {
  if (here->depth < here->first || here->depth <= ThisThread::kRoom) {
    BringNear(here, here->depth == 0 ? 0 : here->depth - 1);
  }
  while (here->room > 0 &&
         (here->depth <= ThisThread::kRoom || here->depth + ThisThread::kRoom <= here->room)) {
    DeepRecords* const unused = here->deep;
    here->deep = unused->below;
    here->room -= ThisThread::kRoom;
    std::free(unused);
  }
}

// A HostScope that has ended elsewhere cannot enter again what it took out: nobody there knows what
// this thread does.
void EndHost(unsigned slot) noexcept {
  for (unsigned i = 0; i < slot; ++i) {
    Record& record = At(i);
    if (record.state != State::kOut || record.host_slot != slot) continue;
    record.state = State::kGone;
    record.result = CUDA_ERROR_ILLEGAL_STATE;
  }
}

void EndByMail(unsigned slot) noexcept {
  Record& record = At(slot);
  if (record.state == State::kOut || record.state == State::kGone) return Free(slot);
  if (record.state != State::kLive) return;
  if (record.kind != Record::Kind::kHost) return MarkEnded(&record);
  EndHost(slot);
  Free(slot);
}

void EndBySerial(unsigned long long serial) noexcept {
  for (unsigned slot = Depth(); slot-- > 0;) {
    if (At(slot).serial == serial) return EndByMail(slot);  // of a free one nothing is left to end
  }
}

// One that is free, or whose reader has ended.
Letter* TakeLetter() noexcept {
  for (Letter* letter = g_letters.load(std::memory_order_acquire); letter != nullptr;
       letter = letter->next) {
    unsigned long long serial = letter->serial.load(std::memory_order_acquire);
    if (serial == Letter::kTaken) continue;
    const bool is_free = serial == 0;
    if (!is_free && !HasEnded(letter->thread.load(std::memory_order_relaxed))) continue;
    if (!letter->serial.compare_exchange_strong(serial, Letter::kTaken,
                                                std::memory_order_acq_rel)) {
      continue;
    }
    if (is_free) AddRelaxed(&g_ended_elsewhere, 1U);
    return letter;
  }
  void* const memory = std::malloc(sizeof(Letter));
  if (memory == nullptr) return nullptr;
  auto* const letter = new (memory) Letter;
  letter->next = g_letters.load(std::memory_order_relaxed);
  while (!g_letters.compare_exchange_weak(letter->next, letter, std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {
  }
  AddRelaxed(&g_ended_elsewhere, 1U);
  return letter;
}

}  // namespace

unsigned Depth() noexcept { return CallingThread()->depth; }

Record& At(unsigned slot) noexcept {
  ThisThread& here = *CallingThread();
  if (slot - here.first < ThisThread::kRoom) return here.Near(slot);
  Record* const block = slot < ThisThread::kRoom ? here.records : DeepBlockOf(here, slot);
  return block[slot % ThisThread::kRoom];
}

Record* Find(unsigned slot, unsigned long long serial) noexcept {
  if (slot >= Depth()) return nullptr;
  Record& record = At(slot);
  return record.serial == serial && record.state != State::kFree ? &record : nullptr;
}

Record* Add() noexcept {
  ForgetParents();
  ThisThread& here = *CallingThread();
  if (!MakeRoom(&here)) return nullptr;
  BringNear(&here, here.depth);
  Record& record = At(here.depth++);
  unsigned long long serial = record.serial;
  if (serial % ThisThread::kSerialsAtOnce == 0) serial = NewSerials(&here);
  record = {};
  record.serial = serial + 1;
  record.state = State::kEntering;
  return &record;
}

void Free(unsigned slot) noexcept {
  Record& record = At(slot);
  if (record.kind == Record::Kind::kExact) std::free(record.entries);
  if (record.kind == Record::Kind::kCaptureMode && record.state != State::kFree) {
    --CallingThread()->capture_modes;
  }
  record.state = State::kFree;
  DropFree();
}

void DropFree() noexcept {
  ThisThread& here = *CallingThread();
  while (here.depth > 0 && At(here.depth - 1).state == State::kFree) --here.depth;
  GiveRoomBack(&here);
}

unsigned Top(Resource resource) noexcept {
  if (resource == Resource::kCaptureMode && CallingThread()->capture_modes == 0) return kNowhere;
  for (unsigned slot = Depth(); slot-- > 0;) {
    const Record& record = At(slot);
    if (IsOpen(record) && ResourceOf(record) == resource) return slot;
  }
  return kNowhere;
}

void ForgetParents() noexcept {
  ThisThread* const here = CallingThread();
  if (here->process_now != nullptr && here->IsOfProcess()) return;
  WatchForks<&ForgetLettersInChild>();
  if (here->process_now != nullptr) ForgetAllInChild(here);
  here->process = Process::Number();
  here->process_now = Process::NumberPlace();
}

bool IsOfParent(unsigned long long serial) noexcept {
  return serial <= g_first_of_process.load(std::memory_order_relaxed);
}

void MarkEnded(Record* record) noexcept {
  record->state = State::kEnded;
  record->file = "(a scope that ended before those inside it)";
  record->line = 0;
}

bool TellOwner(int thread, unsigned long long serial) noexcept {
  if (HasEnded(thread)) return true;
  Letter* const letter = TakeLetter();
  if (letter == nullptr) return false;
  letter->thread.store(thread, std::memory_order_relaxed);
  letter->serial.store(serial, std::memory_order_release);
  return true;
}

void ReadMail() noexcept {
  if (!ThisThread::HasMail()) return;
  const int here = CallingThread()->kernel_thread;
  for (Letter* letter = g_letters.load(std::memory_order_acquire); letter != nullptr;
       letter = letter->next) {
    unsigned long long serial = letter->serial.load(std::memory_order_acquire);
    if (serial == 0 || serial == Letter::kTaken) continue;
    if (letter->thread.load(std::memory_order_relaxed) != here) continue;
    if (!letter->serial.compare_exchange_strong(serial, 0, std::memory_order_acq_rel)) continue;
    AddRelaxed(&g_ended_elsewhere, ~0U);
    EndBySerial(serial);
  }
}

}  // namespace records

CUGUEST_END_INTERNAL_NAMESPACE
