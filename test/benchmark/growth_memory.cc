// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/benchmark/growth_memory.h"

#include <cuda.h>
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <vector>

#include "cuguest/context_ref.h"
#include "cuguest/shared_context.h"
#include "test/benchmark/growth_copies.h"
#include "test/benchmark/harness.h"

namespace cuguest_benchmark {
namespace {

using cuguest::ContextRef;
using cuguest::SharedContext;

// Of the process's heap.
std::size_t BytesInUse() {
  malloc_trim(0);
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

struct Memory {
  double while_there;
  double once_gone;
  double by_the_next;  // more than that, once as many others have come and gone: least of three
};

// For each of `count`; the first, which also pays for what the process has once, is not counted.
template <typename Make>
Memory MemoryOf(int count, Make make) {
  using Kept = decltype(make(0));
  static_cast<void>(make(0));
  std::vector<Kept> all;
  all.reserve(static_cast<std::size_t>(count));
  const auto each = [&](std::size_t from, std::size_t to) {
    return (static_cast<double>(to) - static_cast<double>(from)) / count;
  };
  const std::size_t before = BytesInUse();
  std::size_t while_there = 0;
  std::vector<std::size_t> once_gone;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < count; ++i) all.push_back(make(i));
    if (round == 0) while_there = BytesInUse();
    while (!all.empty()) all.pop_back();
    once_gone.push_back(BytesInUse());
  }
  // What leaks grows in every round; gaps that the allocator leaves do in some.
  double growth = each(once_gone[0], once_gone[1]);
  for (std::size_t i = 2; i < once_gone.size(); ++i) {
    growth = std::min(growth, each(once_gone[i - 1], once_gone[i]));
  }
  return {each(before, while_there), each(before, once_gone[0]), growth};
}

}  // namespace

bool PrintMemory(Contexts* contexts, bool smoke, bool is_real) {
  const int count = smoke ? 4 : 64;
  const int that_go = smoke ? 4 : is_real ? 8 : 50000;
  Destroyed destroyed(contexts);
  const std::vector<CUcontext> all = contexts->AtLeast(count);
  const int copies_count = 64;  // with few, lists of the dynamic linker grow by more for each
  const CopyFiles files(copies_count);
  const auto load = [&](int i) {
    auto copy = std::make_unique<Copy>(files.At(i));
    copy->AttachAndRelease(all[0]);
    return copy;
  };
  for (int round = 0; round < 2; ++round) {  // the dynamic linker keeps room for as many
    std::vector<std::unique_ptr<Copy>> copies;
    for (int i = 0; i < copies_count; ++i) copies.push_back(load(i));
  }
  const auto ref = [&](int i) { return ContextRef::Borrow(all[static_cast<std::size_t>(i)]); };
  Cache cache;
  struct Value {
    Cache* cache;
    ContextRef ref;
    Value(Cache* of, const ContextRef& context) : cache(of), ref(context) {
      REQUIRE(cache->GetOrMake(ref, &Alive::MakeValue).ok());
    }
    Value(const Value&) = delete;
    Value& operator=(const Value&) = delete;
    ~Value() { cache->Forget(ref); }
  };
  const struct {
    const char* what;
    Memory memory;
    bool is_drivers = false;  // a real driver keeps memory of its own for it
  } kRows[] = {
      {"a value of `PerContext`",
       MemoryOf(count, [&](int i) { return std::make_unique<Value>(&cache, ref(i)); })},
      {"a context that is attached",
       MemoryOf(count, [&](int i) { return Take(SharedContext::Attach(ref(i))); })},
      {"a context that had both and was destroyed",
       MemoryOf(that_go,
                [&](int) {
                  destroyed.One();
                  return 0;
                }),
       is_real},
      {"a thread that had a guard and has ended", MemoryOf(smoke     ? 16
                                                           : is_real ? 500
                                                                     : 50000,
                                                           [&](int i) {
                                                             RunThread(ref(i % count));
                                                             return 0;
                                                           })},
      {"a copy of cuguest that has attached", MemoryOf(copies_count, load), is_real},
  };
  std::printf(
      "\n| bytes of the heap, for each | while it is there | kept for the next | more by the next "
      "|\n|---|---:|---:|---:|\n");
  bool kept = true;
  for (const auto& row : kRows) {
    std::printf("| %s | %.0f | %.0f | %.0f |\n", row.what, row.memory.while_there,
                row.memory.once_gone, row.memory.by_the_next);
    kept = kept && (row.is_drivers || row.memory.by_the_next < 8);
  }
  std::printf("\n");
  return kept;
}

}  // namespace cuguest_benchmark
