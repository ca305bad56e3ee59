// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// All headers of contexts: a convenience for programs that start. Those of what lives in a context
/// (cuguest/objects/), of the bridge (cuguest/runtime/), of the toolkit's libraries
/// (cuguest/libraries/), of tests (cuguest/testing/) and of C (cuguest/c.h) are included by
/// themselves. A single header costs less to compile, most of all a guard's.

#ifndef CUGUEST_CUGUEST_H_
#define CUGUEST_CUGUEST_H_

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/capture.h"
#include "cuguest/compatibility.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/context_scope.h"
#include "cuguest/device.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/driver_table.h"
#include "cuguest/error.h"
#include "cuguest/error_or.h"
#include "cuguest/exact_guard.h"
#include "cuguest/export.h"
#include "cuguest/free_memory.h"
#include "cuguest/green_context.h"
#include "cuguest/host_scope.h"
#include "cuguest/incident.h"
#include "cuguest/incident_listener.h"
#include "cuguest/location.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/per_context.h"
#include "cuguest/primary_context.h"
#include "cuguest/primary_keeper.h"
#include "cuguest/relaxed.h"
#include "cuguest/shared_context.h"
#include "cuguest/sharing.h"
#include "cuguest/sm_count.h"
#include "cuguest/sm_split.h"
#include "cuguest/status.h"
#include "cuguest/thread_home.h"
#include "cuguest/version.h"

#endif  // CUGUEST_CUGUEST_H_
