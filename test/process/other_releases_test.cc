// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries in one process that embed different releases of cuguest. Those of plugin_0_1 embed the
// registry of 0.1.0 (test/embed/release_0_1), which counts apart; plugin_a and plugin_b that of
// this build; plugin_two that of this build, and beside it what a copy of 0.2 has; plugin_extended
// a later one, with which this build counts together. This program has none.

#include <memory>
#include <string>
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
constexpr char kTwo[] = "plugin_two";

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

// In either order, and each reports the other.
void CountsApart(const char* one, const char* other) {
  const Plugins plugins = Load({one, other});
  CheckApart(*plugins[0], *plugins[1]);
  CheckApart(*plugins[1], *plugins[0]);
}

void OldReleaseCountsApart() { CountsApart(kThis, kOld); }
void OldReleaseAtHomeCountsApart() { CountsApart(kOld, kThis); }
void OldReleaseCountsApartFromAnUnknownLayout() { CountsApart(kOld, kUnknown); }
void ThisReleaseCountsApartFromAnUnknownLayout() { CountsApart(kUnknown, kThis); }

// Those of this release find each other, wherever the old one is. The first one is the home, which
// all reports name.
void OthersShare(const std::vector<std::string>& names) {
  Initialize();
  const Plugin old(kOld);
  DetachInEveryOrder(names);
  const Plugins plugins = Load(names);
  for (const auto& plugin : plugins) {
    CHECK(Names(plugin->CheckSharing(), kOld));
    for (std::size_t i = 1; i < names.size(); ++i) {
      CHECK(!Names(plugin->CheckSharing(), names[i].c_str()));
    }
  }
}

void OthersShareBesideAnOldRelease() { OthersShare({kThis, kThisToo}); }
void OthersShareAnExtendedHomeBesideAnOldRelease() { OthersShare({kExtended, kThis, kThisToo}); }

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

// The note of the old one comes first or last, as the linker puts them. What is made before anybody
// else is loaded is found by its own note alone.
void TwoCopiesInOneLibrary() {
  Initialize();
  {
    const Plugin two(kTwo);
    void* const made = two.Create();
    const Plugin later(kThis);
    void* const attached = later.Attach(two.Get(made));
    CHECK(two.UseCount(made) == 2);
    CHECK(later.UseCount(attached) == 2);
    CHECK(two.Detach(made));
    CHECK(later.UseCount(attached) == 1);
    CHECK(later.Detach(attached));
  }
  for (const auto& names : {std::vector<std::string>{kTwo, kThis, kThisToo},
                            std::vector<std::string>{kThis, kTwo, kThisToo}}) {
    DetachInEveryOrder(names);
    const Plugins plugins = Load(names);
    for (const auto& plugin : plugins) {
      CHECK(Names(plugin->CheckSharing(), kTwo));
      CHECK(!Names(plugin->CheckSharing(), kThisToo));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return cuguest_test::RunScenarios(
      argc, argv,
      {
          {"old_release_counts_apart", &OldReleaseCountsApart},
          {"old_release_at_home_counts_apart", &OldReleaseAtHomeCountsApart},
          {"old_release_counts_apart_from_an_unknown_layout",
           &OldReleaseCountsApartFromAnUnknownLayout},
          {"this_release_counts_apart_from_an_unknown_layout",
           &ThisReleaseCountsApartFromAnUnknownLayout},
          {"others_share_beside_an_old_release", &OthersShareBesideAnOldRelease},
          {"others_share_an_extended_home_beside_an_old_release",
           &OthersShareAnExtendedHomeBesideAnOldRelease},
          {"extended_layout_is_home", &ExtendedLayoutIsHome},
          {"extended_layout_joins", &ExtendedLayoutJoins},
          {"two_copies_in_one_library", &TwoCopiesInOneLibrary},
      });
}
