// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedules of lib/cache/per_context_table.cc. A program is a word for each of its threads,
// whose letters are operations on one cache:
//
//   A a   pins the value of context A, making it if there is none; releases it
//   B b   the same of B
//   R r   the same of the incarnation at A's handle after D
//   F     forgets A
//   D     forgets A, destroys it, and begins another incarnation at its handle
//   E     forgets A, which the caller knows to be destroyed
//   X     drops what is dead (A is a primary context, B is not)
//   K     makes the value of A, if there is none, in a maker that forks; what follows is the
//   child's L     forgets A, the end of whose value forks; what follows is the child's
//
// Where it is marked, the cache begins with values of A and B, which the first thread may have
// pinned. It is an error to end a value that is pinned, or in a dead context; to make two values
// of one incarnation at the same time; to be given a value of another incarnation; and to return
// from Forget() while another thread is ending a value of A. In a child it is one to wait, to make
// a value, and to keep what a maker has made that forked.
//
// And those of lib/capi/c_per_context.cc: threads that use a cache of C for the first time. There
//
//   G     gets the value of A, making it if there is none; releases it
//   N     the same of a value that is there
//   F     forgets A
//
// and it is an error to be refused, to be given another's value, and to leave one behind.

#include "cuguest/per_context.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuguest/c.h"
#include "cuguest/error_or.h"
#include "test/schedules/cases.h"
#include "test/schedules/model_driver.h"

namespace {

using cuguest::ContextRef;
using cuguest::ErrorOr;
using cuguest::PerContext;
using schedules::Bounds;
using schedules::Case;
using schedules::Group;
using schedules::kUnbounded;
using schedules::ModelDriver;
using schedules::Require;

// What the test knows of one value.
struct Record {
  ContextRef context;
  int pins = 0;
  bool is_leaked = false;
  bool is_ending = false;
  bool is_ended = false;
  bool is_ready = false;
};

struct World {
  ModelDriver driver;
  std::deque<Record> records;               // stay where they are
  cuguest::internal::Atomic<int> steps{0};  // somebody else may go on where it is changed
  int making_a = 0;
  bool forks = false;  // the next end of a value does
};
bool IsChild() { return schedules::ThisProcess() != 1; }
World* g_world = nullptr;

class Value {
 public:
  explicit Value(Record* record) : record_(record) {}
  Value(Value&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  Value& operator=(Value&&) = delete;
  ~Value() {
    if (record_ == nullptr) return;
    Require(record_->pins == 0, "a pinned value was ended");
    Require(!record_->is_ended, "a value was ended twice");
    record_->is_ending = true;
    RequireAlive();
    if (std::exchange(g_world->forks, false)) schedules::Fork();
    g_world->steps.fetch_add(1);
    RequireAlive();
    record_->is_ending = false;
    record_->is_ended = true;
  }
  void Leak() { record_->is_leaked = true; }
  Record& record() { return *record_; }

 private:
  void RequireAlive() {
    if (record_->is_leaked) return;
    Require(g_world->driver.IsAlive(record_->context.get(), record_->context.id()),
            "a value was ended in a dead context");
  }
  Record* record_;
};

enum class Begin { kEmpty, kMade, kPinned };

class Caching : public schedules::Program {
 public:
  Caching(std::vector<std::string> threads, Begin begin)
      : words_(std::move(threads)), held_(words_.size()) {
    g_world = &world_;
    for (const std::size_t index : {0, 1}) world_.driver.Create(ModelDriver::Handle(index));
    a_ = ContextRef::Borrow(ModelDriver::Handle(0));
    b_ = ContextRef::Borrow(ModelDriver::Handle(1));
    if (begin == Begin::kEmpty) return;
    Pin('A', a_, &held_[0]);
    Pin('B', b_, &held_[0]);
    if (begin == Begin::kMade) held_[0].clear();
  }
  ~Caching() override { g_world = nullptr; }

  int Threads() const override { return static_cast<int>(words_.size()); }
  void Run(int thread) override {
    const auto index = static_cast<std::size_t>(thread);
    for (const char operation : words_[index]) Do(operation, &held_[index]);
  }

  // In a child some are leaked: what other threads were making, ending or about to release.
  void Finish() override {
    for (auto& held : held_) held.clear();
    cache_.reset();
    for (const Record& record : world_.records) {
      Require(record.is_ended || IsChild(), "a value was not ended");
    }
  }

 private:
  struct Held {
    char letter;
    PerContext<Value>::Pin pin;

    Held(char its_letter, PerContext<Value>::Pin its_pin)
        : letter(its_letter), pin(std::move(its_pin)) {
      ++pin->record().pins;
    }
    Held(Held&& other) noexcept = default;
    Held& operator=(Held&& other) noexcept {
      Release();
      letter = other.letter;
      pin = std::move(other.pin);
      return *this;
    }
    ~Held() { Release(); }
    void Release() {
      if (pin.get() != nullptr) --pin->record().pins;
      pin = {};
    }
  };

  void Do(char operation, std::vector<Held>* held) {
    switch (operation) {
      case 'A':
        return Pin('A', a_, held);
      case 'B':
        return Pin('B', b_, held);
      case 'R':
        return Pin('R', ContextRef::Borrow(a_.get()), held);
      case 'F':
        return Forget();
      case 'D':
        Forget();
        world_.driver.Destroy(a_.get());
        return world_.driver.Create(a_.get());
      case 'E':
        static_cast<void>(cache_->ForgetDestroyed(a_));
        return;
      case 'X':
        static_cast<void>(cache_->DropDead());
        return;
      case 'K':
        return Pin('A', a_, held, /*forks=*/true);
      case 'L':
        world_.forks = true;
        Forget();
        world_.forks = false;
        return;
      default:
        const char letter = static_cast<char>(operation - 'a' + 'A');
        for (auto one = held->begin(); one != held->end(); ++one) {
          if (one->letter != letter) continue;
          held->erase(one);
          return;
        }
    }
  }

  void Pin(char letter, const ContextRef& context, std::vector<Held>* held, bool forks = false) {
    Record* made = nullptr;
    auto pin = cache_->GetOrMake(context, [&](const ContextRef& of) -> ErrorOr<Value> {
      Require(!IsChild(), "a value is made in a child");
      for (const Record& record : world_.records) {
        const bool is_made = record.context == of && !record.is_ready;
        Require(!is_made, "a value is made twice at the same time");
      }
      world_.records.push_back({of});
      Record& record = world_.records.back();
      made = &record;
      world_.steps.fetch_add(1);
      if (forks) schedules::Fork();
      record.is_ready = true;
      return Value(&record);
    });
    if (made != nullptr && IsChild()) {
      return Require(!pin.ok() && made->is_leaked && made->is_ended,
                     "what was made in a child is kept");
    }
    if (!pin.ok() && IsChild()) return;
    if (!pin.ok()) {
      // It was destroyed meanwhile.
      return Require(!world_.driver.IsAlive(context.get(), context.id()), "it was refused");
    }
    Require((*pin)->record().context == context, "a value of another incarnation");
    Require(!(*pin)->record().is_ending && !(*pin)->record().is_ended, "a value that is over");
    held->emplace_back(letter, *std::move(pin));
  }

  void Forget() {
    static_cast<void>(cache_->Forget(a_));
    for (const Record& record : world_.records) {
      const bool may_end = record.context != a_ || IsChild();
      Require(may_end || !record.is_ending, "Forget() did not wait for an ending");
    }
  }

  World world_;
  std::unique_ptr<PerContext<Value>> cache_ = std::make_unique<PerContext<Value>>();
  ContextRef a_;
  ContextRef b_;
  std::vector<std::string> words_;
  std::vector<std::vector<Held>> held_;
};

class CachingInC : public schedules::Program {
 public:
  explicit CachingInC(std::vector<std::string> threads) : words_(std::move(threads)) {
    g_world = &world_;
    world_.driver.Create(ModelDriver::Handle(0));
    const ContextRef a = ContextRef::Borrow(ModelDriver::Handle(0));
    a_ = {sizeof(a_), a.get(), a.id()};
  }
  ~CachingInC() override { g_world = nullptr; }

  int Threads() const override { return static_cast<int>(words_.size()); }
  void Run(int thread) override {
    for (const char operation : words_[static_cast<std::size_t>(thread)]) Do(operation);
  }
  void Finish() override {
    const int code = cuguest_per_context_close(&cache_);
    Require(code == CUDA_SUCCESS || world_.records.empty(), "a cache was not closed");
    for (const Record& record : world_.records) Require(record.is_ended, "a value was not ended");
  }

 private:
  static int Make(const cuguest_ref* context, void* value, void* /*user*/) {
    std::deque<Record>& records = g_world->records;
    for (const Record& record : records) Require(record.is_ready, "a value is made twice");
    records.push_back({ContextRef::Borrow(context->context)});
    Record* const record = &records.back();
    g_world->steps.fetch_add(1);
    record->is_ready = true;
    ::new (value) Value(record);
    return 0;
  }
  static void End(void* value, void* /*user*/) { static_cast<Value*>(value)->~Value(); }
  static void Leak(void* value, void* user) {
    static_cast<Value*>(value)->Leak();
    End(value, user);
  }
  static constexpr cuguest_per_context_type kType = {
      sizeof(cuguest_per_context_type), sizeof(Value), 0, &Make, &End, &Leak, nullptr};

  void Do(char operation) {
    if (operation == 'F') {
      const int code = cuguest_per_context_forget(&cache_, &a_);
      return Require(code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_FOUND, "it was not forgotten");
    }
    cuguest_per_context_pin pin = CUGUEST_INIT(cuguest_per_context_pin);
    if (operation == 'N') {
      const int code = cuguest_per_context_find(&cache_, &a_, &pin);
      if (code == CUDA_ERROR_NOT_FOUND) return;
      Require(code == CUDA_SUCCESS, "it was not found");
    } else {
      Require(cuguest_per_context_get(&cache_, &kType, &a_, &pin) == CUDA_SUCCESS,
              "it was refused");
    }
    Record& record = static_cast<Value*>(cuguest_per_context_value(&pin))->record();
    ++record.pins;
    Require(record.is_ready && !record.is_ending && !record.is_ended, "a value that is over");
    world_.steps.fetch_add(1);
    --record.pins;
    Require(cuguest_per_context_unpin(&pin) == CUDA_SUCCESS, "a pin was not released");
  }

  World world_;
  cuguest_per_context cache_ = CUGUEST_INIT(cuguest_per_context);
  cuguest_ref a_;
  std::vector<std::string> words_;
};

Group InC(const std::string& name, const std::vector<std::vector<std::string>>& programs,
          const Bounds& bounds) {
  Group group{name, {}};
  for (const std::vector<std::string>& threads : programs) {
    std::string words = "c";
    for (const std::string& word : threads) words += " " + word;
    group.cases.push_back({words, [=] { return std::make_unique<CachingInC>(threads); }, bounds});
  }
  return group;
}

Case Words(const std::vector<std::string>& threads, Begin begin, const Bounds& bounds) {
  std::string name = begin == Begin::kEmpty ? "empty" : begin == Begin::kMade ? "made" : "pinned";
  for (const std::string& word : threads) name += " " + word;
  return {name, [=] { return std::make_unique<Caching>(threads, begin); }, bounds};
}

constexpr Begin kBegins[] = {Begin::kEmpty, Begin::kMade, Begin::kPinned};

Group All(const std::string& name, const std::vector<std::string>& first,
          const std::vector<std::string>& second, const Bounds& bounds) {
  Group group{name, {}};
  for (const Begin begin : kBegins) {
    for (const std::string& a : first) {
      for (const std::string& b : second) group.cases.push_back(Words({a, b}, begin, bounds));
    }
  }
  return group;
}

Group operator+(Group group, const Group& other) {
  group.cases.insert(group.cases.end(), other.cases.begin(), other.cases.end());
  return group;
}

Group LongOnes(Group group) {
  group.is_long = true;
  return group;
}

}  // namespace

std::vector<Group> schedules::Groups() {
  const Bounds every = {};
  const Bounds weak = {kUnbounded, kUnbounded};
  const Bounds one_stale_read = {kUnbounded, 1};
  const Bounds three_preemptions = {3};
  const std::vector<std::string> one = {"A", "B", "F", "X", "a"};
  // Beside who destroys A: what does not enter it.
  const std::vector<std::string> one_beside = {"B", "F", "X"};
  const std::vector<std::string> longer = {"AaF", "XA", "BAb", "FAF"};
  return {
      InC("first_use_in_c", {{"G", "G"}, {"G", "F"}, {"G", "N"}, {"GF", "G"}, {"GF", "N"}}, {2}),
      InC("first_use_in_c_weak", {{"G", "G"}, {"G", "F"}, {"G", "N"}}, {2, 2}),
      All("forks_beside_a_thread", {"K", "KFXB", "LXB"}, {"A", "F", "X", "AaF"}, {1}),
      All("two_threads_one_operation", one, one, every) + All("", {"D"}, one_beside, every),
      All("two_threads_one_operation_weak", one, one, weak) + All("", {"D"}, one_beside, weak),
      All("two_threads_longer", {"F", "X", "aF"}, longer, every) +
          All("", {"DR", "aDE"}, {"BX", "XB", "FX"}, every),
      All("two_threads_longer_weak", {"F"}, {"AaF"}, one_stale_read) +
          All("", {"DR"}, {"F"}, one_stale_read),
      {"three_threads",
       {Words({"aF", "FX", "X"}, Begin::kPinned, {2}), Words({"A", "F", "A"}, Begin::kMade, {2})}},
      LongOnes(All("two_threads_longer_weak_all", {"aF"}, {"AaF"}, one_stale_read) +
               All("", {"DR"}, {"BX"}, one_stale_read)),
      {"three_threads_all",
       {Words({"aF", "FX", "X"}, Begin::kPinned, three_preemptions),
        Words({"aF", "FX", "XF"}, Begin::kMade, three_preemptions),
        Words({"aF", "FX", "BX"}, Begin::kPinned, three_preemptions),
        Words({"D", "B", "X"}, Begin::kMade, three_preemptions),
        Words({"A", "F", "A"}, Begin::kMade, three_preemptions),
        Words({"A", "A", "B"}, Begin::kEmpty, three_preemptions)},
       schedules::Expect::kSuccess,
       /*is_long=*/true},
  };
}
