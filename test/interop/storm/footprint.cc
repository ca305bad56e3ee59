// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/interop/storm/footprint.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "cuguest/context_guard.h"
#include "cuguest/devices.h"
#include "cuguest/primary_context.h"
#include "test/interop/storm/failure.h"
#include "test/support/raw_driver.h"

namespace storm {
namespace {

using cudasim::Sim;
using cudasim::SimLive;
using cuguest::Device;

// A driver keeps memory that it will use again, but not as much as a context takes.
constexpr std::size_t kKept = std::size_t{300} << 20;

struct Count {
  const char* name;
  std::size_t SimLive::*count;
};
// Code stays loaded once it was used, and the runtimes inside of libraries keep their references to
// primary contexts.
constexpr Count kCounts[] = {
    {"contexts", &SimLive::contexts}, {"allocations", &SimLive::allocations},
    {"streams", &SimLive::streams},   {"events", &SimLive::events},
    {"graphs", &SimLive::graphs},     {"pools", &SimLive::pools},
    {"arrays", &SimLive::arrays}};

void AddDifference(const char* name, std::size_t before, std::size_t after, std::string* text) {
  if (before == after) return;
  *text += std::string("  ") + name + ": " + std::to_string(before) + " before, " +
           std::to_string(after) + " after\n";
}

}  // namespace

Footprint Footprint::Take(const World& world) {
  Footprint footprint;
  footprint.live_ = Sim::Live();
  for (int device = 0; device < world.devices(); ++device) {
    const cuguest::ContextGuard guard(world.primary(device));
    RequireOk(guard);
    std::size_t free_bytes = 0;
    std::size_t bytes = 0;
    REQUIRE_CALL(RAW(cuMemGetInfo)(&free_bytes, &bytes));
    footprint.free_bytes_.push_back(free_bytes);
  }
  return footprint;
}

std::string Footprint::Difference(const Footprint& later) const {
  std::string text;
  for (const Count& count : kCounts) {
    AddDifference(count.name, live_.*count.count, later.live_.*count.count, &text);
  }
  AddDifference("references to primary contexts", live_.primary_references,
                later.live_.primary_references, &text);
  for (std::size_t i = 0; i < free_bytes_.size(); ++i) {
    if (free_bytes_[i] <= later.free_bytes_[i] + kKept) continue;
    AddDifference("free bytes on a device", free_bytes_[i], later.free_bytes_[i], &text);
  }
  return text;
}

ProcessSize ProcessSize::Now() {
  std::size_t pages = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return {resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)),
          static_cast<std::size_t>(std::distance(begin(open), end(open)))};
}

std::string WhatIsLeft() {
  std::string text;
  const SimLive live = Sim::Live();
  for (const Count& count : kCounts) AddDifference(count.name, 0, live.*count.count, &text);
  for (int device = 0; device < Value(cuguest::CountDevices()); ++device) {
    const auto state = Value(cuguest::PrimaryContext::Query(Device::Borrow(device)));
    if (state.active) text += "  an active primary context on device " + std::to_string(device);
  }
  return text;
}

}  // namespace storm
