// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/faults/c_contracts.h"

#include <fstream>
#include <iterator>
#include <regex>
#include <vector>

namespace cuguest_faults {
namespace {

using Matches = std::sregex_iterator;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::set<int> CodesIn(const std::string& comment) {
  static const std::regex s_code(R"(_[A-Z]+ \((\d+)\))");
  std::set<int> codes;
  for (Matches match(comment.begin(), comment.end(), s_code); match != Matches(); ++match) {
    codes.insert(std::stoi((*match)[1]));
  }
  return codes;
}

}  // namespace

CContracts::CContracts(const std::string& path) {
  const std::string text = ReadFile(path);
  // A block of comment lines, or a declaration; what is declared has the last comment above it.
  static const std::regex s_part(
      R"((?:^|\n)((?:[ ]*///(?!<)[^\n]*\n)+)|\b(cuguest_\w+)\(([^()]*)\);)");
  const std::string of_all = text.substr(0, text.find("#ifndef CUGUEST_C_H_"));
  std::string comment;
  for (Matches match(text.begin(), text.end(), s_part); match != Matches(); ++match) {
    if ((*match)[1].matched) {
      comment = std::regex_replace((*match)[1].str(), std::regex(R"(\s*///\s*)"), " ");
    } else {
      comments_[(*match)[2]] = comment + of_all;
    }
  }
}

std::set<std::string> CContracts::functions() const {
  std::set<std::string> names;
  for (const auto& [name, comment] : comments_) names.insert(name);
  return names;
}

std::set<int> CContracts::CodesOf(const std::string& function) const {
  static const std::regex s_reference(R"(\b(?:[Aa]s|those of) (cuguest_\w+))");
  std::vector<std::string> next = {function};
  std::set<std::string> seen;
  std::set<int> codes;
  while (!next.empty()) {
    const auto found = comments_.find(next.back());
    next.pop_back();
    if (found == comments_.end() || !seen.insert(found->first).second) continue;
    codes.merge(CodesIn(found->second));
    const std::string& comment = found->second;
    for (Matches match(comment.begin(), comment.end(), s_reference); match != Matches(); ++match) {
      next.push_back((*match)[1]);
    }
  }
  return codes;
}

}  // namespace cuguest_faults
