// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "conformance/sequence.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <sstream>

#include "conformance/home.h"
#include "conformance/threads.h"

namespace conformance {
namespace {

// Rng
//
// SplitMix64: a generator for each step, so that a step draws the same however much was drawn
// before it.
class Rng {
 public:
  Rng(std::uint64_t seed, std::uint64_t sequence, std::uint64_t step)
      : state_(Mix(Mix(Mix(seed) ^ sequence) ^ step)) {}

  std::uint64_t Below(std::uint64_t bound) {
    state_ += 0x9e3779b97f4a7c15;
    return Mix(state_) % bound;
  }
  bool Percent(int percent) { return Below(100) < static_cast<std::uint64_t>(percent); }
  template <typename T>
  const T& Of(const std::vector<T>& all) {
    return all[Below(all.size())];
  }

 private:
  static std::uint64_t Mix(std::uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }

  std::uint64_t state_;
};

// What this sequence calls how often: three rooms eight times as much as the others.
Plan DrawWeights(Plan plan, Rng rng) {
  constexpr int kLiked = 8;
  size_t rooms = 0;
  for (const PlanRow& row : plan) rooms = std::max(rooms, row.room + 1);
  std::vector<int> weights(rooms, 1);
  for (int i = 0; i < 3; ++i) weights[rng.Below(rooms)] = kLiked;
  for (PlanRow& row : plan) row.weight *= weights[row.room];
  return plan;
}

const Call* DrawCall(const Plan& plan, Rng* rng) {
  int total = 0;
  for (const PlanRow& row : plan) total += row.weight;
  auto left = static_cast<int>(rng->Below(static_cast<std::uint64_t>(total)));
  for (const PlanRow& row : plan) {
    if ((left -= row.weight) < 0) return row.call;
  }
  return nullptr;
}

Value DrawObject(const Param& param, const World& world, Rng* rng) {
  if (!param.numbers.empty() && rng->Percent(param.null_percent)) {
    return {*param.kinds, rng->Of(param.numbers)};
  }
  if (rng->Percent(param.null_percent)) return {*param.kinds, 0};
  const std::vector<Value> usable = world.Usable(param.kinds);
  return usable.empty() ? Value{*param.kinds, -1000} : rng->Of(usable);
}

Value Draw(const Param& param, World& world, Rng* rng) {
  switch (param.way) {
    case Param::Way::kNumber:
      return {Value::kNumber, rng->Of(param.numbers)};
    case Param::Way::kOut:
      return {Value::kNumber, rng->Percent(param.null_percent) ? 0 : 1};
    case Param::Way::kMake:
      if (rng->Percent(param.null_percent)) return {*param.kinds, 0};
      return world.NextName(*param.kinds);
    default:
      return DrawObject(param, world, rng);
  }
}

bool IsPossible(const World& world, const Step& step) {
  for (size_t i = 0; i < step.values.size(); ++i) {
    const Value& value = step.values[i];
    if (value.number == -1000) return false;
    const bool is_new = step.call->params[i].way == Param::Way::kMake;
    if (is_new ? value.number != 0 && world.Find(value) != nullptr : !world.IsUsable(value)) {
      return false;
    }
  }
  return !step.call->when || step.call->when(world, step.values);
}

// Follows the incarnations of the primary context by their ids.
class PrimaryWatch {
 public:
  // "1:8": active, flags.
  std::string Look(World* world) {
    unsigned flags = 0;
    int active = 0;
    RAW(cuDevicePrimaryCtxGetState)(0, &flags, &active);
    Object* primary = world->Find({'P', 1});
    unsigned long long id = 0;
    if (active != 0) RAW(cuCtxGetId)(reinterpret_cast<CUcontext>(primary->handle), &id);
    if (id != id_ && id_ != 0) world->EndContext(primary->name);
    id_ = id;
    primary->is_alive = active != 0;
    return std::to_string(active) + ':' + std::to_string(flags);
  }

 private:
  unsigned long long id_ = 0;
};

// One sequence as it is played.
class Player {
 public:
  explicit Player(Cost cost) : world_(cost) {
    threads_.RunOn(0, [this] {
      Open(&world_);
      watch_.Look(&world_);
    });
  }
  ~Player() { Close(&world_, &threads_); }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  World& world() { return world_; }

  Answer Do(const Step& step, Statistics* statistics) {
    Answer answer;
    world_.thread = step.thread;
    threads_.RunOn(step.thread, [&] { answer = DoHere(step, statistics); });
    return answer;
  }

 private:
  Answer DoHere(const Step& step, Statistics* statistics) {
    const std::string before = world_.State();
    Frame frame(world_, step.call->params, step.values);
    const auto start = std::chrono::steady_clock::now();
    frame.code = step.call->run(frame);
    const auto end = std::chrono::steady_clock::now();
    if (frame.code == 0 && step.call->then) step.call->then(frame);
    Answer answer;
    answer.text = std::to_string(frame.code) + frame.answer();
    const Value current = SeenCurrent(world_);
    world_.SeeCurrent(current);
    answer.state = ' ' + ToText(current) + ' ' + watch_.Look(&world_);
    if (world_.captures > 0) CountCaptures();
    if (statistics != nullptr) {
      Statistics::Time& time = statistics->times[step.call->name];
      ++time.calls;
      time.seconds += std::chrono::duration<double>(end - start).count();
      ++statistics
            ->transitions[before + ", " + step.call->name + ", " + std::to_string(frame.code)];
    }
    return answer;
  }

  // How a capture ends is the driver's to say.
  void CountCaptures() {
    world_.captures = world_.captures_per_thread ? 1 : 0;
    for (const Object* stream : world_.All('S')) {
      auto status = CU_STREAM_CAPTURE_STATUS_NONE;
      RAW(cuStreamIsCapturing)(reinterpret_cast<CUstream>(stream->handle), &status);
      if (status != CU_STREAM_CAPTURE_STATUS_NONE) ++world_.captures;
    }
  }

  World world_;
  PrimaryWatch watch_;
  Threads threads_;
};

std::optional<Step> DrawStep(const Plan& plan, int thread, World& world, Rng* rng) {
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    Step step;
    step.thread = thread;
    step.call = DrawCall(plan, rng);
    for (const Param& param : step.call->params) step.values.push_back(Draw(param, world, rng));
    if (IsPossible(world, step)) return step;
  }
  return std::nullopt;
}

}  // namespace

Plan PlanOfAllCalls() {
  Plan plan;
  for (size_t room = 0; room < Rooms().size(); ++room) {
    if (Devices() == 1 && Rooms()[room].name == std::string("devices")) continue;
    for (const Call& call : Rooms()[room].calls) plan.push_back({&call, room, call.weight});
  }
  return plan;
}

Cost CostOf(std::uint64_t number) { return number % 24 == 23 ? Cost::kExpensive : Cost::kCheap; }

std::string ToText(const Step& step) {
  std::string text = 'T' + std::to_string(step.thread) + ' ' + step.call->name;
  for (const Value& value : step.values) text += ' ' + ToText(value);
  return text;
}

Step ToStep(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  Step step;
  words >> word;
  step.thread = std::stoi(word.substr(1));
  words >> word;
  step.call = FindCall(word);
  while (words >> word && word != "->") step.values.push_back(ToValue(word));
  return step;
}

void Sequence::Play(int calls, const See& see, Statistics* statistics) const {
  const Plan plan = DrawWeights(plan_, Rng(seed_, number_, ~std::uint64_t{0}));
  Player player(cost_);
  int thread = 0;
  for (int i = 0; i < calls; ++i) {
    Rng rng(seed_, number_, static_cast<std::uint64_t>(i));
    if (rng.Percent(25)) thread = static_cast<int>(rng.Below(kThreads));
    player.world().thread = thread;
    const std::optional<Step> step = DrawStep(plan, thread, player.world(), &rng);
    if (!step.has_value()) continue;
    announce_(*step);
    if (!see(*step, player.Do(*step, statistics))) return;
  }
}

void Sequence::PlayScript(const std::vector<Step>& script, const See& see) const {
  Player player(cost_);
  for (const Step& step : script) {
    player.world().thread = step.thread;
    if (!IsPossible(player.world(), step)) continue;
    announce_(step);
    if (!see(step, player.Do(step, nullptr))) return;
  }
}

}  // namespace conformance
