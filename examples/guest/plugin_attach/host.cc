// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How do plugins that know nothing of each other share one context, and which one destroys it?
//
// This program is the host. It has contexts X and A of its own, and two plugins, which are loaded
// with dlopen(RTLD_LOCAL) and each embed a static, hidden copy of cuguest (member.h). The host
// counts nothing: it passes on the context S that the first plugin gives it. No plugin knows
// whether it is the first or the last one; still the last holder, and no other, destroys S.
//
//   1. echo attaches first and detaches first
//
//      before                        [X] [A]<        no context S yet
//      echo: init                    [X] [A]<        S has 1 reference: echo
//      choir: init                   [X] [A]<        S has 2 references: echo, choir
//      all process a signal          [X] [A]<        S has 2 references: echo, choir
//      echo: shutdown, dlclose       [X] [A]<        S has 1 reference: choir
//      all process a signal          [X] [A]<        S has 1 reference: choir
//      choir: shutdown, dlclose      [X] [A]<        S was destroyed
//   ...
//
// The plugins report the reference count, and all report the same: the copies of cuguest have found
// each other, and count in the copy that was loaded first. If that one is unloaded while others
// count, its code and data stay in memory for them.

#include <cuda.h>
#include <dlfcn.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/driver.h"
#include "cuguest/status.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/guest/plugin_attach/plugin.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/picture.h"

namespace host {

using cuguest::ContextRef;
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

// An effect's file, and its result for Ramp(1).
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

// The effects in use, in the order of their loading, and the context S that they share: in some
// scenes one of the host's.
class Rack {
 public:
  Rack(Device device, const Cast& cast)
      : device_(device), cast_(cast), before_(StackProbe::Take()) {}

  // A context of the host's, for the effects that are loaded next.
  void Offer(CUcontext context) {
    shared_ = context;
    incarnation_ = ContextRef::Borrow(context);
  }

  void Init(const std::string& name) {
    absl::StatusOr<Plugin> plugin = Plugin::Load(name);
    if (!CHECK_OK(plugin.status())) return;
    if (!Succeeds((*plugin)->init(device_.get(), &shared_))) return;
    CHECK(std::string((*plugin)->name) == name);
    if (!incarnation_.ok()) incarnation_ = ContextRef::Borrow(shared_);
    effects_.push_back(*std::move(plugin));
    Show(name + ": init", /*exists=*/true);
  }

  void ProcessWithAll() {
    const Signal in = Ramp(1);
    for (const Plugin& effect : effects_) {
      Signal out(in.size());
      CHECK(Succeeds(effect->process(in.data(), out.data(), in.size())));
      CHECK(out == Find(effect->name).expected);
    }
    Show("all process a signal", true);
  }

  // Shuts the plugin down, and unloads it at once. `exists`: whether S should exist then.
  void ShutdownAndUnload(const std::string& name, bool exists) {
    const std::size_t i = IndexOf(name);
    CHECK(Succeeds(effects_[i]->shutdown()));
    Unload(i);
    Show(name + ": shutdown, dlclose", exists);
  }

  // Expect an error.
  void ProcessFails(const std::string& name) {
    Signal out(1);
    ShowError(name + ": process", effects_[IndexOf(name)]->process(&out[0], &out[0], 1));
  }
  void ShutdownFails(const std::string& name) {
    const std::size_t i = IndexOf(name);
    ShowError(name + ": shutdown", effects_[i]->shutdown());
    Unload(i);
    Show(name + ": dlclose", false);
  }

  void Show(const std::string& when, bool exists) {
    PrintRow(when, cast_.Draw(), Describe());
    CHECK(incarnation_.ok() && incarnation_.IsAlive() == exists);
    CheckUndisturbed();
  }

 private:
  static bool Succeeds(const char* error) {
    return CHECK_OK(error == nullptr ? absl::OkStatus() : absl::InternalError(error));
  }

  std::size_t IndexOf(const std::string& name) const {
    std::size_t i = 0;
    while (i < effects_.size() && effects_[i]->name != name) ++i;
    return i;
  }

  // Into another vector: to move a Plugin over another one would need its assignment.
  void Unload(std::size_t i) {
    std::vector<Plugin> left;
    for (std::size_t k = 0; k < effects_.size(); ++k) {
      if (k != i) left.push_back(std::move(effects_[k]));
    }
    effects_.swap(left);
  }

  // "S has 2 references: echo, choir", after a check that all report the same number.
  std::string Describe() {
    std::string text = incarnation_.IsAlive() ? "S exists" : "S was destroyed";
    for (const Plugin& effect : effects_) CHECK(effect->count_users() == effects_.size());
    if (effects_.empty()) return text;
    text = "S has " + std::to_string(effects_.size()) +
           (effects_.size() == 1 ? " reference" : " references");
    const char* separator = ": ";
    for (const Plugin& effect : effects_) {
      text += separator + std::string(effect->name);
      separator = ", ";
    }
    return text;
  }

  void ShowError(const std::string& when, const char* error) {
    PrintRow(when, cast_.Draw(), "an error:");
    if (CHECK(error != nullptr)) {
      support::PrintParagraph(error);
      CHECK(std::string(error).find("CONTEXT_IS_DESTROYED") != std::string::npos);
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

  const Device device_;
  const Cast& cast_;
  const StackProbe before_;
  CUcontext shared_ = nullptr;
  ContextRef incarnation_;  // of S
  std::vector<Plugin> effects_;
};

void InAndOut(Device device, const Cast& cast, const std::string& first_in,
              const std::string& first_out) {
  const std::string second_in = first_in == "echo" ? "choir" : "echo";
  const std::string second_out = first_out == "echo" ? "choir" : "echo";
  const std::string title =
      first_in + " attaches first, and " +
      (first_in == first_out ? "detaches first" : first_out + " detaches first");
  PrintScene(title.c_str());
  Rack rack(device, cast);
  PrintRow("before", cast.Draw(), "no context S yet");
  rack.Init(first_in);
  rack.Init(second_in);
  rack.ProcessWithAll();
  rack.ShutdownAndUnload(first_out, /*exists=*/true);
  rack.ProcessWithAll();
  rack.ShutdownAndUnload(second_out, /*exists=*/false);
}

// After the first scene: echo was loaded first, so its copy of cuguest has the count.
void ShowWhichStays() {
  for (const char* name : {"echo", "choir"}) {
    const bool stays = IsInMemory(name);
    PrintRow(std::string("is ") + name + " in memory?", stays ? "yes" : "no",
             stays ? "the count is kept there" : "");
    CHECK(stays == (std::string(name) == "echo"));
  }
}

absl::Status ContextOfTheHosts(const Driver& driver, Device device, const Cast& cast) {
  PrintScene("The host created S: the last holder does not destroy it");
  CUGUEST_ASSIGN_OR_RETURN(HostContext context, HostContext::Create(driver, device));
  Rack rack(device, cast);
  rack.Offer(context.get());
  rack.Show("cuCtxCreate by the host", true);
  rack.Init("echo");
  rack.Init("choir");
  rack.ProcessWithAll();
  rack.ShutdownAndUnload("echo", true);
  rack.ShutdownAndUnload("choir", true);

  PrintScene("The host destroys S while a plugin is attached to it");
  rack.Init("choir");
  rack.ProcessWithAll();
  CHECK(driver.CtxDestroy(context.get()) == CUDA_SUCCESS);
  context.Leak();
  rack.Show("cuCtxDestroy by the host", false);
  rack.ProcessFails("choir");
  rack.ShutdownFails("choir");
  return absl::OkStatus();
}

absl::Status Demonstrate(const Driver& driver, Device device) {
  CUGUEST_ASSIGN_OR_RETURN(const HostContext x, HostContext::Create(driver, device));
  CUGUEST_ASSIGN_OR_RETURN(const HostContext a, HostContext::Create(driver, device));
  Cast cast;
  cast.Name("X", x.get());
  cast.Name("A", a.get());
  const HostStack stack(driver, {x.get(), a.get()});

  InAndOut(device, cast, "echo", "echo");
  ShowWhichStays();
  InAndOut(device, cast, "echo", "choir");
  InAndOut(device, cast, "choir", "choir");
  InAndOut(device, cast, "choir", "echo");
  return ContextOfTheHosts(driver, device, cast);
}

}  // namespace host

int main() {
  return support::RunExample(
      "How do plugins that know nothing of each other share one context, and which one destroys "
      "it?",
      &host::Demonstrate);
}
