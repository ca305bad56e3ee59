// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Suppressions: findings that are known and not to be reported, in a file of valgrind's format.
//
//   {
//     what a person calls it
//     cuguest-audit:leaked-push
//     fun:legacy::Encode*
//     ...
//     obj:*/libcodec.so*
//   }
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_SUPPRESSIONS_H_
#define CUGUEST_AUDIT_COMMAND_SUPPRESSIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "audit/command/symbols.h"

namespace cuguest::audit {

// Whether all of `text` matches `pattern`, in which * is any text and ? any character.
[[nodiscard]] bool MatchesWildcards(const std::string& pattern, const std::string& text);

struct Suppression {
  enum class Place { kFunction, kObject, kSource, kAnyFrames };
  struct Line {
    Place place;
    std::string pattern;
  };

  std::string name;
  std::string place;  // "FILE:LINE" of its first line
  std::string kind;   // with wildcards
  std::vector<Line> lines;

  // Whether the kind matches and `chain`, innermost first, begins with frames that match all lines:
  // fun: the function's symbol, its name or its name with parameters, obj: the object's path or its
  // last part, src: "file:line" or "file", ...: any number of frames.
  [[nodiscard]] bool Matches(const std::string& finding_kind,
                             const std::vector<Function>& chain) const;
};

class Suppressions {
 public:
  // Adds those of `text`, the content of `file`, that are of cuguest-audit; those of other tools
  // are skipped. Returns "", or the first error, "FILE:LINE: ...", and adds nothing then.
  std::string Add(const std::string& file, const std::string& text);
  // The same of a file in the file system; "FILE: ..." if it cannot be read.
  std::string AddFile(const std::string& file);

  // The name of the first one that matches, which is counted; null if none does.
  const std::string* Find(const std::string& kind, const std::vector<Function>& chain,
                          std::uint64_t times);

  // How many findings each has matched, for those that have.
  struct Used {
    std::string name;
    std::uint64_t findings = 0;
    std::uint64_t times = 0;
  };
  [[nodiscard]] std::vector<Used> used() const;
  // Those that have matched none: "NAME (FILE:LINE)".
  [[nodiscard]] std::vector<std::string> unused() const;

 private:
  struct Entry {
    Suppression suppression;
    Used used;
  };
  std::vector<Entry> entries_;
};

// A suppression, as text, of a finding of `kind` with this chain and no other.
[[nodiscard]] std::string GenerateSuppression(const std::string& kind,
                                              const std::vector<Function>& chain);

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_SUPPRESSIONS_H_
