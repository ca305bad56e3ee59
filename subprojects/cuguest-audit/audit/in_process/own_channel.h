// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The channel of the process itself, for audits in it.
//
// Thread-safe: no, but for Pause().

#ifndef CUGUEST_AUDIT_IN_PROCESS_OWN_CHANNEL_H_
#define CUGUEST_AUDIT_IN_PROCESS_OWN_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "audit/channel.h"
#include "audit/channel_reader.h"
#include "audit/event.h"

namespace cuguest::audit {

// Whether the process's events are read, or why not.
struct Resumed {
  enum class Outcome { kOk, kNoCollector, kAuditedAlready, kNoSource, kNoMemory };

  Outcome outcome = Outcome::kOk;
  std::string why;  // in words

  [[nodiscard]] bool ok() const { return outcome == Outcome::kOk; }
};

class OwnChannel {
 public:
  using OnEvent = std::function<void(const Event&)>;

  // The collector, which is loaded and given a channel by the first call, writes events from now
  // on. Where it is not ok, nothing is written.
  Resumed Resume();
  // It writes no more.
  void Pause() const { collect_(kPauseCollecting); }

  // What the channel has told of the process. After Resume() has succeeded.
  [[nodiscard]] const ChannelProcess& process() const { return *Find(); }
  // Events that were not read, since the channel was opened.
  [[nodiscard]] std::uint64_t missed() const { return process().lost + process().broken; }

  // As ChannelReader::Poll(), of this process.
  std::size_t Poll(const OnEvent& on_event) const;
  // Until there is nothing to read.
  void Drain(const OnEvent& on_event) const;

 private:
  Resumed Load();
  Resumed Open();
  [[nodiscard]] ChannelProcess* Find() const;

  CollectFunction* collect_ = nullptr;
  std::unique_ptr<ChannelReader> reader_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_IN_PROCESS_OWN_CHANNEL_H_
