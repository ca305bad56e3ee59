// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/chain_cache.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <cstdlib>

namespace cuguest::audit {
namespace {

// A backtrace in progress.
struct Walk {
  CachedChain* chain;
  std::uint32_t epoch;
  ObjectTable* objects;
  ChannelWriter* writer;
  PythonStack::Frame python;
  const KnownObject* object = nullptr;  // of the frame before
  bool is_full = false;
};

// Where exit() is, which ends with a call that does not return. Looked up when this library is
// loaded: it takes the loader's lock.
const struct ExitFunction {
  ExitFunction() {
    Dl_info info = {};
    void* extra = nullptr;
    if (dladdr1(reinterpret_cast<void*>(&std::exit), &info, &extra, RTLD_DL_SYMENT) == 0) return;
    const auto* symbol = static_cast<const ElfW(Sym)*>(extra);
    if (symbol == nullptr) return;
    begin = reinterpret_cast<std::uintptr_t>(info.dli_saddr);
    end = begin + symbol->st_size;
  }
  [[nodiscard]] bool Has(std::uintptr_t address) const { return begin <= address && address < end; }

  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
} exit_function;

bool Grow(CachedChain* chain) {
  if (std::max({chain->slot_count, chain->frame_count, chain->python_count}) < chain->capacity) {
    return true;
  }
  const std::uint32_t capacity = chain->capacity == 0 ? 32 : 2 * chain->capacity;
  if (capacity > ChainCache::kMaxFrames) return false;
  auto* slots = static_cast<CachedChain::Slot*>(
      std::realloc(chain->slots, capacity * sizeof(CachedChain::Slot)));
  if (slots == nullptr) return false;
  chain->slots = slots;
  auto* frames =
      static_cast<FrameRecord*>(std::realloc(chain->frames, capacity * sizeof(FrameRecord)));
  if (frames == nullptr) return false;
  chain->frames = frames;
  auto* python = static_cast<PythonStack::Place*>(
      std::realloc(chain->python, capacity * sizeof(PythonStack::Place)));
  if (python == nullptr) return false;
  chain->python = python;
  chain->capacity = capacity;
  return true;
}

const KnownObject* FindObject(Walk* walk, std::uintptr_t address) {
  const KnownObject* last = walk->object;
  if (last != nullptr && last->loaded.begin <= address && address < last->loaded.end) return last;
  walk->object = walk->objects->Find(address);
  return walk->object;
}

// `stack` is where the frame's own part of the stack begins: just above the return address that led
// to it, and the canonical frame address of the one before.
void AddFrame(Walk* walk, std::uintptr_t address, std::uintptr_t stack) {
  CachedChain* chain = walk->chain;
  const KnownObject* object = FindObject(walk, address - 1);  // in the call, not behind it
  chain->is_in_exit = chain->is_in_exit || exit_function.Has(address - 1);
  if (chain->frame_count == 0) {
    if (object != nullptr && object->is_hidden) {
      chain->is_through_runtime = chain->is_through_runtime || object->is_runtime;
      return;
    }
    chain->caller_stack = stack;
    chain->innermost = address - 1;
    chain->object = object;
  }
  if (object != nullptr) ObjectTable::Define(*object, walk->epoch, walk->writer);
  if (chain->worker == 0 && object != nullptr && !object->passes_on) chain->worker = object->number;
  FrameRecord& frame = chain->frames[chain->frame_count++];
  frame.object = object != nullptr ? object->number : 0;
  frame.offset = object != nullptr ? address - object->loaded.bias : address;
  frame.address = stack;  // until the next one is known
  frame.reserved = 0;
}

// The functions that the last native frame runs, which ends at `stack`. Of many, the innermost have
// one address: the frame of the loop has room for that.
void AddFunctions(Walk* walk, std::uintptr_t stack) {
  CachedChain* chain = walk->chain;
  while (walk->python != nullptr) {
    PythonStack::Frame loop = walk->python;
    std::uint64_t count = 0;
    for (; loop != nullptr && !PythonStack::IsOfLoop(loop); ++count) {
      loop = PythonStack::CallerOf(loop);
    }
    const auto address = reinterpret_cast<std::uintptr_t>(loop);
    if (loop == nullptr || address >= stack || chain->frame_count == 0) return;
    chain->frames[chain->frame_count - 1].address = address;
    for (; walk->python != loop; walk->python = PythonStack::CallerOf(walk->python)) {
      if (!Grow(chain)) {
        walk->is_full = true;
        return;
      }
      chain->python[chain->python_count++] = PythonStack::PlaceOf(walk->python);
      --count;
      PythonStack::Function function;
      if (!PythonStack::Describe(walk->python, &function)) continue;
      const KnownObject* object = walk->objects->FindFunction(function.file, function.name);
      if (object == nullptr) continue;
      ObjectTable::Define(*object, walk->epoch, walk->writer);
      if (chain->worker == 0) chain->worker = object->number;
      FrameRecord& frame = chain->frames[chain->frame_count++];
      frame.object = object->number;
      frame.offset = static_cast<std::uint64_t>(std::max(function.line, 0));
      frame.address = stack - std::min<std::uint64_t>(count, stack - address - 1);
      frame.reserved = 0;
    }
    walk->python = PythonStack::CallerOf(loop);
  }
}

_Unwind_Reason_Code OnFrame(_Unwind_Context* context, void* data) {
  auto* walk = static_cast<Walk*>(data);
  CachedChain* chain = walk->chain;
  const std::uintptr_t address = _Unwind_GetIP(context);
  const std::uintptr_t stack = _Unwind_GetCFA(context);
  if (address == 0) return _URC_END_OF_STACK;
  if (stack <= chain->key) return _URC_NO_REASON;  // of the collector, below the callback
  if (chain->frame_count > 0) chain->frames[chain->frame_count - 1].address = stack;
  AddFunctions(walk, stack);
  if (walk->is_full || !Grow(chain)) {
    walk->is_full = true;
    return _URC_END_OF_STACK;
  }
  const auto* place = reinterpret_cast<const std::uintptr_t*>(stack - sizeof(std::uintptr_t));
  chain->slots[chain->slot_count++] = {place, *place};
  AddFrame(walk, address, stack);
  return _URC_NO_REASON;
}

// The capacity is a multiple, too.
void FillUpSlots(CachedChain* chain) {
  while (chain->slot_count % CachedChain::kSlotsAtOnce != 0) {
    chain->slots[chain->slot_count] = chain->slots[chain->slot_count - 1];
    ++chain->slot_count;
  }
}

void CountBoundaries(CachedChain* chain) {
  chain->boundary_count = 0;
  for (std::uint32_t i = 0; i + 1 < chain->frame_count; ++i) {
    if (chain->frames[i].object == chain->frames[i + 1].object) continue;
    if (chain->boundary_count++ == 0) chain->first_boundary = chain->frames[i].address;
  }
}

}  // namespace

ChainCache::~ChainCache() {
  for (auto& set : chains_) {
    for (CachedChain& chain : set) {
      std::free(chain.frames);
      std::free(chain.slots);
      std::free(chain.python);
    }
  }
}

void ChainCache::Forget() {
  for (auto& set : chains_) {
    for (CachedChain& chain : set) chain.key = 0;
  }
}

// Reads parts of the stack that may be in no frame now.
__attribute__((no_sanitize("address", "thread"))) bool ChainCache::IsSame(const CachedChain& chain,
                                                                          std::uintptr_t key) {
#ifdef __x86_64__  // where a return address is just below the canonical frame address
  if (chain.key != key || chain.generation == 0) return false;
  // No place is read before those further in were the same: the stack may end before it now.
  const CachedChain::Slot* end = chain.slots + chain.slot_count;
  for (const CachedChain::Slot* at = chain.slots; at != end; at += CachedChain::kSlotsAtOnce) {
    if (*at[0].place != at[0].value || *at[1].place != at[1].value || *at[2].place != at[2].value ||
        *at[3].place != at[3].value) {
      return false;
    }
  }
  if (!PythonStack::IsAt(chain.python, chain.python_count)) return false;
  return chain.object == nullptr || ObjectTable::IsStill(*chain.object, chain.innermost);
#else
  return false;
#endif
}

bool ChainCache::Unwind(CachedChain* chain, std::uint32_t epoch, ObjectTable* objects,
                        ChannelWriter* writer) {
  chain->frame_count = 0;
  chain->slot_count = 0;
  chain->python_count = 0;
  chain->is_through_runtime = false;
  chain->is_in_exit = false;
  chain->caller_stack = chain->key;
  chain->innermost = 0;
  chain->object = nullptr;
  chain->worker = 0;
  Walk walk = {chain, epoch, objects, writer, PythonStack::Innermost()};
  if (!Grow(chain)) return false;
  _Unwind_Backtrace(OnFrame, &walk);
  FillUpSlots(chain);
  CountBoundaries(chain);
  if (walk.is_full) objects->NoteCutChain();
  return chain->frame_count > 0 || !walk.is_full;
}

const CachedChain* ChainCache::Capture(std::uintptr_t key, std::uint32_t thread,
                                       std::uint32_t epoch, ObjectTable* objects,
                                       ChannelWriter* writer) {
  // Calls of one function have one key, and several places: as many as a set has chains.
  const std::size_t set = (key >> 4) % kSets;
  for (CachedChain& chain : chains_[set]) {
    if (IsSame(chain, key)) return &chain;
  }
  CachedChain* chain = &chains_[set][next_[set]++ % kWays];
  chain->key = key;
  if (!Unwind(chain, epoch, objects, writer)) return nullptr;
  chain->defined = static_cast<std::uint16_t>(chain->defined == 0xffff ? 1 : chain->defined + 1);
  const ChainRecord record = {thread, NumberOf(chain), chain->defined};
  const bool is_defined = writer->Write(RecordKind::kChain, &record, sizeof(record), chain->frames,
                                        chain->frame_count * sizeof(FrameRecord));
  chain->generation = is_defined ? chain->defined : 0;
  objects->TellLimits(epoch, writer);
  return chain;
}

}  // namespace cuguest::audit
