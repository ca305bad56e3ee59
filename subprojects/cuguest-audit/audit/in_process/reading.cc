// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/in_process/reading.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>

#include "audit/channel_reader.h"

namespace cuguest::audit {

Reading::Reading(const OwnChannel* channel, Feed* feed) : channel_(channel), feed_(feed) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void Reading::End() {
  if (!thread_.joinable()) return;
  channel_->Pause();
  is_over_.store(true);
  thread_.join();
}

void Reading::Run() {
  const auto feed = [this](const Event& event) { feed_->OnEvent(event); };
  while (!is_over_.load()) {
    const bool is_behind = channel_->Poll(feed) >= ChannelReader::kManyEvents;
    if (!is_behind) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  channel_->Drain(feed);
}

}  // namespace cuguest::audit
