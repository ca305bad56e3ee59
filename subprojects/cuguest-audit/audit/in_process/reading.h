// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The thread that reads while the callable runs.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_IN_PROCESS_READING_H_
#define CUGUEST_AUDIT_IN_PROCESS_READING_H_

#include <atomic>
#include <thread>

#include "audit/in_process/feed.h"
#include "audit/in_process/own_channel.h"

namespace cuguest::audit {

// Both must outlive it. It takes no signals.
class Reading {
 public:
  Reading(const OwnChannel* channel, Feed* feed);
  ~Reading() { End(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  // Pauses the channel, what was written by now is read, and the thread ends.
  void End();

 private:
  void Run();

  const OwnChannel* const channel_;
  Feed* const feed_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_IN_PROCESS_READING_H_
