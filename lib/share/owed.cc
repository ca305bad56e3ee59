// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/share/owed.h"

#include "cuguest/internal/report.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

std::atomic<Owed*> g_owed{nullptr};

namespace {

CUresult ReleaseOn(CUdevice& device) noexcept { return OfReference(ReleasePrimary(device)); }

}  // namespace

void Add(Owed* owed) noexcept {
  owed->next = g_owed.load(std::memory_order_relaxed);
  while (!g_owed.compare_exchange_weak(owed->next, owed, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
}

// Each thread takes what is there, so that none is released twice at one time.
void EndAllOwed() noexcept {
  Owed* owed = g_owed.exchange(nullptr, std::memory_order_acquire);
  while (owed != nullptr) {
    Owed* const next = owed->next;
    if (!owed->end(owed)) Add(owed);
    owed = next;
  }
}

void ReleasePrimaryOrOwe(CUdevice device, const char* what) noexcept {
  EndOrOwe(device, what, &ReleaseOn);
}

void ReportOwed(const char* what, CUresult code) noexcept {
  ReportIncident(Incident::Kind::kOwed, Incident::Repair::kUnrepaired, code, {what, 0});
}

CUGUEST_END_INTERNAL_NAMESPACE
