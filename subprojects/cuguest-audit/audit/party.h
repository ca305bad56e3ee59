// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The party that is responsible for an object's calls.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_PARTY_H_
#define CUGUEST_AUDIT_PARTY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "audit/event.h"

namespace cuguest::audit {

// An object is a party of its own, by its path, but for these:
// - A Python package, all that is under one site-packages/NAME/, is one; NVIDIA's is one for each
//   folder in it. The packages of CuPy are one, and those of JAX.
//   So is another package, by the folder of the outermost one: `package` is the length of that.
// - An interpreter and its library are "python".
// - What only passes calls on is none, and "" here: the C and C++ libraries, OpenMP, ctypes and
//   cffi, the packages that wrap CUDA for Python, Python's standard library, and cuguest, whose
//   guards act for their caller. Native ones are recognised by their sonames
//   (audit/system_object.h).
std::string PartyName(std::string_view path, std::string_view soname = "", std::size_t package = 0);

// The folder or the file that is the party of a function of Python.
std::string_view PackageOf(const Object& object);

using PartyId = std::uint32_t;  // 0: none; a frame is then of the party that called it

class Parties {
 public:
  Parties();

  void AddObject(std::uint32_t index, const Object& object);
  [[nodiscard]] PartyId Of(std::uint32_t object) const;
  // Whether its code is written in Python.
  [[nodiscard]] bool IsPython(std::uint32_t object) const;
  // Whether what it does with objects is its caller's doing, who holds a handle of its.
  [[nodiscard]] bool ActsForCaller(std::uint32_t object) const;
  // What runs that; 0: there is none.
  [[nodiscard]] PartyId interpreter() const { return interpreter_; }
  // The first object with the same code: of the same build id and file name, whatever the folder,
  // or of the same path where it has no build id. A library that is unloaded and loaded again is
  // one, wherever it is.
  [[nodiscard]] std::uint32_t Canonical(std::uint32_t object) const;
  // 0: no object has that path.
  [[nodiscard]] PartyId OfPath(std::string_view path) const;
  [[nodiscard]] const std::vector<Object>& objects() const { return objects_; }

 private:
  std::vector<Object> objects_;
  std::vector<PartyId> parties_;          // of the objects
  std::vector<std::uint32_t> canonical_;  // of the objects
  std::map<std::string, PartyId> ids_;
  PartyId interpreter_ = 0;
  std::map<std::tuple<std::string, std::string, std::string>, std::uint32_t>
      code_;  // by what identifies it
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_PARTY_H_
