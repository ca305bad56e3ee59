// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the threads of a storm share.

#ifndef CUGUEST_TEST_INTEROP_STORM_WORLD_H_
#define CUGUEST_TEST_INTEROP_STORM_WORLD_H_

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cuguest/libraries/cublas.h"
#include "cuguest/libraries/cufft.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/stream.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "test/interop/storm/failure.h"
#include "test/interop/storm/options.h"
#include "test/interop/storm/pool.h"
#include "test/interop/storm/ranks.h"

namespace storm {

// Lives in a context, and knows in which.
struct Mark {
  unsigned long long id;
  cuguest::Stream stream;
  void Leak() noexcept { stream.Leak(); }
};

// A context that several threads visit while others replace it; the last holder destroys it.
class Slot {
 public:
  // All its contexts are on `device`.
  explicit Slot(cuguest::Device device)
      : device_(device), context_(Value(cuguest::SharedContext::Create(device))) {}
  [[nodiscard]] cuguest::Device device() const { return device_; }
  cuguest::SharedContext Attach() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return context_;
  }
  void Replace(cuguest::SharedContext* context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(context_, *context);
  }

 private:
  const cuguest::Device device_;
  std::mutex mutex_;
  cuguest::SharedContext context_;
};

class World {
 public:
  explicit World(const Options& options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // Places to work in: the contexts, then the primary context of each device.
  [[nodiscard]] int places() const { return contexts() + devices(); }
  [[nodiscard]] int contexts() const { return static_cast<int>(contexts_.size()); }
  [[nodiscard]] int devices() const { return static_cast<int>(primaries_.size()); }
  [[nodiscard]] const cuguest::ContextRef& place(int place) const;
  [[nodiscard]] const cuguest::ContextRef& primary(int device) const;
  [[nodiscard]] int PlaceOfPrimary(int device) const { return contexts() + device; }
  [[nodiscard]] bool IsPrimary(CUcontext context) const;
  // "c0", "P1"; "other" for one that is neither.
  [[nodiscard]] std::string NameOf(CUcontext context) const;

  // Resets every primary context, as a host does, and retains it again. No other
  // thread may use one meanwhile.
  void ResetPrimaries();

  // Drops what is cached in `context`, before it ends.
  void Forget(const cuguest::ContextRef& context);
  // The same for every place, to find what is left.
  void ForgetAll();

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const cuguest::Kernel& saxpy() const { return saxpy_; }
  std::deque<Slot>& slots() { return slots_; }
  [[nodiscard]] const std::deque<Pool>& pools() const { return pools_; }  // by device
  // nullptr in a storm without kCollective.
  Ranks* ranks() { return ranks_.get(); }
  cuguest::PerContext<Mark>& marks() { return marks_; }
  cuguest::runtime::CublasHandles& blas() { return blas_; }
  cuguest::runtime::CufftPlans& plans() { return plans_; }

 private:
  void TouchPrimaries();
  void MakeRanks();

  const Options options_;
  std::vector<cuguest::PrimaryContext> primaries_;
  std::vector<cuguest::SharedContext> contexts_;
  std::deque<Slot> slots_;
  std::deque<Pool> pools_;
  std::unique_ptr<Ranks> ranks_;
  cuguest::Module module_;
  cuguest::Kernel saxpy_;
  cuguest::PerContext<Mark> marks_;
  cuguest::runtime::CublasHandles blas_;
  cuguest::runtime::CufftPlans plans_;
};

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_WORLD_H_
