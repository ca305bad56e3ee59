// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedules of lib/libraries/handle_pool.cc. A program is a word for each of its threads, whose
// letters are operations on one pool:
//
//   L l   borrows a handle; gives it back
//   S     borrows one, and gives it back spoiled
//   P     prepares two
//   C     counts them
//
// It is an error if two threads have one handle; if one that was spoiled is borrowed; if what the
// last user did to a handle need not have happened before the next one has it; and if a handle is
// never destroyed.

#include "cuguest/libraries/internal/handle_pool.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "test/schedules/cases.h"
#include "test/schedules/model_driver.h"

namespace {

using cuguest::ContextRef;
using cuguest::Device;
using cuguest::internal::Atomic;
using cuguest::internal::HandlePool;
using cuguest::internal::HandleRequest;
using cuguest::internal::HandleSlot;
using cuguest::internal::HandleType;
using schedules::Bounds;
using schedules::Case;
using schedules::Group;
using schedules::kUnbounded;
using schedules::ModelDriver;
using schedules::Require;

struct Handle {
  bool is_lent = false;
  bool is_spoiled = false;
  bool is_destroyed = false;
  Atomic<int> work{0};
  int worked = 0;
};

// The library that the handles are of.
using Library = std::deque<Handle>;

absl::StatusOr<void*> MakeHandle(const void* library, const ContextRef&, const void*) {
  auto& handles = *static_cast<Library*>(const_cast<void*>(library));
  handles.emplace_back();
  Handle& made = handles.back();
  made.work.store(++made.worked, std::memory_order_relaxed);
  return &made;
}

void DestroyHandle(const void*, void* handle, bool) {
  Handle& ending = *static_cast<Handle*>(handle);
  Require(!ending.is_lent, "a handle that somebody has was destroyed");
  Require(!ending.is_destroyed, "a handle was destroyed twice");
  ending.is_destroyed = true;
}

constexpr HandleType kType = {"a handle", false,   false,   &MakeHandle,
                              nullptr,    nullptr, nullptr, &DestroyHandle};

class Lending : public schedules::Program {
 public:
  Lending(std::vector<std::string> threads, bool is_prepared)
      : words_(std::move(threads)), held_(words_.size()) {
    driver_.Create(ModelDriver::Handle(0));
    context_ = ContextRef::Borrow(ModelDriver::Handle(0));
    if (is_prepared) Do('P', &held_[0]);
  }

  int Threads() const override { return static_cast<int>(words_.size()); }
  void Run(int thread) override {
    const auto index = static_cast<std::size_t>(thread);
    for (const char operation : words_[index]) Do(operation, &held_[index]);
  }
  void Finish() override {
    for (auto& held : held_) {
      while (!held.empty()) GiveBack(&held, true);
    }
    std::size_t good = 0;
    for (const Handle& handle : library_) good += handle.is_spoiled ? 0 : 1;
    Require(pool_->Count(nullptr) == good, "a handle is lost");
    pool_.reset();
    for (const Handle& handle : library_)
      Require(handle.is_destroyed, "a handle was not destroyed");
  }

 private:
  void Do(char operation, std::vector<HandleSlot*>* held) {
    switch (operation) {
      case 'P':
        return Require(pool_->Prepare(context_, nullptr, 2).ok(), "not prepared");
      case 'C':
        return Require(pool_->Count(nullptr) <= library_.size(), "too many are counted");
      case 'L':
      case 'S': {
        HandleSlot* slot = pool_->TakeIdle(nullptr);
        if (slot == nullptr) {
          const auto made = pool_->Make(context_, nullptr, nullptr);
          Require(made.ok(), "not made");
          slot = *made;
        }
        Handle& handle = HandleOf(slot);
        Require(!handle.is_lent, "two threads have one handle");
        Require(!handle.is_spoiled, "a spoiled handle is lent");
        handle.is_lent = true;
        Require(handle.work.load(std::memory_order_relaxed) == handle.worked,
                "what the last user did is not seen");
        held->push_back(slot);
        if (operation == 'S') GiveBack(held, false);
        return;
      }
      default:
        if (!held->empty()) GiveBack(held, true);
    }
  }

  static Handle& HandleOf(HandleSlot* slot) { return *static_cast<Handle*>(slot->handle); }

  void GiveBack(std::vector<HandleSlot*>* held, bool is_good) {
    HandleSlot* const slot = held->back();
    held->pop_back();
    Handle& handle = HandleOf(slot);
    handle.work.store(++handle.worked, std::memory_order_relaxed);
    handle.is_lent = false;
    handle.is_spoiled = !is_good;
    pool_->GiveBack(slot, is_good);
  }

  ModelDriver driver_;
  Library library_;
  std::unique_ptr<HandlePool> pool_ =
      std::make_unique<HandlePool>(kType, &library_, Device::Borrow(0));
  ContextRef context_;
  std::vector<std::string> words_;
  std::vector<std::vector<HandleSlot*>> held_;
};

Case Words(const std::vector<std::string>& threads, bool is_prepared, const Bounds& bounds) {
  std::string name = is_prepared ? "prepared" : "empty";
  for (const std::string& word : threads) name += " " + word;
  return {name, [=] { return std::make_unique<Lending>(threads, is_prepared); }, bounds};
}

}  // namespace

std::vector<Group> schedules::Groups() {
  const Bounds every = {};
  const Bounds weak = {kUnbounded, kUnbounded};
  const Bounds three_preemptions = {3};
  std::vector<Group> groups;
  for (const Bounds& bounds : {every, weak}) {
    Group two{bounds.stale_reads == 0 ? "two_threads" : "two_threads_weak", {}};
    const std::vector<std::string> words = {"L", "S", "P", "C", "Ll", "LlL"};
    for (const bool is_prepared : {false, true}) {
      for (const std::string& a : words) {
        for (const std::string& b : words) {
          if (a <= b) two.cases.push_back(Words({a, b}, is_prepared, bounds));
        }
      }
    }
    groups.push_back(two);
  }
  Group three{"three_threads_two_operations", {}};
  for (const bool is_prepared : {false, true}) {
    three.cases.push_back(Words({"Ll", "Ll", "Ll"}, is_prepared, three_preemptions));
    three.cases.push_back(Words({"Ll", "SL", "LC"}, is_prepared, three_preemptions));
  }
  groups.push_back(three);
  return groups;
}
