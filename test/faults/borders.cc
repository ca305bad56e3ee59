// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/faults/borders.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <sstream>
#include <thread>

#include "cudasim/sim.h"
#include "cuguest/host_scope.h"
#include "test/faults/surroundings.h"
#include "test/support/failed_calls.h"

namespace cuguest_faults {
namespace {

using cudasim::Sim;
using cudasim::SimLive;
using cuguest_runtime_test::InEveryState;
using cuguest_runtime_test::SetUp;
using cuguest_test::FailedCalls;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using cuguest_test::TakeIncidents;

std::string Text(int code) {
  switch (code) {
    case kSilent:
      return "nothing";
    case kRefuses:
      return "that it refuses";
    case kNull:
      return "null";
    default:
      return std::to_string(code);
  }
}

std::string Text(const Codes& codes) {
  std::string text;
  for (const int code : codes) text += (text.empty() ? "" : " or ") + Text(code);
  return text;
}

bool Allows(const Codes& codes, int code) {
  if (code == kSilent) return true;
  if (code == kRefuses && codes.count(0) == 0) return true;
  return codes.count(code) != 0;
}

// The child's: what is wrong is printed.
int ChildsFailures(const Row& row, const Ready& ready) {
  const auto incidents = cuguest::IncidentCount();
  const int code = ready.call();
  int broken = 0;
  if (!Allows(row.everywhere.child.codes, code)) {
    std::printf("it says %s instead of %s. ", Text(code).c_str(),
                Text(row.everywhere.child.codes).c_str());
    ++broken;
  }
  if (cuguest::IncidentCount() != incidents) {
    std::printf("it reports an incident. ");
    ++broken;
  }
  return broken;
}

struct HostCall {
  const Ready* ready;
  int code = 0;
};

void CUDA_CB CallInHostFunction(void* data) {
  auto* const call = static_cast<HostCall*>(data);
  call->code = call->ready->call();
}

}  // namespace

namespace internal {
namespace {

struct Recipe {
  std::function<int(const Arguments&)> function;
  std::vector<AnyParameter> parameters;
};

// The border values that a call is given instead of valid ones, by the place of their parameter.
using Borders = std::map<size_t, const Value<Argument>*>;

// A call of the recipe with the border values.
std::function<Ready(Given&)> With(const std::shared_ptr<const Recipe>& recipe,
                                  const Borders& borders) {
  return [recipe, borders](Given& given) {
    const auto arguments = std::make_shared<Arguments>();
    for (size_t place = 0; place < recipe->parameters.size(); ++place) {
      const auto border = borders.find(place);
      arguments->push_back(border != borders.end() ? border->second->make(given)
                                                   : recipe->parameters[place].valid(given));
    }
    Ready ready;
    ready.call = [recipe, arguments] { return recipe->function(*arguments); };
    if (borders.empty()) return ready;
    ready.call_with_valid = [recipe, arguments, borders, &given] {
      for (const auto& [place, border] : borders) {
        (*arguments)[place] = recipe->parameters[place].valid(given);
      }
      return recipe->function(*arguments);
    };
    return ready;
  };
}

}  // namespace

Row RowOf(const std::string& names, const std::function<int(const Arguments&)>& function,
          Everywhere everywhere, const std::vector<AnyParameter>& parameters) {
  const auto recipe = std::make_shared<const Recipe>(Recipe{function, parameters});
  Row row;
  row.names = names;
  row.everywhere = std::move(everywhere);
  row.prepare = With(recipe, {});
  std::vector<std::pair<size_t, const Value<Argument>*>> all;
  for (size_t place = 0; place < parameters.size(); ++place) {
    for (const auto& border : recipe->parameters[place].borders) {
      all.emplace_back(place, &border);
      row.borders.push_back({"argument " + std::to_string(place + 1) + " " + border.name,
                             border.expected, With(recipe, {all.back()})});
    }
  }
  for (size_t first = 0; first < all.size(); ++first) {
    for (size_t second = first + 1; second < all.size(); ++second) {
      if (all[first].first == all[second].first) continue;
      row.pairs.push_back({first, second, With(recipe, {all[first], all[second]})});
    }
  }
  return row;
}

}  // namespace internal

BorderWalk::~BorderWalk() {
  std::printf("%s: %zu border values in a state, %zu calls elsewhere, %zu broken\n", tables_,
              borders_, elsewhere_, broken_);
}

void BorderWalk::Complain(const Row& row, const std::string& what, const std::string& how) {
  ++broken_;
  BOOST_ERROR(row.names << ", " << what << ": " << how);
}

void BorderWalk::Check(const Row& row, const std::string& what, const Expected& expected, int code,
                       const std::vector<std::string>& failed) {
  const std::string function = row.names.substr(0, row.names.find(':'));
  names_.insert(function);
  if (code > 0) said_[function].insert(code);
  if (!Allows(expected.codes, code)) {
    Complain(row, what, "it says " + Text(code) + " instead of " + Text(expected.codes));
  }
  if (!expected.is_by_driver) {
    for (const std::string& call : failed) Complain(row, what, "makes a call that fails: " + call);
  }
  const bool is_reported = !TakeIncidents().empty();
  if (is_reported != expected.is_reported) {
    Complain(row, what, is_reported ? "it reports an incident" : "it reports no incident");
  }
}

// With what it is given, from its beginning until that is gone. `valid` is what it says right
// after, with a valid value.
void BorderWalk::PlayOnce(const Things& things, const Row& row, const Play& play,
                          const Expected& valid) {
  cuguest_test::BeginCount();
  const SimLive live = Sim::Live();
  const Surroundings before;
  {
    Given given(things);
    const Ready ready = play.prepare(given);
    const Surroundings prepared;
    FailedCalls failed;
    const int code = ready.call();
    Check(row, play.what, play.expected, code, failed.Take());
    const bool is_refused = play.expected.codes.count(0) == 0;
    if (is_refused && !play.expected.is_changed) {
      const std::string difference = prepared.Difference(Surroundings());
      if (!difference.empty()) Complain(row, play.what, "it refuses, and " + difference);
    }
    if (is_refused && ready.call_with_valid != nullptr) {
      Check(row, play.what + ", then with a valid one", valid, ready.call_with_valid(), {});
    }
  }
  { const cuguest::HostScope closes_what_has_ended; }
  static_cast<void>(TakeIncidents());
  while (play.expected.is_kept && Sim::Live().primary_references > live.primary_references) {
    OK(RAW(cuDevicePrimaryCtxRelease)(0));
  }
  const std::string difference = before.Difference(Surroundings());
  if (!difference.empty()) Complain(row, play.what, difference);
  if (Sim::Live() != live) Complain(row, play.what, "something is leaked");
}

void BorderWalk::OverBorders(const Row& row) {
  OwnContext::DestroyIdle();
  const Things things;
  row.warm_up(things);
  const Expected& valid = row.everywhere.here;
  InEveryState(things, [&](const char* state, const SetUp& set_stack) {
    const auto play = [&](Play one) {
      set_stack();
      one.what += std::string(" (") + state + ")";
      PlayOnce(things, row, one, valid);
    };
    play({"valid", valid, row.prepare});
    for (const Play& border : row.borders) {
      play(border);
      ++borders_;
    }
  });
  Expected on_dead = row.everywhere.on_dead.value_or(valid);
  if (on_dead.codes.empty()) return;
  cuguest_test::PushDeadContext();
  on_dead.is_by_driver = true;
  PlayOnce(things, row, {"valid (a destroyed context current)", on_dead, row.prepare}, valid);
  SetStack({});
}

namespace {

// What a function says: a code, and in C++ a text, without its numbers in hex, which are other ones
// each time.
struct Telling {
  int code = 0;
  std::string text;
};

Telling Told(const Things& things, const std::function<Ready(Given&)>& prepare) {
  static const std::regex s_address("0x[0-9a-f]+");
  Given given(things);
  const Ready ready = prepare(given);
  Telling told;
  internal::g_said = &told.text;
  told.code = ready.call();
  internal::g_said = nullptr;
  told.text = std::regex_replace(told.text, s_address, "0x");
  return told;
}

// Empty where the two cannot be told apart, or are told together.
std::string Winner(const Telling& first, const Telling& second, const Telling& both) {
  const bool is_by_text = first.text != second.text;
  const bool is_by_code = first.code != second.code;
  if (is_by_text && both.text == first.text) return "the first";
  if (is_by_text && both.text == second.text) return "the second";
  if (is_by_code && both.code == first.code) return "the first";
  if (is_by_code && both.code == second.code) return "the second";
  return "";
}

// "argument 2" of "argument 2 is empty".
std::string ArgumentOf(const Play& border) {
  return border.what.substr(0, border.what.find(' ', std::strlen("argument ")));
}

}  // namespace

std::vector<std::string> BorderWalk::OrderOf(const Row& row) {
  OwnContext::DestroyIdle();
  const Things things;
  row.warm_up(things);
  std::vector<Telling> alone;
  for (const Play& border : row.borders) alone.push_back(Told(things, border.prepare));
  using Winners = std::map<std::string, std::vector<std::string>>;  // and of which values
  std::map<std::string, Winners> of_arguments;
  for (const Pair& pair : row.pairs) {
    const Telling& first = alone[pair.first];
    const Telling& second = alone[pair.second];
    if (first.code <= 0 || second.code <= 0) continue;
    const std::string winner = Winner(first, second, Told(things, pair.prepare));
    if (winner.empty()) continue;
    const Play& a = row.borders[pair.first];
    const Play& b = row.borders[pair.second];
    of_arguments[ArgumentOf(a) + ", " + ArgumentOf(b)][winner].push_back(a.what + ", " + b.what);
  }
  { const cuguest::HostScope closes_what_has_ended; }
  static_cast<void>(TakeIncidents());
  std::vector<std::string> lines;
  for (const auto& [arguments, winners] : of_arguments) {
    const auto most = std::max_element(
        winners.begin(), winners.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    lines.push_back(row.names + ", " + arguments + ": " + most->first);
    for (const auto& [winner, values] : winners) {
      if (winner == most->first) continue;
      for (const std::string& value : values) {
        lines.push_back(row.names + ", " + value + ": " + winner);
      }
    }
  }
  return lines;
}

void BorderWalk::OnOtherThreads(const Row& row) {
  OwnContext::DestroyIdle();
  const Things things;
  row.warm_up(things);
  std::thread([&] {
    PlayOnce(things, row, {"all of it on another thread", row.everywhere.here, row.prepare},
             row.everywhere.here);
  }).join();
  const auto on_another_thread = [&row](Given& given) {
    const auto ready = std::make_shared<Ready>(row.prepare(given));
    const auto call = [ready] {
      int code = 0;
      std::thread([&] { code = ready->call(); }).join();
      return code;
    };
    return Ready{call, {}};
  };
  PlayOnce(things, row, {"on another thread", row.everywhere.elsewhere, on_another_thread}, {0});
  elsewhere_ += 2;
}

void BorderWalk::InAChild(const Row& row) {
  OwnContext::DestroyIdle();
  const Things things;
  row.warm_up(things);
  Given given(things);
  const Ready ready = row.prepare(given);
  std::fflush(stdout);
  int ends[2] = {};
  BOOST_TEST_REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  BOOST_TEST_REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);
    dup2(ends[1], STDOUT_FILENO);
    const int broken = ChildsFailures(row, ready);
    std::fflush(stdout);
    _exit(broken);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  BOOST_TEST(waitpid(child, &status, 0) == child);
  if (status != 0) Complain(row, "in a forked child", text + "status " + std::to_string(status));
  ++elsewhere_;
}

void BorderWalk::InAHostFunction(const Row& row) {
  OwnContext::DestroyIdle();
  const Things things;
  row.warm_up(things);
  const auto in_host_function = [&row](Given& given) {
    const auto ready = std::make_shared<Ready>(row.prepare(given));
    const auto call = [ready, &given] {
      HostCall made = {ready.get()};
      const CUstream stream = given.things.home.stream();
      OK(RAW(cuLaunchHostFunc)(stream, &CallInHostFunction, &made));
      OK(RAW(cuStreamSynchronize)(stream));
      return made.code;
    };
    return Ready{call, {}};
  };
  PlayOnce(things, row, {"in a host function", row.everywhere.host_function, in_host_function},
           {0});
  ++elsewhere_;
}

namespace {

struct Ending {
  const Row* row;
  std::unique_ptr<Given> given;
  Ready ready;
};
std::vector<Ending>* g_endings = nullptr;

void PlayEndings() {
  Sim::Deinitialize();
  const size_t count = g_endings->size();
  int broken = 0;
  while (!g_endings->empty()) {
    Ending& ending = g_endings->back();
    const Codes& expected = ending.row->everywhere.at_exit.codes;
    const int code = ending.ready.call();
    if (!Allows(expected, code)) {
      std::printf("%s, at exit: it says %s instead of %s\n", ending.row->names.c_str(),
                  Text(code).c_str(), Text(expected).c_str());
      ++broken;
    }
    ending.ready = {};
    g_endings->pop_back();
  }
  std::printf("%zu calls at exit, %d broken\n", count, broken);
  std::fflush(stdout);
  _exit(broken != 0);
}

}  // namespace

void AtExit(const std::vector<Row>& rows) {
  const auto* const things = new Things();
  g_endings = new std::vector<Ending>;
  for (const Row& row : rows) {
    auto given = std::make_unique<Given>(*things);
    Ready ready = row.prepare(*given);
    g_endings->push_back({&row, std::move(given), std::move(ready)});
  }
  std::atexit(&PlayEndings);
  std::exit(0);
}

}  // namespace cuguest_faults
