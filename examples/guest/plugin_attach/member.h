// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How an effect shares a context with others: all of cuguest that a plugin needs. Each plugin
// compiles this with a copy of cuguest of its own.

#ifndef CUGUEST_EXAMPLES_GUEST_PLUGIN_ATTACH_MEMBER_H_
#define CUGUEST_EXAMPLES_GUEST_PLUGIN_ATTACH_MEMBER_H_

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cuguest/objects/copy.h"
#include "cuguest/objects/device_buffer.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/module.h"
#include "cuguest/shared_context.h"
#include "cuguest/status.h"
#include "examples/guest/plugin_attach/plugin.h"
#include "kernels/saxpy.h"

namespace plugin {

using cuguest::SharedContext;
using Signal = std::vector<float>;

class Member {
 public:
  // Attaches to `*context`, or creates it if it is null. Either takes one reference.
  static absl::StatusOr<Member> Join(cuguest::Device device, CUcontext* context) {
    Member member;
    CUGUEST_ASSIGN_OR_RETURN(member.shared_, *context == nullptr ? SharedContext::Create(device)
                                                                 : SharedContext::Attach(*context));
    CUGUEST_ASSIGN_OR_RETURN(
        const auto module,
        cuguest::Module::Load({cuguest_kernels::saxpy_fatbin, cuguest_kernels::saxpy_fatbin_size},
                              "saxpy"));
    CUGUEST_ASSIGN_OR_RETURN(member.saxpy_, module.GetKernel("saxpy"));
    CUGUEST_ASSIGN_OR_RETURN(member.stream_, cuguest::Stream::Create(member.shared_));
    *context = member.shared_.get();
    return member;
  }

  // Adds the signal to itself, louder.
  absl::StatusOr<Signal> Process(float gain, const Signal& in) const {
    using Buffer = cuguest::DeviceBuffer<float>;
    CUGUEST_ASSIGN_OR_RETURN(Buffer y, Buffer::CopyOfAsync(stream_, in));
    CUGUEST_RETURN_IF_ERROR(cuguest::LaunchForElements(
        saxpy_, y.size(), stream_, static_cast<unsigned>(y.size()), gain, y, y));
    return cuguest::Download(y.view(), stream_);
  }

  // Frees what is in the context, and releases the reference. The last holder of a context that a
  // plugin created destroys it, whichever plugin that was.
  absl::Status Leave() {
    stream_ = cuguest::Stream();
    return ToStatus(shared_.Release());
  }

  unsigned long long CountUsers() const { return shared_.use_count(); }

 private:
  SharedContext shared_;
  cuguest::Kernel saxpy_;   // of code that is in this plugin, and unloaded before it
  cuguest::Stream stream_;  // what the effect keeps there
};

// A plain pointer, so that unloading the plugin runs no destructor.
inline Member* g_member = nullptr;

inline const char* Say(const absl::Status& status) {
  static char text[500];
  std::snprintf(text, sizeof(text), "%s", std::string(status.message()).c_str());
  return status.ok() ? nullptr : text;
}

inline const char* Init(CUdevice device, CUcontext* context) {
  absl::StatusOr<Member> joined = Member::Join(cuguest::Device::Borrow(device), context);
  if (joined.ok()) g_member = new Member(*std::move(joined));
  return Say(joined.status());
}

template <int gain>
const char* Process(float* numbers, size_t count) {
  const auto processed = g_member->Process(gain, Signal(numbers, numbers + count));
  if (processed.ok()) std::copy(processed->begin(), processed->end(), numbers);
  return Say(processed.status());
}

inline const char* Shutdown() {
  const absl::Status left = g_member->Leave();
  delete std::exchange(g_member, nullptr);
  return Say(left);
}

inline unsigned long long CountUsers() { return g_member->CountUsers(); }

}  // namespace plugin

#define EXPORT_EFFECT(gain)                                                        \
  extern "C" __attribute__((visibility("default"))) const Effect plugin_effect = { \
      &plugin::Init, &plugin::Process<gain>, &plugin::Shutdown, &plugin::CountUsers};

#endif  // CUGUEST_EXAMPLES_GUEST_PLUGIN_ATTACH_MEMBER_H_
