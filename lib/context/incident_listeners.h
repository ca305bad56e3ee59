// SPDX-License-Identifier: Apache-2.0
//
// The listeners of this copy of cuguest.

#ifndef CUGUEST_LIB_CONTEXT_INCIDENT_LISTENERS_H_
#define CUGUEST_LIB_CONTEXT_INCIDENT_LISTENERS_H_

#include "cuguest/incident_listener.h"

CUGUEST_BEGIN_NAMESPACE
namespace internal {

bool HasListeners() noexcept;

// Calls each, with no lock held.
void CallListeners(const Incident& incident) noexcept;

}  // namespace internal
CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_INCIDENT_LISTENERS_H_
