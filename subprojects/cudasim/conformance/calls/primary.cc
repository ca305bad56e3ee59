// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Primary contexts and devices.

#include "conformance/call.h"

namespace conformance {
namespace {

const Param kDevice = Number({0, 0, 0, 0, 7, -1});
const Param kFlags = Number({0, 1, 2, 4, 16, 8, 3, 0x1000});

void Retained(Frame& frame) { ++frame.world.retains; }
// The first version succeeds without a reference, too.
void Released(Frame& frame) {
  if (frame.world.retains > 0) --frame.world.retains;
}

// In other sequences the primary context stays: nobody takes a reference that is not the caller's.
bool MayRelease(const World& world, const Values& values) {
  return world.cost == Cost::kExpensive || values[0].number != 0 || world.retains > 0;
}
bool MayReset(const World& world, const Values& values) {
  return world.cost == Cost::kExpensive || values[0].number != 0;
}

using OfDevice = CUresult (*)(CUdevice);
using SetFlagsFirst = CUresult (*)(CUdevice, unsigned);

}  // namespace

Room PrimaryRoom() {
  return {
      "primary contexts",
      {
          {DRIVER(cuDevicePrimaryCtxRetain), 6, {Out("P"), kDevice}, Retained},
          {DRIVER(cuDevicePrimaryCtxRelease), 5, {kDevice}, Released, MayRelease},
          {DRIVER_AS("cuDevicePrimaryCtxRelease_v1", OfDevice, "cuDevicePrimaryCtxRelease"),
           1,
           {kDevice},
           Released,
           MayRelease},
          {DRIVER(cuDevicePrimaryCtxReset), 2, {kDevice}, {}, MayReset},
          {DRIVER_AS("cuDevicePrimaryCtxReset_v1", OfDevice, "cuDevicePrimaryCtxReset"),
           1,
           {kDevice},
           {},
           MayReset},
          {DRIVER(cuDevicePrimaryCtxGetState), 4, {kDevice, Out(), Out()}},
          {DRIVER(cuDevicePrimaryCtxSetFlags), 3, {kDevice, kFlags}},
          {DRIVER_AS("cuDevicePrimaryCtxSetFlags_v1", SetFlagsFirst, "cuDevicePrimaryCtxSetFlags"),
           1,
           {kDevice, kFlags}},
          {DRIVER(cuDeviceGet), 1, {Out(), Number({0, 1, -1, 100})}},
          {DRIVER(cuDeviceGetCount), 1, {Out()}},
          {DRIVER(cuDeviceTotalMem), 1, {Hidden(), kDevice}},
          {DRIVER(cuDeviceGetAttribute),
           2,
           {Out(), Number({1, 2, 10, 16, 31, 40, 41, 75, 76, 83, 89, 95, 102, 115, 0, -1, 1000}),
            kDevice}},
          {DRIVER(cuDeviceCanAccessPeer), 1, {Out(), kDevice, kDevice}},
      },
  };
}

}  // namespace conformance
