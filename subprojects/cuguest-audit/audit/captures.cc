// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/captures.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace cuguest::audit {
namespace {

// CU_STREAM_CAPTURE_MODE_THREAD_LOCAL and _RELAXED: they forbid nothing to other threads. -1: it is
// not known.
constexpr int kLocalMode = 1;
constexpr int kImplicitUse = 906;  // of stream 0, in whatever thread: every mode
constexpr int kMerge = 902;        // of two captures, which are both lost
constexpr int kBreaking[] = {900, kMerge, 905, kImplicitUse, 907};

}  // namespace

void Captures::Begin(const Event& event, std::shared_ptr<const Cause> cause) {
  if (captures_.size() == kCaptureLimit) {
    ledger_->Reach("more than " + std::to_string(kCaptureLimit) +
                   " captures were in progress at one time: who breaks the oldest is not found");
    captures_.erase(captures_.begin());
  }
  captures_.push_back({event.value, event.setting, std::move(cause)});
}

void Captures::End(const Event& event) {
  // The thread's own one first: the stream may not be known.
  for (const bool is_any_thread : {false, true}) {
    for (std::size_t i = captures_.size(); i > 0; --i) {
      const Capture& capture = captures_[i - 1];
      if (capture.stream == event.value &&
          (is_any_thread || capture.begin->thread == event.thread)) {
        captures_.erase(captures_.begin() + static_cast<std::ptrdiff_t>(i - 1));
        return;
      }
    }
  }
}

void Captures::Fail(const Cause& cause) {
  if (cause.party() == 0 ||
      std::find(std::begin(kBreaking), std::end(kBreaking), cause.result) == std::end(kBreaking)) {
    return;
  }
  const auto own = std::count_if(captures_.begin(), captures_.end(), [&](const Capture& capture) {
    return capture.begin->party() == cause.party();
  });
  // Of its own one and the only other one.
  const bool is_of_both = cause.result == kMerge && own == 1 && captures_.size() == 2;
  Capture* hit = nullptr;
  for (Capture& capture : captures_) {
    if (is_of_both && capture.begin->party() == cause.party()) {
      continue;
    }
    const bool is_own_thread = capture.begin->thread == cause.thread;
    const bool reaches = is_own_thread || capture.mode < kLocalMode || cause.result == kImplicitUse;
    // The thread's own one first, then the latest.
    if (reaches && (hit == nullptr || is_own_thread || hit->begin->thread != cause.thread)) {
      hit = &capture;
    }
  }
  if (hit == nullptr || hit->broken) {
    return;
  }
  hit->broken = true;
  if (hit->begin->party() != 0 && hit->begin->party() != cause.party()) {
    Finding finding = FindingOf(FindingKind::kBrokeCapture, cause);
    finding.value = hit->stream;
    SetVictim(*hit->begin, cause, &finding);
    ledger_->Add({std::move(finding), {}});
  }
}

}  // namespace cuguest::audit
