// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The border values of code, graphs and arrays.

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cuguest/objects/array.h"
#include "cuguest/objects/capture_scope.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/graph.h"
#include "cuguest/objects/kernel.h"
#include "cuguest/objects/launch.h"
#include "cuguest/objects/linker.h"
#include "cuguest/objects/module.h"
#include "cuguest/objects/occupancy.h"
#include "cuguest/objects/surface_object.h"
#include "cuguest/objects/texture_object.h"
#include "test/faults/cc_parameters.h"
#include "test/objects/code/code.h"

namespace cuguest_faults {
namespace {

using namespace cuguest;
using Bytes = HostSpan<const unsigned char>;

CodeImage TheImage() { return module_test::Ptx(); }

// Of what nobody else can use any more.
template <typename T>
absl::Status LetGo(const absl::StatusOr<const T*>& kept) {
  if (!kept.ok()) return kept.status();
  const std::unique_ptr<const T> ending(*kept);
  return absl::OkStatus();
}

Module MadeModule(const Things&) {
  cudasim::Sim::RegisterKernel("bounded", [](const auto&) { return CUDA_SUCCESS; });
  return ValueOf(Module::Load(TheImage()));
}

Kernel MadeKernel(Given& given) {
  return ValueOf(given.Keep(MadeModule(given.things))->GetKernel("bounded"));
}

Parameter<Kernel> AKernel(const Expected& empty) {
  return {&MadeKernel, {Is("is empty", Kernel(), empty)}};
}

Parameter<CodeImage> AnImage() {
  return {[](Given&) { return TheImage(); },
          {{"does not compile", [](Given&) { return module_test::Ptx(module_test::kBroken); },
            Expected{kInvalid}.ByDriver()}}};
}

Bytes CodeBytes() {
  return {reinterpret_cast<const unsigned char*>(module_test::kCode), sizeof(module_test::kCode)};
}

Parameter<Bytes> SomeBytes(const Expected& none, const Expected& no_code) {
  return Among(CodeBytes(), {Is("are none", Bytes(), none),
                             Is("are null", Bytes(nullptr, sizeof(module_test::kCode)), none),
                             Is("are null and all there is", Bytes(nullptr, SIZE_MAX), none),
                             Is("are one", Bytes(CodeBytes().data(), 1), no_code)});
}

// What cannot be one: nothing, and what has a zero in it.
Parameter<std::string> AName(const std::string& valid, const Expected& none,
                             const Expected& unknown) {
  return Among(
      valid, {Is("is empty", std::string(), none), Is("is unknown", std::string("nobody"), unknown),
              Is("has a zero in it", std::string("bo\0unded", 8), none),
              Is("is a million letters", std::string(1000000, 'a'), unknown)});
}

LaunchShape WithCluster(unsigned blocks) {
  LaunchShape shape{1, 32};
  shape.cluster = LaunchShape::Dim3{blocks};
  return shape;
}

Parameter<LaunchShape> AShape() {
  LaunchShape no_attributes{1, 32};
  no_attributes.attributes = HostSpan<const CUlaunchAttribute>(nullptr, 1);
  return Among(LaunchShape{1, 32},
               {Is("has no block", LaunchShape{0, 32}, {kInvalid}),
                Is("has no thread", LaunchShape{1, 0}, {kInvalid}),
                Is("has no block in y", LaunchShape{LaunchShape::Dim3{1, 0}, 32}, {kInvalid}),
                Is("has UINT_MAX blocks", LaunchShape{UINT_MAX, 32}, {kInvalid}),
                Is("has UINT_MAX threads", LaunchShape{1, UINT_MAX}, {kInvalid}),
                Is("has threads that overflow", LaunchShape{1, LaunchShape::Dim3{65536, 65536, 2}},
                   {kInvalid}),
                Is("has a thread too many", LaunchShape{1, 1025}, {kInvalid}),
                Is("has all memory", LaunchShape{1, 32, SIZE_MAX}, {kInvalid}),
                Is("has a cluster of none", WithCluster(0), {kInvalid}),
                Is("has a cluster of UINT_MAX", WithCluster(UINT_MAX), {kInvalid}),
                Is("has null attributes", no_attributes, {kInvalid})});
}

Parameter<size_t> Number(size_t valid, std::vector<std::pair<size_t, Expected>> others) {
  std::vector<Value<size_t>> borders;
  for (auto& [value, expected] : others) {
    borders.push_back(Is("is " + std::to_string(value), value, std::move(expected)));
  }
  return Among(valid, std::move(borders));
}

std::vector<Row> Images() {
  return {
      MakeRow("CodeImage CodeImage::Borrow", std::function([](Bytes bytes, std::string name) {
                return CodeImage::Borrow(bytes, name);
              }),
              AsksNobody(), SomeBytes({kInvalid}, {kInvalid}), AName("code", {0}, {0})),
      MakeRow("CodeImage::Copy", std::function([](Bytes bytes, std::string name) {
                return CodeImage::Copy(bytes, name);
              }),
              AsksNobody(), SomeBytes({kInvalid}, {kInvalid}), AName("code", {0}, {0})),
      MakeRow("CodeImage::FromPtx", std::function([](std::string text, std::string name) {
                return CodeImage::FromPtx(text, name);
              }),
              AsksNobody(), AName(module_test::kCode, {kInvalid}, {kInvalid}),
              AName("code", {0}, {0})),
      MakeRow("CodeImage::FromFile",
              std::function([](std::string path) { return CodeImage::FromFile(path); }),
              {{kInvalid}, {kInvalid}, {kInvalid}, {kInvalid}, {kInvalid}},
              AName("/dev/null", {kInvalid, kNotFound}, {kNotFound, kUnavailable})),
      MakeRow("CodeImage::Validate",
              std::function([](CodeImage image) { return image.Validate(); }), AsksNobody(),
              Among(TheImage(), {})),
  };
}

std::vector<Row> Modules() {
  const auto module = [](const Expected& empty) { return Owner<Module>(&MadeModule, empty); };
  return {
      MakeRow("Module Module::Load",
              std::function([](CodeImage image) { return Module::Load(image); }), AsksDriver(),
              AnImage()),
      MakeRow("Module::Load: embedded", std::function([](Bytes bytes, std::string name) {
                return Module::Load(bytes, name);
              }),
              AsksDriver(), SomeBytes({kInvalid}, {kInvalid}), AName("code", {0}, {0})),
      MakeRow("Module::Once Module::Get", std::function([](Bytes bytes, std::string name) {
                Module::Once code(bytes, std::string_view(name));
                return LetGo(code.Get());
              }),
              AsksDriver(), SomeBytes({kInvalid}, {kInvalid}), AName("code", {0}, {0})),
      MakeRow("Kernel::Once Kernel::Get", std::function([](std::string name) {
                Module::Once code(std::string_view(module_test::kCode), "code");
                Kernel::Once kernel(code, std::string_view(name));
                const absl::Status found = LetGo(kernel.Get());
                const absl::Status loaded = LetGo(code.Get());
                return found.ok() ? loaded : found;
              }),
              AsksDriver(), AName("bounded", {kInvalid}, Expected{kNotFound}.ByDriver())),
      MakeRow("Module::Close", std::function([](std::string name) {
                Module::Once code(std::string_view(module_test::kCode), "code");
                Kernel::Once kernel(code, std::string_view(name));
                const absl::Status found = kernel.Get().status();
                const absl::Status closed = code.Close();
                return found.ok() ? closed : found;
              }),
              AsksDriver(), AName("bounded", {kInvalid}, Expected{kNotFound}.ByDriver())),
      MakeRow("Module::LoadIn", std::function([](ContextRef context, CodeImage image) {
                return Module::LoadIn(context, image);
              }),
              AsksDriver(), Ref(), AnImage()),
      MakeRow("Module::GetKernel", std::function([](Module* module, std::string name) {
                return module->GetKernel(name).status();
              }),
              AsksDriver(), module({kPrecondition}),
              AName("bounded", {kInvalid}, Expected{kNotFound}.ByDriver())),
      MakeRow("Module::KernelNames",
              std::function([](Module* module) { return module->KernelNames(); }), AsksDriver(),
              module({kPrecondition})),
      MakeRow("Module::GetGlobal",
              std::function([](Module* module, ContextRef context, std::string name) {
                return module->GetGlobal<float>(context, name);
              }),
              AsksDriver(), module({kPrecondition}), Ref(),
              AName("factor", {kInvalid}, Expected{kNotFound}.ByDriver())),
      MakeRow("Module::Preload", std::function([](Module* module, ContextRef context) {
                return module->Preload(context);
              }),
              AsksDriver(), module({kPrecondition}), Ref()),
      MakeRow("Module::ForgetDestroyed", std::function([](Module* module, ContextRef context) {
                module->ForgetDestroyed(context);
              }),
              AsksNobody(), module({0}), Ref(0, 0)),
      MakeRow("Module::Release", std::function([](Module* module) { return module->Release(); }),
              GivesBack(), module({0})),
      MakeRow("GetLoadingMode", std::function([] { return GetLoadingMode(); }), AsksDriver()),
  };
}

std::vector<Row> Kernels() {
  return {
      MakeRow("Kernel Kernel::Borrow",
              std::function([](CUkernel kernel) { return Kernel::Borrow(kernel); }), AsksDriver(),
              Parameter<CUkernel>{[](Given& given) { return given.things.kernel; },
                                  {Is<CUkernel>("is null", nullptr, {kInvalid})}}),
      MakeRow("Kernel::Borrow: a function",
              std::function([](CUfunction function, ContextRef context) {
                return Kernel::Borrow(function, context);
              }),
              AsksDriver(),
              Parameter<CUfunction>{[](Given& given) { return given.things.function; },
                                    {Is<CUfunction>("is null", nullptr, {kInvalid})}},
              Ref()),
      MakeRow("Kernel::FunctionIn", std::function([](Kernel kernel, ContextRef context) {
                return kernel.FunctionIn(context);
              }),
              AsksDriver(), AKernel({kPrecondition}), Ref()),
      MakeRow("Kernel::FunctionIn: by handle", std::function([](Kernel kernel, CUcontext context) {
                return kernel.FunctionIn(context);
              }),
              AsksDriver(), AKernel({kPrecondition}), Handle()),
      MakeRow("Kernel::Preload", std::function([](Kernel kernel, ContextRef context) {
                return kernel.Preload(context);
              }),
              AsksDriver(), AKernel({kPrecondition}), Ref()),
      MakeRow("Kernel::IsLoaded", std::function([](Kernel kernel, ContextRef context) {
                return kernel.IsLoaded(context);
              }),
              AsksDriver(), AKernel({kPrecondition}), Ref()),
      MakeRow("Kernel::AttributesIn", std::function([](Kernel kernel, ContextRef context) {
                return kernel.AttributesIn(context).status();
              }),
              AsksDriver(), AKernel({kPrecondition}), Ref()),
      MakeRow("Kernel::SetMaxDynamicSharedBytes",
              std::function([](Kernel kernel, ContextRef context, size_t bytes) {
                return kernel.SetMaxDynamicSharedBytes(context, bytes);
              }),
              AsksDriver(), AKernel({kPrecondition}), Ref(),
              Number(4096, {{0, {0}},
                            {INT_MAX, Expected{kInvalid}.ByDriver()},
                            {size_t{INT_MAX} + 1, {kInvalid}},
                            {size_t{UINT_MAX} + 1, {kInvalid}},
                            {SIZE_MAX, {kInvalid}}})),
      MakeRow("Kernel::ParametersIn", std::function([](Kernel kernel, ContextRef context) {
                return kernel.ParametersIn(context).status();
              }),
              AsksDriver(), AKernel({kPrecondition}), Ref()),
  };
}

std::vector<Row> Launches() {
  const auto elements = [](const Expected& none) {
    return Number(1000, {{0, none}, {1, {0}}, {SIZE_MAX, {kOutOfRange}}});
  };
  return {
      MakeRow("LaunchShape::ForElements", std::function([](size_t count, size_t block) {
                return LaunchShape::ForElements(count, static_cast<unsigned>(block)).status();
              }),
              AsksNobody(), elements({kInvalid}), Number(32, {{0, {kInvalid}}, {UINT_MAX, {0}}})),
      MakeRow("Launch", std::function([](Kernel kernel, LaunchShape shape, StreamRef stream) {
                return Launch(kernel, shape, stream);
              }),
              AsksDriver(), AKernel({kPrecondition}), AShape(), AStream({0})),
      MakeRow("LaunchForElements", std::function([](Kernel kernel, size_t count, StreamRef stream) {
                return LaunchForElements(kernel, count, stream);
              }),
              AsksDriver(), AKernel({kPrecondition}), elements({0}), AStream({0})),
      MakeRow("MaxActiveBlocks",
              std::function([](Kernel kernel, ContextRef context, size_t block, size_t shared) {
                return MaxActiveBlocks(kernel, context, static_cast<unsigned>(block), shared);
              }),
              AsksDriver(), AKernel({kPrecondition}), Ref(),
              Number(32, {{0, {kInvalid}}, {1025, {kInvalid}}, {UINT_MAX, {kInvalid}}}),
              Number(0, {{SIZE_MAX, {0}}})),
      MakeRow("SuggestShape",
              std::function([](Kernel kernel, ContextRef context, size_t shared, size_t block) {
                return SuggestShape(kernel, context, shared, static_cast<unsigned>(block)).status();
              }),
              AsksDriver(), AKernel({kPrecondition}), Ref(), Number(0, {{SIZE_MAX, {kExhausted}}}),
              Number(0, {{1, {0}}, {UINT_MAX, {0}}})),
      MakeRow("AvailableDynamicShared",
              std::function([](Kernel kernel, ContextRef context, int blocks, size_t block) {
                return AvailableDynamicShared(kernel, context, blocks,
                                              static_cast<unsigned>(block));
              }),
              AsksDriver(), AKernel({kPrecondition}), Ref(),
              Among(1, {Is("is 0", 0, {kInvalid}), Is("is -1", -1, {kInvalid}),
                        Is("is INT_MIN", INT_MIN, {kInvalid}),
                        Is("is INT_MAX", INT_MAX, Expected{kInvalid}.ByDriver())}),
              Number(32, {{0, {kInvalid}}, {1025, {kInvalid}}, {UINT_MAX, {kInvalid}}})),
      MakeRow(
          "MaxActiveClusters", std::function([](Kernel kernel, ContextRef context, size_t blocks) {
            return MaxActiveClusters(kernel, context, WithCluster(static_cast<unsigned>(blocks)));
          }),
          AsksDriver(), AKernel({kPrecondition}), Ref(),
          Number(1, {{0, {kInvalid}}, {UINT_MAX, {kInvalid}}})),
  };
}

std::vector<Row> Links() {
  return {
      MakeRow("Linker Linker::Add Linker::Complete",
              std::function([](ContextRef context, CodeImage image) {
                Linker linker(context);
                linker.Add(std::move(image));
                return linker.Complete().status();
              }),
              AsksDriver(), Ref(), AnImage()),
      MakeRow("Linker::Complete: of nothing",
              std::function([](ContextRef context) { return Linker(context).Complete().status(); }),
              {{kInvalid}, {kInvalid}, {kInvalid}, {kInvalid}, {kInvalid}},
              Ref(kInvalid, kInvalid)),
      MakeRow("Linker::AddFile", std::function([](ContextRef context, std::string path) {
                return Linker(context).AddFile(path);
              }),
              {{kInvalid}, {kInvalid}, {kInvalid}, {kInvalid}, {kInvalid}}, Ref(kInvalid, kInvalid),
              AName("/dev/null", {kInvalid, kNotFound}, {kNotFound, kUnavailable})),
  };
}

Graph MadeGraph(const Things& things) { return ValueOf(Graph::Create(things.home.ref())); }

struct Instantiated {
  Graph graph;
  CUgraphNode node = nullptr;
  ExecutableGraph ready;
};
Instantiated* MadeNode(Given& given) {
  const Kernel kernel = MadeKernel(given);
  Instantiated made;
  made.graph = MadeGraph(given.things);
  made.node = ValueOf(made.graph.AddKernel(kernel, {1, 32}, {}));
  made.ready = ValueOf(made.graph.Instantiate());
  return given.Keep(std::move(made));
}
ExecutableGraph MadeReady(const Things& things) { return ValueOf(MadeGraph(things).Instantiate()); }

std::vector<Row> Graphs() {
  const auto graph = [](const Expected& empty) { return Owner<Graph>(&MadeGraph, empty); };
  const auto ready = [](const Expected& empty) {
    return Owner<ExecutableGraph>(&MadeReady, empty);
  };
  const Parameter<Instantiated*> node = {&MadeNode, {}};
  return {
      MakeRow("Graph Graph::Create",
              std::function([](ContextRef context) { return Graph::Create(context); }),
              AsksDriver(), Ref(kInvalid)),
      MakeRow("Graph::Adopt", std::function([](CUgraph handle, ContextRef context) {
                auto adopted = Graph::Adopt(handle, context);
                if (adopted.ok()) static_cast<void>(adopted->Leak());
                return adopted.status();
              }),
              AsksDriver(),
              Parameter<CUgraph>{
                  [](Given& given) { return given.Keep(MadeGraph(given.things))->get(); },
                  {Is<CUgraph>("is null", nullptr, {kInvalid})}},
              Ref(kInvalid)),
      MakeRow("Graph::AddContext",
              std::function([](Graph* of, ContextRef context) { return of->AddContext(context); }),
              AsksDriver(), graph({kInvalid}), Ref(kInvalid)),
      MakeRow("Graph::AddKernel", std::function([](Graph* of, Kernel kernel, LaunchShape shape) {
                return of->AddKernel(kernel, shape, {});
              }),
              AsksDriver(), graph({kInvalid}), AKernel({kPrecondition}), AShape()),
      MakeRow("Graph::Instantiate",
              std::function([](Graph* of, size_t flags) { return of->Instantiate(flags); }),
              AsksDriver(), graph({kInvalid}),
              Number(0, {{1U << 31, Expected{kInvalid}.ByDriver()},
                         {SIZE_MAX, Expected{kInvalid}.ByDriver()}})),
      MakeRow("Graph::Release", std::function([](Graph* of) { return of->Release(); }), GivesBack(),
              graph({0})),
      MakeRow(
          "ExecutableGraph ExecutableGraph::Launch",
          std::function([](ExecutableGraph* of, StreamRef stream) { return of->Launch(stream); }),
          AsksDriver(), ready({kInvalid}), AStream({kPrecondition})),
      MakeRow("ExecutableGraph::SetKernel",
              std::function([](Instantiated* of, Kernel kernel, LaunchShape shape) {
                return of->ready.SetKernel(of->node, kernel, shape);
              }),
              AsksDriver(), node, AKernel({kPrecondition}), AShape()),
      MakeRow("ExecutableGraph::SetKernel: of a node",
              std::function([](ExecutableGraph* of, CUgraphNode of_node, Kernel kernel) {
                return of->SetKernel(of_node, kernel, {1, 32});
              }),
              {Expected{kInvalid}.ByDriver(),
               {kPrecondition},
               {kNoPermission},
               {kInvalid},
               {kCancelled}},
              ready({kInvalid}), Among<CUgraphNode>(nullptr, {}), AKernel({kPrecondition})),
      MakeRow("ExecutableGraph::Release",
              std::function([](ExecutableGraph* of) { return of->Release(); }), GivesBack(),
              ready({0})),
  };
}

struct Capture {
  Stream stream;  // goes last
  CaptureScope scope;
};
Capture MadeCapture(const Things& things) {
  Capture made;
  made.stream = ValueOf(Stream::Create(things.home.ref()));
  made.scope = ValueOf(CaptureScope::Begin(made.stream.ref(), CU_STREAM_CAPTURE_MODE_RELAXED));
  return made;
}

std::vector<Row> Captures() {
  const auto capture = [](const Expected& empty) { return Owner<Capture>(&MadeCapture, empty); };
  return {
      MakeRow("CaptureScope CaptureScope::Begin", std::function([](StreamRef stream, int mode) {
                return CaptureScope::Begin(stream, static_cast<CUstreamCaptureMode>(mode));
              }),
              AsksDriver(),
              AStream({kPrecondition})
                  .But("is the legacy one", {kInvalid})
                  .But("is the thread's own", {kInvalid})
                  .But("is of a context that was reset", {kInvalid}),
              Among<int>(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                         {Is("is none", 4711, Expected{kInvalid}.ByDriver()),
                          Is("is -1", -1, Expected{kInvalid}.ByDriver()),
                          Is<int>("is relaxed", CU_STREAM_CAPTURE_MODE_RELAXED, {0})})),
      MakeRow("CaptureScope::Allocate", std::function([](Capture* of, size_t count) {
                return of->scope.Allocate<int>(count).status();
              }),
              AsksDriver(), capture({kPrecondition}),
              Count(16, sizeof(int), {0}, Expected{kExhausted}.ByDriver(), {kInvalid})),
      MakeRow("CaptureScope::Free", std::function([](Capture* of, bool allocates) -> absl::Status {
                if (!allocates) return of->scope.Free(DeviceView<int>());
                const absl::StatusOr<DeviceView<int>> view = of->scope.Allocate<int>(16);
                return view.ok() ? of->scope.Free(*view) : view.status();
              }),
              AsksDriver(), capture({kPrecondition}),
              Among(true, {Is("is an empty view", false, {0, kInvalid})})),
      MakeRow("CaptureScope::End", std::function([](Capture* of) { return of->scope.End(); }),
              AsksDriver(), capture({kPrecondition})),
  };
}

CUDA_ARRAY3D_DESCRIPTOR ArrayShape(size_t width, unsigned channels = 1) {
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  shape.Width = width;
  shape.Height = 4;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = channels;
  shape.Flags = CUDA_ARRAY3D_SURFACE_LDST;
  return shape;
}
Array MadeArray(const Things& things) {
  return ValueOf(Array::Create(things.home.ref(), ArrayShape(16)));
}
struct Surface {
  Array array;  // goes last
  SurfaceObject object;
};
Surface MadeSurface(const Things& things) {
  Surface made;
  made.array = MadeArray(things);
  made.object = ValueOf(SurfaceObject::Create(made.array));
  return made;
}
TextureObject MadeTexture(const Things& things) {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = things.array;
  return ValueOf(TextureObject::Create(things.home.ref(), resource, CUDA_TEXTURE_DESC()));
}

std::vector<Row> Arrays() {
  const auto array = [](const Expected& empty) { return Owner<Array>(&MadeArray, empty); };
  const auto handle =
      Parameter<CUarray>{[](Given& given) { return given.Keep(MadeArray(given.things))->get(); },
                         {Is<CUarray>("is null", nullptr, {kInvalid})}};
  TextureObject::Texels texels;
  texels.width = Things::kCount;
  TextureObject::Texels too_many = texels;
  too_many.width = SIZE_MAX;
  TextureObject::Texels no_channels = texels;
  no_channels.channels = 0;
  return {
      MakeRow("Array Array::Create",
              std::function([](ContextRef context, CUDA_ARRAY3D_DESCRIPTOR shape) {
                return Array::Create(context, shape);
              }),
              AsksDriver(), Ref(),
              Among(ArrayShape(16),
                    {Is("has no width", ArrayShape(0), Expected{kInvalid}.ByDriver()),
                     Is("has all width", ArrayShape(SIZE_MAX), Expected{kInvalid}.ByDriver()),
                     Is("has no channels", ArrayShape(16, 0), Expected{kInvalid}.ByDriver()),
                     Is("has 3 channels", ArrayShape(16, 3), Expected{kInvalid}.ByDriver())})),
      MakeRow("Array::Describe",
              std::function([](CUarray of) { return Array::Describe(of).status(); }), AsksDriver(),
              Parameter<CUarray>{handle.valid,
                                 {Is<CUarray>("is null", nullptr, Expected{kInvalid}.ByDriver())}}),
      MakeRow("Array::Release", std::function([](Array* of) { return of->Release(); }), GivesBack(),
              array({0})),
      MakeRow("SurfaceObject SurfaceObject::Create",
              std::function([](Array* of) { return SurfaceObject::Create(*of); }), AsksDriver(),
              array({kInvalid})),
      MakeRow("TextureObject TextureObject::Create", std::function([](Array* of) {
                return TextureObject::Create(*of, CUDA_TEXTURE_DESC());
              }),
              AsksDriver(), array({kInvalid})),
      MakeRow("SurfaceObject::Create: of a handle",
              std::function([](ContextRef context, CUarray of) {
                return SurfaceObject::Create(context, of);
              }),
              AsksDriver(), Ref(), handle),
      MakeRow(
          "TextureObject::Create: of memory",
          std::function([](ContextRef context, DeviceView<int> view, TextureObject::Texels of) {
            return TextureObject::Create(context, view, of, CUDA_TEXTURE_DESC());
          }),
          AsksDriver(), Ref(),
          Parameter<DeviceView<int>>{[](Given& given) { return given.things.view; },
                                     {Is("is empty", DeviceView<int>(), {kInvalid, kOutOfRange}),
                                      {"is of a context that was reset",
                                       [](Given& given) { return given.things.ended_view; },
                                       Expected{kPrecondition}.ByDriver()}}},
          Among(texels, {Is("has all width", too_many, {kOutOfRange}),
                         Is("has no channels", no_channels, {kInvalid})})),
      MakeRow("SurfaceObject::Release",
              std::function([](Surface* of) { return of->object.Release(); }), GivesBack(),
              Owner<Surface>(&MadeSurface, {0})),
      MakeRow("TextureObject::Release",
              std::function([](TextureObject* of) { return of->Release(); }), GivesBack(),
              Owner<TextureObject>(&MadeTexture, {0})),
  };
}

}  // namespace

std::vector<Row> BordersOfCode() {
  return Joined(
      {Images(), Modules(), Kernels(), Launches(), Links(), Graphs(), Captures(), Arrays()});
}

}  // namespace cuguest_faults
