// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/interop/storm/world.h"

#include <cuda_runtime_api.h>

#include "cuguest/context_guard.h"
#include "cuguest/devices.h"
#include "cuguest/status.h"
#include "kernels/saxpy.h"
#include "test/interop/storm/failure.h"

namespace storm {

using cuguest::CodeImage;
using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::Device;
using cuguest::Module;
using cuguest::PrimaryContext;
using cuguest::SharedContext;
using cuguest_kernels::saxpy_fatbin;
using cuguest_kernels::saxpy_fatbin_size;

namespace {

constexpr int kSlots = 2;

}  // namespace

World::World(const Options& options) : options_(options) {
  const int devices = Value(cuguest::CountDevices());
  for (int device = 0; device < devices; ++device) {
    primaries_.push_back(Value(PrimaryContext::Retain(Device::Borrow(device))));
  }
  for (int i = 0; i < options.contexts; ++i) {
    contexts_.push_back(Value(SharedContext::Create(Device::Borrow(i % devices))));
  }
  for (int i = 0; i < kSlots; ++i) slots_.emplace_back(Device::Borrow(i % devices));
  for (int i = 0; i < devices; ++i) pools_.emplace_back(Device::Borrow(i), devices);
  const CodeImage image = Value(CodeImage::Borrow({saxpy_fatbin, saxpy_fatbin_size}, "saxpy"));
  module_ = Value(Module::Load(image));
  saxpy_ = Value(module_.GetKernel("saxpy"));
  TouchPrimaries();
  MakeRanks();
}

// A reset takes the runtime's own references, too.
World::~World() {
  ForgetAll();
  ranks_.reset();
  for (int device = 0; device < devices(); ++device) {
    const ContextGuard guard(primary(device));
    static_cast<void>(cudaDeviceReset());
  }
}

const ContextRef& World::place(int place) const {
  if (place >= contexts()) return primary(place - contexts());
  return contexts_[static_cast<std::size_t>(place)].context();
}

const ContextRef& World::primary(int device) const {
  return primaries_[static_cast<std::size_t>(device)].context();
}

bool World::IsPrimary(CUcontext context) const {
  for (const PrimaryContext& primary : primaries_) {
    if (primary.get() == context) return true;
  }
  return false;
}

std::string World::NameOf(CUcontext context) const {
  for (int i = 0; i < places(); ++i) {
    if (place(i).get() != context) continue;
    return i < contexts() ? "c" + std::to_string(i) : "P" + std::to_string(i - contexts());
  }
  return "other";
}

void World::ResetPrimaries() {
  if (ranks_ != nullptr) ranks_->Release();
  for (PrimaryContext& primary : primaries_) {
    Forget(primary.context());
    {
      const ContextGuard guard(primary.context());
      RequireOk(guard);
      REQUIRE_CALL(cudaDeviceReset());
    }
    Require(primary.WasReset(), "a reset ends this incarnation of the primary context");
    Require(ToStatus(primary.Release()));
    primary = Value(PrimaryContext::Retain(primary.device()));
  }
  TouchPrimaries();
  MakeRanks();
}

void World::Forget(const ContextRef& context) {
  marks_.Forget(context);
  blas_.Forget(context);
  plans_.Forget(context);
}

void World::ForgetAll() {
  for (int i = 0; i < places(); ++i) Forget(place(i));
  for (const Pool& pool : pools_) pool.Trim();
}

// So that every runtime has its references from the start: the program's, and those inside of the
// libraries.
void World::TouchPrimaries() {
  for (const PrimaryContext& primary : primaries_) {
    const ContextGuard guard(primary.context());
    RequireOk(guard);
    REQUIRE_CALL(cudaFree(nullptr));
    Require(blas_.Prepare(primary.context()));
    Require(plans_.Prepare(primary.context(), cuguest::runtime::CufftPlans::Layout::Line(8)));
    Forget(primary.context());
  }
}

void World::MakeRanks() {
  if (options_.Does(kCollective)) ranks_ = std::make_unique<Ranks>(devices());
}

}  // namespace storm
