// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: docs/notes.md; tier: 3
/// \file
/// `Linker` makes one image of several: PTX, cubins, fatbins, objects and archives whose functions
/// call each other.
///
///   Linker linker(context);
///   linker.Add(*CodeImage::FromPtx(caller, "caller.ptx"));
///   linker.Add(*CodeImage::FromFile("callee.o"));
///   JitReport report;
///   absl::StatusOr<CodeImage> linked = linker.Complete(&report);
///   if (!linked.ok()) return linked.status();   // names the input, holds the linker's log
///   absl::StatusOr<Module> module = Module::Load(*linked);
///
/// Unlike with cuLinkCreate and cuLinkAddData the driver keeps nothing between calls: Complete()
/// does the whole link. So the driver never writes to what is gone, no state is lost with a context
/// or left over by a fork, and a log that turns out too small is written again.

#ifndef CUGUEST_OBJECTS_LINKER_H_
#define CUGUEST_OBJECTS_LINKER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuguest/context_ref.h"
#include "cuguest/export.h"
#include "cuguest/objects/code_image.h"
#include "cuguest/objects/jit.h"

CUGUEST_BEGIN_NAMESPACE

/// Stack:   as it was.
/// Count:   none: it does not keep its context alive.
/// Threads: value. Complete() not in a stream callback: kPermissionDenied.
class CUGUEST_API Linker {
 public:
  CUGUEST_HIDE Linker(const Linker&) = default;
  CUGUEST_HIDE Linker(Linker&&) = default;
  CUGUEST_HIDE Linker& operator=(const Linker&) = default;
  CUGUEST_HIDE Linker& operator=(Linker&&) = default;
  CUGUEST_HIDE ~Linker() = default;

  /// Links for the device of `context`, or for options.target. No driver call.
  CUGUEST_HIDE explicit Linker(const ContextRef& context, const JitOptions& options = {})
      : context_(context), options_(options) {}

  /// Inputs are linked in the order in which they are added. The linker shares their bytes.
  CUGUEST_HIDE void Add(CodeImage input) { inputs_.push_back(std::move(input)); }

  /// Errors: those of CodeImage::FromFile(); nothing was added then.
  absl::Status AddFile(const std::string& path);

  /// Compiles PTX, and links: an image for Module and cuModuleLoadData, of the architecture of the
  /// context's device. May be called again, also after more was added, for another link.
  /// Invalidates no capture. `report`, if given, is filled in on failure too; it has nothing about
  /// what the driver or nvJitLink had compiled before, in its cache.
  /// Errors: those of ObjectDriver::Get() and ContextGuard, and as follows, with what the linker
  /// said
  ///         kInvalidArgument     nothing was added; an option has an impossible value; an input,
  ///                              which is named, is malformed, or a cubin that is linked already;
  ///                              a symbol, which is named, is undefined or defined twice
  ///         kFailedPrecondition  an input has no code for this device; or compiling PTX is
  ///                              switched off (CUDA_DISABLE_PTX_JIT)
  ///         kUnavailable         the driver lacks its compiler; or LTO IR, and no nvJitLink
  ///         kUnimplemented       PTX or LTO IR newer than its compiler; an option nvJitLink lacks
  ///         kResourceExhausted   out of memory
  /// Cost:   six driver calls and one for every input if the context is current, else two more, and
  ///         all again if a log was larger than expected. By nvJitLink six or eight, and those that
  ///         it makes itself, such as cuInit; with two inputs or more that are not LTO IR two more,
  ///         and one for each of these. Milliseconds for every input that is to be compiled.
  /// Source: CUDA Driver API, cuLinkAddData, cuLinkComplete.
  [[nodiscard]] absl::StatusOr<CodeImage> Complete(JitReport* report = nullptr) const;

 private:
  ContextRef context_;
  JitOptions options_;
  std::vector<CodeImage> inputs_;
};

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_OBJECTS_LINKER_H_
