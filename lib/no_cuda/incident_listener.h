// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A listener that is never called. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_INCIDENT_LISTENER_H_
#define CUGUEST_LIB_NO_CUDA_INCIDENT_LISTENER_H_

#include "cuguest/incident_listener.h"

CUGUEST_BEGIN_NAMESPACE

inline IncidentListener::IncidentListener(IncidentCallback callback, void* user) noexcept
    : callback_(callback), user_(user) {}

inline IncidentListener::~IncidentListener() {}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_INCIDENT_LISTENER_H_
