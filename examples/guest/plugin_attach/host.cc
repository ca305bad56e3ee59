// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How do plugins that know nothing of each other share one context, and which one destroys it?
//
// This program is the host. It has contexts X and A of its own, and two plugins, which are loaded
// with dlopen(RTLD_LOCAL) and each embed a static, hidden copy of cuguest: see member.h. The host
// passes on the context S that the first plugin gives it, and counts nothing. No plugin knows
// whether it is the last one; still the last holder, and no other, destroys S.
//
// All plugins report the same reference count: the copies of cuguest have found each other. What
// they count in is in no plugin, so each can be unloaded while others count.

#include <dlfcn.h>

#include <map>
#include <string>
#include <vector>

#include "cuguest/context_ref.h"
#include "examples/guest/plugin_attach/plugin.h"
#include "examples/support/stage.h"

namespace host {

using support::Ramp;
using support::Stage;

std::string PathOf(const std::string& name) {
  return support::Beside("plugin_attach_" + name + ".so");
}

bool IsInMemory(const std::string& name) {
  void* const library = dlopen(PathOf(name).c_str(), RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr && dlclose(library) == 0;
}

// The effects in use, and the context S that they share: in some scenes one of the host's.
class Rack {
 public:
  Rack(cuguest::Device device, const Stage& stage, CUcontext shared = nullptr)
      : device_(device), stage_(stage), shared_(shared) {}

  void Init(const std::string& name) {
    void* const library = dlopen(PathOf(name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!CHECK(library != nullptr)) return;
    const auto* const effect = static_cast<const Effect*>(dlsym(library, PLUGIN_ENTRY));
    CHECK(effect->init(device_.get(), &shared_) == nullptr);
    s_ = cuguest::ContextRef::Borrow(shared_);
    plugins_[name] = {library, effect};
    Show(name + ": init");
  }

  // Returns the error message of the last effect that failed, if any.
  std::string Process() const {
    std::string error;
    for (const auto& [name, plugin] : plugins_) {
      std::vector<float> numbers = Ramp(1);
      const char* const failed = plugin.effect->process(numbers.data(), numbers.size());
      if (failed != nullptr) error = failed;
      CHECK(failed != nullptr || numbers == Ramp(name == "echo" ? 2 : 6));
    }
    return error;
  }

  // Unloads the plugin, too. Returns whether its shutdown succeeded.
  bool Shutdown(const std::string& name) {
    const Plugin plugin = plugins_.extract(name).mapped();
    const bool succeeded = plugin.effect->shutdown() == nullptr;
    CHECK(dlclose(plugin.library) == 0);
    Show(name + ": shutdown, dlclose");
    return succeeded;
  }

  bool SExists() const { return s_.IsAlive(); }

 private:
  struct Plugin {
    void* library;
    const Effect* effect;
  };

  void Show(const std::string& when) const {
    for (const auto& [name, plugin] : plugins_) {
      CHECK(plugin.effect->count_users() == plugins_.size());
    }
    const std::string count = "references to S: " + std::to_string(plugins_.size());
    CHECK(stage_.Shows(when, "[X] [A]<", SExists() ? count : "S was destroyed"));
  }

  const cuguest::Device device_;
  const Stage& stage_;
  CUcontext shared_;
  cuguest::ContextRef s_;
  std::map<std::string, Plugin> plugins_;
};

void InAndOut(cuguest::Device device, const Stage& stage, const std::string& first_in,
              const std::string& first_out) {
  const auto other = [](const std::string& name) { return name == "echo" ? "choir" : "echo"; };
  support::PrintScene((first_in + " attaches first, " + first_out + " detaches first").c_str());
  const support::Undisturbed undisturbed;
  Rack rack(device, stage);
  rack.Init(first_in);
  rack.Init(other(first_in));
  CHECK(rack.Process().empty());
  CHECK(rack.Shutdown(first_out));
  CHECK(rack.SExists());
  CHECK(rack.Process().empty());
  CHECK(rack.Shutdown(other(first_out)));
  CHECK(!rack.SExists());
}

absl::Status Demonstrate(const cuguest::ObjectDriver& driver, cuguest::Device device) {
  Stage stage(driver, device, {"X", "A", "S"});
  stage.Set({"X", "A"});
  for (const char* const first_in : {"echo", "choir"}) {
    for (const char* const first_out : {"echo", "choir"}) {
      InAndOut(device, stage, first_in, first_out);
    }
  }
  CHECK(!IsInMemory("echo") && !IsInMemory("choir"));

  support::PrintScene("The host created S: the last holder does not destroy it");
  const support::Undisturbed undisturbed;
  Rack rack(device, stage, stage["S"]);
  rack.Init("echo");
  rack.Init("choir");
  CHECK(rack.Shutdown("echo") && rack.Shutdown("choir"));
  CHECK(rack.SExists());

  support::PrintScene("The host destroys S while a plugin is attached to it");
  rack.Init("choir");
  stage.Destroy("S");
  const std::string error = rack.Process();
  support::PrintText(error);
  CHECK(error.find("CONTEXT_IS_DESTROYED") != std::string::npos);
  CHECK(!rack.Shutdown("choir"));
  return absl::OkStatus();
}

}  // namespace host

int main() {
  return support::RunExample(
      "How do plugins that know nothing of each other share one context, and which one destroys "
      "it?",
      &host::Demonstrate);
}
