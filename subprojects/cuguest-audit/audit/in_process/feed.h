// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on to an analysis what happens in this process.
//
// Note [The callable as a party]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The analysis knows parties by their objects, and a test has the guest in its own. So frames of
// the program's object up to CallAudited() are given another object's number before the analysis
// sees them: that of the callable, whose names are found in the program's file. Frames
// of Audit() itself are left out.
//
// What the caller has, calls of its own show: before the callable its contexts are popped and
// pushed once, which makes it the one who put them there and who manages contexts, and tells the
// collector which handles they have.
//
// Thread-safe: no, but for BeginCallable().

#ifndef CUGUEST_AUDIT_IN_PROCESS_FEED_H_
#define CUGUEST_AUDIT_IN_PROCESS_FEED_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "audit/analysis.h"
#include "audit/channel_reader.h"
#include "audit/event.h"

namespace cuguest::audit {

class Feed {
 public:
  // Of this process, which must outlive it. `callable`: the path of the callable's object.
  Feed(const ChannelProcess* process, std::string callable)
      : process_(*process), callable_name_(std::move(callable)) {}

  // What the caller has, by `events` of calls of TellContexts(), which have a frame between `inner`
  // and `outer`, the frame of Audit(), and by the `devices` of its stack's contexts, bottom first.
  void OnPreparation(const std::vector<Event>& events, const std::vector<int>& devices,
                     std::uintptr_t inner, std::uintptr_t outer);
  // From now on frames below this address, and the next one, are the callable's.
  void BeginCallable(std::uintptr_t frame) { callable_.store(frame); }
  void OnEvent(const Event& event);
  // The callable has returned.
  void End();

  [[nodiscard]] bool has_caller() const { return thread_ != 0; }
  [[nodiscard]] const Analysis& analysis() const { return analysis_; }

 private:
  static constexpr std::uint32_t kCallableObject = 1;  // the others follow

  void AddObjects();
  void AddContext(ContextId id, int device, bool is_primary, bool is_callers);
  void Pass(Event event);
  [[nodiscard]] bool IsOfCaller(const Event& event) const;
  // The address of the callable's outermost frame, which is CallAudited()'s: a callable that ends
  // with the call of CUDA leaves no other.
  [[nodiscard]] std::uintptr_t EndOfCallable(const Event& event) const;

  const ChannelProcess& process_;
  const std::string callable_name_;
  Analysis analysis_;
  std::size_t objects_ = 1;
  std::uint32_t program_ = 0;
  std::uint32_t thread_ = 0;
  ContextId current_ = 0;                                                  // in the thread
  std::shared_ptr<const Chain> caller_ = std::make_shared<const Chain>();  // of Audit()
  std::uintptr_t audit_ = 0;  // canonical address of Audit()'s frame
  std::atomic<std::uintptr_t> callable_{0};
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_IN_PROCESS_FEED_H_
