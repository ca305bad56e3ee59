// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As test.h beside it, for the sources of the storm.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cudasim/sim.h"
#include "cuguest/capture.h"
#include "cuguest/copy.h"
#include "cuguest/runtime/cublas.h"
#include "cuguest/runtime/cufft.h"
#include "cuguest/shared_context.h"
#include "cuguest/testing/stack_probe.h"
