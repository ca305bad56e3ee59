// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/interop/storm/schedule.h"

#include <utility>

#include "test/interop/storm/random.h"

namespace storm {
namespace {

// The thread with the lowest key of a round goes first.
std::pair<std::uint64_t, int> Key(std::uint64_t seed, int thread, std::uint64_t step) {
  return {Random::Of(seed, step, static_cast<std::uint64_t>(thread)).Next(), thread};
}

}  // namespace

Schedule::Schedule(const Options& options)
    : options_(options), turns_(static_cast<std::size_t>(options.threads)) {
  for (int thread = 0; thread < options.threads; ++thread) present_ += options.Runs(thread);
  next_ = NextFrom(0);
}

int Schedule::Position(int thread, std::uint64_t step) const {
  const auto key = Key(options_.seed, thread, step);
  int position = 0;
  for (int other = 0; other < options_.threads; ++other) {
    if (Key(options_.seed, other, step) < key) ++position;
  }
  return position;
}

std::uint64_t Schedule::IndexOf(int thread, std::uint64_t step) const {
  return step * static_cast<std::uint64_t>(options_.threads) +
         static_cast<std::uint64_t>(Position(thread, step));
}

bool Schedule::Leads(int thread, std::uint64_t step) const {
  const auto key = Key(options_.seed, thread, step);
  for (int other = 0; other < options_.threads; ++other) {
    if (options_.Runs(other) && Key(options_.seed, other, step) < key) return false;
  }
  return true;
}

int Schedule::ThreadAt(std::uint64_t index) const {
  const auto threads = static_cast<std::uint64_t>(options_.threads);
  int thread = 0;
  while (Position(thread, index / threads) != static_cast<int>(index % threads)) ++thread;
  return thread;
}

std::uint64_t Schedule::NextFrom(std::uint64_t index) const {
  while (!options_.Runs(ThreadAt(index))) ++index;
  return index;
}

bool Schedule::Begin(int thread, std::uint64_t index) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (options_.lockstep) {
    turns_[static_cast<std::size_t>(thread)].wait(lock, [&] { return stopped_ || next_ == index; });
  }
  return !stopped_;
}

void Schedule::End(std::uint64_t index) {
  if (!options_.lockstep) return;
  const std::uint64_t next = NextFrom(index + 1);
  const std::lock_guard<std::mutex> lock(mutex_);
  next_ = next;
  turns_[static_cast<std::size_t>(ThreadAt(next))].notify_one();
}

bool Schedule::Meet() {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::uint64_t meeting = meetings_;
  if (++waiting_ == present_) HoldMeeting();
  meeting_.wait(lock, [&] { return stopped_ || meetings_ != meeting; });
  return !stopped_;
}

bool Schedule::Leave() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (waiting_ == --present_) HoldMeeting();
  meeting_.wait(lock, [&] { return stopped_ || present_ == 0; });
  return !stopped_;
}

void Schedule::HoldMeeting() {
  waiting_ = 0;
  ++meetings_;
  meeting_.notify_all();
}

void Schedule::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  meeting_.notify_all();
  for (std::condition_variable& turn : turns_) turn.notify_all();
}

}  // namespace storm
