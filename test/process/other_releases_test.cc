// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries in one process that embed different releases of cuguest. Those of plugin_0_1 embed the
// registry of 0.1.0 (test/embed/release_0_1); plugin_a and plugin_b that of this build. They count
// together, whichever was loaded first, so the first one has the registry. This program has none.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cuguest/driver.h"
#include "test/process/plugin.h"
#include "test/support/raw_driver.h"
#include "test/support/scenario.h"

namespace {

using cuguest_test::DetachInEveryOrder;
using cuguest_test::On;
using cuguest_test::Plugin;
using cuguest_test::Watch;
using Plugins = std::vector<std::unique_ptr<Plugin>>;

constexpr char kOld[] = "plugin_0_1";
constexpr char kThis[] = "plugin_a";
constexpr char kThisToo[] = "plugin_b";
// Of later layouts: one that this build understands and 0.1.0 does not, and one that neither does.
constexpr char kExtended[] = "plugin_extended";
constexpr char kUnknown[] = "plugin_layout";

void Initialize() { CHECK(cuguest::Driver::GetInitialized().ok()); }

Plugins Load(const std::vector<std::string>& names) {
  Initialize();
  Plugins plugins;
  for (const std::string& name : names) plugins.push_back(std::make_unique<Plugin>(name));
  return plugins;
}

bool Names(const std::string& text, const char* plugin) {
  return text.find(std::string(plugin) + ".so") != std::string::npos;
}

void OldReleaseIsHome() {
  Initialize();
  DetachInEveryOrder({kOld, kThis, kThisToo});
}

void OldReleaseJoins() {
  Initialize();
  DetachInEveryOrder({kThis, kOld, kThisToo});
}

void OldReleaseComesLast() {
  Initialize();
  DetachInEveryOrder({kThis, kThisToo, kOld});
}

bool PrimaryIsActive() {
  unsigned flags = 0;
  int is_active = 0;
  CHECK(RAW(cuDevicePrimaryCtxGetState)(0, &flags, &is_active) == CUDA_SUCCESS);
  return is_active != 0;
}

// All who are attached have one reference of the driver's count together, and the last holder
// releases it: after that only the host's is left.
void PrimaryIsReleasedOnce(const std::vector<std::string>& names) {
  const Plugins plugins = Load(names);
  for (size_t first = 0; first < plugins.size(); ++first) {
    CUcontext primary = nullptr;
    CHECK(RAW(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
    std::vector<void*> references;
    for (const auto& plugin : plugins) references.push_back(plugin->Attach(primary));
    for (size_t i = 0; i < plugins.size(); ++i) {
      const size_t leaving = (first + i) % plugins.size();
      CHECK(references[leaving] != nullptr);
      CHECK(plugins[leaving]->UseCount(references[leaving]) == plugins.size() - i);
      CHECK(plugins[leaving]->Detach(references[leaving]));
      CHECK(PrimaryIsActive());
    }
    CHECK(RAW(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
    CHECK(!PrimaryIsActive());
  }
}

void EitherReleasesThePrimaryContextOnce() { PrimaryIsReleasedOnce({kThis, kOld}); }
void EitherReleasesThePrimaryContextOfTheOldHome() { PrimaryIsReleasedOnce({kOld, kThis}); }

// Calls `work` of a thread's number on each of many threads, at the same moment.
template <typename Work>
void OnThreads(int count, Work work) {
  std::atomic<int> waiting{count};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting != 0) std::this_thread::yield();
      work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Threads of both releases attach and detach at the same time. No count is lost; and of those that
// then detach together the last one destroys the context.
void CountOnThreads(const std::vector<std::string>& names) {
  constexpr int kThreads = 8;
  constexpr int kContexts = 10;
  constexpr int kRounds = 500;
  const Plugins plugins = Load(names);
  for (int n = 0; n < kContexts; ++n) {
    const Plugin& creator = *plugins[static_cast<size_t>(n) % plugins.size()];
    void* const created = creator.Create();
    CHECK(created != nullptr);
    const CUcontext context = creator.Get(created);
    const Watch watch(context);
    std::vector<void*> references(kThreads);
    OnThreads(kThreads, [&](int i) {
      const Plugin& plugin = *plugins[static_cast<size_t>(i) % plugins.size()];
      for (int round = 0; round < kRounds; ++round) {
        void* const reference = plugin.Attach(context);
        CHECK(reference != nullptr && plugin.Detach(reference));
      }
      references[static_cast<size_t>(i)] = plugin.Attach(context);
    });
    for (const auto& plugin : plugins) {
      void* const reference = plugin->Attach(context);
      CHECK(plugin->UseCount(reference) == kThreads + 2);
      CHECK(plugin->Detach(reference));
    }
    CHECK(creator.Detach(created));
    CHECK(watch.IsAlive());
    OnThreads(kThreads, [&](int i) {
      const Plugin& plugin = *plugins[static_cast<size_t>(i) % plugins.size()];
      CHECK(plugin.Detach(references[static_cast<size_t>(i)]));
    });
    CHECK(!watch.IsAlive());
  }
}

void ThreadsOfBothReleasesCountTogether() { CountOnThreads({kThis, kOld}); }
void ThreadsOfBothReleasesCountInTheOldHome() { CountOnThreads({kOld, kThis}); }

// More contexts than one chunk of slots has (a GPU has too little memory for them): each release
// adds chunks, and finds the other's.
void AddChunks(const std::vector<std::string>& names) {
  constexpr size_t kContexts = 40;
  const Plugins plugins = Load(names);
  std::vector<void*> created;
  std::vector<void*> joined;
  for (size_t n = 0; n < kContexts; ++n) {
    const Plugin& creator = *plugins[n / 20 % 2];
    const Plugin& other = *plugins[1 - n / 20 % 2];
    created.push_back(creator.Create());
    CHECK(created.back() != nullptr);
    joined.push_back(other.Attach(creator.Get(created.back())));
    CHECK(joined.back() != nullptr);
  }
  for (size_t n = 0; n < kContexts; ++n) {
    const Plugin& creator = *plugins[n / 20 % 2];
    const Plugin& other = *plugins[1 - n / 20 % 2];
    CHECK(creator.UseCount(created[n]) == 2);
    CHECK(creator.Detach(created[n]));
    CHECK(other.UseCount(joined[n]) == 1);
    CHECK(other.Detach(joined[n]));
  }
}

void EitherReleaseAddsChunks() { AddChunks({kThis, kOld}); }
void EitherReleaseAddsChunksInTheOldHome() { AddChunks({kOld, kThis}); }

void AllReportThatTheyShare(const std::vector<std::string>& names) {
  for (const auto& plugin : Load(names)) CHECK(plugin->CheckSharing().empty());
}

void BothReleasesReportThatTheyShare() { AllReportThatTheyShare({kThis, kOld}); }
void BothReleasesReportThatTheyShareTheOldHome() { AllReportThatTheyShare({kOld, kThis}); }

// A context that one created is destroyed while the other, which counts apart, is attached; both
// have reported the other one's library.
void CheckApart(const Plugin& creator, const Plugin& other) {
  std::printf("%s: %s\n", creator.name().c_str(), creator.CheckSharing().c_str());
  std::printf("%s: %s\n", other.name().c_str(), other.CheckSharing().c_str());
  CHECK(Names(creator.CheckSharing(), other.name().c_str()));
  CHECK(Names(other.CheckSharing(), creator.name().c_str()));
  void* const created = creator.Create();
  CHECK(created != nullptr);
  void* const apart = other.Attach(creator.Get(created));
  CHECK(apart != nullptr);
  CHECK(creator.UseCount(created) == 1);
  CHECK(other.UseCount(apart) == 1);
  const Watch watch(creator.Get(created));
  CHECK(creator.Detach(created));
  CHECK(!watch.IsAlive());
  CHECK(!other.Detach(apart));
}

void OldReleaseCountsApartFromAnUnknownLayout() {
  for (const auto& names : {std::vector<std::string>{kOld, kUnknown}, {kUnknown, kOld}}) {
    const Plugins plugins = Load(names);
    CheckApart(*plugins[0], *plugins[1]);
    CheckApart(*plugins[1], *plugins[0]);
  }
}

void ExtendedLayoutIsHome() {
  Initialize();
  DetachInEveryOrder({kExtended, kThis, kThisToo});
  for (const auto& plugin : Load({kExtended, kThis})) CHECK(plugin->CheckSharing().empty());
}

void ExtendedLayoutJoins() {
  Initialize();
  DetachInEveryOrder({kThis, kExtended, kThisToo});
  for (const auto& plugin : Load({kThis, kExtended})) CHECK(plugin->CheckSharing().empty());
}

void ExtendedLayoutJoinsTheOldRelease() {
  Initialize();
  DetachInEveryOrder({kOld, kExtended, kThis});
  // 0.1.0 reports every layout that it does not know, also where that copy counts in its registry.
  for (const auto& plugin : Load({kOld, kExtended, kThis})) {
    CHECK(plugin->CheckSharing().empty() == (plugin->name() != kOld));
  }
}

// The others count together, and report it; the old release is alone, in whatever registry.
void OldReleaseCountsApart(const std::vector<std::string>& names, const std::string& second) {
  const Plugins plugins = Load(names);
  const auto of = [&](const std::string& name) -> const Plugin& {
    for (const auto& plugin : plugins) {
      if (plugin->name() == name) return *plugin;
    }
    return *plugins.front();
  };
  CheckApart(of(kExtended), of(kOld));
  CHECK(Names(of(second).CheckSharing(), kOld));
  CHECK(!Names(of(kExtended).CheckSharing(), kThisToo));
  void* const created = of(kExtended).Create();
  void* const joined = of(second).Attach(of(kExtended).Get(created));
  CHECK(of(kExtended).UseCount(created) == 2);
  CHECK(of(second).Detach(joined));
  CHECK(of(kExtended).Detach(created));
}

void OldReleaseCountsApartFromAnExtendedHome() {
  OldReleaseCountsApart({kExtended, kOld, kThisToo}, kThisToo);
}
void OldReleaseCountsApartInAnUnusedRegistry() {
  OldReleaseCountsApart({kExtended, kThis, kOld}, kThis);
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"old_release_is_home", &OldReleaseIsHome},
          {"old_release_joins", &OldReleaseJoins},
          {"old_release_comes_last", &OldReleaseComesLast},
          {"either_releases_the_primary_context_once", &EitherReleasesThePrimaryContextOnce},
          {"either_releases_the_primary_context_of_the_old_home",
           &EitherReleasesThePrimaryContextOfTheOldHome},
          {"threads_of_both_releases_count_together", &ThreadsOfBothReleasesCountTogether},
          {"threads_of_both_releases_count_in_the_old_home",
           &ThreadsOfBothReleasesCountInTheOldHome},
          {"either_release_adds_chunks", &EitherReleaseAddsChunks, {}, 0, On::kSimulation},
          {"either_release_adds_chunks_in_the_old_home",
           &EitherReleaseAddsChunksInTheOldHome,
           {},
           0,
           On::kSimulation},
          {"both_releases_report_that_they_share", &BothReleasesReportThatTheyShare},
          {"both_releases_report_that_they_share_the_old_home",
           &BothReleasesReportThatTheyShareTheOldHome},
          {"old_release_counts_apart_from_an_unknown_layout",
           &OldReleaseCountsApartFromAnUnknownLayout},
          {"extended_layout_is_home", &ExtendedLayoutIsHome},
          {"extended_layout_joins", &ExtendedLayoutJoins},
          {"extended_layout_joins_the_old_release", &ExtendedLayoutJoinsTheOldRelease},
          {"old_release_counts_apart_from_an_extended_home",
           &OldReleaseCountsApartFromAnExtendedHome},
          {"old_release_counts_apart_in_an_unused_registry",
           &OldReleaseCountsApartInAnUnusedRegistry},
      });
}
