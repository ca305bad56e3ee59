// SPDX-License-Identifier: Apache-2.0
//
// The listeners of this copy of cuguest.

#ifndef CUGUEST_LIB_CONTEXT_INCIDENT_LISTENERS_H_
#define CUGUEST_LIB_CONTEXT_INCIDENT_LISTENERS_H_

#include "cuguest/incident_listener.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

bool HasListeners() noexcept;

// Calls each, with no lock held.
void CallListeners(const Incident& incident) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_LIB_CONTEXT_INCIDENT_LISTENERS_H_
