// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of pageable memory, copies between contexts, and peer access, while a stream captures.
// A copy depends on the captures of no context but the one in whose stream it is.

#include <memory>

#include "test/capture_calls.h"

BOOST_AUTO_TEST_SUITE(capture_copy_facts)

using namespace cudasim_facts;
using cudasim_test::NeedsDevices;

namespace {

// From what the driver takes in one piece to what it stages, pageable.
constexpr size_t kLarge = size_t{4} << 20;

void* Pageable() {
  static const auto bytes = std::make_unique<char[]>(kLarge);
  return bytes.get();
}

// Device memory of `kLarge` bytes in the current context, for one call.
template <typename Function>
CUresult WithLarge(const Function& call) {
  CUdeviceptr memory = 0;
  OK(InMode(kRelaxed, [&] { return RAW(cuMemAlloc)(&memory, kLarge); }));
  const CUresult code = call(memory);
  OK(InMode(kRelaxed, [&] { return RAW(cuMemFree)(memory); }));
  return code;
}

const std::vector<Call>& CopiesBetweenContexts() {
  static const auto& calls = *new std::vector<Call>{
      // In a stream of the other context, or its stream 0.
      {"to the other, there", Fine,
       [](const Guest& g) {
         return InOther(g, [&] { return RAW(cuMemcpyDtoD)(g.other_memory, g.memory, 16); });
       }},
      {"from the other, there", Fine,
       [](const Guest& g) {
         return InOther(g, [&] { return RAW(cuMemcpyDtoD)(g.memory, g.other_memory, 16); });
       }},
      {"from the other, there, unified", Fine,
       [](const Guest& g) {
         return InOther(g, [&] { return RAW(cuMemcpy)(g.memory, g.other_memory, 16); });
       }},
      {"to the host, there", Fine,
       [](const Guest& g) {
         return InOther(g, [&] { return RAW(cuMemcpyDtoH)(Pageable(), g.memory, 16); });
       }},
      {"from the host, there", Fine,
       [](const Guest& g) {
         return InOther(g, [&] { return RAW(cuMemcpyHtoD)(g.memory, Pageable(), 16); });
       }},
      {"as peers, there", Fine,
       [](const Guest& g) {
         return InOther(g, [&] {
           return RAW(cuMemcpyPeer)(g.other_memory, g.other.get(), g.memory, g.context.get(), 16);
         });
       }},
      {"to the other, in its stream", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyDtoDAsync)(g.other_memory, g.memory, 16, g.other_stream);
       }},
      {"from the other, in its stream", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyDtoDAsync)(g.memory, g.other_memory, 16, g.other_stream);
       }},
      {"as peers, in its stream", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyPeerAsync)(g.other_memory, g.other.get(), g.memory, g.context.get(), 16,
                                       g.other_stream);
       }},
      {"to the host, in its stream", Fine,
       [](const Guest& g) { return RAW(cuMemcpyDtoHAsync)(g.host, g.memory, 16, g.other_stream); }},
      // In a stream of the context that captures, or its stream 0.
      {"to the other, here", OnLegacy,
       [](const Guest& g) { return RAW(cuMemcpyDtoD)(g.other_memory, g.memory, 16); }},
      {"from the other, here", OnLegacy,
       [](const Guest& g) { return RAW(cuMemcpyDtoD)(g.memory, g.other_memory, 16); }},
      {"as peers, here", OnLegacy,
       [](const Guest& g) {
         return RAW(cuMemcpyPeer)(g.other_memory, g.other.get(), g.memory, g.context.get(), 16);
       }},
      {"to the other, in a stream", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyDtoDAsync)(g.other_memory, g.memory, 16, g.second);
       }},
      {"from the other, in a stream", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyDtoDAsync)(g.memory, g.other_memory, 16, g.second);
       }},
      {"as peers, in a stream", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyPeerAsync)(g.other_memory, g.other.get(), g.memory, g.context.get(), 16,
                                       g.second);
       }},
      {"to the other, in the capture", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyDtoDAsync)(g.other_memory, g.memory, 16, g.stream);
       }},
      {"from the other, in the capture", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyDtoDAsync)(g.memory, g.other_memory, 16, g.stream);
       }},
  };
  return calls;
}

}  // namespace

BOOST_AUTO_TEST_CASE(copies_of_pageable_memory) {
  CheckEverywhere({
      {"pinned, to the device", Fine,
       [](const Guest& g) { return RAW(cuMemcpyHtoDAsync)(g.memory, g.host, 16, g.second); }},
      {"pinned, to the host", Fine,
       [](const Guest& g) { return RAW(cuMemcpyDtoHAsync)(g.host, g.memory, 16, g.second); }},
      {"small, to the device", Fine,
       [](const Guest& g) { return RAW(cuMemcpyHtoDAsync)(g.memory, Pageable(), 16, g.second); }},
      {"small, to the host", Fine,
       [](const Guest& g) { return RAW(cuMemcpyDtoHAsync)(Pageable(), g.memory, 16, g.second); }},
      {"large, to the device", Fine,
       [](const Guest& g) {
         return WithLarge([&](CUdeviceptr memory) {
           return RAW(cuMemcpyHtoDAsync)(memory, Pageable(), kLarge, g.second);
         });
       }},
      {"large, to the host", Fine,
       [](const Guest& g) {
         return WithLarge([&](CUdeviceptr memory) {
           return RAW(cuMemcpyDtoHAsync)(Pageable(), memory, kLarge, g.second);
         });
       }},
      {"large, to the device, in a blocking stream", Fine,
       [](const Guest& g) {
         return WithLarge([&](CUdeviceptr memory) {
           return RAW(cuMemcpyHtoDAsync)(memory, Pageable(), kLarge, g.blocking);
         });
       }},
      {"large, to the host, in a blocking stream", Fine,
       [](const Guest& g) {
         return WithLarge([&](CUdeviceptr memory) {
           return RAW(cuMemcpyDtoHAsync)(Pageable(), memory, kLarge, g.blocking);
         });
       }},
      {"to the device, in the other context's stream", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyHtoDAsync)(g.other_memory, Pageable(), 4096, g.other_stream);
       }},
      {"to the host, in the other context's stream", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyDtoHAsync)(Pageable(), g.other_memory, 4096, g.other_stream);
       }},
      {"to the device, in the per-thread stream", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyHtoDAsync)(g.memory, Pageable(), 16, CU_STREAM_PER_THREAD);
       }},
      {"to the host, in the per-thread stream", Fine,
       [](const Guest& g) {
         return RAW(cuMemcpyDtoHAsync)(Pageable(), g.memory, 16, CU_STREAM_PER_THREAD);
       }},
      {"to the device, in the capture", Fine,
       [](const Guest& g) { return RAW(cuMemcpyHtoDAsync)(g.memory, Pageable(), 16, g.stream); }},
      {"to the host, in the capture", Fine,
       [](const Guest& g) { return RAW(cuMemcpyDtoHAsync)(Pageable(), g.memory, 16, g.stream); }},
      {"now, to the device", OnLegacy,
       [](const Guest& g) { return RAW(cuMemcpyHtoD)(g.memory, Pageable(), 16); }},
      {"now, to the host", OnLegacy,
       [](const Guest& g) { return RAW(cuMemcpyDtoH)(Pageable(), g.memory, 16); }},
      {"now, to the host, pinned", OnLegacy,
       [](const Guest& g) { return RAW(cuMemcpyDtoH)(g.host, g.memory, 16); }},
      {"now, on the device", OnLegacy,
       [](const Guest& g) { return RAW(cuMemcpyDtoD)(g.memory + 64, g.memory, 16); }},
      {"now, large, to the host", OnLegacy,
       [](const Guest&) {
         return WithLarge(
             [&](CUdeviceptr memory) { return RAW(cuMemcpyDtoH)(Pageable(), memory, kLarge); });
       }},
  });
}

BOOST_AUTO_TEST_CASE(copies_between_contexts_of_a_device) {
  CheckEverywhere(CopiesBetweenContexts());
}

BOOST_AUTO_TEST_CASE(copies_between_devices, *NeedsDevices(2)) {
  CheckEverywhere(CopiesBetweenContexts(), 1);
}

BOOST_AUTO_TEST_CASE(peer_access, *NeedsDevices(2)) {
  int can = 0;
  OK(RAW(cuDeviceCanAccessPeer)(&can, 0, 1));
  if (can == 0) return;
  const auto enable = [](CUcontext peer) {
    const CUresult code = RAW(cuCtxEnablePeerAccess)(peer, 0);
    if (code == CUDA_SUCCESS) {
      OK(InMode(kRelaxed, [&] { return RAW(cuCtxDisablePeerAccess)(peer); }));
    }
    return code;
  };
  const auto disable = [](CUcontext peer) {
    OK(InMode(kRelaxed, [&] { return RAW(cuCtxEnablePeerAccess)(peer, 0); }));
    const CUresult code = RAW(cuCtxDisablePeerAccess)(peer);
    if (code != CUDA_SUCCESS) {
      OK(InMode(kRelaxed, [&] { return RAW(cuCtxDisablePeerAccess)(peer); }));
    }
    return code;
  };
  CheckEverywhere(
      {
          {"enable", Unsafe, [&](const Guest& g) { return enable(g.other.get()); }},
          {"disable", Unsafe, [&](const Guest& g) { return disable(g.other.get()); }},
          {"enable for the other", Unsafe,
           [&](const Guest& g) { return InOther(g, [&] { return enable(g.context.get()); }); }},
          {"disable for the other", Unsafe,
           [&](const Guest& g) { return InOther(g, [&] { return disable(g.context.get()); }); }},
      },
      1);
}

BOOST_AUTO_TEST_SUITE_END()
