// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls of module.h, kernel.h, launch.h, occupancy.h, linker.h, graph.h and capture_scope.h.
// Each loads what it needs, and leaves nothing loaded.

#include <memory>

#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/graph.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/linker.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/occupancy.h"
#include "test/objects/code/code.h"
#include "test/runtime/calls.h"

namespace cuguest_runtime_test {
namespace {

using absl::StatusCode;
using cudasim::Sim;
using cuguest::CaptureScope;
using cuguest::ExecutableGraph;
using cuguest::Graph;
using cuguest::Kernel;
using cuguest::Launch;
using cuguest::LaunchShape;
using cuguest::Linker;
using cuguest::Module;
using cuguest::StreamRef;
using module_test::kBroken;
using module_test::Ptx;

constexpr LaunchShape kShape{1, 32};
const cuguest::HostSpan<const unsigned char> kEmbedded(
    reinterpret_cast<const unsigned char*>(module_test::kCode), sizeof(module_test::kCode));

// What a call said, with the code that it used.
struct Used {
  std::optional<Module> module;
  std::optional<Kernel> kernel;
  std::shared_ptr<void> given;
};

// use(things, module, kernel), of code that is loaded for it, and which goes with what it gave.
template <typename Use>
std::function<Outcome(const Things&)> WithCode(const Use& use) {
  return [use](const Things& t) -> Outcome {
    Sim::RegisterKernel("bounded", [](const auto&) { return CUDA_SUCCESS; });
    const auto used = std::make_shared<Used>();
    absl::StatusOr<Module> module = Module::Load(Ptx());
    if (!module.ok()) return module.status();
    used->module = *std::move(module);
    absl::StatusOr<Kernel> kernel = used->module->GetKernel("bounded");
    if (!kernel.ok()) return {kernel.status(), used};
    used->kernel = *std::move(kernel);
    Outcome outcome = use(t, *used->module, *used->kernel);
    used->given = std::move(outcome.object);
    return {outcome.status, used};
  };
}

// Launches on `stream`, and waits for it.
absl::Status RunOn(const StreamRef& stream, const Kernel& kernel) {
  const absl::Status status = Launch(kernel, kShape, stream);
  return status.ok() ? stream.Synchronize() : status;
}

// Once nobody else can use it any more.
struct UsedOnce {
  Module::Once code{std::string_view(module_test::kCode), "code"};
  Kernel::Once scale{code, "bounded"};
  ~UsedOnce() {
    // Again where a driver call of it was made to fail.
    if (!code.Close().ok()) static_cast<void>(code.Close());
  }
};

std::vector<Call> Modules() {
  return {
      {"Module Module::Load", kOk, [](const Things&) { return Module::Load(Ptx()); }},
      {"Module::Load: that does not compile", kRefused,
       [](const Things&) { return Module::Load(Ptx(kBroken)); }},
      {"Module::LoadIn", kOk, [](const Things& t) { return Module::LoadIn(t.home.ref(), Ptx()); }},
      {"Module::LoadIn: that does not compile", kRefused,
       [](const Things& t) { return Module::LoadIn(t.home.ref(), Ptx(kBroken)); }},
      {"Module::LoadIn: a destroyed context", kOver,
       [](const Things& t) { return Module::LoadIn(t.ended, Ptx()); }},
      {"Module::Load: embedded", kOk,
       [](const Things&) { return Module::Load(kEmbedded, "code"); }},
      {"Module::LoadIn: embedded, no image", kRefused,
       [](const Things& t) {
         return Module::LoadIn(t.home.ref(), cuguest::HostSpan<const unsigned char>(), "code");
       }},
      {"Module::Load: text", kOk,
       [](const Things&) { return Module::Load(module_test::kCode, "code"); }},
      {"Module::Once Module::Get Kernel::Once Kernel::Get", kOk,
       [](const Things&) -> Outcome {
         const auto used = std::make_shared<UsedOnce>();
         const absl::StatusOr<const Module*> loaded = used->code.Get();
         if (!loaded.ok()) return loaded.status();
         return {used->scale.Get().status(), used};
       }},
      {"Module::Close", kOk,
       [](const Things&) {
         UsedOnce used;
         const absl::Status found = used.scale.Get().status();
         return found.ok() ? used.code.Close() : found;
       }},
      {"Module::LoadIn: text", kOk,
       [](const Things& t) { return Module::LoadIn(t.home.ref(), module_test::kCode, "code"); }},
      {"Module::LoadIn: text that is no PTX", kRefused,
       [](const Things& t) { return Module::LoadIn(t.home.ref(), "code", "code"); }},
      {"Module::name Module::KernelNames", kOk,
       WithCode([](const Things&, Module& module, const Kernel&) {
         const auto names = module.KernelNames();
         return names.ok() ? Holds(names->size() == 3 && module.name() == "code") : names.status();
       })},
      {"Module::GetKernel: unknown", StatusCode::kNotFound,
       WithCode([](const Things&, Module& module, const Kernel&) {
         return module.GetKernel("unbounded").status();
       })},
      {"Module::GetGlobal", kOk, WithCode([](const Things& t, Module& module, const Kernel&) {
         return module.GetGlobal<float>(t.home.ref(), "factor").status();
       })},
      {"Module::GetGlobal: unknown", StatusCode::kNotFound,
       WithCode([](const Things& t, Module& module, const Kernel&) {
         return module.GetGlobal<float>(t.home.ref(), "divisor").status();
       })},
      {"Module::GetGlobal: a destroyed context", kOver,
       WithCode([](const Things& t, Module& module, const Kernel&) {
         return module.GetGlobal<float>(t.ended, "factor").status();
       })},
      {"Module::Preload", kOk, WithCode([](const Things& t, Module& module, const Kernel&) {
         return module.Preload(t.home.ref());
       })},
      {"Module::Preload: a destroyed context", kOver,
       WithCode(
           [](const Things& t, Module& module, const Kernel&) { return module.Preload(t.ended); })},
      {"Module::ForgetDestroyed", kOk, WithCode([](const Things& t, Module& module, const Kernel&) {
         module.ForgetDestroyed(t.ended);
         return absl::OkStatus();
       })},
      {"Module::Release: held by a kernel", kOver,
       WithCode([](const Things&, Module& module, const Kernel&) { return module.Release(); })},
      {"Module::Release", kOk,
       [](const Things& t) {
         absl::StatusOr<Module> module = Module::LoadIn(t.home.ref(), Ptx());
         if (!module.ok()) return Outcome(module.status());
         const absl::Status unloaded = module->Release();
         return Together(unloaded, *std::move(module));
       }},
      {"GetLoadingMode", kOk, [](const Things&) { return cuguest::GetLoadingMode(); }},
  };
}

std::vector<Call> Kernels() {
  return {
      {"Kernel Kernel::name", kOk, WithCode([](const Things&, Module&, const Kernel& kernel) {
         return Holds(kernel.name() == "bounded" && Kernel().name().empty());
       })},
      {"Kernel::FunctionIn", kOk, WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return kernel.FunctionIn(t.home.ref()).status();
       })},
      {"Kernel::FunctionIn: by handle", kOk,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return kernel.FunctionIn(t.other.get()).status();
       })},
      {"Kernel::FunctionIn: a destroyed context", kOver,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return kernel.FunctionIn(t.ended).status();
       })},
      {"Kernel::Preload", kOk, WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return kernel.Preload(t.home.ref());
       })},
      {"Kernel::IsLoaded", Since(12040, kOk),
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return kernel.IsLoaded(t.home.ref()).status();
       })},
      {"Kernel::IsLoaded: a destroyed context", Since(12040, kOver),
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return kernel.IsLoaded(t.ended).status();
       })},
      {"Kernel::AttributesIn", kOk, WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return kernel.AttributesIn(t.home.ref()).status();
       })},
      {"Kernel::AttributesIn: a destroyed context", kOver,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return kernel.AttributesIn(t.ended).status();
       })},
      {"Kernel::SetMaxDynamicSharedBytes", kOk,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return kernel.SetMaxDynamicSharedBytes(t.home.ref(), 4096);
       })},
      {"Kernel::SetMaxDynamicSharedBytes: more than there is", kRefused,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return kernel.SetMaxDynamicSharedBytes(t.home.ref(), 1 << 30);
       })},
      {"Kernel::ParametersIn", Since(12040, kOk),
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return kernel.ParametersIn(t.home.ref()).status();
       })},
      {"Kernel::Borrow", kOk, [](const Things& t) { return Kernel::Borrow(t.kernel); }},
      {"Kernel::Borrow: a function", kOk,
       [](const Things& t) { return Kernel::Borrow(t.function, t.home.ref()); }},
      {"Kernel::Borrow: of a destroyed context", kOver,
       [](const Things& t) { return Kernel::Borrow(t.function, t.ended); }},
      {"Kernel::Borrow: null", kRefused, [](const Things&) { return Kernel::Borrow(CUkernel{}); }},
  };
}

std::vector<Call> Launches() {
  return {
      {"LaunchShape::ForElements", kOk,
       [](const Things&) { return LaunchShape::ForElements(100, 32).status(); }},
      {"Launch", kOk, WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return RunOn(t.stream.ref(), kernel);
       })},
      {"Launch: on stream 0", kOk, WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return RunOn(StreamRef::Borrow(nullptr, t.home.ref()), kernel);
       })},
      {"Launch: all blocks at once", kOk,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         LaunchShape shape = kShape;
         shape.cooperative = true;
         const absl::Status status = Launch(kernel, shape, t.stream.ref());
         return status.ok() ? t.stream.ref().Synchronize() : status;
       })},
      {"Launch: on a stream that was handed in", kOk,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         const absl::Status status = Launch(kernel, kShape, t.stream.get());
         return status.ok() ? t.stream.ref().Synchronize() : status;
       })},
      {"Launch: a bad shape", kRefused,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return Launch(kernel, {0, 1}, t.stream.ref());
       })},
      // Which an older driver does not tell.
      {"Launch: wrong parameters", cuguest_test::HasDriver(12040) ? kRefused : kOk,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return Launch(kernel, kShape, t.stream.ref(), 1);
       })},
      {"Launch: no stream", kRefused, WithCode([](const Things&, Module&, const Kernel& kernel) {
         return Launch(kernel, kShape, StreamRef());
       })},
      {"Launch: a destroyed context", kOver,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return Launch(kernel, kShape, StreamRef::Borrow(nullptr, t.ended));
       })},
      {"LaunchForElements", kOk, WithCode([](const Things& t, Module&, const Kernel& kernel) {
         const absl::Status status = LaunchForElements(kernel, 1000, t.stream.ref());
         return status.ok() ? t.stream.ref().Synchronize() : status;
       })},
      {"LaunchForElements: on a stream that was handed in", kOk,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         const absl::Status status = LaunchForElements(kernel, 1000, t.stream.get());
         return status.ok() ? t.stream.ref().Synchronize() : status;
       })},
      {"LaunchForElements: more than there can be", StatusCode::kOutOfRange,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return LaunchForElements(kernel, ~std::size_t{0}, t.stream.ref());
       })},
      {"LaunchForElements: a destroyed context", kOver,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return LaunchForElements(kernel, 1000, StreamRef::Borrow(nullptr, t.ended));
       })},
      {"MaxActiveBlocks", kOk, WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return MaxActiveBlocks(kernel, t.home.ref(), 32).status();
       })},
      {"MaxActiveBlocks: a destroyed context", kOver,
       WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return MaxActiveBlocks(kernel, t.ended, 32).status();
       })},
      {"SuggestShape", kOk, WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return SuggestShape(kernel, t.home.ref()).status();
       })},
      {"AvailableDynamicShared", kOk, WithCode([](const Things& t, Module&, const Kernel& kernel) {
         return AvailableDynamicShared(kernel, t.home.ref(), 1, 32).status();
       })},
      {"MaxActiveClusters", kDepends, WithCode([](const Things& t, Module&, const Kernel& kernel) {
         LaunchShape shape = kShape;
         shape.cluster = cuguest::LaunchShape::Dim3{1};
         return MaxActiveClusters(kernel, t.home.ref(), shape).status();
       })},
  };
}

std::vector<Call> Links() {
  return {
      {"Linker Linker::Add Linker::Complete", kOk,
       [](const Things& t) {
         Linker linker(t.home.ref());
         linker.Add(Ptx());
         return linker.Complete().status();
       }},
      {"Linker::Complete: that does not compile", kRefused,
       [](const Things& t) {
         Linker linker(t.home.ref());
         linker.Add(Ptx(kBroken));
         return linker.Complete().status();
       }},
      {"Linker::Complete: a destroyed context", kOver,
       [](const Things& t) {
         Linker linker(t.ended);
         linker.Add(Ptx());
         return linker.Complete().status();
       }},
      {"Linker::AddFile: no file", StatusCode::kNotFound,
       [](const Things& t) { return Linker(t.home.ref()).AddFile("/nowhere/code.ptx"); }},
  };
}

std::vector<Call> Graphs() {
  return {
      {"Graph Graph::Create Graph::AddContext Graph::Release", kOk,
       [](const Things& t) {
         absl::StatusOr<Graph> graph = Graph::Create(t.home.ref());
         if (!graph.ok()) return Outcome(graph.status());
         absl::Status status = graph->AddContext(t.other.ref());
         if (status.ok()) status = graph->Release();
         return Together(status, *std::move(graph));
       }},
      {"Graph::Create: a destroyed context", kOver,
       [](const Things& t) { return Graph::Create(t.ended); }},
      {"Graph::Adopt Graph::Leak", kOk,
       [](const Things& t) -> Outcome {
         absl::StatusOr<Graph> graph = Graph::Create(t.home.ref());
         if (!graph.ok()) return graph.status();
         // While it has no owner here, it is the caller's.
         std::unique_ptr<CUgraph_st, CUresult (*)(CUgraph)> handle(
             graph->Leak(), [](CUgraph graph) { return RAW(cuGraphDestroy)(graph); });
         absl::StatusOr<Graph> adopted = Graph::Adopt(handle.get(), t.home.ref());
         if (adopted.ok()) static_cast<void>(handle.release());
         return adopted;
       }},
      {"Graph::AddKernel Graph::Instantiate", kOk,
       WithCode([](const Things& t, Module&, const Kernel& kernel) -> Outcome {
         absl::StatusOr<Graph> graph = Graph::Create(t.home.ref());
         if (!graph.ok()) return graph.status();
         const auto node = graph->AddKernel(kernel, kShape, {});
         Outcome outcome = node.ok() ? Outcome(graph->Instantiate()) : Outcome(node.status());
         return Together(std::move(outcome), *std::move(graph));
       })},
      {"ExecutableGraph ExecutableGraph::SetKernel ExecutableGraph::Launch "
       "ExecutableGraph::Release",
       kOk, WithCode([](const Things& t, Module&, const Kernel& kernel) -> Outcome {
         absl::StatusOr<Graph> graph = Graph::Create(t.home.ref());
         if (!graph.ok()) return graph.status();
         const auto node = graph->AddKernel(kernel, kShape, {});
         if (!node.ok()) return Together(node.status(), *std::move(graph));
         absl::StatusOr<ExecutableGraph> ready = graph->Instantiate();
         if (!ready.ok()) return Together(ready.status(), *std::move(graph));
         absl::Status status = ready->SetKernel(*node, kernel, {2, 32});
         if (status.ok()) status = ready->Launch(t.stream.ref());
         if (status.ok()) status = t.stream.ref().Synchronize();
         if (status.ok()) status = ready->Release();
         return Together(Together(status, *std::move(ready)), *std::move(graph));
       })},
      {"CaptureScope CaptureScope::Begin CaptureScope::Allocate CaptureScope::Free "
       "CaptureScope::End",
       kOk,
       [](const Things& t) -> Outcome {
         absl::StatusOr<CaptureScope> capture = CaptureScope::Begin(t.stream.ref());
         if (!capture.ok()) return capture.status();
         const auto memory = capture->Allocate<int>(16);
         if (!memory.ok()) return Together(memory.status(), *std::move(capture));
         const absl::Status freed = capture->Free(*memory);
         Outcome outcome = freed.ok() ? Outcome(capture->End()) : Outcome(freed);
         return Together(std::move(outcome), *std::move(capture));
       }},
      {"CaptureScope: given up", kOk,
       [](const Things& t) { return CaptureScope::Begin(t.stream.ref()); }},
  };
}

}  // namespace

const std::vector<Call>& CallsOfCode() {
  static const auto& calls =
      *new std::vector<Call>(Joined({Modules(), Kernels(), Launches(), Links(), Graphs()}));
  return calls;
}

}  // namespace cuguest_runtime_test
