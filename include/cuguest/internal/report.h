// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
//
// Not for embedders. How the header-only guards of runtime/ report what concerns no context.

#ifndef CUGUEST_INTERNAL_REPORT_H_
#define CUGUEST_INTERNAL_REPORT_H_

#include <cuda.h>

#include "cuguest/export.h"
#include "cuguest/incident.h"
#include "cuguest/location.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

// Counts it and hands it to the listeners, without contexts.
CUGUEST_API void ReportIncident(Incident::Kind kind, Incident::Repair repair, CUresult result,
                                Location where) noexcept;

CUGUEST_END_INTERNAL_NAMESPACE

#endif  // CUGUEST_INTERNAL_REPORT_H_
