// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedules of lib/share/registry.cc. A program is a word for each of its threads, whose
// letters are operations as SharedContext calls them:
//
//   L     gives back the reference that the thread begins with, to S
//   F     tries to give that back where the driver takes nothing; it is kept if it was the last
//   C c   copies that reference; gives the copy back
//   S s   attaches the context that was made for sharing; gives it back
//   T t   the same by its handle; gives it back
//   H h   attaches the host's own context; gives it back
//   A a   the same by its handle, whichever context has that; gives it back
//   D     the host destroys its own context, and makes another one, which gets the handle
//   P p   attaches the primary context; gives it back
//   Z     the host resets the device: the primary context is another one at its handle
//   N n   makes a context for sharing; gives it back
//   U     looks at the count of S, to which the thread has a reference
//
// The driver is a model of one: contexts at handles, which are given out again as soon as they are
// free. It is an error to destroy the host's context, or any that is held; to release the primary
// context without having retained it; to leave a context that was made for sharing alive when
// nobody holds it; to count one context in two slots; and to ask about a context while its last
// holder destroys it.

#include "lib/share/registry.h"
#include "lib/share/ending.h"
#include "lib/share/system.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "test/schedules/cases.h"

CUGUEST_BEGIN_NAMESPACE
namespace {

using internal::Atomic;
using internal::Ending;
using internal::Reference;
using internal::Registry;
using internal::Slot;
using schedules::Bounds;
using schedules::Case;
using schedules::Group;
using schedules::kUnbounded;
using schedules::Require;

enum class MadeBy { kNobody, kShared, kHost, kPrimary };

// One incarnation of a context. `is_alive` is what the driver's calls read and write.
struct ModelContext {
  MadeBy made_by = MadeBy::kNobody;
  std::uintptr_t handle = 0;
  bool has_handle = false;
  Atomic<int> is_alive{0};
  bool is_being_destroyed = false;
  bool is_over = false;  // its owner has destroyed or reset it
  int holders = 0;
  const Slot* slot = nullptr;  // where they are counted

  // What each thread did with it: all of that happens before it is destroyed.
  static constexpr unsigned kThreads = 5;
  std::array<Atomic<int>, kThreads> work;
  std::array<int, kThreads> worked{};

  void Work() {
    const std::uint64_t thread = internal::ThreadNumber();
    work[thread].store(++worked[thread], std::memory_order_relaxed);
  }
  void SeeAllWork() {
    for (unsigned thread = 0; thread < kThreads; ++thread) {
      if (worked[thread] == 0) continue;
      Require(work[thread].load(std::memory_order_relaxed) == worked[thread],
              "a context was destroyed before a holder's use of it");
    }
  }
};

constexpr int kDevice = 3;

// Incarnations by their ids, from 1.
class ModelDriver {
 public:
  static constexpr unsigned kIncarnations = 8;

  ContextRef Make(MadeBy made_by);
  ContextRef MakeAt(std::uintptr_t handle, MadeBy made_by);

  // The owner destroys or resets it while others are attached, and another one has the handle.
  ContextRef Replace(const ContextRef& context) {
    ModelContext& over = Of(context);
    over.is_over = true;
    over.is_alive.store(0);
    over.has_handle = false;
    return MakeAt(over.handle, over.made_by);
  }

  // Whether it is alive.
  bool Check(const ContextRef& context) {
    const bool is_alive = Of(context).is_alive.load() != 0;
    Require(!Of(context).is_being_destroyed, "asked of what a holder destroys");
    return is_alive;
  }

  // Which one is alive at the handle of `context`; 0: none.
  unsigned long long Ask(const ContextRef& context) {
    CUcontext const handle = context.get();
    handles_.fetch_add(0);
    Require(!Of(context).is_being_destroyed, "asked of what a holder destroys");
    for (unsigned id = 1; id < next_id_; ++id) {
      const ModelContext& context = contexts_[id];
      if (context.has_handle && context.handle == reinterpret_cast<std::uintptr_t>(handle)) {
        return contexts_[id].is_alive.load() != 0 ? id : 0;
      }
    }
    return 0;
  }

  ModelContext& Of(unsigned long long id) { return contexts_[id]; }
  ModelContext& Of(const ContextRef& context) { return Of(context.id()); }

  CUresult Destroy(CUcontext handle, unsigned long long id) {
    ModelContext& context = Of(id);
    if (refuses_[internal::ThreadNumber()]) return CUDA_ERROR_NOT_PERMITTED;
    Require(context.handle == reinterpret_cast<std::uintptr_t>(handle), "ended by a mixed key");
    context.is_being_destroyed = true;
    const bool was_alive = context.is_alive.exchange(0) != 0;
    context.is_being_destroyed = was_alive;
    if (!was_alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    Require(context.made_by == MadeBy::kShared, "a stranger's context was destroyed");
    Require(context.holders == 0, "a context was destroyed that somebody holds");
    context.SeeAllWork();
    handles_.fetch_add(1);
    context.is_over = true;
    context.is_being_destroyed = false;
    context.has_handle = false;
    return CUDA_SUCCESS;
  }

  // As in a host function.
  void Refuse(bool refuses) { refuses_[internal::ThreadNumber()] = refuses; }

  void RetainPrimary() { primary_count_.fetch_add(1); }
  void ReleasePrimary() {
    Require(primary_count_.fetch_sub(1) > 1, "more was released than retained");
  }
  int PrimaryCount() const { return primary_count_.load(); }

 private:
  std::array<ModelContext, kIncarnations> contexts_;
  std::array<bool, ModelContext::kThreads> refuses_{};
  unsigned next_id_ = 1;
  Atomic<int> handles_{0};        // given out or taken back
  Atomic<int> primary_count_{1};  // the host's
};

ModelDriver* g_driver = nullptr;
unsigned long long g_id_of_new = 0;

ContextRef RefTo(std::uintptr_t handle, unsigned long long id) {
  g_id_of_new = id;
  return ContextRef::Borrow(reinterpret_cast<CUcontext>(handle));
}

// At the first handle that no context has.
ContextRef ModelDriver::Make(MadeBy made_by) {
  handles_.fetch_add(1);
  std::uintptr_t handle = 0x1000;
  for (unsigned id = 1; id < next_id_;) {
    const bool is_taken = contexts_[id].handle == handle && contexts_[id].has_handle;
    if (is_taken) handle += 0x1000;
    id = is_taken ? 1 : id + 1;
  }
  return MakeAt(handle, made_by);
}

ContextRef ModelDriver::MakeAt(std::uintptr_t handle, MadeBy made_by) {
  const ContextRef ref = RefTo(handle, next_id_);
  ModelContext& made = contexts_[next_id_++];
  made.made_by = made_by;
  made.handle = handle;
  made.has_handle = true;
  made.is_alive.store(1);
  return ref;
}

}  // namespace

// The driver's answer, in place of lib/guard/context_ref.cc.
ContextRef ContextRef::Borrow(CUcontext context) noexcept {
  ContextRef ref;
  ref.context_ = context;
  ref.id_ = g_id_of_new;
  ref.result_ = CUDA_SUCCESS;
  return ref;
}

namespace internal {

// In place of lib/share/system_posix.cc: for the slots of one schedule after the other.
void* MapZeros(std::size_t size) noexcept { return std::calloc(1, size); }
void Unmap(void* place, std::size_t) noexcept { std::free(place); }

// In place of lib/share/ending.cc.
CUresult DestroyLife(CUcontext context, unsigned long long id) noexcept {
  return g_driver->Destroy(context, id);
}
CUresult ReleasePrimary(CUdevice device) noexcept {
  Require(device == kDevice, "the primary context of another device was released");
  g_driver->ReleasePrimary();
  return CUDA_SUCCESS;
}

}  // namespace internal

namespace {

// Where the references are that the threads begin with: one on the root and the others on a stripe;
// all on a stripe; or all on the root of a slot that was gathered.
enum class Begin { kRootAndStripe, kStripe, kGathered };

class Attaching : public schedules::Program {
 public:
  Attaching(std::vector<std::string> threads, Begin begin)
      : words_(std::move(threads)), held_(words_.size()) {
    g_driver = &driver_;
    shared_ = driver_.Make(MadeBy::kShared);
    hosts_ = driver_.Make(MadeBy::kHost);
    primary_ = driver_.Make(MadeBy::kPrimary);
    Reference first;
    static_cast<void>(registry_.JoinOrOpen(shared_, Ending::kDestroy, kDevice, &first));
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (i == 0 && begin == Begin::kRootAndStripe) {
        Hold(&held_[i], 'L', shared_, first);
      } else if (words_[i].find_first_of("LCFU") != std::string::npos) {
        Hold(&held_[i], 'L', shared_, Registry::Copy(first.slot));
      }
    }
    if (begin == Begin::kStripe) Hold(&rest_, 'L', shared_, first);
    if (begin == Begin::kGathered) static_cast<void>(Registry::Leave(first));
  }

  int Threads() const override { return static_cast<int>(words_.size()); }

  void Run(int thread) override {
    const auto index = static_cast<std::size_t>(thread);
    for (const char operation : words_[index]) Do(operation, &held_[index]);
  }

  void Finish() override {
    for (std::vector<Held>& held : held_) {
      while (!held.empty()) GiveBack(&held, held.back().letter);
    }
    while (!rest_.empty()) GiveBack(&rest_, 'L');
    for (unsigned id = 1; id < ModelDriver::kIncarnations; ++id) {
      const ModelContext& context = driver_.Of(id);
      const bool is_alive = context.is_alive.load() != 0;
      if (context.made_by == MadeBy::kShared) Require(!is_alive, "it outlived its last holder");
      if (context.made_by == MadeBy::kHost) {
        Require(is_alive != context.is_over, "the host's was destroyed");
      }
    }
    Require(driver_.PrimaryCount() == 1, "the registry kept a reference of the driver's count");
    // Whatever is counted from now on, is counted from 0, and found by its handle.
    for (const ContextRef& context : {hosts_, primary_, hosts_, primary_}) {
      std::vector<Held> held;
      Attach('X', context, &held);
      Require(held.size() == 1, "it cannot be attached any more");
      Require(Registry::Count(*held[0].reference.slot) == 1, "the count does not begin at 1");
      Reference found;
      static_cast<void>(registry_.Join(context.get(), nullptr, &found));
      Require(found.slot == held[0].reference.slot, "the handle leads to what is over");
      static_cast<void>(Registry::Leave(found));
      GiveBack(&held, 'X');
    }
  }

 private:
  struct Held {
    char letter;  // of the operation that took it
    ContextRef context;
    Reference reference;
  };

  void Do(char operation, std::vector<Held>* held) {
    switch (operation) {
      case 'S':
        return Attach('S', shared_, held);
      case 'H':
        return Attach('H', ContextRef(hosts_), held);  // as it is now
      case 'P':
        return Attach('P', ContextRef(primary_), held);
      case 'T':
        return AttachHandle('T', shared_, held);
      case 'A':
        return AttachHandle('A', ContextRef(hosts_), held);
      case 'D':
        hosts_ = driver_.Replace(hosts_);
        return;
      case 'Z':
        primary_ = driver_.Replace(primary_);
        return;
      case 'N':
        return Make(held);
      case 'C':
        return Hold(held, 'C', shared_, Registry::Copy(Find(held, 'L')->reference.slot));
      case 'U': {
        const std::uint64_t count = Registry::Count(*Find(held, 'L')->reference.slot);
        return Require(count >= 1 && count <= 8, "a count that there cannot be");
      }
      case 'F':
        driver_.Refuse(true);
        GiveBack(held, 'L');
        return driver_.Refuse(false);
      case 'L':
        return GiveBack(held, 'L');
      default:
        return GiveBack(held, static_cast<char>(operation - 'a' + 'A'));
    }
  }

  void Hold(std::vector<Held>* held, char letter, const ContextRef& context,
            const Reference& reference) {
    const Slot& slot = *reference.slot;
    Require(slot.IsOpen() && slot.id.load(std::memory_order_relaxed) == context.id(),
            "a reference to something else");
    ModelContext& held_one = driver_.Of(context);
    ++held_one.holders;
    held->push_back({letter, context, reference});
    if (held_one.is_over) return;  // nobody finds its slot any more
    Require(held_one.holders == 1 || held_one.slot == &slot, "a context is counted in two slots");
    held_one.slot = &slot;
  }

  // As SharedContext::Attach() of a ref.
  void Attach(char letter, const ContextRef& context, std::vector<Held>* held) {
    Reference reference;
    const unsigned long long id = context.id();
    if (IsRefused(registry_.Join(context.get(), &id, &reference), context)) return;
    AttachAsked(letter, context, driver_.Check(context), reference, held);
  }

  // As SharedContext::Attach() of the handle of `context`, whichever has that.
  void AttachHandle(char letter, const ContextRef& context, std::vector<Held>* held) {
    Reference reference;
    if (IsRefused(registry_.Join(context.get(), nullptr, &reference), context)) return;
    const unsigned long long id = driver_.Ask(context);
    const auto handle = reinterpret_cast<std::uintptr_t>(context.get());
    AttachAsked(letter, RefTo(handle, id), id != 0, reference, held);
  }

  // Only what was made for sharing is refused for its end, and what has its handle since.
  bool IsRefused(Registry::Outcome outcome, const ContextRef& context) {
    if (outcome != Registry::Outcome::kClosing) return false;
    Require(driver_.Of(context).made_by == MadeBy::kShared, "it was refused as closing");
    return true;
  }

  void AttachAsked(char letter, const ContextRef& context, bool is_alive, Reference reference,
                   std::vector<Held>* held) {
    if (is_alive && reference.slot != nullptr && reference.slot->IsFor(context)) {
      return Hold(held, letter, context, reference);
    }
    if (reference.slot != nullptr) static_cast<void>(Registry::Leave(reference));
    if (!is_alive) return;
    const bool may_be_primary = driver_.Of(context).made_by == MadeBy::kPrimary;
    if (may_be_primary) driver_.RetainPrimary();
    const bool is_primary = may_be_primary && context == primary_;
    if (may_be_primary && !is_primary) driver_.ReleasePrimary();
    const Registry::Outcome outcome = registry_.JoinOrOpen(
        context, is_primary ? Ending::kReleasePrimary : Ending::kNothing, kDevice, &reference);
    if (is_primary && outcome != Registry::Outcome::kOpened) driver_.ReleasePrimary();
    if (reference.slot == nullptr) {
      const ModelContext& refused = driver_.Of(context);
      return Require(refused.made_by == MadeBy::kShared || refused.is_over, "it was refused");
    }
    Hold(held, letter, context, reference);
    if (driver_.Of(context).is_alive.load() == 0) GiveBack(held, letter);
  }

  void Make(std::vector<Held>* held) {
    const ContextRef made = driver_.Make(MadeBy::kShared);
    Reference reference;
    const Registry::Outcome outcome =
        registry_.JoinOrOpen(made, Ending::kDestroy, kDevice, &reference);
    Require(outcome == Registry::Outcome::kOpened || outcome == Registry::Outcome::kJoined,
            "not made");
    Require(reference.slot->GetEnding() == Ending::kDestroy, "nobody will destroy it");
    Hold(held, 'N', made, reference);
  }

  static Held* Find(std::vector<Held>* held, char letter) {
    for (Held& one : *held) {
      if (one.letter == letter) return &one;
    }
    return nullptr;
  }

  // Nothing, if it was not had: its context was over.
  void GiveBack(std::vector<Held>* held, char letter) {
    Held* const found = Find(held, letter);
    if (found == nullptr) return;
    const Held leaving = *found;
    held->erase(held->begin() + (found - held->data()));
    driver_.Of(leaving.context).Work();
    --driver_.Of(leaving.context).holders;
    if (!internal::IsStillHeld(Registry::Leave(leaving.reference))) return;
    ++driver_.Of(leaving.context).holders;
    held->push_back(leaving);
  }

  Registry registry_;
  ModelDriver driver_;
  ContextRef shared_;
  ContextRef hosts_;
  ContextRef primary_;
  std::vector<std::string> words_;
  std::vector<std::vector<Held>> held_;
  std::vector<Held> rest_;  // given back in the end
};

Case Words(const std::vector<std::string>& threads, Begin begin, const Bounds& bounds) {
  std::string name = begin == Begin::kRootAndStripe ? "root"
                     : begin == Begin::kStripe      ? "stripe"
                                                    : "gathered";
  for (const std::string& word : threads) name += " " + word;
  return {name, [=] { return std::make_unique<Attaching>(threads, begin); }, bounds};
}

constexpr Begin kBegins[] = {Begin::kRootAndStripe, Begin::kStripe, Begin::kGathered};

// Two threads with one operation each: all pairs.
Group Pairs(const std::string& name, const Bounds& bounds) {
  Group group{name, {}};
  const std::vector<std::string> operations = {"L", "C", "U", "S", "T", "H",
                                               "A", "D", "P", "Z", "N"};
  for (const Begin begin : kBegins) {
    for (const std::string& a : operations) {
      for (const std::string& b : operations) {
        // The threads differ in where their references are.
        if (begin != Begin::kRootAndStripe && a > b) continue;
        group.cases.push_back(Words({a, b}, begin, bounds));
      }
    }
  }
  return group;
}

// Every pair of words.
Group Longer(const std::string& name, const std::vector<std::string>& first,
             const std::vector<std::string>& second, const Bounds& bounds) {
  Group group{name, {}};
  for (const Begin begin : kBegins) {
    for (const std::string& a : first) {
      for (const std::string& b : second) group.cases.push_back(Words({a, b}, begin, bounds));
    }
  }
  return group;
}

std::vector<Group> Groups() {
  const Bounds every = {};
  const Bounds weak = {kUnbounded, kUnbounded};
  const Bounds one_stale_read = {kUnbounded, 1};
  const Bounds three_preemptions = {3};
  const std::vector<std::string> shorter = {"L", "C", "S", "H", "P", "N", "U", "Ss", "CL"};
  const std::vector<std::string> longer = {"SsHh", "LHhP", "LNnH", "PpLH", "HhSs", "LSsN"};
  Group replaced{"handles_given_out_again", {}};
  for (const char* a : {"H", "A", "P", "Hh"}) {
    for (const char* b : {"HDAa", "PZPp", "ADHN", "TtNT"}) {
      replaced.cases.push_back(Words({a, b}, Begin::kRootAndStripe, {2}));
    }
  }
  // The slot of the host's context, which is idle, is given to what is made for sharing.
  for (const char* a : {"A", "H"}) {
    replaced.cases.push_back(Words({a, "HhN"}, Begin::kRootAndStripe, three_preemptions));
  }
  // The handle of what is made for sharing, while that is destroyed and the next one is made there.
  for (const char* a : {"LN", "LNn", "LNnN"}) {
    for (const char* b : {"T", "Tt", "TtTt", "SsT"}) {
      for (const Begin begin : {Begin::kRootAndStripe, Begin::kGathered}) {
        replaced.cases.push_back(Words({a, b}, begin, {2}));
      }
    }
  }
  Group refused{"the_driver_takes_nothing_back", {}};
  for (const Begin begin : kBegins) {
    for (const char* a : {"F", "FL"}) {
      for (const char* b : {"L", "S", "Ss", "T", "FL", "Nn"}) {
        refused.cases.push_back(Words({a, b}, begin, three_preemptions));
      }
    }
  }
  const std::vector<std::vector<std::string>> threes = {{"L", "Ss", "Hh"},  {"Cc", "L", "Ss"},
                                                        {"CL", "Ss", "Nn"}, {"LP", "Pp", "SL"},
                                                        {"L", "Tt", "Nn"},  {"Aa", "HDh", "A"}};
  Group all_threes{"three_threads_all", {}};
  all_threes.is_long = true;
  for (const Begin begin : kBegins) {
    for (const auto& threads : threes) {
      all_threes.cases.push_back(Words(threads, begin, three_preemptions));
    }
  }
  Group longer_weak = Longer("two_threads_longer_weak_all", shorter, longer, one_stale_read);
  longer_weak.is_long = true;
  return {
      Pairs("two_threads_one_operation", every),
      Pairs("two_threads_one_operation_weak", weak),
      refused,
      replaced,
      Longer("two_threads_longer", shorter, longer, every),
      Longer("two_threads_longer_weak", {"L", "S", "P", "U"}, {"SsHh", "LHhP"}, one_stale_read),
      longer_weak,
      {"three_threads",
       {Words({"L", "Ss", "Hh"}, Begin::kRootAndStripe, three_preemptions),
        Words({"Cc", "L", "Ss"}, Begin::kRootAndStripe, three_preemptions),
        Words({"Cc", "L", "Ss"}, Begin::kGathered, three_preemptions),
        Words({"CL", "Ss", "Nn"}, Begin::kStripe, three_preemptions)}},
      all_threes,
  };
}

}  // namespace
CUGUEST_END_NAMESPACE

std::vector<schedules::Group> schedules::Groups() { return cuguest::Groups(); }
