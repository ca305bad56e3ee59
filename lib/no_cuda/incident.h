// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing is found, so nothing is reported. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_INCIDENT_H_
#define CUGUEST_LIB_NO_CUDA_INCIDENT_H_

#include "cuguest/c.h"
#include "cuguest/incident.h"

CUGUEST_BEGIN_NAMESPACE

inline unsigned long long IncidentCount(Incident::Kind /*kind*/) noexcept { return 0; }
inline unsigned long long IncidentCount() noexcept { return 0; }

inline const char* Name(Incident::Kind kind) noexcept {
  return cuguest_incident_name(static_cast<int>(kind));
}
inline const char* Name(Incident::Repair repair) noexcept {
  return cuguest_repair_name(static_cast<int>(repair));
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_INCIDENT_H_
