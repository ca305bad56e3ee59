// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/collect/owned_objects.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "test/support/test.h"

using namespace cuguest::audit;

BOOST_AUTO_TEST_SUITE(owned_objects)

namespace {

constexpr auto kStream = ObjectKind::kStream;
constexpr auto kMemory = ObjectKind::kMemory;

std::unique_ptr<OwnedObjects> MakeTable() { return std::make_unique<OwnedObjects>(); }

// The context of what is dead there; 0: nothing is.
std::uint64_t DeadAt(const OwnedObjects& table, ObjectKind kind, std::uint64_t address) {
  OwnedObject object;
  return table.FindDead(kind, address, &object) ? object.context : 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(objects_end_with_their_context) {
  const auto table = MakeTable();
  table->Make({kStream, 7, 0x100, 1, 1});
  table->Make({kStream, 8, 0x110, 1, 2});
  table->Make({ObjectKind::kEvent, 9, 0x100, 1, 2});  // the same handle of another kind
  table->Make({kMemory, 10, 0x1000, 0x100, 1});
  BOOST_TEST(!table->HasDead());
  table->End(1);
  BOOST_TEST(table->HasDead());
  OwnedObject object;
  BOOST_REQUIRE(table->FindDead(kStream, 0x100, &object));
  BOOST_TEST(object.maker == 7u);
  BOOST_TEST(object.context == 1u);
  BOOST_TEST(DeadAt(*table, kStream, 0x101) == 0u);
  BOOST_TEST(DeadAt(*table, kStream, 0x110) == 0u);
  BOOST_TEST(DeadAt(*table, ObjectKind::kEvent, 0x100) == 0u);
  BOOST_TEST(DeadAt(*table, kMemory, 0xfff) == 0u);
  BOOST_TEST(DeadAt(*table, kMemory, 0x1000) == 1u);
  BOOST_TEST(DeadAt(*table, kMemory, 0x10ff) == 1u);
  BOOST_TEST(DeadAt(*table, kMemory, 0x1100) == 0u);
  table->End(2);
  BOOST_TEST(DeadAt(*table, ObjectKind::kEvent, 0x100) == 2u);
  BOOST_TEST(DeadAt(*table, kStream, 0x100) == 1u);
}

BOOST_AUTO_TEST_CASE(what_was_freed_does_not_end) {
  const auto table = MakeTable();
  table->Make({kStream, 1, 0x100, 1, 1});
  table->Free(kStream, 0x100, 0);
  table->Make({ObjectKind::kModule, 1, 0x200, 1, 1});
  table->Make({ObjectKind::kFunction, 1, 0x300, 1, 1, 0x200});
  table->Make({ObjectKind::kFunction, 1, 0x310, 1, 1, 0x201});
  table->Free(ObjectKind::kModule, 0x200, 0);  // with its functions
  table->End(1);
  BOOST_TEST(DeadAt(*table, kStream, 0x100) == 0u);
  BOOST_TEST(DeadAt(*table, ObjectKind::kModule, 0x200) == 0u);
  BOOST_TEST(DeadAt(*table, ObjectKind::kFunction, 0x300) == 0u);
  BOOST_TEST(DeadAt(*table, ObjectKind::kFunction, 0x310) == 1u);
}

BOOST_AUTO_TEST_CASE(made_anew_it_is_not_dead) {
  const auto table = MakeTable();
  table->Make({kStream, 1, 0x100, 1, 1});
  table->Make({kMemory, 1, 0x1000, 0x100, 1});
  table->Make({kMemory, 1, 0x1100, 0x100, 1});
  table->Make({kMemory, 1, 0x1200, 0x100, 1});
  table->End(1);
  table->Make({kStream, 2, 0x100, 1, 0});     // of a context that is not known
  table->Make({kMemory, 2, 0x10ff, 0x2, 2});  // a part of two
  BOOST_TEST(DeadAt(*table, kStream, 0x100) == 0u);
  BOOST_TEST(DeadAt(*table, kMemory, 0x1000) == 0u);
  BOOST_TEST(DeadAt(*table, kMemory, 0x1180) == 0u);
  BOOST_TEST(DeadAt(*table, kMemory, 0x1200) == 1u);
  table->End(2);
  BOOST_TEST(DeadAt(*table, kMemory, 0x1100) == 2u);
}

// Numbers of textures are of one context.
BOOST_AUTO_TEST_CASE(a_number_is_of_its_context) {
  const auto table = MakeTable();
  table->Make({ObjectKind::kTexture, 1, 1, 1, 1});
  table->Make({ObjectKind::kTexture, 2, 1, 1, 2});
  table->End(1);
  BOOST_TEST(DeadAt(*table, ObjectKind::kTexture, 1) == 1u);
  table->Free(ObjectKind::kTexture, 1, 2);
  table->End(2);
  BOOST_TEST(DeadAt(*table, ObjectKind::kTexture, 1) == 1u);
}

BOOST_AUTO_TEST_CASE(a_child_has_nothing) {
  const auto table = MakeTable();
  table->Make({kStream, 1, 0x100, 1, 1});
  table->End(1);
  table->Make({kStream, 1, 0x200, 1, 2});
  table->Close();
  table->End(2);
  BOOST_TEST(!table->HasDead());
}

BOOST_AUTO_TEST_CASE(it_is_bounded_and_tells) {
  const auto table = MakeTable();
  for (std::uint64_t i = 1; i <= OwnedObjects::kMaxLiving; ++i) table->Make({kStream, 1, i, 1, 1});
  BOOST_TEST(!table->HasDropped());
  table->End(1);
  BOOST_TEST(!table->HasDropped());
  BOOST_TEST(DeadAt(*table, kStream, OwnedObjects::kMaxLiving) == 1u);
  table->Make({ObjectKind::kEvent, 1, 0x100, 1, 2});
  table->End(2);  // the older ones make room
  BOOST_TEST(table->HasDropped());
  BOOST_TEST(DeadAt(*table, ObjectKind::kEvent, 0x100) == 2u);
  const auto other = MakeTable();
  for (std::uint64_t i = 0; i <= OwnedObjects::kMaxLiving; ++i)
    other->Make({kStream, 1, i + 1, 1, 1});
  BOOST_TEST(other->HasDropped());
}

// Against a list that is searched from its beginning to its end.
BOOST_AUTO_TEST_CASE(it_equals_a_list) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](unsigned below) { return static_cast<unsigned>(random()) % below; };
    const auto table = MakeTable();
    std::vector<OwnedObject> living;
    std::vector<OwnedObject> dead;
    const auto overlap = [](const OwnedObject& a, const OwnedObject& b) {
      return a.kind == b.kind && a.begin < b.begin + b.size && b.begin < a.begin + a.size;
    };
    const auto erase = [](std::vector<OwnedObject>* from, const auto& which) {
      from->erase(std::remove_if(from->begin(), from->end(), which), from->end());
    };
    for (int step = 0; step < 2000; ++step) {
      const bool is_memory = draw(2) == 0;
      OwnedObject object = {is_memory ? kMemory : kStream, draw(9) + 1, draw(400) + 1,
                            is_memory ? draw(8) + 1 : 1, draw(6) + 1};
      const auto is_over_it = [&](const OwnedObject& one) { return overlap(one, object); };
      const auto is_it = [&](const OwnedObject& one) {
        return one.kind == object.kind && one.begin == object.begin;
      };
      switch (draw(8)) {
        case 0: {
          const auto is_its = [&](const OwnedObject& one) { return one.context == object.context; };
          table->End(object.context);
          std::copy_if(living.begin(), living.end(), std::back_inserter(dead), is_its);
          erase(&living, is_its);
          break;
        }
        case 1:
        case 2:
          table->Free(object.kind, object.begin, 0);
          erase(&living, is_it);
          break;
        default:
          // As a driver does: nothing where something owned.
          if (std::any_of(living.begin(), living.end(), is_over_it)) break;
          table->Make(object);
          erase(&dead, is_over_it);
          living.push_back(object);
          break;
      }
      const auto found = std::find_if(dead.begin(), dead.end(), [&](const OwnedObject& one) {
        return overlap(one, {object.kind, 0, object.begin, 1, 0});
      });
      OwnedObject seen;
      const bool is_found = table->FindDead(object.kind, object.begin, &seen);
      BOOST_REQUIRE_MESSAGE(is_found == (found != dead.end()), seed << " " << step);
      if (is_found) BOOST_REQUIRE(seen.begin == found->begin);
      if (is_found) BOOST_REQUIRE(seen.maker == found->maker);
    }
  }
}

// While it is changed, a reader finds what is there, or nothing.
BOOST_AUTO_TEST_CASE(readers_need_no_lock) {
  const auto table = MakeTable();
  table->Make({kStream, 77, 0x1000000, 1, 1});
  table->End(1);
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!is_over) {
      OwnedObject object;
      if (table->FindDead(kStream, 0x1000000, &object) && object.maker != 77) ++wrong;
      if (table->FindDead(kStream, 0x500, &object) && object.begin != 0x500) ++wrong;
    }
  });
  for (std::uint64_t round = 2; round < 300; ++round) {
    for (std::uint64_t i = 0; i < 64; ++i) table->Make({kStream, 1, 0x500 - 32 + i, 1, round});
    table->End(round);
  }
  is_over = true;
  reader.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()
