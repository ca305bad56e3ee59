// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedules of lib/stack/incident_listener.cc. A program is a word for each of its threads,
// whose letters are operations:
//
//   I     reports an incident
//   A a   registers listener A; destroys it
//   B b   the same of listener B
//   C c   the same of listener C
//   R     waits until A was replaced by its callback, and destroys the one in its place
//
// and the listeners that are registered before. What A's callback does is OnCall; the callbacks of
// the others do nothing.
//
// It is an error if a listener is called that is not registered, or whose destructor has returned;
// if a destructor returns while its listener is called on another thread, or waits for another
// listener; if a listener that was registered all the time is not called once for each incident;
// and if listeners are called in another order than that of their registration.

#include "cuguest/incident_listener.h"

#include <array>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "lib/stack/stack_repair.h"
#include "test/schedules/cases.h"
#include "test/schedules/concurrency.h"

// Of incident.cc, which is not explored.
cuguest::internal::Atomic<void (*)(const cuguest::Incident&)> cuguest::internal::g_call_listeners{
    nullptr};

namespace {

using cuguest::Incident;
using cuguest::IncidentListener;
using cuguest::internal::Atomic;
using cuguest::internal::ConditionVariable;
using cuguest::internal::Mutex;
using schedules::Bounds;
using schedules::Case;
using schedules::Group;
using schedules::kUnbounded;
using schedules::Require;

enum class OnCall {
  kNothing,
  kReports,        // an incident of its own, the first time
  kEndsItself,     // destroys its own listener
  kEndsNext,       // destroys B
  kReplacesItself  // destroys its own listener, begins another in the same place, and waits
                   // until another thread has destroyed that one
};
constexpr const char* kOnCall[] = {"nothing", "reports", "ends_itself", "ends_next",
                                   "replaces_itself"};

class Listening;

constexpr std::size_t kRecords = 3;
constexpr std::size_t kThreads = 5;

// A place for a listener, and what the test knows of it.
struct Record {
  Listening* program = nullptr;
  bool is_there = false;  // from before its constructor until its destructor has returned
  bool is_ending = false;
  int registration = 0;               // which one of all
  int registered_by = -1;             // the thread; -1: before all threads
  std::array<int, kThreads> calls{};  // in progress, of this registration
  alignas(IncidentListener) unsigned char place[sizeof(IncidentListener)];

  IncidentListener* listener() { return std::launder(reinterpret_cast<IncidentListener*>(place)); }
};

// An incident that is being reported.
struct Reporting {
  std::array<int, kRecords> registrations{};  // what has to be called; 0: need not be
  std::array<int, kRecords> calls{};
  std::size_t last = 0;
};

class Listening : public schedules::Program {
 public:
  Listening(std::vector<std::string> threads, const std::string& before, OnCall on_call)
      : words_(std::move(threads)), on_call_(on_call) {
    for (Record& record : records_) record.program = this;
    for (const char letter : before) Do(letter);
  }

  int Threads() const override { return static_cast<int>(words_.size()); }
  void Run(int thread) override {
    for (const char operation : words_[static_cast<std::size_t>(thread)]) Do(operation);
  }
  void Finish() override {
    for (Record& record : records_) Destroy(&record);
    Require(!(cuguest::internal::g_call_listeners.load() != nullptr), "a listener is left");
  }

 private:
  void Do(char operation) {
    if (operation == 'I') return ReportIncident();
    if (operation == 'R') return DestroyReplacement();
    const bool registers = operation < 'a';
    Record* const record = &records_[static_cast<std::size_t>(operation - (registers ? 'A' : 'a'))];
    registers ? Register(record) : Destroy(record);
  }

  void Register(Record* record) {
    Require(!record->is_there, "a program registers a listener twice");
    record->is_there = true;
    record->is_ending = false;
    record->registration = ++registrations_;
    record->registered_by = schedules::ThisThread();
    record->calls.fill(0);
    new (record->place) IncidentListener(&Call, record);
  }

  // Unless another thread has begun to, or it is not there: as the C API, which waits for that one.
  void Destroy(Record* record) {
    if (!record->is_there || std::exchange(record->is_ending, true)) return Await(record);
    record->listener()->~IncidentListener();
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      Require(thread == Here() || record->calls[thread] == 0,
              "a destructor did not wait for a call");
    }
    record->is_there = false;
  }

  void Await(Record* record) {
    const bool is_called_here = record->calls[Here()] != 0;
    cuguest::internal::AwaitListener(record->listener());
    for (const int calls : record->calls) {
      Require(is_called_here || calls == 0, "who lost a listener did not wait for a call");
    }
  }

  void DestroyReplacement() {
    {
      std::unique_lock<Mutex> lock(mutex_);
      changed_.wait(lock, [&] { return is_replaced_; });
    }
    Destroy(&records_[0]);
    const std::lock_guard<Mutex> lock(mutex_);
    is_replacement_destroyed_ = true;
    changed_.notify_all();
  }

  // Whether this thread knows that the listener is registered, and is not being destroyed.
  static bool IsKnown(const Record& record) {
    const int by = record.registered_by;
    return record.is_there && !record.is_ending && (by == -1 || by == schedules::ThisThread());
  }

  void ReportIncident() {
    Reporting reporting;
    for (std::size_t i = 0; i < kRecords; ++i) {
      if (IsKnown(records_[i])) reporting.registrations[i] = records_[i].registration;
    }
    Reporting* const outer = std::exchange(reporting_[Here()], &reporting);
    const auto call = cuguest::internal::g_call_listeners.load(std::memory_order_relaxed);
    if (call != nullptr) call(Incident{});
    reporting_[Here()] = outer;
    for (std::size_t i = 0; i < kRecords; ++i) {
      if (!IsKnown(records_[i])) continue;
      if (records_[i].registration != reporting.registrations[i]) continue;
      Require(reporting.calls[i] == 1, "a listener was not called once");
    }
  }

  static void Call(const Incident&, void* user) {
    auto* const record = static_cast<Record*>(user);
    record->program->Called(record);
  }

  void Called(Record* record) {
    const std::size_t index = IndexOf(record);
    Reporting& reporting = *reporting_[Here()];
    ++reporting.calls[index];
    if (record->registered_by == -1) {
      Require(index >= reporting.last, "listeners were called in another order");
      reporting.last = index;
    }
    const int registration = record->registration;
    ++record->calls[Here()];
    Require(record->is_there, "a listener was called that is gone");
    steps_.fetch_add(1);
    Require(record->is_there, "a listener was destroyed while it was called");
    if (index == 0) CalledFirst(record);
    if (record->registration == registration) --record->calls[Here()];
  }

  void CalledFirst(Record* record) {
    switch (on_call_) {
      case OnCall::kNothing:
        return;
      case OnCall::kReports:
        if (!std::exchange(has_reported_, true)) ReportIncident();
        return;
      case OnCall::kEndsItself:
        Destroy(record);
        steps_.fetch_add(1);
        return;
      case OnCall::kEndsNext:
        return Destroy(&records_[1]);
      case OnCall::kReplacesItself:
        return Replace(record);
    }
  }

  void Replace(Record* record) {
    if (std::exchange(begins_to_replace_, true)) return;
    Destroy(record);
    Register(record);
    std::unique_lock<Mutex> lock(mutex_);
    is_replaced_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_replacement_destroyed_; });
  }

  std::size_t IndexOf(const Record* record) const {
    return static_cast<std::size_t>(record - records_.data());
  }
  static std::size_t Here() { return static_cast<std::size_t>(schedules::ThisThread() + 1); }

  std::array<Record, kRecords> records_;
  std::array<Reporting*, kThreads> reporting_{};
  std::vector<std::string> words_;
  OnCall on_call_;
  int registrations_ = 0;
  bool has_reported_ = false;
  bool begins_to_replace_ = false;
  Atomic<int> steps_{0};  // somebody else may go on where it is changed
  Mutex mutex_;
  ConditionVariable changed_;
  bool is_replaced_ = false;
  bool is_replacement_destroyed_ = false;
};

Case Words(const std::vector<std::string>& threads, const std::string& before, OnCall on_call,
           const Bounds& bounds) {
  std::string name = before + "_" + kOnCall[static_cast<int>(on_call)];
  for (const std::string& word : threads) name += " " + word;
  return {name, [=] { return std::make_unique<Listening>(threads, before, on_call); }, bounds};
}

// Two threads, one of which reports while the other comes and goes, or reports, too.
Group TwoThreads(const std::string& name, const Bounds& bounds) {
  Group group{name, {}};
  for (const char* other : {"I", "a", "b", "ab", "ba", "c", "cC"}) {
    for (const OnCall on_call :
         {OnCall::kNothing, OnCall::kReports, OnCall::kEndsItself, OnCall::kEndsNext}) {
      group.cases.push_back(Words({"I", other}, "ABC", on_call, bounds));
    }
  }
  for (const OnCall on_call : {OnCall::kNothing, OnCall::kEndsItself}) {
    group.cases.push_back(Words({"I", "Cc"}, "AB", on_call, bounds));
  }
  for (const char* other : {"Aa", "AaA", "AI", "AIa"}) {
    group.cases.push_back(Words({"I", other}, "", OnCall::kNothing, bounds));
    group.cases.push_back(Words({"BIb", other}, "", OnCall::kReports, bounds));
  }
  for (const char* other : {"R", "RI"}) {
    group.cases.push_back(Words({"I", other}, "A", OnCall::kReplacesItself, bounds));
  }
  return group;
}

}  // namespace

std::vector<Group> schedules::Groups() {
  const Bounds every = {};
  const Bounds weak = {kUnbounded, kUnbounded};
  const Bounds three_preemptions = {3};
  Group three{"three_threads", {}};
  for (const OnCall on_call : {OnCall::kNothing, OnCall::kReports, OnCall::kEndsItself}) {
    three.cases.push_back(Words({"I", "I", "a"}, "AB", on_call, three_preemptions));
    three.cases.push_back(Words({"I", "a", "bB"}, "AB", on_call, three_preemptions));
    three.cases.push_back(Words({"I", "Aa", "I"}, "B", on_call, three_preemptions));
    three.cases.push_back(Words({"II", "ab", "Cc"}, "AB", on_call, three_preemptions));
  }
  return {TwoThreads("two_threads", every), TwoThreads("two_threads_weak", weak), three};
}
