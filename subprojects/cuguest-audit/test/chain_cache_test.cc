// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/chain_cache.h"

#include <alloca.h>
#include <unistd.h>

#include "audit/channel_server.h"
#include "test/support/test.h"

using namespace cuguest::audit;

namespace {

std::uintptr_t CanonicalFrameAddress(void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

struct Fixture {
  Fixture() {
    const int memory = MakeChannelMemory(kChannelSlots);
    BOOST_REQUIRE(writer.Use(memory, false));
    close(memory);
  }

  // As a source's callback.
  __attribute__((noinline)) const CachedChain* Callback() {
    const auto key = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return cache.Capture(key, 1, 1, &objects, &writer);
  }

  // As the driver's function.
  __attribute__((noinline)) const CachedChain* Call() {
    const CachedChain* chain = Callback();
    asm volatile("" ::: "memory");  // no tail call
    return chain;
  }

  // As a guest, which has `size` bytes more on its stack.
  __attribute__((noinline)) const CachedChain* Guest(std::size_t size, std::uintptr_t* frame) {
    volatile char* more = static_cast<char*>(alloca(size));
    more[0] = 1;
    *frame = CanonicalFrameAddress(__builtin_dwarf_cfa());
    const CachedChain* chain = Call();
    asm volatile("" ::: "memory");
    return chain;
  }

  // The same, from `depth` frames that all return to one place, above which one differs.
  __attribute__((noinline)) const CachedChain* Descend(int depth, std::size_t size) {
    std::uintptr_t frame = 0;
    const CachedChain* chain = depth == 0 ? Guest(size, &frame) : Descend(depth - 1, size);
    asm volatile("" ::: "memory");
    return chain;
  }

  ChannelWriter writer;
  ObjectTable objects;
  ChainCache cache;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(chain_cache, Fixture)

BOOST_AUTO_TEST_CASE(frames_have_their_canonical_address) {
  std::uintptr_t frame = 0;
  for (const std::size_t size : {16, 4096}) {
    const CachedChain* chain = Guest(size, &frame);
    BOOST_REQUIRE(chain != nullptr);
    BOOST_REQUIRE(chain->frame_count >= 3u);  // Call(), Guest(), the test
    BOOST_TEST(chain->frames[1].address == frame);
  }
}

BOOST_AUTO_TEST_CASE(same_call_has_the_same_chain) {
  std::uintptr_t frame = 0;
  const CachedChain* first = nullptr;
  std::uint16_t generation = 0;
  for (int i = 0; i < 3; ++i) {
    const CachedChain* chain = Guest(16, &frame);
    BOOST_REQUIRE(chain != nullptr);
    if (first == nullptr) {
      first = chain;
      generation = chain->generation;
    }
    BOOST_TEST(chain == first);
    BOOST_TEST(chain->generation == generation);
  }
}

BOOST_AUTO_TEST_CASE(other_caller_has_another_chain) {
  std::uintptr_t frame = 0;
  const CachedChain* first = Guest(16, &frame);
  const std::uint16_t number = cache.NumberOf(first);
  const CachedChain* second = Guest(16, &frame);  // another return address, the same frames
  BOOST_TEST(cache.NumberOf(second) != number);
}

// All frames but one have the same places and return addresses, however far out that one is.
BOOST_AUTO_TEST_CASE(other_outer_caller_has_another_chain) {
  for (int depth = 0; depth < 10; ++depth) {
    BOOST_TEST_INFO_SCOPE(depth << " frames between");
    std::uint16_t numbers[3] = {};
    std::uintptr_t places[2] = {};
    for (int i = 0; i < 3; ++i) {
      const CachedChain* chain = i == 1 ? Descend(depth, 16) : Descend(depth, 16);
      numbers[i] = cache.NumberOf(chain);
      if (i < 2) places[i] = chain->caller_stack;
    }
    BOOST_TEST(places[0] == places[1]);
    BOOST_TEST(numbers[1] != numbers[0]);
    BOOST_TEST(numbers[2] == numbers[0]);
  }
}

BOOST_AUTO_TEST_CASE(new_channel_knows_no_chain) {
  std::uintptr_t frame = 0;
  std::uint16_t generations[2] = {};
  for (std::uint16_t& generation : generations) {
    generation = Guest(16, &frame)->generation;
    cache.Forget();
  }
  BOOST_TEST(generations[0] != 0);
  BOOST_TEST(generations[1] != 0);
}

BOOST_AUTO_TEST_SUITE_END()
