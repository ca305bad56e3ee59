// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries that each embed their own static, hidden copy of cuguest share one count of
// a context: built by several compilers and in several ways, loaded with RTLD_LOCAL,
// first used by many threads at once, unloaded in any order. This program has no door
// of its own (it uses no SharedContext), so a plugin is always the home: the one whose door leads
// to the registry.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cuguest/driver.h"
#include "cuguest/sharing.h"
#include "test/process/plugin.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

// The thread sanitizer's own dl_iterate_phdr reads the name of a module that dlclose frees; it does
// not see the loader's lock, which both hold.
extern "C" const char* __tsan_default_suppressions() { return "race:dl_iterate_phdr_cb\n"; }

// Of a sanitizer, where there is one.
extern "C" {
void __lsan_disable() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)
void __lsan_enable() __attribute__((weak));   // NOLINT(bugprone-reserved-identifier)
}

namespace {

using cuguest_test::Plugin;
using cuguest_test::Watch;

// The plugins that this build has. The first two are the project's own compiler's.
std::vector<std::string> Names() {
  std::vector<std::string> names = {"plugin_a", "plugin_b"};
  for (const char* name : {"plugin_g++", "plugin_clang++"}) {
    if (!Plugin::PathOf(name).empty()) names.push_back(name);
  }
  return names;
}

void Initialize() { CHECK(cuguest::Driver::GetInitialized().ok()); }

// Each has been the one that leads to the registry.
void EveryOrderOfLeaving(size_t home) {
  Initialize();
  std::vector<std::string> names = Names();
  std::rotate(names.begin(), names.begin() + static_cast<long>(home % names.size()), names.end());
  cuguest_test::DetachInEveryOrder(names);
}

void TheHomeIsUnloadedWhileOthersAreAttached() {
  Initialize();
  auto home = std::make_unique<Plugin>("plugin_a");
  Plugin other("plugin_b");
  void* first = home->Create();
  const CUcontext context = home->Get(first);
  void* second = other.Attach(context);
  CHECK(home->Detach(first));
  home.reset();
  CHECK(!Plugin::IsLoaded("plugin_a"));  // the count is in no library
  CHECK(other.UseCount(second) == 1);
  // It comes back, and so does anybody else.
  const Plugin again("plugin_a");
  const Plugin third(Names().back());
  void* units[] = {again.Attach(context), third.Attach(context)};
  CHECK(other.UseCount(second) == 3);
  const Watch watch(context);
  CHECK(other.Detach(second));
  CHECK(again.Detach(units[0]));
  CHECK(watch.IsAlive());
  CHECK(third.Detach(units[1]));
  CHECK(!watch.IsAlive());
}

void ALonePluginIsReallyUnloaded() {
  Initialize();
  for (int round = 0; round < 3; ++round) {
    {
      const Plugin alone("plugin_a");
      void* unit = alone.Create();
      CHECK(alone.UseCount(unit) == 1);
      CHECK(alone.Detach(unit));
    }
    CHECK(!Plugin::IsLoaded("plugin_a"));
  }
}

// A copy that keeps values for contexts looks into the registry, and counts nothing there.
void TheHomeIsUnloadedWhileOthersKeepValues() {
  Initialize();
  const CUcontext context = cuguest_test::MakeContext();
  auto home = std::make_unique<Plugin>("plugin_a");
  const Plugin other("plugin_b");
  CHECK(home->MakeValue(context));
  CHECK(other.MakeValue(context));
  home.reset();
  CHECK(!Plugin::IsLoaded("plugin_a"));
  CHECK(other.MakeValue(context));
}

// What a cache of C still has is left, unless the library closes it.
void APluginIsUnloadedWithValues() {
  Initialize();
  const CUcontext contexts[] = {cuguest_test::MakeContext(), cuguest_test::MakeContext()};
  for (const bool closes : {false, true, false}) {
    int ended = 0;
    {
      const Plugin plugin("plugin_a");
      for (const CUcontext context : contexts) {
        const bool expects_leak = !closes && __lsan_disable != nullptr;
        if (expects_leak) __lsan_disable();
        for (int i = 0; i < 2; ++i) CHECK(plugin.KeepValue(context, &ended, closes));
        if (expects_leak) __lsan_enable();
        // Only what is current, or a primary context, is asked whether it is alive.
        CHECK(RAW(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
      }
      CHECK(ended == 0);
    }
    CHECK(!Plugin::IsLoaded("plugin_a"));
    CHECK(ended == (closes ? 1 : 0));
    CUcontext popped = nullptr;
    for (int i = 0; i < 2; ++i) CHECK(RAW(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
  }
}

void ManyThreadsUseThePluginsForTheFirstTime() {
  Initialize();
  std::vector<std::unique_ptr<Plugin>> plugins;
  for (const std::string& name : Names()) plugins.push_back(std::make_unique<Plugin>(name));
  const CUcontext context = cuguest_test::MakeContext();
  constexpr int kThreads = 32;
  std::atomic<int> waiting{kThreads};
  std::vector<void*> units(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting != 0) std::this_thread::yield();
      units[i] = plugins[i % plugins.size()]->Attach(context);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) {
    CHECK(units[i] != nullptr);
    CHECK(plugins[i % plugins.size()]->UseCount(units[i]) == kThreads);
  }
  for (int i = 0; i < kThreads; ++i) CHECK(plugins[i % plugins.size()]->Detach(units[i]));
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
}

// No hook runs at the end of a thread that a library has bound: it may be unloaded before.
void ABoundThreadOutlivesThePlugin() {
  Initialize();
  const CUcontext context = cuguest_test::MakeContext();
  auto plugin = std::make_unique<Plugin>("plugin_a");
  std::thread([&] {
    CHECK(plugin->Bind(context));
    plugin.reset();
    CHECK(!Plugin::IsLoaded("plugin_a"));
    CUcontext current = nullptr;
    CHECK(RAW(cuCtxGetCurrent)(&current) == CUDA_SUCCESS && current == context);
  }).join();
  const Plugin again("plugin_a");
  std::thread([&] { CHECK(again.Enter(context)); }).join();
}

// The home may be unloaded while another one looks for it: it is written into before it goes, or
// the other one becomes the home.
void TheHomeIsUnloadedWhileAnotherLooksForIt() {
  Initialize();
  const CUcontext context = cuguest_test::MakeContext();
  for (int round = 0; round < 50; ++round) {
    auto home = std::make_unique<Plugin>("plugin_a");
    const Plugin other("plugin_b");
    std::thread unloading([&] { home.reset(); });
    void* unit = other.Attach(context);
    unloading.join();
    CHECK(unit != nullptr);
    CHECK(other.UseCount(unit) == 1);
    CHECK(other.Detach(unit));
  }
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
}

// The other one's first use is in the destructor of the home, which goes all the same.
void TheHomeIsUnloadedWhileItCallsAnother() {
  Initialize();
  static const CUcontext context = cuguest_test::MakeContext();
  auto home = std::make_unique<Plugin>("plugin_a");
  static const Plugin other("plugin_b");
  static void* unit = nullptr;
  home->CallAtUnload([] { unit = other.Attach(context); });
  home.reset();
  CHECK(!Plugin::IsLoaded("plugin_a"));
  CHECK(unit != nullptr);
  const Plugin again("plugin_a");
  void* const joined = again.Attach(context);
  CHECK(other.UseCount(unit) == 2);
  CHECK(again.Detach(joined));
  CHECK(other.Detach(unit));
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
}

void (*g_in_constructor)() = nullptr;

// A constructor waits for a thread that attaches for the first time in its copy. The dynamic linker
// holds its lock for the constructor. The driver's functions are looked up before: that waits.
void AConstructorWaitsForAFirstUse() {
  alarm(10);
  Initialize();
  static const CUcontext context = cuguest_test::MakeContext();
  const Plugin home("plugin_a");
  const Plugin other("plugin_b");
  CHECK(other.Enter(context));
  static const auto attach = other.Call<void* (*)(CUcontext)>("PluginAttach");
  static void* unit = nullptr;
  g_in_constructor = [] { std::thread([] { unit = attach(context); }).join(); };
  const Plugin waits("calls_host");
  CHECK(unit != nullptr);
  void* const first = home.Attach(context);
  CHECK(other.UseCount(unit) == 2);
  CHECK(home.Detach(first));
  CHECK(other.Detach(unit));
  CHECK(RAW(cuCtxDestroy)(context) == CUDA_SUCCESS);
}

bool Names(const std::string& text, const std::string& plugin) {
  return text.find(plugin + ".so") != std::string::npos;
}

// A copy from another version, whichever is loaded first: it counts apart, both sides say
// so, and nothing breaks.
void AnotherLayoutCountsApart() {
  Initialize();
  for (const bool other_first : {false, true}) {
    const auto first = std::make_unique<Plugin>(other_first ? "plugin_layout" : "plugin_a");
    const auto second = std::make_unique<Plugin>(other_first ? "plugin_a" : "plugin_layout");
    const Plugin same("plugin_b");
    const Plugin& ours = other_first ? *second : *first;
    const Plugin& theirs = other_first ? *first : *second;
    CHECK(Names(ours.CheckSharing(), "plugin_layout"));
    CHECK(!Names(ours.CheckSharing(), "plugin_b"));
    CHECK(Names(same.CheckSharing(), "plugin_layout"));
    CHECK(Names(theirs.CheckSharing(), "plugin_a"));
    CHECK(Names(theirs.CheckSharing(), "plugin_b"));

    void* made = ours.Create();
    const CUcontext context = ours.Get(made);
    void* apart = theirs.Attach(context);
    void* joined = same.Attach(context);
    CHECK(ours.UseCount(made) == 2);
    CHECK(theirs.UseCount(apart) == 1);
    const Watch watch(context);
    CHECK(same.Detach(joined));
    CHECK(ours.Detach(made));
    CHECK(!watch.IsAlive());
    CHECK(!theirs.Detach(apart));  // it was destroyed under it, and it says so
  }
}

void PluginsOfOneLayoutShare() {
  Initialize();
  std::vector<std::unique_ptr<Plugin>> plugins;
  for (const std::string& name : Names()) plugins.push_back(std::make_unique<Plugin>(name));
  for (const auto& plugin : plugins) CHECK(plugin->CheckSharing().empty());
  for (const auto& plugin : plugins) std::printf("%s\n", plugin->name().c_str());
}

void TheProgramEndsWhileTheyAreAttached() {
  Initialize();
  static const Plugin s_home("plugin_a");
  static const Plugin s_other("plugin_b");
  static void* s_units[2];  // to the very end
  s_units[0] = s_home.Create();
  s_units[1] = s_other.Attach(s_home.Get(s_units[0]));
  CHECK(s_units[1] != nullptr);
}

}  // namespace

extern "C" void CalledInConstructor() { g_in_constructor(); }

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"plugins_of_one_layout_share", &PluginsOfOneLayoutShare},
          {"every_order_of_leaving_the_first_is_home", [] { EveryOrderOfLeaving(0); }},
          {"every_order_of_leaving_the_second_is_home", [] { EveryOrderOfLeaving(1); }},
          {"every_order_of_leaving_the_third_is_home", [] { EveryOrderOfLeaving(2); }},
          {"every_order_of_leaving_the_fourth_is_home", [] { EveryOrderOfLeaving(3); }},
          {"the_home_is_unloaded_while_others_are_attached",
           &TheHomeIsUnloadedWhileOthersAreAttached},
          {"a_lone_plugin_is_really_unloaded", &ALonePluginIsReallyUnloaded},
          {"the_home_is_unloaded_while_others_keep_values",
           &TheHomeIsUnloadedWhileOthersKeepValues},
          {"a_plugin_is_unloaded_with_values", &APluginIsUnloadedWithValues},
          {"a_bound_thread_outlives_the_plugin", &ABoundThreadOutlivesThePlugin},
          {"many_threads_use_the_plugins_for_the_first_time",
           &ManyThreadsUseThePluginsForTheFirstTime},
          {"the_home_is_unloaded_while_another_looks_for_it",
           &TheHomeIsUnloadedWhileAnotherLooksForIt},
          {"the_home_is_unloaded_while_it_calls_another", &TheHomeIsUnloadedWhileItCallsAnother},
          {"a_constructor_waits_for_a_first_use", &AConstructorWaitsForAFirstUse},
          {"another_layout_counts_apart", &AnotherLayoutCountsApart},
          {"the_program_ends_while_they_are_attached", &TheProgramEndsWhileTheyAreAttached},
      });
}
