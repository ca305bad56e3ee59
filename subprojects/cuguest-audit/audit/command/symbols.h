// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of code: the functions, files and lines of a frame, from the symbols and the debug
// information of its object.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_SYMBOLS_H_
#define CUGUEST_AUDIT_COMMAND_SYMBOLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "audit/event.h"

namespace cuguest::audit {

// A function that was active at a frame.
struct Function {
  std::string object;  // path; empty: code in no object
  std::uint64_t offset = 0;
  std::string symbol;  // as the object has it; empty if it is not known
  std::string name;    // demangled, without parameters and return type; empty as `symbol`
  std::string file;    // empty if there is no debug information
  std::string folder;  // that the compiler ran in, to which `file` may be relative; likewise
  int line = 0;
  bool inlined = false;  // into the function that follows

  // "name (file:line)", or what of that is known: "libmine.so+0x1a2b", "0x7f0000001234".
  [[nodiscard]] std::string ToString() const;
};

// The function's name without parameters, return type and cv-qualifiers: "c10::cuda::SetDevice" of
// "c10::cuda::SetDevice(signed char)". Other text is returned as it is.
[[nodiscard]] std::string WithoutParameters(const std::string& demangled);

// For a person: without unnamed namespaces. Long lists of template arguments and parameters are
// "<...>" and "(...)", and what is still longer than `width` is cut in the middle.
[[nodiscard]] std::string ShortName(const std::string& name, std::size_t width);

// The symbol itself if it is not a mangled one.
[[nodiscard]] std::string Demangled(const std::string& symbol);

// The last part of a path.
[[nodiscard]] std::string BaseName(const std::string& path);

class Symbols {
 public:
  Symbols();
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // The functions of the frame at `offset` of `object`, innermost first: those that were inlined,
  // then the one that has the frame. At least one, of which perhaps only the offset is known: the
  // object is not there any more, is another one than was loaded (by its build id), or is
  // stripped and its debug information was found neither by build id nor by .gnu_debuglink nor in
  // debuginfod's cache. `object` null: code in no object. Opens each object once.
  std::vector<Function> Of(const Object* object, std::uint64_t offset);

  // Why no frame has a name; empty if this build can find names.
  static std::string Unavailable();

 private:
  struct File;

  File* Open(const Object& object);

  std::map<std::string, std::unique_ptr<File>> files_;  // by path
  std::map<std::pair<std::string, std::uint64_t>, std::vector<Function>> known_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_SYMBOLS_H_
