// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures every row, and prints one table as Markdown. With --check it fails if a promise is not
// kept (on a real driver; the simulation's times mean nothing, and there the table has the driver
// calls of each row besides). With --only TEXT, once or more, only groups whose title has TEXT.

#include <benchmark/benchmark.h>
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/primary_context.h"
#include "test/benchmark/harness.h"
#include "test/benchmark/table.h"

namespace cuguest_benchmark {
namespace {

using cudasim::Sim;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::PrimaryContext;

World g_world;

std::map<int, Rows (*)()>& Files() {
  static std::map<int, Rows (*)()> files;
  return files;
}

// A thread on which `current` is current, or nothing.
class CallerStack {
 public:
  explicit CallerStack(CUcontext current) : current_(current) {
    if (current != nullptr) g_world.driver->CtxPushCurrent(current);
  }
  CallerStack(const CallerStack&) = delete;
  CallerStack& operator=(const CallerStack&) = delete;
  ~CallerStack() {
    CUcontext popped;
    if (current_ != nullptr) g_world.driver->CtxPopCurrent(&popped);
  }

 private:
  CUcontext current_;
};

double Quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}
double Median(const std::vector<double>& values) { return Quantile(values, 0.5); }

// "37.1", "1,618"
std::string Digits(double value) {
  char text[40];
  if (value < 1000) {
    std::snprintf(text, sizeof(text), "%.*f", value < 100 ? 1 : 0, value);
    return text;
  }
  std::snprintf(text, sizeof(text), "%.0f", value);
  std::string digits = text;
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

void Settle(const Group& group) {
  if (group.settle) group.settle();
}

// Nanoseconds for one, of a batch.
double TimeBatch(const Group& group, const Row& row) {
  if (group.warms) {
    row.repeat(0, group.batch);
    Settle(group);
  }
  const auto begin = std::chrono::steady_clock::now();
  row.repeat(0, group.batch);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  Settle(group);
  return took.count() / group.batch;
}

// A row beside another one, on one thread; nanoseconds.
struct Compared {
  double ratio;
  double more;
  double quickest;  // a tenth of the batches took no longer
  double median;
};

Compared Compare(const Group& group, const Row& row, const Row& beside, int pairs) {
  const CallerStack stack(group.current);
  std::vector<double> ratios;
  std::vector<double> more;
  std::vector<double> times;
  for (int pair = -3; pair < pairs; ++pair) {
    const bool is_first = pair % 2 == 0;
    double time = is_first ? TimeBatch(group, row) : 0;
    const double reference = TimeBatch(group, beside);
    if (!is_first) time = TimeBatch(group, row);
    if (pair < 0) continue;  // for warmth
    ratios.push_back(time / reference);
    more.push_back(time - reference);
    times.push_back(time);
  }
  return {Median(ratios), Median(more), Quantile(times, 0.1), Median(times)};
}

// What was measured of a group.
class Results {
 public:
  Results(const Group& group, const Times& times, int pairs)
      : group_(group), times_(times), pairs_(pairs) {}

  [[nodiscard]] static std::string KeyOf(const Group& group, const Row& row, int threads) {
    return group.title + "/" + row.name + "/" + std::to_string(threads);
  }
  [[nodiscard]] const std::vector<double>& All(const Row& row, int threads) const {
    return times_.All(KeyOf(group_, row, threads));
  }
  // What else the machine does only adds to what one thread takes; threads meet as they do.
  [[nodiscard]] double Time(const Row& row, int threads) {
    return threads == 1 ? OfOne(row).quickest : Median(All(row, threads));
  }
  // "+1.6": by how much the median is more; "±1.6": half of the range between the quartiles.
  [[nodiscard]] std::string Spread(const Row& row, int threads) {
    if (threads == 1) return "+" + Digits(OfOne(row).median - OfOne(row).quickest);
    const std::vector<double>& all = All(row, threads);
    return "±" + Digits((Quantile(all, 0.75) - Quantile(all, 0.25)) / 2);
  }
  // Measured when it is first asked for.
  const Compared& Paired(const Row& row, const Row& beside) {
    const auto [place, is_new] = paired_.try_emplace({row.name, beside.name});
    if (is_new) place->second = Compare(group_, row, beside, pairs_);
    return place->second;
  }
  double Ratio(const Row& row, const Row& beside, int threads) {
    return threads == 1 ? Paired(row, beside).ratio : Time(row, threads) / Time(beside, threads);
  }
  [[nodiscard]] const Compared& OfOne(const Row& row) { return Paired(row, group_.rows.front()); }
  [[nodiscard]] const Group& group() const { return group_; }
  [[nodiscard]] const Row& Find(const std::string& name) const {
    if (name.empty()) return group_.rows.front();
    const auto found = std::find_if(group_.rows.begin(), group_.rows.end(),
                                    [&](const Row& row) { return row.name == name; });
    Require(found != group_.rows.end(), name.c_str());
    return *found;
  }

 private:
  const Group& group_;
  const Times& times_;
  const int pairs_;
  std::map<std::pair<std::string, std::string>, Compared> paired_;
};

void MeasureRow(benchmark::State& state, const Group& group, const Row& row) {
  const CallerStack stack(group.current);
  while (state.KeepRunningBatch(group.batch)) {
    row.repeat(state.thread_index(), group.batch);
    if (!group.settle) continue;
    state.PauseTiming();
    group.settle();
    state.ResumeTiming();
  }
}

void RegisterAll(const std::vector<Group>& groups, const Options& options) {
  for (const Group& group : groups) {
    for (const Row& row : group.rows) {
      for (const int threads : group.threads) {
        if (threads == 1) continue;  // measured in pairs
        Register(Results::KeyOf(group, row, threads), threads, options,
                 [&group, &row](benchmark::State& state) { MeasureRow(state, group, row); });
      }
    }
  }
}

// What one more makes.
unsigned long long CallsOf(const Group& group, const Row& row) {
  const CallerStack stack(group.current);
  const auto count = [&row](int times) {
    Sim::ResetCalls();
    row.repeat(0, times);
    return Sim::TotalCalls();
  };
  count(2);
  const unsigned long long of_one = count(1);
  return count(2) - of_one;
}

void PrintGroup(Results& results) {
  const Group& group = results.group();
  std::printf("\n| %s |", group.title.c_str());
  for (const int threads : group.threads) {
    std::printf(" %d thread%s |", threads, threads == 1 ? "" : "s");
  }
  std::printf("%s\n|---|", Sim::IsActive() ? " driver calls |" : "");
  for (std::size_t i = 0; i < group.threads.size(); ++i) std::printf("---:|");
  std::printf("%s\n", Sim::IsActive() ? "---:|" : "");
  for (const Row& row : group.rows) {
    std::printf("| %s |", row.name.c_str());
    for (const int threads : group.threads) {
      std::printf(" %s %s", Digits(results.Time(row, threads)).c_str(),
                  results.Spread(row, threads).c_str());
      if (&row != &group.rows.front()) {
        const double ratio = results.Ratio(row, group.rows.front(), threads);
        std::printf(", %.*f×", ratio < 0.1 || std::abs(ratio - 1) < 0.05 ? 3 : 2, ratio);
      }
      std::printf(" |");
    }
    if (Sim::IsActive()) std::printf(" %llu |", CallsOf(group, row));
    std::printf("\n");
    std::fflush(stdout);
  }
}

bool Keeps(Results& results, const Promise& promise, const Row& row, const Row& beside) {
  std::printf("| %s: %s; %d thread%s", promise.group.c_str(), row.name.c_str(), promise.threads,
              promise.threads == 1 ? "" : "s");
  if (!promise.is_nanoseconds) std::printf(", beside %s", beside.name.c_str());
  if (std::thread::hardware_concurrency() < static_cast<unsigned>(promise.threads)) {
    std::printf(" | | %.4g | not checked: too few processors |\n", promise.most);
    return true;
  }
  const double value = promise.is_nanoseconds ? results.Time(row, promise.threads)
                                              : results.Ratio(row, beside, promise.threads);
  const char* const unit = promise.is_nanoseconds ? " ns" : "";
  bool kept = value <= promise.most;
  std::printf(" | %.3f%s", value, unit);
  if (promise.or_nanoseconds_more > 0) {
    const double more = results.Paired(row, beside).more;
    kept = kept || more <= promise.or_nanoseconds_more;
    std::printf(", %.1f ns more | %.4g or %.0f ns more", more, promise.most,
                promise.or_nanoseconds_more);
  } else {
    std::printf(" | %.4g%s", promise.most, unit);
  }
  std::printf(" | %s |\n", kept ? "kept" : "BROKEN");
  return kept;
}

bool MeasureAndCheck(const char* program, const Options& options) {
  Rows all;
  std::vector<std::shared_ptr<void>> needs;
  for (const auto& [place, make] : Files()) {
    Rows rows = make();
    std::move(rows.groups.begin(), rows.groups.end(), std::back_inserter(all.groups));
    std::move(rows.promises.begin(), rows.promises.end(), std::back_inserter(all.promises));
    needs.push_back(std::move(rows.needs));
  }
  const auto drop = [](auto* all, const auto& is_unwanted) {
    all->erase(std::remove_if(all->begin(), all->end(), is_unwanted), all->end());
  };
  drop(&all.groups, [&](const Group& group) { return !options.Wants(group.title); });
  drop(&all.promises, [&](const Promise& promise) { return !options.Wants(promise.group); });
  RegisterAll(all.groups, options);
  Times times;
  Run(program, &times);
  std::vector<Results> results;
  results.reserve(all.groups.size());
  for (const Group& group : all.groups) {
    const int pairs = options.smoke ? 3 : group.warms ? 40 : 400;
    results.emplace_back(group, times, pairs);
    PrintGroup(results.back());
  }
  std::printf(
      "\nnanoseconds: with one thread what a tenth of 400 batches took at most, and by how much "
      "their median is more; with several the median of 9, ± half of the range between the "
      "quartiles; and the ratio to the first row of the group\n");
  const bool checks = options.check && !Sim::IsActive();
  if (checks) std::printf("\n| promise | measured | at most | |\n|---|---:|---:|---|\n");
  bool kept = true;
  for (const Promise& promise : all.promises) {
    const auto group = std::find_if(results.begin(), results.end(), [&](const Results& one) {
      return one.group().title == promise.group;
    });
    Require(group != results.end(), promise.group.c_str());
    const Row& row = group->Find(promise.row);
    const Row& beside = group->Find(promise.beside);
    if (checks) kept = Keeps(*group, promise, row, beside) && kept;
  }
  return kept;
}

}  // namespace

const World& TheWorld() { return g_world; }

void AskForId(CUcontext context) {
  unsigned long long id = 0;
  if (g_world.driver->CtxGetId != nullptr) g_world.driver->CtxGetId(context, &id);
  benchmark::DoNotOptimize(id);
}

RowsOf::RowsOf(int place, Rows (*make)()) { Files()[place] = make; }

}  // namespace cuguest_benchmark

int main(int argc, char** argv) {
  using namespace cuguest_benchmark;
  const Options options = Parse(argc, argv);
  g_world.driver = FindDriver();
  if (g_world.driver == nullptr) return 77;
  PrimaryContext primary = Take(PrimaryContext::Retain(Device::Borrow(0)));
  g_world.primary = primary.get();
  for (CUcontext* context : {&g_world.user, &g_world.other}) {
    *context = MakeContext(*g_world.driver);
    REQUIRE(*context != nullptr);
  }
  g_world.user_ref = ContextRef::Borrow(g_world.user);
  for (CUcontext& context : g_world.own) {
    context = MakeContext(*g_world.driver);
    REQUIRE(context != nullptr);
  }
  const bool kept = MeasureAndCheck(argv[0], options);
  for (const CUcontext context : g_world.own) g_world.driver->CtxDestroy(context);
  g_world.driver->CtxDestroy(g_world.user);
  g_world.driver->CtxDestroy(g_world.other);
  return kept ? 0 : 1;
}
