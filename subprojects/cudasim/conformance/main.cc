// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// conformance play [--seed S] [--first F] [--sequences N] [--calls M] [--seconds T]
//     [--devices D] [--answers FILE] [--trace]
//     Plays sequences F to F + N - 1 of M calls each; none begins after T seconds. FILE gets the
//     answers, and for each sequence a line "#number" before and a line "." after them. --trace
//     prints the calls, too.
// conformance replay
//     Plays what a file of answers on standard input was recorded from, and compares. Of each
//     sequence that differs: the first call that does, and the shortest sequence that leads to it.
// conformance describe
//     The GPU and the versions of driver and runtime.
// conformance script [--expensive]
//     Plays the steps on standard input, as the other two print them.
//
// --devices, of each: 1 unless it is 2.
//
// Which driver and runtime: the first ones on the library path.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>

#include "conformance/home.h"
#include "conformance/sequence.h"

namespace conformance {
namespace {

// A sequence takes milliseconds; what waits for ever is ended by a signal.
constexpr unsigned kSecondsOfSequence = 20;

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t first = 0;
  std::uint64_t sequences = 10;
  int calls = 250;
  int seconds = 1 << 20;
  std::string answers;
  bool trace = false;
  bool expensive = false;
};

// The lines of one sequence in a file of answers: a state is written where it changes.
class AnswerLines {
 public:
  std::string Next(const Step& step, const Answer& answer) {
    std::string& state = states_[step.thread];
    if (state == answer.state) return answer.text;
    state = answer.state;
    return answer.text + " |" + answer.state;
  }

 private:
  std::string states_[kThreads];
};

void Print(const Statistics& statistics) {
  long long calls = 0;
  std::vector<std::pair<double, std::string>> slowest;
  for (const auto& [name, time] : statistics.times) {
    calls += time.calls;
    slowest.emplace_back(time.seconds, name);
  }
  std::sort(slowest.rbegin(), slowest.rend());
  std::fprintf(stderr, "%lld calls of %zu rows, %zu transitions; %d contexts made\n", calls,
               slowest.size(), statistics.transitions.size(), ContextsMade());
  for (size_t i = 0; i < std::min<size_t>(slowest.size(), 12); ++i) {
    const Statistics::Time& time = statistics.times.at(slowest[i].second);
    std::fprintf(stderr, "  %-36s %7lld calls %8.3f s\n", slowest[i].second.c_str(), time.calls,
                 time.seconds);
  }
}

// A call is printed before it is made, so that one that ends the process is seen.
void Announce(const Step& step) {
  std::printf("%s -> ", ToText(step).c_str());
  std::fflush(stdout);
}
void Print(const Answer& answer) {
  std::printf("%s |%s\n", answer.text.c_str(), answer.state.c_str());
  std::fflush(stdout);
}

// The head of a recording.
int Describe() {
  char name[200] = "";
  int driver = 0;
  int runtime = 0;
  if (RAW(cuInit)(0) != CUDA_SUCCESS) return 1;
  RAW(cuDeviceGetName)(name, sizeof(name), 0);
  RAW(cuDriverGetVersion)(&driver);
  cudaRuntimeGetVersion(&runtime);
  std::printf("%% gpu %s\n%% cuda %d\n%% runtime %d\n%% devices %d\n", name, driver, runtime,
              Devices());
  for (const PlanRow& row : PlanOfAllCalls()) {
    std::printf("%% row %s %zu %d\n", row.call->name, row.room, row.weight);
  }
  return 0;
}

int Play(const Options& options) {
  std::ofstream file(options.answers);
  Statistics statistics;
  const std::time_t end = std::time(nullptr) + options.seconds;
  for (std::uint64_t i = options.first; i < options.first + options.sequences; ++i) {
    if (std::time(nullptr) >= end) break;
    alarm(kSecondsOfSequence);
    file << '#' << i << std::endl;
    AnswerLines lines;
    const auto see = [&](const Step& step, const Answer& answer) {
      file << lines.Next(step, answer) << '\n';
      if (options.trace) Print(answer);
      return true;
    };
    Sequence sequence(options.seed, i, CostOf(i), PlanOfAllCalls());
    if (options.trace) sequence.BeforeEach(&Announce);
    sequence.Play(options.calls, see, &statistics);
    file << ".\n";
  }
  Print(statistics);
  for (const auto& [transition, count] : statistics.transitions) {
    file << "+" << transition << ' ' << count << '\n';
  }
  return 0;
}

struct Played {
  Step step;
  std::string text;
};

// Whether the driver answers these steps as before, all of them.
bool AnswersSame(const Sequence& sequence, const std::vector<Played>& played) {
  std::vector<Step> script;
  for (const Played& one : played) script.push_back(one.step);
  size_t next = 0;
  sequence.PlayScript(script, [&](const Step& step, const Answer& answer) {
    const Played& expected = played[next];
    if (ToText(step) != ToText(expected.step) || answer.text != expected.text) return false;
    return ++next < played.size();
  });
  return next == played.size();
}

// Leaves out what changes no answer to the rest; the last one stays.
std::vector<Played> Shrink(const Sequence& sequence, std::vector<Played> played) {
  for (size_t size = played.size() / 2; size > 0; size /= 2) {
    for (size_t end = played.size() - 1; end > 0;) {
      const size_t begin = end > size ? end - size : 0;
      std::vector<Played> fewer(played.begin(), played.begin() + static_cast<long>(begin));
      fewer.insert(fewer.end(), played.begin() + static_cast<long>(end), played.end());
      if (AnswersSame(sequence, fewer)) played = fewer;
      end = begin;
    }
  }
  return played;
}

// The head of a recording, and then its sequences.
class Recording {
 public:
  explicit Recording(std::istream& in) : in_(in) {}

  // False at the end. The lines of the next sequence.
  bool Next(std::uint64_t* number, std::vector<std::string>* lines) {
    lines->clear();
    std::string line;
    while (std::getline(in_, line) && (line.empty() || line[0] != '#')) TakeHead(line);
    if (!in_) return false;
    *number = std::stoull(line.substr(1));
    while (std::getline(in_, line) && line != ".") lines->push_back(line);
    return true;
  }

  std::uint64_t seed = 1;
  int calls = 250;
  Plan plan;

 private:
  void TakeHead(const std::string& line) {
    std::istringstream words(line);
    std::string sign;
    std::string key;
    words >> sign >> key;
    if (key == "seed") words >> seed;
    if (key == "calls") words >> calls;
    if (key == "row") TakeRow(words);
  }

  void TakeRow(std::istream& words) {
    std::string name;
    PlanRow row;
    words >> name >> row.room >> row.weight;
    row.call = FindCall(name);
    if (row.call == nullptr) {
      std::fprintf(stderr, "conformance: the recording calls %s, which is not there\n",
                   name.c_str());
      std::exit(2);
    }
    plan.push_back(row);
  }

  std::istream& in_;
};

// What the model of a sequence takes from an answer: the outputs of calls that fail are not among
// it, so that the sequence goes on behind such a difference as it was recorded.
bool LeadsOn(const std::string& recorded, const std::string& here) {
  const auto fails = [](const std::string& line) { return std::stoi(line) != 0; };
  const auto state = [](const std::string& line) {
    const size_t bar = line.find('|');
    return bar == std::string::npos ? "" : line.substr(bar);
  };
  return fails(recorded) && fails(here) && state(recorded) == state(here);
}

// Prints the differences of one sequence up to the first behind which it is another one.
bool Compare(const Recording& recording, std::uint64_t number,
             const std::vector<std::string>& lines) {
  const Sequence sequence(recording.seed, number, CostOf(number), recording.plan);
  AnswerLines own;
  std::vector<Played> played;
  std::vector<size_t> differing;
  sequence.Play(
      recording.calls,
      [&](const Step& step, const Answer& answer) {
        const std::string here = own.Next(step, answer);
        const std::string recorded =
            played.size() < lines.size() ? lines[played.size()] : "0 nothing";
        played.push_back({step, answer.text});
        if (here == recorded) return true;
        differing.push_back(played.size());
        std::printf("sequence %llu, call %zu: %s\n  recorded: %s\n  here:     %s\n",
                    static_cast<unsigned long long>(number), played.size(), ToText(step).c_str(),
                    recorded.c_str(), (here + " |" + answer.state).c_str());
        return LeadsOn(recorded, here);
      },
      nullptr);
  if (differing.empty()) return true;
  played.resize(differing.front());
  for (const Played& one : Shrink(sequence, played)) {
    std::printf("    %s -> %s\n", ToText(one.step).c_str(), one.text.c_str());
  }
  std::fflush(stdout);
  return false;
}

int Replay() {
  Recording recording(std::cin);
  std::uint64_t number = 0;
  std::vector<std::string> lines;
  size_t all = 0;
  size_t calls = 0;
  size_t differing = 0;
  while (recording.Next(&number, &lines)) {
    ++all;
    calls += lines.size();
    if (!Compare(recording, number, lines)) ++differing;
  }
  std::printf("%zu calls in %zu sequences, of which %zu differ\n", calls, all, differing);
  return differing == 0 && all > 0 ? 0 : 1;
}

int PlayFromInput(const Options& options) {
  std::vector<Step> script;
  for (std::string line; std::getline(std::cin, line);) {
    line.erase(0, line.find('T'));
    if (!line.empty()) script.push_back(ToStep(line));
  }
  Sequence sequence(0, 0, options.expensive ? Cost::kExpensive : Cost::kCheap);
  sequence.BeforeEach(&Announce);
  sequence.PlayScript(script, [](const Step&, const Answer& answer) {
    Print(answer);
    return true;
  });
  return 0;
}

int Main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  Options options;
  for (int i = 2; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--trace" || name == "--expensive") {
      (name == "--trace" ? options.trace : options.expensive) = true;
      continue;
    }
    const char* value = ++i < count ? arguments[i] : "";
    if (name == "--seed") options.seed = std::strtoull(value, nullptr, 10);
    if (name == "--first") options.first = std::strtoull(value, nullptr, 10);
    if (name == "--sequences") options.sequences = std::strtoull(value, nullptr, 10);
    if (name == "--calls") options.calls = std::atoi(value);
    if (name == "--seconds") options.seconds = std::atoi(value);
    if (name == "--answers") options.answers = value;
  }
  if (mode == "describe") return Describe();
  if (mode == "play") return Play(options);
  if (mode == "replay") return Replay();
  if (mode == "script") return PlayFromInput(options);
  std::fprintf(stderr, "conformance play|replay|script ...: see main.cc\n");
  return 2;
}

}  // namespace
}  // namespace conformance

int main(int count, char** arguments) {
  for (int i = 2; i + 1 < count; ++i) {
    if (std::string(arguments[i]) == "--devices") {
      conformance::Devices() = std::atoi(arguments[i + 1]) == 2 ? 2 : 1;
    }
  }
  // Of the simulation: the devices that there were for the recording; kernels compute nothing.
  setenv("CUDASIM_DEVICES", conformance::Devices() == 2 ? "2" : "1", 1);
  setenv("CUDASIM_UNKNOWN_KERNELS", "skip", 1);
  // Of a driver: contexts are then made in a third of the time.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  return conformance::Main(count, arguments);
}
