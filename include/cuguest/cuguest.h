// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 3
/// \file
/// All public headers that need only <cuda.h> and Abseil: a convenience for programs that start.
/// Those of the bridge (cuguest/runtime/), of tests (cuguest/testing/) and of C (cuguest/c.h) are
/// included by themselves. A single header costs less to compile, most of all a guard's.

#ifndef CUGUEST_CUGUEST_H_
#define CUGUEST_CUGUEST_H_

#include "cuguest/acquire.h"
#include "cuguest/acquired_guard.h"
#include "cuguest/array.h"
#include "cuguest/capture.h"
#include "cuguest/capture_scope.h"
#include "cuguest/code_image.h"
#include "cuguest/compatibility.h"
#include "cuguest/context_guard.h"
#include "cuguest/context_ref.h"
#include "cuguest/context_scope.h"
#include "cuguest/copy.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/device_ptr.h"
#include "cuguest/device_view.h"
#include "cuguest/devices.h"
#include "cuguest/driver.h"
#include "cuguest/driver_table.h"
#include "cuguest/error.h"
#include "cuguest/exact_guard.h"
#include "cuguest/export.h"
#include "cuguest/graph.h"
#include "cuguest/green_context.h"
#include "cuguest/host_scope.h"
#include "cuguest/host_span.h"
#include "cuguest/incident.h"
#include "cuguest/incident_listener.h"
#include "cuguest/jit.h"
#include "cuguest/kernel.h"
#include "cuguest/launch.h"
#include "cuguest/linker.h"
#include "cuguest/location.h"
#include "cuguest/memory.h"
#include "cuguest/module.h"
#include "cuguest/no_context_guard.h"
#include "cuguest/occupancy.h"
#include "cuguest/param_buffer.h"
#include "cuguest/peer_access.h"
#include "cuguest/per_context.h"
#include "cuguest/pinned_buffer.h"
#include "cuguest/primary_context.h"
#include "cuguest/shared_context.h"
#include "cuguest/sharing.h"
#include "cuguest/sm_count.h"
#include "cuguest/sm_split.h"
#include "cuguest/status.h"
#include "cuguest/stream.h"
#include "cuguest/stream_protocol.h"
#include "cuguest/surface_object.h"
#include "cuguest/texture_object.h"
#include "cuguest/typed_kernel.h"
#include "cuguest/version.h"

#endif  // CUGUEST_CUGUEST_H_
