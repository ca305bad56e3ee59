// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How an effect shares a context with others: all of cuguest that a plugin needs. Each plugin
// compiles this with a copy of cuguest of its own.
//
// A `Work` is what an effect keeps on the device: Prepare() makes it in the context, Apply() uses
// it, and its destructor frees it, unless the context was destroyed.

#ifndef CUGUEST_EXAMPLES_GUEST_PLUGIN_ATTACH_MEMBER_H_
#define CUGUEST_EXAMPLES_GUEST_PLUGIN_ATTACH_MEMBER_H_

#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "examples/guest/plugin_attach/plugin.h"

namespace plugin {

using cuguest::ContextGuard;
using cuguest::ContextRef;
using cuguest::SharedContext;
using Signal = std::vector<float>;

template <typename Work>
class Member {
 public:
  // Attaches to `*context`, or creates it if it is null. Either takes one reference.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Member>> Join(cuguest::Device device,
                                                                    CUcontext* context) {
    SharedContext shared =
        *context == nullptr ? SharedContext::Create(device) : SharedContext::Attach(*context);
    CUGUEST_RETURN_IF_ERROR(shared);

    absl::StatusOr<Work> work = Work::Prepare(shared.context());
    CUGUEST_RETURN_IF_ERROR(work);
    *context = shared.get();
    return std::unique_ptr<Member>(new Member(std::move(shared), *std::move(work)));
  }

  [[nodiscard]] absl::StatusOr<Signal> Process(const Signal& in) {
    const ContextGuard guard(shared_.context());
    CUGUEST_RETURN_IF_ERROR(guard);  // the context was destroyed, for example
    return work_->Apply(in);
  }

  // Frees what is in the context, and releases the reference. The last holder of a context that a
  // plugin created destroys it, whichever plugin that was.
  [[nodiscard]] absl::Status Leave() {
    work_.reset();
    return ToStatus(shared_.Release());
  }

  [[nodiscard]] unsigned long long CountUsers() const { return shared_.use_count(); }

 private:
  Member(SharedContext shared, Work work) : shared_(std::move(shared)), work_(std::move(work)) {}

  SharedContext shared_;
  std::optional<Work> work_;
};

// The functions of plugin.h, for one effect.
template <typename Work>
class Plugin {
 public:
  [[nodiscard]] static const Effect* Get(const char* name) {
    static Effect effect = {nullptr, &Init, &Process, &Shutdown, &CountUsers};
    effect.name = name;
    return &effect;
  }

 private:
  static const char* Init(CUdevice device, CUcontext* context) {
    absl::StatusOr<std::unique_ptr<Member<Work>>> joined =
        Member<Work>::Join(cuguest::Device::Borrow(device), context);
    if (joined.ok()) s_member = joined->release();
    return Say(joined.status());
  }

  static const char* Process(const float* in, float* out, size_t count) {
    const absl::StatusOr<Signal> processed = s_member->Process(Signal(in, in + count));
    if (processed.ok()) std::copy(processed->begin(), processed->end(), out);
    return Say(processed.status());
  }

  static const char* Shutdown() {
    const std::unique_ptr<Member<Work>> member(std::exchange(s_member, nullptr));
    return Say(member->Leave());
  }

  static unsigned long long CountUsers() { return s_member->CountUsers(); }

  static const char* Say(const absl::Status& status) {
    static char text[500];
    if (status.ok()) return nullptr;
    std::snprintf(text, sizeof(text), "%s", std::string(status.message()).c_str());
    return text;
  }

  // A plain pointer, so that unloading the plugin runs no destructor.
  static inline Member<Work>* s_member = nullptr;
};

}  // namespace plugin

#define EXPORT_EFFECT(Work, name)                                                     \
  extern "C" __attribute__((visibility("default"))) const Effect* PluginGetEffect() { \
    return plugin::Plugin<Work>::Get(name);                                           \
  }

#endif  // CUGUEST_EXAMPLES_GUEST_PLUGIN_ATTACH_MEMBER_H_
