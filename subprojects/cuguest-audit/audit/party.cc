// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/party.h"

#include <algorithm>
#include <initializer_list>

#include "audit/system_object.h"
#include "audit/text.h"

namespace cuguest::audit {
namespace {

constexpr char kInterpreter[] = "python";

bool IsInFolder(std::string_view path, std::initializer_list<std::string_view> folders) {
  for (const std::string_view folder : folders) {
    if (path.substr(0, folder.size()) == folder) {
      return true;
    }
  }
  return false;
}

// What precedes the first '/', which it takes away from `path` with it; all of it if there is none.
std::string_view TakeFolder(std::string_view* path) {
  const std::size_t slash = path->find('/');
  const std::string_view folder = path->substr(0, slash);
  path->remove_prefix(slash == std::string_view::npos ? path->size() : slash + 1);
  return folder;
}

// The path in a folder of Python packages, or "".
std::string_view InPackages(std::string_view path) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t found = path.rfind(folder);
    if (found != std::string_view::npos) {
      return path.substr(found + folder.size());
    }
  }
  return "";
}

// "jax_cuda13_plugin", "jax_cuda12_pjrt".
bool IsJaxPlugin(std::string_view package) {
  constexpr std::string_view kStart = "jax_cuda";
  if (package.substr(0, kStart.size()) != kStart) {
    return false;
  }
  package.remove_prefix(kStart.size());
  package.remove_prefix(std::min(package.find_first_not_of("0123456789"), package.size()));
  return package == "_plugin" || package == "_pjrt";
}

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

std::string PackageParty(std::string_view path) {
  if (IsInFolder(path, {"cuda/", "cuguest/", "cupy_backends/cuda/api/"})) {
    return "";
  }
  const std::string_view package = TakeFolder(&path);
  if (IsOneOf(package, {"cupy", "cupyx", "cupy_backends"})) {
    return "cupy";
  }
  if (IsOneOf(package, {"jax", "jaxlib", "jaxlib.libs", "jax_plugins"}) || IsJaxPlugin(package)) {
    return "jax";
  }
  std::string party(package);
  if (package == "nvidia" && path.find('/') != std::string_view::npos) {
    party += "/" + std::string(TakeFolder(&path));
  }
  return party;
}

// Modules that are linked into the interpreter, and those of the folder that has its version:
// "lib/python3.12/threading.py".
bool IsOfStandardLibrary(std::string_view path) {
  if (StartsWith(path, "<frozen ")) return true;
  for (const std::string_view lib : {"/lib/python", "/lib64/python"}) {
    const std::size_t found = path.find(lib);
    if (found == std::string_view::npos) continue;
    std::string_view rest = path.substr(found + lib.size());
    const std::string_view version = TakeFolder(&rest);
    const bool is_version = version.find_first_of('.') != std::string_view::npos &&
                            version.find_first_not_of(".0123456789t") == std::string_view::npos;
    if (is_version && !rest.empty()) return true;
  }
  return false;
}

}  // namespace

std::string PartyName(std::string_view path, std::string_view soname, std::size_t package) {
  const SystemRole role = RoleOf(soname, path);
  if (role == SystemRole::kPassesOn) {
    return "";
  }
  if (role == SystemRole::kInterpreter) {
    return kInterpreter;
  }
  // A package's libraries may be beside it, in NAME.libs.
  const std::string_view in_packages = InPackages(path);
  if (in_packages.find('/') != std::string_view::npos) {
    std::string party = PackageParty(in_packages);
    const std::size_t libs = party.rfind(".libs");
    if (libs != std::string::npos && libs + 5 == party.size()) {
      party.resize(libs);
    }
    return party;
  }
  if (in_packages.empty() && IsOfStandardLibrary(path)) {
    return "";
  }
  return std::string(package == 0 ? path : path.substr(0, package));
}

std::string_view PackageOf(const Object& object) {
  const std::string_view path = object.path;
  const std::string_view in_packages = InPackages(path);
  if (in_packages.empty()) return object.package == 0 ? path : path.substr(0, object.package);
  const std::size_t slash = in_packages.find('/');
  return slash == std::string_view::npos ? path
                                         : path.substr(0, path.size() - in_packages.size() + slash);
}

Parties::Parties() : objects_(1), parties_(1), canonical_(1) {}

void Parties::AddObject(std::uint32_t index, const Object& object) {
  // Numbers are given one after the other; one far beyond them is an error of the writer.
  if (index == 0 || index > objects_.size() + 4096) {
    return;
  }
  if (index >= objects_.size()) {
    objects_.resize(index + 1);
    parties_.resize(index + 1);
    for (std::size_t i = canonical_.size(); i <= index; ++i) {
      canonical_.push_back(static_cast<std::uint32_t>(i));
    }
  }
  objects_[index] = object;
  // Code that has its file elsewhere is told apart from that file's.
  const std::string name_of_code =
      object.build_id.empty() ? object.path : object.path.substr(object.path.rfind('/') + 1);
  const auto code = std::make_tuple(object.build_id, name_of_code, object.file + object.function);
  canonical_[index] = code_.emplace(code, index).first->second;
  const std::string name = PartyName(object.path, object.soname, object.package);
  parties_[index] =
      name.empty() ? 0 : ids_.emplace(name, static_cast<PartyId>(ids_.size() + 1)).first->second;
  if (name == kInterpreter) interpreter_ = parties_[index];
}

std::uint32_t Parties::Canonical(std::uint32_t object) const {
  return object < canonical_.size() ? canonical_[object] : object;
}

PartyId Parties::OfPath(std::string_view path) const {
  const std::string name = PartyName(path);
  const auto found = ids_.find(name);
  return name.empty() || found == ids_.end() ? 0 : found->second;
}

bool Parties::IsPython(std::uint32_t object) const {
  return object < objects_.size() && !objects_[object].function.empty();
}

bool Parties::ActsForCaller(std::uint32_t object) const {
  return object < objects_.size() &&
         RoleOf(objects_[object].soname, objects_[object].path) == SystemRole::kToolkit;
}

PartyId Parties::Of(std::uint32_t object) const {
  return object < parties_.size() ? parties_[object] : 0;
}

}  // namespace cuguest::audit
