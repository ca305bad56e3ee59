// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/interop/storm/options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "cudasim/sim.h"
#include "test/interop/storm/plant.h"

namespace storm {
namespace {

constexpr const char* kUsage =
    "usage: storm_test [--seed S] [--seeds N] [--seconds X] [--threads T] [--operations N]\n"
    "                  [--contexts C] [--heavy N] [--lockstep] [--only T,T,...] [--no-shrink]\n"
    "                  [--without OPERATION]...\n";

// Creating a context costs the simulation nothing.
int DefaultHeavy() { return cudasim::Sim::IsActive() ? 200 : 5000; }

class CommandLine {
 public:
  CommandLine(int argc, char** argv) : next_(argv + 1), end_(argv + argc) {}

  bool Take(std::string_view* word) {
    if (next_ == end_) return false;
    *word = *next_++;
    return true;
  }
  template <typename T>
  bool TakeNumber(T* number) {
    std::string_view word;
    if (!Take(&word)) return false;
    const auto end = std::from_chars(word.data(), word.data() + word.size(), *number);
    return end.ec == std::errc() && end.ptr == word.data() + word.size() && *number >= 0;
  }

 private:
  char** next_;
  char** end_;
};

bool ParseThreads(std::string_view list, std::vector<int>* threads) {
  const char* const end = list.data() + list.size();
  for (const char* from = list.data();; ++from) {
    int thread = 0;
    const auto number = std::from_chars(from, end, thread);
    if (number.ec != std::errc()) return false;
    threads->push_back(thread);
    from = number.ptr;
    if (from == end) return true;
    if (*from != ',') return false;
  }
}

bool ParsePlant(std::string_view word, std::optional<Plant>* plant) {
  const std::size_t at = word.find('@');
  if (at == std::string_view::npos) return false;
  plant->emplace(
      Plant{std::string(word.substr(0, at)), std::strtoull(word.data() + at + 1, nullptr, 10)});
  return IsPlant((*plant)->kind);
}

bool ParseOption(std::string_view option, CommandLine* line, Options* options) {
  std::string_view word;
  if (option == "--seed") return line->TakeNumber(&options->seed);
  if (option == "--seeds") return line->TakeNumber(&options->seeds);
  if (option == "--seconds") return line->TakeNumber(&options->seconds);
  if (option == "--threads") return line->TakeNumber(&options->threads);
  if (option == "--operations") return line->TakeNumber(&options->operations);
  if (option == "--contexts") return line->TakeNumber(&options->contexts);
  if (option == "--heavy") return line->TakeNumber(&options->heavy);
  if (option == "--only") return line->Take(&word) && ParseThreads(word, &options->only);
  if (option == "--without") {
    return line->Take(&word) && (options->without.emplace_back(word), true);
  }
  if (option == "--plant") return line->Take(&word) && ParsePlant(word, &options->plant);
  if (option == "--lockstep") return options->lockstep = true;
  if (option == "--child") return options->child = true;
  if (option == "--no-shrink") return !(options->shrink = false);
  return false;
}

}  // namespace

bool Options::Runs(int thread) const {
  return only.empty() || std::find(only.begin(), only.end(), thread) != only.end();
}

bool Options::Does(const std::string& operation) const {
  return std::find(without.begin(), without.end(), operation) == without.end();
}

std::vector<std::string> Options::Arguments() const {
  std::vector<std::string> arguments = {
      "--seed",       std::to_string(seed),      "--threads", std::to_string(threads),
      "--contexts",   std::to_string(contexts),  "--heavy",   std::to_string(heavy),
      "--operations", std::to_string(operations)};
  if (!only.empty()) {
    std::string list;
    for (const int thread : only) list += (list.empty() ? "" : ",") + std::to_string(thread);
    arguments.insert(arguments.end(), {"--only", list});
  }
  for (const std::string& operation : without) {
    arguments.insert(arguments.end(), {"--without", operation});
  }
  if (plant.has_value()) {
    arguments.insert(arguments.end(),
                     {"--plant", plant->kind + "@" + std::to_string(plant->index)});
  }
  if (lockstep) arguments.emplace_back("--lockstep");
  return arguments;
}

std::optional<Options> ParseOptions(int argc, char** argv) {
  Options options;
  options.heavy = DefaultHeavy();
  CommandLine line(argc, argv);
  for (std::string_view option; line.Take(&option);) {
    if (ParseOption(option, &line, &options)) continue;
    std::printf("not understood: %s\n%s", std::string(option).c_str(), kUsage);
    return std::nullopt;
  }
  const bool in_range = options.threads >= 1 && options.contexts >= 1 && options.heavy >= 1 &&
                        (options.seeds >= 1 || options.seconds > 0) &&
                        std::all_of(options.only.begin(), options.only.end(),
                                    [&](int t) { return t >= 0 && t < options.threads; });
  if (!in_range) {
    std::printf("out of range\n%s", kUsage);
    return std::nullopt;
  }
  return options;
}

}  // namespace storm
