// SPDX-License-Identifier: Apache-2.0
//
// How does a product of cuBLAS get into a graph?
//
// To make a handle, or to destroy one, can end every capture in its context, so the handle must
// be there before: CublasHandles::Prepare. And what the product needs of workspace becomes part
// of the graph, so it must be there as long as that: the caller's, not the handle's, which
// somebody else borrows meanwhile.
//
//   1. Nothing was prepared
//
//      the stream captures           [X]<
//      CublasScope                   refused
//        ...
//      the capture                   lives on        0 nodes
//
//   3. The graph is launched
//
//      launch 1                      right           other matrices each time

#include <cublas_v2.h>
#include <cuda.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/capture.h"
#include "cuguest/context_ref.h"
#include "cuguest/device.h"
#include "cuguest/device_buffer.h"
#include "cuguest/driver.h"
#include "cuguest/error.h"
#include "cuguest/runtime/cublas.h"
#include "cuguest/shared_context.h"
#include "cuguest/stream.h"
#include "cuguest/testing/sim.h"
#include "cuguest/testing/stack_probe.h"
#include "examples/support/check.h"
#include "examples/support/example.h"
#include "examples/support/host.h"
#include "examples/support/multiply.h"
#include "examples/support/picture.h"
#include "examples/support/product.h"

namespace {

using cuguest::ContextRef;
using cuguest::DeviceBuffer;
using cuguest::SharedContext;
using cuguest::StreamRef;
using cuguest::runtime::CublasHandles;
using cuguest::runtime::CublasScope;
using cuguest::testing::UndisturbedScope;
using support::Cast;
using support::DeviceProduct;
using support::PrintRow;
using support::PrintScene;
using support::Product;

#define SUCCEEDS(call) CHECK((call) == CUDA_SUCCESS)

// What the host captured, in the driver's calls.
class Graph {
 public:
  // In the strictest mode.
  static void Begin(const StreamRef& stream) {
    SUCCEEDS(DRIVER(cuStreamBeginCapture)(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL));
  }
  explicit Graph(const StreamRef& stream) {
    SUCCEEDS(DRIVER(cuStreamEndCapture)(stream.get(), &graph_));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (executable_ != nullptr) SUCCEEDS(DRIVER(cuGraphExecDestroy)(executable_));
    if (graph_ != nullptr) SUCCEEDS(DRIVER(cuGraphDestroy)(graph_));
  }

  [[nodiscard]] std::size_t CountNodes() const {
    std::size_t count = 0;
    SUCCEEDS(DRIVER(cuGraphGetNodes)(graph_, nullptr, &count));
    return count;
  }

  void Launch(const StreamRef& stream) {
    if (executable_ == nullptr) {
      SUCCEEDS(DRIVER(cuGraphInstantiateWithFlags)(&executable_, graph_, 0));
    }
    SUCCEEDS(DRIVER(cuGraphLaunch)(executable_, stream.get()));
  }

 private:
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

struct House {
  const Cast& cast;
  CublasHandles& handles;
  DeviceProduct& matrices;
  DeviceBuffer<std::byte>& workspace;

  [[nodiscard]] const StreamRef& stream() const { return matrices.stream(); }
};

void Unprepared(const House& house) {
  PrintScene("Nothing was prepared");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  Graph::Begin(house.stream());
  PrintRow("the stream captures", house.cast.Draw());
  {
    const CublasScope blas(house.handles, house.stream(), house.workspace.view());
    PrintRow("CublasScope", "refused");
    support::PrintParagraph(std::string(blas.status().message()));
    CHECK(blas.status().code() == absl::StatusCode::kFailedPrecondition);
  }
  CHECK(house.stream().capture_state() == cuguest::CaptureState::kActive);
  const Graph graph(house.stream());
  CHECK(graph.CountNodes() == 0);
  PrintRow("the capture", "lives on", std::to_string(graph.CountNodes()) + " nodes");
}

absl::Status Capture(const House& house) {
  const CublasScope blas(house.handles, house.stream(), house.workspace.view());
  if (!blas.ok()) return blas.status();
  PrintRow("in the scope", house.cast.Draw());
  return cuguest::runtime::ToStatus(house.matrices.Multiply(blas.handle()), "capture a product");
}

// For every product the same addresses, and other matrices there.
void Replay(const House& house, Graph& graph, const std::vector<Product>& products) {
  PrintScene("The graph is launched");
  const UndisturbedScope undisturbed(&support::ReportDisturbance);
  int launch = 0;
  for (const Product& product : products) {
    CHECK_OK(house.matrices.Change(product));
    graph.Launch(house.stream());
    PrintRow("launch " + std::to_string(++launch), house.matrices.IsRight() ? "right" : "WRONG",
             "other matrices each time");
  }
}

absl::Status PreparedAndReplayed(const House& house, const std::vector<Product>& products) {
  PrintScene("A handle is there before the capture begins");
  const ContextRef& context = house.stream().context();
  if (absl::Status status = house.handles.Prepare(context); !status.ok()) return status;
  PrintRow("CublasHandles::Prepare", house.cast.Draw());
  Graph::Begin(house.stream());
  const absl::Status captured = Capture(house);
  Graph graph(house.stream());
  if (!captured.ok()) return captured;
  CHECK(graph.CountNodes() > 0);
  PrintRow("captured", house.cast.Draw(), std::to_string(graph.CountNodes()) + " node(s)");
  Replay(house, graph, products);
  return absl::OkStatus();
}

absl::Status Demonstrate(const cuguest::Driver& driver, cuguest::Device device) {
  const absl::StatusOr<support::HostContext> x = support::HostContext::Create(driver, device);
  if (!x.ok()) return x.status();
  const absl::StatusOr<SharedContext> a = SharedContext::Create(device);
  if (!a.ok()) return a.status();
  const ContextRef context = a->incarnation();

  std::vector<Product> products;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    products.emplace_back(cuguest::testing::Sim::IsActive() ? 64 : 1024, seed);
  }
  std::printf("   matrices: %d x %d\n", products.front().n(), products.front().n());
  absl::StatusOr<DeviceProduct> matrices = DeviceProduct::Upload(context, products.front());
  if (!matrices.ok()) return matrices.status();
  // As much as cuBLAS recommends for a Hopper device, the most that it does for any.
  constexpr std::size_t kWorkspace = std::size_t{32} << 20;
  absl::StatusOr<DeviceBuffer<std::byte>> workspace =
      DeviceBuffer<std::byte>::Allocate(context, kWorkspace);
  if (!workspace.ok()) return workspace.status();

  Cast cast;
  cast.Name("X", x->get());
  cast.Name("A", context.get());
  const support::HostStack stack(driver, {x->get()});
  CublasHandles handles;
  const House house{cast, handles, *matrices, *workspace};
  Unprepared(house);
  return PreparedAndReplayed(house, products);
}

}  // namespace

int main() {
  return support::RunExample("How does a product of cuBLAS get into a graph?", &Demonstrate);
}
