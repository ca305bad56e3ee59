// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 4
/// \file
/// Streams, events, graphs and memory pools: one object with one handle, whichever API made it.
/// `ToDriver` and `ToRuntime` say at the call site where a handle came from, and make explicit
/// which stream 0 is, which both APIs leave to the including file.
///
///   cufftSetStream(plan, runtime::ToRuntime(stream.get()));
///   absl::StatusOr<StreamRef> stream = StreamRef::Borrow(runtime::ToDriver(cuda_stream));

#ifndef CUGUEST_RUNTIME_HANDLE_H_
#define CUGUEST_RUNTIME_HANDLE_H_

#include <cuda.h>

#include <type_traits>

#include "cuguest/runtime/binding.h"
#include "cuguest/runtime/internal/handle_cast.h"

CUGUEST_BEGIN_RUNTIME_NAMESPACE

/// Source: <driver_types.h>, where these are one type.
static_assert(std::is_same_v<cudaStream_t, CUstream>);
static_assert(std::is_same_v<cudaEvent_t, CUevent>);
static_assert(std::is_same_v<cudaGraph_t, CUgraph>);
static_assert(std::is_same_v<cudaGraphNode_t, CUgraphNode>);
static_assert(std::is_same_v<cudaGraphExec_t, CUgraphExec>);
static_assert(std::is_same_v<cudaUserObject_t, CUuserObject>);
static_assert(std::is_same_v<cudaMemPool_t, CUmemoryPool>);

namespace impl {

// What stream 0 names in files compiled as this one: CU_STREAM_PER_THREAD, or CU_STREAM_LEGACY.
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
inline constexpr cuuint64_t kDefaultStream = 2;
#else
inline constexpr cuuint64_t kDefaultStream = 1;
#endif

inline CUstream Explicit(CUstream stream) noexcept {
  return stream != nullptr ? stream : SpecialStream(kDefaultStream);
}

}  // namespace impl

/// The functions below: a null handle stays null, unless it is stream 0.
/// Stack, count, last error: not touched. Nothing is called or checked. Threads: any. Cost: none.

/// Stream 0 becomes the special handle that means the same in every file: CU_STREAM_LEGACY, or
/// CU_STREAM_PER_THREAD where CUDA_API_PER_THREAD_DEFAULT_STREAM is defined. Both APIs have the
/// same two. Special streams belong to whichever context is current when they are used.
[[nodiscard]] inline CUstream ToDriver(cudaStream_t stream) noexcept {
  return impl::Explicit(stream);
}
[[nodiscard]] inline cudaStream_t ToRuntime(CUstream stream) noexcept {
  return impl::Explicit(stream);
}

/// The flags of both APIs agree too: cudaEventDisableTiming is CU_EVENT_DISABLE_TIMING.
[[nodiscard]] constexpr CUevent ToDriver(cudaEvent_t event) noexcept { return event; }
[[nodiscard]] constexpr cudaEvent_t ToRuntime(CUevent event) noexcept { return event; }

[[nodiscard]] constexpr CUgraph ToDriver(cudaGraph_t graph) noexcept { return graph; }
[[nodiscard]] constexpr cudaGraph_t ToRuntime(CUgraph graph) noexcept { return graph; }
[[nodiscard]] constexpr CUgraphNode ToDriver(cudaGraphNode_t node) noexcept { return node; }
[[nodiscard]] constexpr cudaGraphNode_t ToRuntime(CUgraphNode node) noexcept { return node; }
[[nodiscard]] constexpr CUgraphExec ToDriver(cudaGraphExec_t exec) noexcept { return exec; }
[[nodiscard]] constexpr cudaGraphExec_t ToRuntime(CUgraphExec exec) noexcept { return exec; }
[[nodiscard]] constexpr CUuserObject ToDriver(cudaUserObject_t object) noexcept { return object; }
[[nodiscard]] constexpr cudaUserObject_t ToRuntime(CUuserObject object) noexcept { return object; }

[[nodiscard]] constexpr CUmemoryPool ToDriver(cudaMemPool_t pool) noexcept { return pool; }
[[nodiscard]] constexpr cudaMemPool_t ToRuntime(CUmemoryPool pool) noexcept { return pool; }

CUGUEST_END_RUNTIME_NAMESPACE

#endif  // CUGUEST_RUNTIME_HANDLE_H_
