// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work that is submitted to a stream of a lane, and what it should come to.

#ifndef CUGUEST_TEST_INTEROP_STORM_WORK_H_
#define CUGUEST_TEST_INTEROP_STORM_WORK_H_

#include "cuguest/objects/device_view.h"
#include "cuguest/objects/stream.h"
#include "test/interop/storm/worker.h"

namespace storm {

// Small whole numbers: sums and products of a few are exact.
Numbers PickNumbers(Worker& worker);

void Upload(const Numbers& numbers, const cuguest::DeviceView<float>& to,
            const cuguest::StreamRef& stream);
// Waits for the stream.
void RequireContents(const cuguest::DeviceView<float>& from, const Numbers& expected,
                     const cuguest::StreamRef& stream);

// y = a x + y, by a kernel of a Module.
void LaunchSaxpy(Worker& worker, float a, const cuguest::DeviceView<float>& x,
                 const cuguest::DeviceView<float>& y, const cuguest::StreamRef& stream);
// values *= factor, by a kernel of the runtime.
void LaunchScale(float factor, const cuguest::DeviceView<float>& values,
                 const cuguest::StreamRef& stream);

// y = a x + y, by cuBLAS, without a workspace.
void SubmitSaxpy(Worker& worker, float a, const cuguest::DeviceView<float>& x,
                 const cuguest::DeviceView<float>& y, const cuguest::StreamRef& stream);

}  // namespace storm

#endif  // CUGUEST_TEST_INTEROP_STORM_WORK_H_
