// SPDX-License-Identifier: Apache-2.0
//
// How do plugins that know nothing of each other share one context, and who destroys it?
//
// This program is the host. It has contexts X and A of its own, and two plugins, which
// are loaded with dlopen(RTLD_LOCAL) and embed a static, hidden copy of cuguest each
// (member.h). The host has none of the counting itself: it only hands on the context S
// that the first plugin leaves with it. Neither plugin can know whether it is the first
// one in or the last one out, and still the last one out, and nobody before, destroys S.
//
//   1. echo is the first one in, and the first one out
//
//      before                        [X] [A]<        no context S yet
//      echo: init                    [X] [A]<        S lives, 1 unit: echo
//      choir: init                   [X] [A]<        S lives, 2 units: echo, choir
//      all process a signal          [X] [A]<        S lives, 2 units: echo, choir
//      echo: shutdown, dlclose       [X] [A]<        S lives, 1 unit: choir
//      all process a signal          [X] [A]<        S lives, 1 unit: choir
//      choir: shutdown, dlclose      [X] [A]<        S is destroyed
//   ...
//
// The units are asked of the plugins, who all see the same number: they have found each
// other's copies, and count in that of the first one that was loaded. When that one is
// unloaded while others count, its code and data stay for them.

#include <cuda.h>
#include <dlfcn.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/guest/plugin_attach/plugin.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"
#include "examples/support/worker.h"

namespace host {

using cuguest::Device;
using cuguest::Driver;
using cuguest::testing::StackProbe;
using support::Cast;
using support::HostContext;
using support::HostStack;
using support::PrintRow;
using support::PrintScene;
using support::Ramp;
using Signal = std::vector<float>;

// An effect's file, and what it makes of Ramp(1).
struct Known {
  const char* file;
  Signal expected;
};

Signal RampWithEcho() {
  Signal signal = Ramp(1);
  for (std::size_t i = signal.size() - 1; i >= 100; --i) signal[i] += 0.5F * signal[i - 100];
  return signal;
}

const Known& Find(const std::string& name) {
  static const std::map<std::string, Known> known = {
      {"echo", {"plugin_attach_echo.so", RampWithEcho()}},
      {"choir", {"plugin_attach_choir.so", Ramp(4)}},
  };
  return known.at(name);
}

std::string PathOf(const std::string& name) { return support::Beside(Find(name).file); }

bool IsInMemory(const std::string& name) {
  void* library = dlopen(PathOf(name).c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

// A loaded effect; unloaded on destruction.
class Plugin {
 public:
  [[nodiscard]] static absl::StatusOr<Plugin> Load(const std::string& name) {
    void* library = dlopen(PathOf(name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return absl::NotFoundError(dlerror());
    const auto get = reinterpret_cast<PluginGetEffectFunction>(dlsym(library, PLUGIN_ENTRY));
    if (get == nullptr) return absl::NotFoundError(name + " has no " PLUGIN_ENTRY);
    return Plugin(library, get());
  }
  Plugin(Plugin&& other) noexcept
      : library_(std::exchange(other.library_, nullptr)), effect_(other.effect_) {}
  Plugin& operator=(Plugin&&) = delete;
  ~Plugin() {
    if (library_ != nullptr) CHECK(dlclose(library_) == 0);
  }

  const Effect* operator->() const { return effect_; }

 private:
  Plugin(void* library, const Effect* effect) : library_(library), effect_(effect) {}

  void* library_;
  const Effect* effect_;
};

// Knows whether a context lives: it is current to a thread of the witness's own, which is
// told if it was destroyed (CUDA Driver API, cuCtxDestroy).
class Witness {
 public:
  Witness(const Driver& driver, CUcontext context) : driver_(driver) {
    thread_.Run([&] { CHECK(driver_.CtxPushCurrent(context) == CUDA_SUCCESS); });
  }
  ~Witness() {
    CUcontext popped = nullptr;
    thread_.Run([&] { CHECK(driver_.CtxPopCurrent(&popped) == CUDA_SUCCESS); });
  }

  [[nodiscard]] bool IsAlive() {
    CUresult code = CUDA_SUCCESS;
    thread_.Run([&] { code = driver_.CtxSynchronize(); });
    CHECK(code == CUDA_SUCCESS || code == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return code == CUDA_SUCCESS;
  }

 private:
  const Driver& driver_;
  support::Worker thread_;
};

// The effects that are in use, in the order in which they came, and the context S that
// they share; in some scenes a context of the host's.
class Rack {
 public:
  Rack(const Driver& driver, Device device, const Cast& cast)
      : driver_(driver), device_(device), cast_(cast), before_(StackProbe::Take()) {}

  // A context of the host's, for the effects to come.
  void Offer(CUcontext context) {
    shared_ = context;
    witness_.emplace(driver_, context);
  }

  void Init(const std::string& name) {
    absl::StatusOr<Plugin> plugin = Plugin::Load(name);
    if (!CHECK_OK(plugin.status())) return;
    if (!IsWell((*plugin)->init(device_.get(), &shared_))) return;
    CHECK(std::string((*plugin)->name) == name);
    if (!witness_.has_value()) witness_.emplace(driver_, shared_);
    effects_.push_back(*std::move(plugin));
    Show(name + ": init", /*lives=*/true);
  }

  void ProcessWithAll() {
    const Signal in = Ramp(1);
    for (const Plugin& effect : effects_) {
      Signal out(in.size());
      CHECK(IsWell(effect->process(in.data(), out.data(), in.size())));
      CHECK(out == Find(effect->name).expected);
    }
    Show("all process a signal", true);
  }

  // Gives the unit back, and unloads the plugin at once. `lives`: whether S should then.
  void ShutdownAndUnload(const std::string& name, bool lives) {
    const std::size_t i = IndexOf(name);
    CHECK(IsWell(effects_[i]->shutdown()));
    Unload(i);
    Show(name + ": shutdown, dlclose", lives);
  }

  // What the effect has to say for itself; it is expected to be something.
  void ProcessAndComplain(const std::string& name) {
    Signal out(1);
    ShowComplaint(name + ": process", effects_[IndexOf(name)]->process(&out[0], &out[0], 1));
  }
  void ShutdownAndComplain(const std::string& name) {
    const std::size_t i = IndexOf(name);
    ShowComplaint(name + ": shutdown", effects_[i]->shutdown());
    Unload(i);
    Show(name + ": dlclose", false);
  }

  void Show(const std::string& when, bool lives) {
    PrintRow(when, cast_.Draw(), Describe());
    CHECK(witness_.has_value() && witness_->IsAlive() == lives);
    CheckUndisturbed();
  }

 private:
  static bool IsWell(const char* complaint) {
    return CHECK_OK(complaint == nullptr ? absl::OkStatus() : absl::InternalError(complaint));
  }

  std::size_t IndexOf(const std::string& name) const {
    std::size_t i = 0;
    while (i < effects_.size() && effects_[i]->name != name) ++i;
    return i;
  }

  // Without a move: a plugin's name is gone with its code.
  void Unload(std::size_t i) {
    std::vector<Plugin> left;
    for (std::size_t k = 0; k < effects_.size(); ++k) {
      if (k != i) left.push_back(std::move(effects_[k]));
    }
    effects_.swap(left);
  }

  // "S lives, 2 units: echo, choir", after making sure that all see the same number.
  std::string Describe() {
    std::string text = witness_->IsAlive() ? "S lives" : "S is destroyed";
    for (const Plugin& effect : effects_) CHECK(effect->count_users() == effects_.size());
    if (effects_.empty()) return text;
    text += ", " + std::to_string(effects_.size()) + (effects_.size() == 1 ? " unit" : " units");
    const char* separator = ": ";
    for (const Plugin& effect : effects_) {
      text += separator + std::string(effect->name);
      separator = ", ";
    }
    return text;
  }

  void ShowComplaint(const std::string& when, const char* complaint) {
    PrintRow(when, cast_.Draw(), "it says:");
    if (CHECK(complaint != nullptr)) {
      support::PrintParagraph(complaint);
      CHECK(std::string(complaint).find("CONTEXT_IS_DESTROYED") != std::string::npos);
    }
    CheckUndisturbed();
  }

  // The host's stack is what it was, and no device's primary context was created.
  void CheckUndisturbed() const {
    const StackProbe now = StackProbe::Take();
    const std::string difference = before_.Difference(now);
    if (!difference.empty()) support::ReportDisturbance(difference);
    for (const StackProbe::Primary& primary : now.primaries()) CHECK(!primary.active);
  }

  const Driver& driver_;
  const Device device_;
  const Cast& cast_;
  const StackProbe before_;
  CUcontext shared_ = nullptr;
  std::optional<Witness> witness_;
  std::vector<Plugin> effects_;
};

void InAndOut(const Driver& driver, Device device, const Cast& cast, const std::string& first_in,
              const std::string& first_out) {
  const std::string second_in = first_in == "echo" ? "choir" : "echo";
  const std::string second_out = first_out == "echo" ? "choir" : "echo";
  const std::string title =
      first_in + " is the first one in, and " +
      (first_in == first_out ? "the first one out" : first_out + " the first one out");
  PrintScene(title.c_str());
  Rack rack(driver, device, cast);
  PrintRow("before", cast.Draw(), "no context S yet");
  rack.Init(first_in);
  rack.Init(second_in);
  rack.ProcessWithAll();
  rack.ShutdownAndUnload(first_out, /*lives=*/true);
  rack.ProcessWithAll();
  rack.ShutdownAndUnload(second_out, /*lives=*/false);
}

// After the first scene: echo was loaded first, so the count is in it.
void ShowWhoStays() {
  for (const char* name : {"echo", "choir"}) {
    const bool stays = IsInMemory(name);
    PrintRow(std::string("is ") + name + " still in memory?", stays ? "yes" : "no",
             stays ? "the count is kept there" : "");
    CHECK(stays == (std::string(name) == "echo"));
  }
}

absl::Status ContextOfTheHosts(const Driver& driver, Device device, const Cast& cast) {
  PrintScene("S was made by the host: the last one out leaves it alone");
  absl::StatusOr<HostContext> context = HostContext::Create(driver, device);
  if (!context.ok()) return context.status();
  Rack rack(driver, device, cast);
  rack.Offer(context->get());
  rack.Show("cuCtxCreate by the host", true);
  rack.Init("echo");
  rack.Init("choir");
  rack.ProcessWithAll();
  rack.ShutdownAndUnload("echo", true);
  rack.ShutdownAndUnload("choir", true);

  PrintScene("The host destroys S while a plugin is attached to it");
  rack.Init("choir");
  rack.ProcessWithAll();
  CHECK(driver.CtxDestroy(context->get()) == CUDA_SUCCESS);
  context->Leak();
  rack.Show("cuCtxDestroy by the host", false);
  rack.ProcessAndComplain("choir");
  rack.ShutdownAndComplain("choir");
  return absl::OkStatus();
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  const absl::StatusOr<HostContext> x = HostContext::Create(driver, device);
  if (!x.ok()) return x.status();
  const absl::StatusOr<HostContext> a = HostContext::Create(driver, device);
  if (!a.ok()) return a.status();
  Cast cast;
  cast.Name("X", x->get());
  cast.Name("A", a->get());
  const HostStack stack(driver, {x->get(), a->get()});

  InAndOut(driver, device, cast, "echo", "echo");
  ShowWhoStays();
  InAndOut(driver, device, cast, "echo", "choir");
  InAndOut(driver, device, cast, "choir", "choir");
  InAndOut(driver, device, cast, "choir", "echo");
  return ContextOfTheHosts(driver, device, cast);
}

}  // namespace host

int main() {
  return support::RunExample(
      "How do plugins that know nothing of each other share one context, and who destroys it?",
      &host::Demonstrate);
}
