// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "audit/party.h"

#include <cctype>
#include <initializer_list>

namespace cuguest::audit {
namespace {

bool StartsWithOne(std::string_view text, std::initializer_list<std::string_view> starts) {
  for (const std::string_view start : starts) {
    if (text.substr(0, start.size()) == start) {
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

bool PassesCallsOn(std::string_view file) {
  return StartsWithOne(
      file,
      {"libc.so",    "libc-2.",     "ld-linux",   "ld-musl",     "libpthread",     "libdl.so",
       "libdl-2.",   "librt.so",    "librt-2.",   "libm.so",     "linux-vdso",     "[vdso]",
       "libstdc++",  "libc++",      "libgcc_s",   "libunwind",   "libffi",         "libcuguest.so",
       "libgomp",    "libomp",      "libiomp5",   "_ctypes.",    "_cffi_backend.", "libasan.so",
       "libtsan.so", "libubsan.so", "liblsan.so", "libclang_rt."});
}

bool IsInterpreter(std::string_view file) {
  for (const std::string_view start : {"python", "libpython"}) {
    if (file.substr(0, start.size()) == start &&
        (file.size() == start.size() ||
         std::isdigit(static_cast<unsigned char>(file[start.size()])) != 0)) {
      return true;
    }
  }
  return false;
}

std::string PackageParty(std::string_view path) {
  if (StartsWithOne(path, {"cuda/", "cupy_backends/cuda/api/"})) {
    return "";
  }
  const std::string_view package = TakeFolder(&path);
  if (StartsWithOne(package, {"cupy"})) {
    return "cupy";
  }
  if (StartsWithOne(package, {"jax"})) {
    return "jax";
  }
  std::string party(package);
  if (package == "nvidia" && path.find('/') != std::string_view::npos) {
    party += "/" + std::string(TakeFolder(&path));
  }
  return party;
}

}  // namespace

std::string PartyName(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);  // all of it if there is none
  if (PassesCallsOn(file)) {
    return "";
  }
  if (IsInterpreter(file)) {
    return "python";
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
  return std::string(path);
}

Parties::Parties() : objects_(1), parties_(1) {}

void Parties::AddObject(std::uint32_t index, const Object& object) {
  // Numbers are given one after the other; one far beyond them is an error of the writer.
  if (index == 0 || index > objects_.size() + 4096) {
    return;
  }
  if (index >= objects_.size()) {
    objects_.resize(index + 1);
    parties_.resize(index + 1);
  }
  objects_[index] = object;
  const std::string name = PartyName(object.path);
  parties_[index] =
      name.empty() ? 0 : ids_.emplace(name, static_cast<PartyId>(ids_.size() + 1)).first->second;
}

PartyId Parties::Of(std::uint32_t object) const {
  return object < parties_.size() ? parties_[object] : 0;
}

}  // namespace cuguest::audit
