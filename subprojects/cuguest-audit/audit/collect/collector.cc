// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/collector.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "audit/collect/argument.h"
#include "audit/collect/call_details.h"
#include "audit/collect/call_objects.h"
#include "audit/collect/chain_cache.h"
#include "audit/collect/channel_writer.h"
#include "audit/collect/clock.h"
#include "audit/collect/context_table.h"
#include "audit/collect/maker_table.h"
#include "audit/collect/object_table.h"
#include "audit/collect/owned_objects.h"
#include "audit/collect/python_stack.h"
#include "audit/event.h"

namespace cuguest::audit {
namespace {

constexpr std::uintptr_t kNothingToWatch = ~std::uintptr_t{0};

// Where a chain passes from one object to the next: the outermost frame of the inner one.
struct Boundary {
  std::uint64_t address;
  std::uint32_t object;

  bool operator==(const Boundary& other) const {
    return address == other.address && object == other.object;
  }
};

struct Thread {
  static constexpr std::size_t kMaxBoundaries = 256;  // innermost ones

  std::uint32_t number = 0;
  std::uint32_t epoch = 0;
  mutable std::uint32_t told_in = 0;  // the epoch in which its name was
  bool is_busy = false;

  // The call in progress.
  int depth = 0;
  std::uintptr_t outer_frame = 0;
  const CallInfo* outer = nullptr;
  std::uint64_t before = 0;
  int mode = 0;
  bool is_among_dead = false;  // see Note [Objects of a context that is over]
  OwnedObject suspect;         // likewise; kNone: nothing

  std::uint64_t last_used = 0;  // a context for which there was a kUsed

  // See Note [When a frame has returned]; innermost first.
  std::uintptr_t watch = kNothingToWatch;
  std::uint64_t base = 0;  // of the stack: the outermost frame
  std::size_t boundary_count = 0;
  Boundary boundaries[kMaxBoundaries];

  int ends = 0;  // how often the key's destructor has run
  mutable Clock clock;
  ChainCache chains;
};

ChannelWriter writer;
ObjectTable objects;
ContextTable contexts;
SettingTable settings;
OwnedObjects owned;
MakerTable makers;
std::atomic<bool> is_drop_told{false};     // of `owned`
char parents_address[kMaxChannelAddress];  // empty: there is no channel for children
char source_name[32];
bool is_noise_told = false;  // before the first call
std::atomic<std::uint32_t> channel_epoch{1};
std::atomic<std::uint32_t> next_thread{1};
// In which context which object made or freed something, as far as that was told, by a hash of the
// three.
std::atomic<std::uint64_t> told_work[256];
// In a forked child, until its first call.
std::atomic<bool> is_forked_anew{false};
// 1 in a page that is zero in a child, also in one of _Fork(), which runs no handlers. Null: there
// is no such page.
volatile int* fork_mark = nullptr;
pthread_key_t thread_key;

// One pointer, at a fixed place: no allocation when a thread first asks.
__attribute__((tls_model("initial-exec"))) thread_local Thread* this_thread = nullptr;

void EndThread(void* data);

void BecomeForked() {
  writer.Forget();
  objects.UnlockInChild();
  owned.Close();
  channel_epoch.fetch_add(1);
  next_thread.store(1);
  for (std::atomic<std::uint64_t>& told : told_work) told.store(0, std::memory_order_relaxed);
  is_forked_anew.store(true);
  if (this_thread != nullptr) this_thread->watch = 0;
  if (fork_mark != nullptr) *fork_mark = 1;
}

// In a child of _Fork(), which ran no handlers.
void NoticeFork() {
  if (fork_mark != nullptr && *fork_mark == 0) BecomeForked();
}

void MarkForForks() {
  const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* page =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, size, MADV_WIPEONFORK) != 0) {
    munmap(page, size);
    return;
  }
  fork_mark = static_cast<volatile int*>(page);
  *fork_mark = 1;
}

// Of a channel that knows nothing of this thread yet.
void Begin(Thread* thread) {
  thread->epoch = channel_epoch.load(std::memory_order_relaxed);
  thread->number = next_thread.fetch_add(1, std::memory_order_relaxed);
  thread->chains.Forget();
  thread->boundary_count = 0;
  thread->watch = is_forked_anew.load(std::memory_order_relaxed) ? 0 : kNothingToWatch;
}

Thread* MakeThread() {
  auto* thread = new (std::nothrow) Thread;
  if (thread == nullptr) return nullptr;
  Begin(thread);
  this_thread = thread;
  pthread_setspecific(thread_key, thread);
  return thread;
}

const CachedChain* Capture(Thread* thread, std::uintptr_t frame) {
  return thread->chains.Capture(frame, thread->number, thread->epoch, &objects, &writer);
}

void SetWatch(Thread* thread) {
  thread->watch = thread->boundary_count > 0 ? thread->boundaries[0].address : kNothingToWatch;
}

void RememberBoundaries(Thread* thread, const CachedChain& chain) {
  const FrameRecord* frames = chain.frames;
  if (chain.frame_count == 0) return;
  // Calls of one function have the same ones: enough to look at the innermost.
  if (thread->boundary_count == chain.boundary_count && thread->watch == chain.first_boundary &&
      thread->base == frames[chain.frame_count - 1].address) {
    return;
  }
  thread->base = frames[chain.frame_count - 1].address;
  std::size_t count = 0;
  for (std::uint32_t i = 0; i + 1 < chain.frame_count && count < Thread::kMaxBoundaries; ++i) {
    if (frames[i].object == frames[i + 1].object) continue;
    thread->boundaries[count++] = {frames[i].address, frames[i].object};
  }
  thread->boundary_count = count;
  SetWatch(thread);
}

// Whether frames that were watched are gone. Those that are left stay watched.
bool DropReturned(Thread* thread, const CachedChain& chain) {
  const FrameRecord* frames = chain.frames;
  if (chain.frame_count == 0 || frames[chain.frame_count - 1].address != thread->base) return false;
  std::size_t left = 0;
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < thread->boundary_count; ++i) {
    const Boundary boundary = thread->boundaries[i];
    while (at < chain.frame_count && frames[at].address < boundary.address) ++at;
    if (at == chain.frame_count) break;
    if (boundary == Boundary{frames[at].address, frames[at].object}) {
      thread->boundaries[left++] = boundary;
    }
  }
  const bool is_any_gone = left < thread->boundary_count;
  thread->boundary_count = left;
  SetWatch(thread);
  return is_any_gone;
}

std::uint32_t DefineName(const CallInfo& info, std::uint32_t epoch) {
  if (info.defined_in.load(std::memory_order_relaxed) != epoch &&
      writer.WriteText(RecordKind::kName, info.number, info.name, std::strlen(info.name))) {
    info.defined_in.store(epoch, std::memory_order_relaxed);
  }
  return info.number;
}

EventRecord MakeEvent(const Thread& thread, EventKind kind) {
  EventRecord event = {};
  event.kind = static_cast<std::uint8_t>(kind);
  event.thread = thread.number;
  event.before = thread.before;
  event.device = -1;
  event.setting = -1;
  return event;
}

void NameThread(const Thread& thread) {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  const ThreadRecord record = {thread.number, static_cast<std::int32_t>(syscall(SYS_gettid))};
  if (writer.Write(RecordKind::kThread, &record, sizeof(record), name, std::strlen(name))) {
    thread.told_in = thread.epoch;
  }
}

// `info` and `chain` may be null. False if it was dropped.
bool Write(const Thread& thread, const CallInfo* info, const CachedChain* chain,
           EventRecord* event) {
  event->time_ns = thread.clock.Now();
  const bool is_named = thread.told_in == thread.epoch ||
                        event->kind == static_cast<std::uint8_t>(EventKind::kThreadEnd);
  if (!is_named) NameThread(thread);
  if (info != nullptr) event->name = DefineName(*info, thread.epoch);
  if (chain != nullptr) {
    if (chain->is_in_exit) writer.NoteExit(event->time_ns);
    event->chain = thread.chains.NumberOf(chain);
    event->chain_generation = chain->generation;
  }
  return writer.WriteEvent(*event);
}

// The last one of the thread, after other destructors of its end, which may call CUDA.
void EndThread(void* data) {
  auto* thread = static_cast<Thread*>(data);
  if (++thread->ends < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(thread_key, thread);
    return;
  }
  NoticeFork();
  if (thread->epoch == channel_epoch.load(std::memory_order_relaxed)) {
    EventRecord event = MakeEvent(*thread, EventKind::kThreadEnd);
    event.before = 0;
    Write(*thread, nullptr, nullptr, &event);
  }
  this_thread = nullptr;
  delete thread;
}

// The channel of a forked child, at its first call.
void OpenInChild() {
  if (!is_forked_anew.load(std::memory_order_relaxed) || !is_forked_anew.exchange(false)) return;
  writer.Unmap();
  if (*parents_address != '\0' && writer.Open(parents_address, /*forked=*/true)) {
    writer.WriteNote(RecordKind::kSource, source_name);
  }
}

// Before the thread's first event in the process: a forked child has copies of its parent's
// threads.
void Join(Thread* thread) {
  OpenInChild();
  if (thread->epoch != channel_epoch.load(std::memory_order_relaxed)) Begin(thread);
}

// CUDA_ERROR_NOT_INITIALIZED, DEINITIALIZED, INVALID_CONTEXT, CONTEXT_IS_DESTROYED, and those of
// captures, which the runtime numbers alike.
bool TellsOfADisturbance(int result) {
  return result == 3 || result == 4 || result == 201 || result == 709 ||
         (result >= 900 && result <= 908);
}

bool IsBadResult(const CallInfo& info, int result) {
  if (result == 0) return false;
  if (TellsOfADisturbance(result)) return true;
  constexpr int kNotReady = 600;  // an answer; it is no last error
  return (info.domain == Domain::kRuntime || is_noise_told) && result != kNotReady;
}

// Of a call without the handle of a context that is known. One that is not is older than the
// collection, and known once it was made current. 0 for null, which cuCtxSetCurrent may be given.
std::uint64_t ContextMeant(const Thread& thread, const ReportedCall& call, const void* handle) {
  if (call.info->creates) return call.context;
  if (handle == nullptr) return call.info->makes_current ? 0 : thread.before;
  if (!call.info->makes_current || call.result != 0) return 0;
  contexts.NoteCreated(handle, call.context);
  return call.context;
}

// Whether the call is an event for what it is. What it was about goes into `event`.
bool Judge(const Thread& thread, const ReportedCall& call, EventRecord* event) {
  const CallRule& rule = *call.info->rule;
  if (rule.call_class == CallClass::kCommon || rule.call_class == CallClass::kWork ||
      rule.call_class == CallClass::kMake || rule.call_class == CallClass::kFree) {
    return false;
  }
  if (rule.call_class == CallClass::kClearError) return call.result != 0;
  if (rule.call_class == CallClass::kPeekError) return false;
  const CallDetails details(call);
  event->context = contexts.IdOf(details.meant);
  event->device = details.device;
  event->setting = details.setting;
  event->value = details.value;
  event->primary = call.info->is_of_primary ? 1 : 0;
  if (event->context == 0 && event->primary == 0) {
    event->context = ContextMeant(thread, call, details.handle);
  }
  if (call.result != 0) return false;
  if (rule.setting != Setting::kNone) {
    const std::uint64_t owner =
        event->primary != 0 ? (std::uint64_t{1} << 40) + static_cast<unsigned>(event->device)
                            : event->context;
    event->old_value = settings.Exchange(owner, static_cast<std::uint8_t>(rule.setting),
                                         details.setting, details.value);
  }
  switch (rule.call_class) {
    case CallClass::kChange:
    case CallClass::kStack:
      return true;
    case CallClass::kCaptureMode:
      event->value = static_cast<std::uint64_t>(thread.mode);
      event->old_value = details.mode != nullptr ? static_cast<std::uint64_t>(*details.mode) : 0;
      return event->value != event->old_value;
    default:
      return false;
  }
}

// The innermost hidden frames are the same at each call of one function.
void LearnDepth(const ReportedCall& call, const CachedChain& chain) {
  const std::uintptr_t depth = chain.caller_stack - call.frame;
  if (depth < UINT_MAX && depth != call.info->depth.load(std::memory_order_relaxed)) {
    call.info->depth.store(static_cast<std::uint32_t>(depth), std::memory_order_relaxed);
  }
}

bool IsFirstWork(Thread* thread, const ReportedCall& call) {
  const CallClass call_class = call.info->rule->call_class;
  if (call_class != CallClass::kWork && call_class != CallClass::kMake) return false;
  if (call.result != 0 || call.context == thread->last_used) return false;
  thread->last_used = call.context;
  return contexts.NoteUsed(call.context);
}

// Of the object or the function that calls, in the context. True again where another took the
// place.
bool IsFirstOfCaller(Thread* thread, const ReportedCall& call) {
  const CallClass call_class = call.info->rule->call_class;
  const bool is_told = call_class == CallClass::kMake || call_class == CallClass::kFree;
  if (!is_told || call.result != 0 || call.context == 0) return false;
  const CachedChain* chain = Capture(thread, call.frame);
  if (chain == nullptr || chain->worker == 0) return false;
  // Their numbers are below 2^13.
  const std::uint64_t work = (call.context << 14) + std::uint64_t{chain->worker} * 2 +
                             (call_class == CallClass::kMake ? 1 : 0);
  std::atomic<std::uint64_t>& told =
      told_work[(work * 0x9E3779B97F4A7C15u >> 32) % std::size(told_work)];
  if (told.load(std::memory_order_relaxed) == work) return false;
  told.store(work, std::memory_order_relaxed);
  return true;
}

void WriteCall(Thread* thread, const ReportedCall& call, EventKind kind, EventRecord* event) {
  if (writer.IsStalled()) return writer.NoteLost();
  const CachedChain* chain = Capture(thread, call.frame);
  event->kind = static_cast<std::uint8_t>(kind);
  event->result = call.result;
  event->after = call.context;
  if (kind == EventKind::kUsed) event->context = call.context;
  if (chain != nullptr && chain->is_through_runtime && call.info->counts) {
    event->runtime = static_cast<std::uint8_t>(Runtime::kShared);
  }
  Write(*thread, call.info, chain, event);
  if (chain == nullptr) return;
  LearnDepth(call, *chain);
  RememberBoundaries(thread, *chain);
}

void Check(Thread* thread, const ReportedCall& call) {
  if (writer.IsStalled()) return;
  const CachedChain* chain = Capture(thread, call.frame);
  if (chain == nullptr) return;
  LearnDepth(call, *chain);
  if (!DropReturned(thread, *chain)) return;
  EventRecord event = MakeEvent(*thread, EventKind::kCheck);
  event.result = call.result;
  event.after = call.context;
  Write(*thread, call.info, chain, &event);
}

// The number of the code that makes objects by this call, which the channel is told once.
std::uint32_t MakerOf(Thread* thread, const ReportedCall& call) {
  const CachedChain* chain = Capture(thread, call.frame);
  if (chain == nullptr) return 0;
  const std::uint32_t number =
      makers.NumberOf(call.info->number, chain->frames, chain->frame_count);
  if (number == 0 || makers.IsTold(number)) return number;
  EventRecord event = MakeEvent(*thread, EventKind::kMade);
  event.value = number;
  event.after = call.context;
  if (Write(*thread, call.info, chain, &event)) makers.SetTold(number);
  return number;
}

// Of a call that succeeded.
void NoteObjects(Thread* thread, const ReportedCall& call) {
  OwnedObject made = TakeObjects(call, contexts, &owned);
  if (made.begin == 0) return;
  if (made.context != 0) made.maker = MakerOf(thread, call);
  owned.Make(made);
}

EventRecord MakeStale(const Thread& thread, const OwnedObject& object) {
  EventRecord event = MakeEvent(thread, EventKind::kStale);
  event.context = object.context;
  event.setting = static_cast<std::int32_t>(object.kind);
  event.value = object.begin;
  event.old_value = object.maker;
  return event;
}

// Whether there is something to look at when the call returns.
__attribute__((noinline)) bool EnterAmongDead(Thread* thread, const ReportedCall& call) {
  thread->suspect.kind = ObjectKind::kNone;
  if (call.info->objects == nullptr) return false;
  const DeadArguments dead = FindDeadArguments(call, owned);
  if (dead.certain.kind == ObjectKind::kNone) {
    thread->suspect = dead.suspect;
    return dead.makes || dead.suspect.kind != ObjectKind::kNone;
  }
  thread->is_busy = true;
  Join(thread);
  EventRecord event = MakeStale(*thread, dead.certain);
  event.after = call.context;
  Write(*thread, call.info, Capture(thread, call.frame), &event);
  thread->is_busy = false;
  return dead.makes;
}

// What is not settled by a few comparisons.
__attribute__((noinline)) void LeaveSlowly(Thread* thread, const ReportedCall& call) {
  thread->is_busy = true;
  Join(thread);
  EventRecord event = MakeEvent(*thread, EventKind::kCall);
  const bool is_event =
      Judge(*thread, call, &event) || call.context != thread->before ||
      IsBadResult(*call.info, call.result) ||
      (call.info->is_watched && call.info->told_in.exchange(thread->epoch) != thread->epoch);
  const bool is_peek = call.info->rule->call_class == CallClass::kPeekError;
  const bool is_first_work = IsFirstWork(thread, call);
  if (thread->suspect.kind != ObjectKind::kNone && MeansArguments(call.result)) {
    EventRecord stale = MakeStale(*thread, thread->suspect);
    WriteCall(thread, call, EventKind::kStale, &stale);
  }
  thread->suspect.kind = ObjectKind::kNone;
  if (call.result == 0 && (call.info->makes_or_frees || thread->is_among_dead)) {
    NoteObjects(thread, call);
  }
  if (IsFirstOfCaller(thread, call) || is_first_work) {
    WriteCall(thread, call, EventKind::kUsed, &event);
  }
  if (is_event && !is_peek) {
    WriteCall(thread, call, EventKind::kCall, &event);
  } else if (call.frame + call.info->depth.load(std::memory_order_relaxed) >= thread->watch ||
             call.info->depth.load(std::memory_order_relaxed) == 0) {
    Check(thread, call);
  }
  thread->before = call.context;
  thread->is_busy = false;
}

// What a runtime retains and releases for its caller, within a call of its own. What is current
// then is told when that returns.
void LeaveInner(Thread* thread, ReportedCall call) {
  thread->is_busy = true;
  Join(thread);
  call.context = thread->before;
  EventRecord event = MakeEvent(*thread, EventKind::kCall);
  event.runtime = static_cast<std::uint8_t>(Runtime::kOwn);
  if (Judge(*thread, call, &event)) WriteCall(thread, call, EventKind::kCall, &event);
  thread->is_busy = false;
}

// Of a context that is over.
void EndObjects(std::uint64_t context) {
  owned.End(context);
  if (owned.HasDropped() && !is_drop_told.exchange(true)) {
    writer.WriteNote(RecordKind::kLimit,
                     "more than 65536 objects of contexts lived, or were left of those that are "
                     "over: what uses further ones after their context is not found");
  }
}

// Null: the source does not show it. Calls of the classes that are looked at when they begin have
// the argument that matters in front.
const void* FirstArgument(const ReportedCall& call) {
  if (*call.info->rule->arguments == '\0') return nullptr;
  const void* at = call.pointers != nullptr ? call.pointers[0] : call.structure;
  return at != nullptr ? ReadArgument<const void*>(at) : nullptr;
}

// A destroyed handle, or a mode that the call exchanges.
void EnterSlowly(Thread* thread, const ReportedCall& call) {
  const void* argument = FirstArgument(call);
  if (call.info->rule->call_class == CallClass::kCaptureMode) {
    if (argument != nullptr) thread->mode = *static_cast<const int*>(argument);
    return;
  }
  if (!contexts.IsDestroyed(argument)) return;
  thread->is_busy = true;
  Join(thread);
  EventRecord event = MakeEvent(*thread, EventKind::kEntered);
  event.context = contexts.IdOf(argument);
  event.after = call.context;
  Write(*thread, call.info, Capture(thread, call.frame), &event);
  thread->is_busy = false;
}

// Those who were called by main() have returned, and no call of CUDA's may follow that tells.
void CheckAtExit() {
  Thread* thread = this_thread;
  if (thread == nullptr || thread->is_busy) return;
  if (thread->epoch != channel_epoch.load(std::memory_order_relaxed)) return;
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const CachedChain* chain = Capture(thread, frame);
  if (chain == nullptr || !DropReturned(thread, *chain)) return;
  EventRecord event = MakeEvent(*thread, EventKind::kCheck);
  event.after = event.before;
  Write(*thread, nullptr, chain, &event);
}

void TellUnloaded() {
  const std::uint32_t epoch = channel_epoch.load(std::memory_order_relaxed);
  objects.ForEachUnloaded(epoch, [](std::uint32_t number) {
    EventRecord event = {};
    event.kind = static_cast<std::uint8_t>(EventKind::kUnloaded);
    event.time_ns = MonotonicNs();
    event.device = -1;
    event.setting = -1;
    event.value = number;
    writer.WriteEvent(event);
  });
}

__attribute__((destructor)) void End() {
  NoticeFork();
  CheckAtExit();
  TellUnloaded();
  writer.NoteExit(MonotonicNs());
}

}  // namespace

namespace {

bool WatchProcess() {
  if (pthread_key_create(&thread_key, EndThread) != 0) return false;
  if (pthread_atfork(nullptr, nullptr, BecomeForked) != 0) return false;
  MarkForForks();
  at_quick_exit(End);  // which runs no destructors
  return true;
}

void FindPython() {
  char version[64] = {};
  if (PythonStack::Find(version, sizeof(version))) return;
  char note[256];
  std::snprintf(
      note, sizeof(note),
      "does not know the functions of Python %s, for which the interpreter stands; those of "
      "3.12 and 3.13 with a global lock it knows",
      version);
  Collector::Note(note);
}

}  // namespace

bool Collector::Start(const char* channel_address) {
  if (std::strlen(channel_address) >= sizeof(parents_address)) return false;
  std::strcpy(parents_address, channel_address);
  if (!WatchProcess() || !writer.Open(parents_address, /*forked=*/false)) return false;
  FindPython();
  return true;
}

bool Collector::StartWith(int memory) {
  if (!WatchProcess() || !writer.Use(memory, /*forked=*/false)) return false;
  FindPython();
  return true;
}

void Collector::TellNoise() { is_noise_told = true; }

void Collector::Pause() { writer.Suspend(); }

void Collector::Resume() { writer.Resume(); }

void Collector::OnEnter(const ReportedCall& call) {
  NoticeFork();
  Thread* thread = this_thread != nullptr ? this_thread : MakeThread();
  if (thread == nullptr || thread->is_busy) return;
  // See Note [Calls inside calls].
  if (thread->depth > 0 && call.frame < thread->outer_frame) {
    ++thread->depth;
    return;
  }
  thread->depth = 1;
  thread->outer_frame = call.frame;
  thread->outer = call.info;
  thread->before = call.context;
  thread->is_among_dead = owned.HasDead() && EnterAmongDead(thread, call);
  const CallClass call_class = call.info->rule->call_class;
  if (call_class == CallClass::kStack || call_class == CallClass::kCaptureMode) {
    EnterSlowly(thread, call);
  }
}

void Collector::OnLeave(const ReportedCall& call) {
  Thread* thread = this_thread;
  if (thread == nullptr || thread->is_busy || thread->depth == 0) return;
  if (--thread->depth > 0) {
    if (call.info->counts && thread->outer->domain == Domain::kRuntime) LeaveInner(thread, call);
    return;
  }
  const CallClass call_class = call.info->rule->call_class;
  const bool is_to_tell =
      call.info->is_watched && call.info->told_in.load(std::memory_order_relaxed) !=
                                   channel_epoch.load(std::memory_order_relaxed);
  const bool has_objects = call.info->makes_or_frees || thread->is_among_dead;
  const bool is_plain = call_class == CallClass::kCommon ||
                        (call_class == CallClass::kWork && call.context == thread->last_used) ||
                        call_class == CallClass::kRuntimeChoice ||
                        call_class == CallClass::kPeekError ||
                        (call_class == CallClass::kClearError && call.result == 0);
  const std::uint32_t depth = call.info->depth.load(std::memory_order_relaxed);
  if (is_plain && !is_to_tell && !has_objects && call.result == 0 &&
      call.context == thread->before && depth != 0 && call.frame + depth < thread->watch) {
    return;
  }
  LeaveSlowly(thread, call);
}

void Collector::OnContextCreated(const ReportedContext& context) {
  const std::uint64_t former = contexts.IdOf(context.handle);
  contexts.NoteCreated(context.handle, context.id);
  Thread* thread = this_thread != nullptr ? this_thread : MakeThread();
  if (thread == nullptr || thread->is_busy) return;
  thread->is_busy = true;
  Join(thread);
  if (former != context.id) EndObjects(former);
  contexts.NoteOwner(context.id, context.device, context.primary, context.is_green);
  EventRecord event = MakeEvent(*thread, EventKind::kContext);
  event.context = context.id;
  event.device = context.device;
  event.primary = context.primary ? 1 : 0;
  event.after = event.before;
  const CallInfo* info = thread->depth > 0 ? thread->outer : nullptr;
  Write(*thread, info, Capture(thread, context.frame), &event);
  thread->is_busy = false;
}

void Collector::OnInitialized(std::uintptr_t frame) {
  static CallTable calls{Domain::kDriver};
  const CallInfo* info = calls.Find(0, "cuInit");
  Thread* thread = this_thread != nullptr ? this_thread : MakeThread();
  if (thread == nullptr || thread->is_busy || info == nullptr) return;
  thread->is_busy = true;
  EventRecord event = MakeEvent(*thread, EventKind::kInitialized);
  Write(*thread, info, Capture(thread, frame), &event);
  thread->is_busy = false;
}

void Collector::OnContextDestroyed(const void* handle) {
  contexts.NoteDestroyed(handle);
  Thread* thread = this_thread != nullptr ? this_thread : MakeThread();
  if (thread == nullptr || thread->is_busy) return;
  thread->is_busy = true;
  EndObjects(contexts.IdOf(handle));
  thread->is_busy = false;
}

std::uint64_t Collector::NextId() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t Collector::IdOf(const void* handle) {
  const std::uint64_t id = contexts.IdOf(handle);
  if (id != 0 || handle == nullptr) return id;
  contexts.NoteCreated(handle, NextId());
  return contexts.IdOf(handle);
}

bool Collector::HasPrimary(int device) { return contexts.HasPrimary(device); }

void Collector::Note(const char* text) { writer.WriteNote(RecordKind::kNote, text); }

void Collector::NameSource(const char* name) {
  std::snprintf(source_name, sizeof(source_name), "%s", name);
  writer.WriteNote(RecordKind::kSource, source_name);
}

}  // namespace cuguest::audit
