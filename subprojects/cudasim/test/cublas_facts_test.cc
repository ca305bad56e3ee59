// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuBLAS, as a program with contexts of its own sees it.

#include <cublas_v2.h>

#include <memory>
#include <string>
#include <utility>

#include "test/math_library.h"

BOOST_AUTO_TEST_SUITE(cublas_facts)

using namespace cudasim_facts;
using cudasim_test::OnlyReal;

namespace {

constexpr int kSize = 256;    // of the matrices; the real one takes a workspace for it
constexpr int kCount = 1024;  // of what is added up; as well
constexpr size_t kWorkspaceBytes = 4 << 20;

struct Blas {
  static constexpr int kDeadContext = CUBLAS_STATUS_NOT_INITIALIZED;
  static constexpr int kRefused = CUBLAS_STATUS_NOT_INITIALIZED;
  static constexpr int kElsewhere = CUBLAS_STATUS_EXECUTION_FAILED;
  static constexpr int kImplicit = CUBLAS_STATUS_EXECUTION_FAILED;
  static constexpr int kForkedCreate = CUBLAS_STATUS_NOT_INITIALIZED;
  static constexpr int kForkedRun = CUBLAS_STATUS_INTERNAL_ERROR;
  static constexpr bool kCreateBinds = true;
  static constexpr bool kRunBinds = true;
  static constexpr bool kDestroyBinds = true;

  struct Data {
    Values<float> a{std::vector<float>(kSize * kSize, 1)};
    Values<float> b{std::vector<float>(kSize * kSize, 2)};
    Values<float> c{std::vector<float>(kSize * kSize, 0)};
    Values<char> workspace{std::vector<char>(kWorkspaceBytes, 0)};
  };

  ~Blas() {
    if (handle != nullptr) Destroy();
  }
  int Create() {
    const int status = cublasCreate(&handle);
    if (status != 0) handle = nullptr;
    return status;
  }
  int SetStream(CUstream stream) { return cublasSetStream(handle, stream); }
  int Destroy() { return cublasDestroy(std::exchange(handle, nullptr)); }
  int Run() {
    const float alpha = 1;
    const float beta = 0;
    return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, kSize, kSize, kSize, &alpha, data->a.get(),
                       kSize, data->b.get(), kSize, &beta, data->c.get(), kSize);
  }
  int SetWorkspace() { return cublasSetWorkspace(handle, data->workspace.get(), kWorkspaceBytes); }
  int Dot(float* result) {
    return cublasSdot(handle, kCount, data->a.get(), 1, data->b.get(), 1, result);
  }
  void Fill() { data = std::make_unique<Data>(); }
  void Clear() { data->c.Write(std::vector<float>(kSize * kSize, 0)); }
  bool IsRight() const { return data->c.Read() == std::vector<float>(kSize * kSize, 2 * kSize); }

  cublasHandle_t handle = nullptr;
  std::unique_ptr<Data> data;
};

// One of the current context, which it ends with.
void SetNewStream(Blas& blas, const Guest&) {
  CUstream stream = nullptr;
  OK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  FINE(blas.SetStream(stream));
}

int DotToHost(Blas& blas, const Guest&) {
  float result = 0;
  return blas.Dot(&result);
}

int DotToDevice(Blas& blas, const Guest&) { return blas.Dot(blas.data->c.get()); }

// As its first use may differ.
void PrepareDotToHost(Blas& blas, const Guest& guest) { FINE(DotToHost(blas, guest)); }

void PrepareDotToDevice(Blas& blas, const Guest& guest) {
  FINE(cublasSetPointerMode(blas.handle, CUBLAS_POINTER_MODE_DEVICE));
  FINE(DotToDevice(blas, guest));
  OK(RAW(cuCtxSynchronize)());
}

void UseStream(Blas& blas, const Guest& guest) { FINE(blas.SetStream(guest.stream)); }

}  // namespace

CUDASIM_MATH_FACTS(Blas)

BOOST_AUTO_TEST_CASE(what_ends_captures) {
  CheckCreatingInCaptures<Blas>();
  CheckUsingInCaptures<Blas>(Ends::kAll);
  CheckInCaptures<Blas>({
      {"workspace", Ends::kNone, 0, [](Blas& blas, const Guest&) { return blas.SetWorkspace(); },
       UseStream},
      {"settings", Ends::kNone, 0,
       [](Blas& blas, const Guest&) -> int {
         cudaStream_t stream = nullptr;
         cublasPointerMode_t pointers = {};
         cublasMath_t math = {};
         FINE(cublasGetStream(blas.handle, &stream));
         FINE(cublasGetPointerMode(blas.handle, &pointers));
         FINE(cublasSetPointerMode(blas.handle, pointers));
         FINE(cublasGetMathMode(blas.handle, &math));
         return cublasSetMathMode(blas.handle, math);
       }},
  });
}

// Outside of the capture, on another stream: what ends captures is that the workspace of its own is
// treated as a stream which the handle did not work on before.
BOOST_AUTO_TEST_CASE(work_beside_a_capture_needs_the_callers_workspace) {
  const auto run = [](Blas& blas, const Guest&) { return blas.Run(); };
  CheckInCaptures<Blas>({
      {"own workspace", Ends::kStrict, 0, run, SetNewStream},
      {"own workspace, as before", Ends::kNone, 0, run},
      {"caller's workspace", Ends::kNone, 0, run,
       [](Blas& blas, const Guest& guest) {
         SetNewStream(blas, guest);
         FINE(blas.SetWorkspace());
       }},
      {"no workspace", Ends::kNone, 0, run,
       [](Blas& blas, const Guest& guest) {
         SetNewStream(blas, guest);
         FINE(cublasSetWorkspace(blas.handle, nullptr, 0));
       }},
      {"forgotten workspace", Ends::kStrict, 0, run,
       [](Blas& blas, const Guest& guest) {
         FINE(blas.SetWorkspace());
         SetNewStream(blas, guest);
       }},
  });
}

// A result on the host is waited for.
BOOST_AUTO_TEST_CASE(a_result_on_the_host_cannot_be_captured) {
  CheckInCaptures<Blas>({
      {"to the host, beside", Ends::kStrict, CUBLAS_STATUS_INTERNAL_ERROR, DotToHost,
       PrepareDotToHost},
      {"to the device, beside", Ends::kStrict, 0, DotToDevice,
       [](Blas& blas, const Guest& guest) {
         PrepareDotToDevice(blas, guest);
         SetNewStream(blas, guest);
       }},
      {"to the device, beside, as before", Ends::kNone, 0, DotToDevice, PrepareDotToDevice},
  });
  for (const CUstreamCaptureMode mode : kModes) {
    for (const bool to_host : {true, false}) {
      const Guest guest;
      Ready<Blas> blas(guest);
      to_host ? PrepareDotToHost(blas, guest) : PrepareDotToDevice(blas, guest);
      UseStream(blas, guest);
      OK(Begin(guest.stream, mode));
      BOOST_CHECK_EQUAL(to_host ? DotToHost(blas, guest) : DotToDevice(blas, guest),
                        to_host ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS);
      BOOST_CHECK_EQUAL(End(guest.stream),
                        to_host ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_graph_outlives_the_handle) {
  const Guest guest;
  Ready<Blas> blas(guest);
  const Captured<Blas> captured(blas, guest);
  FINE(blas.Destroy());
  captured.CheckReplay(blas);
}

// Such a graph can be instantiated once.
BOOST_AUTO_TEST_CASE(a_captured_workspace_is_memory_of_the_graph, *OnlyReal()) {
  const Guest guest;
  Ready<Blas> blas(guest);
  const Captured<Blas> captured(blas, guest);
  BOOST_TEST(captured.Count(CU_GRAPH_NODE_TYPE_MEM_ALLOC) == 1u);
  BOOST_TEST(captured.Count(CU_GRAPH_NODE_TYPE_MEM_FREE) == 1u);
}

BOOST_AUTO_TEST_CASE(a_captured_workspace_of_the_callers_is_not) {
  const Guest guest;
  Ready<Blas> blas(guest);
  UseStream(blas, guest);
  FINE(blas.SetWorkspace());
  OK(Begin(guest.stream, kGlobal));
  FINE(blas.Run());
  CUgraph graph = nullptr;
  size_t size = 0;
  OK(RAW(cuStreamEndCapture)(guest.stream, &graph));
  OK(RAW(cuGraphGetNodes)(graph, nullptr, &size));
  std::vector<CUgraphNode> nodes(size);
  OK(RAW(cuGraphGetNodes)(graph, nodes.data(), &size));
  for (const CUgraphNode node : nodes) {
    CUgraphNodeType type = {};
    OK(RAW(cuGraphNodeGetType)(node, &type));
    BOOST_TEST(type == CU_GRAPH_NODE_TYPE_KERNEL);
  }
  OK(RAW(cuGraphDestroy)(graph));
}

BOOST_AUTO_TEST_CASE(destroying_a_handle_waits_for_its_context) {
  CheckDestroyingWaits<Blas>();
  CheckCreatingDoesNotWait<Blas>();
}

// The captures of other contexts go on.
BOOST_AUTO_TEST_CASE(destroying_ends_the_captures_of_its_own_context) {
  for (const bool same_context : {true, false}) {
    const Guest guest;
    Ready<Blas> blas(guest);
    const CUcontext capturing = same_context ? guest.context.get() : guest.other.get();
    const CUstream stream = same_context ? guest.stream : guest.other_stream;
    SetStack({capturing});
    OK(Begin(stream, kRelaxed));
    SetStack({guest.context.get()});
    FINE(blas.Destroy());
    SetStack({capturing});
    BOOST_CHECK_EQUAL(StatusOf(stream), same_context ? kLost : kActive);
    BOOST_CHECK_EQUAL(End(stream),
                      same_context ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
    SetStack({guest.context.get()});
  }
}

BOOST_AUTO_TEST_CASE(a_handle_takes_memory_of_its_context) {
  const Guest guest;
  Blas blas;
  blas.Fill();
  FINE(blas.Create());
  FINE(blas.Destroy());
  const auto available = [] {
    size_t free = 0;
    size_t total = 0;
    OK(RAW(cuMemGetInfo)(&free, &total));
    return free;
  };
  const size_t before = available();
  FINE(blas.Create());
  BOOST_TEST(available() < before);
  FINE(blas.Destroy());
  BOOST_TEST(available() == before);
}

// Nothing is checked before there is work; afterwards it may only be given up.
BOOST_AUTO_TEST_CASE(a_handle_whose_context_is_over_takes_a_stream) {
  const Guest guest;
  OwnContext context;
  SetStack({context.get()});
  Blas blas;
  FINE(blas.Create());
  SetStack({guest.context.get()});
  OK(RAW(cuCtxDestroy)(context.release()));
  FINE(blas.SetStream(guest.stream));
  blas.handle = nullptr;
}

BOOST_AUTO_TEST_CASE(no_handle_is_an_error) {
  const Guest guest;
  Blas blas;
  blas.Fill();
  cudaStream_t stream = nullptr;
  int version = 0;
  BOOST_CHECK_EQUAL(blas.SetStream(nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  BOOST_CHECK_EQUAL(cublasGetStream(nullptr, &stream), CUBLAS_STATUS_NOT_INITIALIZED);
  BOOST_CHECK_EQUAL(blas.SetWorkspace(), CUBLAS_STATUS_NOT_INITIALIZED);
  BOOST_CHECK_EQUAL(blas.Run(), CUBLAS_STATUS_NOT_INITIALIZED);
  BOOST_CHECK_EQUAL(cublasDestroy(nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  BOOST_CHECK_EQUAL(cublasCreate(nullptr), CUBLAS_STATUS_INVALID_VALUE);
  FINE(cublasGetVersion(nullptr, &version));
  BOOST_TEST(version / 10000 == CUBLAS_VER_MAJOR);
  FINE(cublasGetProperty(MAJOR_VERSION, &version));
  BOOST_TEST(version == CUBLAS_VER_MAJOR);
}

BOOST_AUTO_TEST_CASE(what_its_codes_are_called) {
  struct Code {
    int code;
    const char* name;
    const char* text;
  };
  const Code codes[] = {
      {0, "CUBLAS_STATUS_SUCCESS", "success"},
      {1, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
      {3, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
      {7, "CUBLAS_STATUS_INVALID_VALUE",
       "an unsupported value or parameter was passed to the function"},
      {8, "CUBLAS_STATUS_ARCH_MISMATCH",
       "the function requires an architectural feature absent from the device"},
      {11, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
      {13, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"},
      {14, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
      {15, "CUBLAS_STATUS_NOT_SUPPORTED", "the requested functionality is not supported"},
      {16, "CUBLAS_STATUS_LICENSE_ERROR", "the license check failed"},
      {2, "unrecognized status", "unrecognized status"},
      {999, "unrecognized status", "unrecognized status"},
  };
  for (const Code& of : codes) {
    const auto status = OutOfRange<cublasStatus_t>(of.code);
    BOOST_TEST(cublasGetStatusName(status) == std::string(of.name));
    BOOST_TEST(cublasGetStatusString(status) == std::string(of.text));
  }
}

BOOST_AUTO_TEST_CASE(the_stream_that_was_set_is_got) {
  const Guest guest;
  Blas blas;
  FINE(blas.Create());
  for (const CUstream set : {CUstream{nullptr}, guest.stream, CU_STREAM_LEGACY,
                             CU_STREAM_PER_THREAD, guest.other_stream}) {
    cudaStream_t got = nullptr;
    FINE(blas.SetStream(set));
    FINE(cublasGetStream(blas.handle, &got));
    BOOST_TEST((got == set));
  }
}

// Neither alignment nor place nor size.
BOOST_AUTO_TEST_CASE(a_workspace_is_not_checked) {
  const Guest guest;
  Ready<Blas> blas(guest);
  const auto at = reinterpret_cast<char*>(blas.data->workspace.get());
  FINE(cublasSetWorkspace(blas.handle, at, 1));
  FINE(cublasSetWorkspace(blas.handle, at + 1, 1 << 20));
  FINE(cublasSetWorkspace(blas.handle, nullptr, 1 << 20));
  FINE(cublasSetWorkspace(blas.handle, nullptr, 0));
  FINE(blas.Run());
  BOOST_TEST(blas.IsRight());
}

BOOST_AUTO_TEST_CASE(bad_sizes_and_pointers) {
  const Guest guest;
  Ready<Blas> blas(guest);
  const float one = 1;
  const float* const a = blas.data->a.get();
  float* const c = blas.data->c.get();
  struct Call {
    int m, n, k;
    const float* alpha;
    const float* a;
    int lda, ldb, ldc;
    int status;
  };
  constexpr int kBad = CUBLAS_STATUS_INVALID_VALUE;
  const Call calls[] = {
      {-1, 8, 8, &one, a, 8, 8, 8, kBad},      {8, -1, 8, &one, a, 8, 8, 8, kBad},
      {8, 8, -1, &one, a, 8, 8, 8, kBad},      {8, 8, 8, &one, a, 7, 8, 8, kBad},
      {8, 8, 8, &one, a, 8, 7, 8, kBad},       {8, 8, 8, &one, a, 8, 8, 7, kBad},
      {0, 8, 8, &one, a, 0, 8, 1, kBad},       {8, 8, 8, nullptr, a, 8, 8, 8, kBad},
      {8, 8, 8, &one, nullptr, 8, 8, 8, kBad}, {0, 8, 8, &one, a, 1, 8, 1, 0},
      {8, 8, 0, &one, a, 8, 1, 8, 0},          {0, 0, 0, nullptr, nullptr, 1, 1, 1, 0},
  };
  for (const Call& call : calls) {
    BOOST_TEST_CONTEXT(&call - calls) {
      BOOST_CHECK_EQUAL(cublasSgemm(blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, call.m, call.n, call.k,
                                    call.alpha, call.a, call.lda, a, call.ldb, &one, c, call.ldc),
                        call.status);
    }
  }
  BOOST_CHECK_EQUAL(cublasSgemm(blas.handle, OutOfRange<cublasOperation_t>(77), CUBLAS_OP_N, 8, 8,
                                8, &one, a, 8, a, 8, &one, c, 8),
                    kBad);
  BOOST_CHECK_EQUAL(cublasSgemv(blas.handle, CUBLAS_OP_N, 8, 8, &one, a, 7, a, 1, &one, c, 1),
                    kBad);
  OK(RAW(cuCtxSynchronize)());
}

BOOST_AUTO_TEST_CASE(a_result_on_the_host_is_there_on_return) {
  const Guest guest;
  Ready<Blas> blas(guest);
  float result = 0;
  FINE(blas.Dot(&result));
  BOOST_TEST(result == 2 * kCount);
}

BOOST_AUTO_TEST_SUITE_END()
