// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cufft/plan.h"

#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/driver.h"

namespace cudasim::cufft {
namespace {

using cudasim::runtime::Driver;

struct Tables {
  CUdeviceptr address;
  size_t users;
};
using TablesKey = std::pair<unsigned long long, std::string>;

std::mutex mutex;

// Never destroyed.
std::map<cufftHandle, Plan>& AllPlans() {
  static auto& plans = *new std::map<cufftHandle, Plan>;
  return plans;
}
std::map<TablesKey, Tables>& AllTables() {
  static auto& tables = *new std::map<TablesKey, Tables>;
  return tables;
}

static_assert(std::has_unique_object_representations_v<Layout>);

TablesKey KeyOf(unsigned long long context_id, const Layout& layout) {
  return {context_id, std::string(reinterpret_cast<const char*>(&layout), sizeof(layout))};
}

// A real library compiles code at run time for such a layout, which no capture survives.
CUresult MakeTables(const Layout& layout, CUdeviceptr* address) {
  const CUresult code = layout.HasLargeFactor() ? Driver().cuCtxSynchronize() : CUDA_SUCCESS;
  return code != CUDA_SUCCESS ? code : Driver().cuMemAlloc(address, 512);
}

}  // namespace

cufftHandle Plans::Add() {
  const std::lock_guard<std::mutex> lock(mutex);
  cufftHandle number = 1;
  while (AllPlans().count(number) != 0) ++number;
  AllPlans()[number] = Plan{};
  return number;
}

bool Plans::Find(cufftHandle number, Plan* plan) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = AllPlans().find(number);
  if (found == AllPlans().end()) return false;
  *plan = found->second;
  return true;
}

void Plans::Set(cufftHandle number, const Plan& plan) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = AllPlans().find(number);
  if (found != AllPlans().end()) found->second = plan;
}

bool Plans::Remove(cufftHandle number, Plan* plan) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = AllPlans().find(number);
  if (found == AllPlans().end()) return false;
  *plan = found->second;
  AllPlans().erase(found);
  return true;
}

CUresult TakeTables(unsigned long long context_id, const Layout& layout, CUdeviceptr* tables) {
  const std::lock_guard<std::mutex> lock(mutex);
  const TablesKey key = KeyOf(context_id, layout);
  auto found = AllTables().find(key);
  if (found == AllTables().end()) {
    CUdeviceptr address = 0;
    const CUresult code = MakeTables(layout, &address);
    if (code != CUDA_SUCCESS) return code;
    found = AllTables().emplace(key, Tables{address, 0}).first;
  }
  ++found->second.users;
  *tables = found->second.address;
  return CUDA_SUCCESS;
}

void ReturnTables(unsigned long long context_id, const Layout& layout) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = AllTables().find(KeyOf(context_id, layout));
  if (found == AllTables().end() || --found->second.users > 0) return;
  Driver().cuMemFree(found->second.address);
  AllTables().erase(found);
}

}  // namespace cudasim::cufft
