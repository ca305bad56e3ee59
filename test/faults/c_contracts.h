// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the comments of c.h say that its functions return.

#ifndef CUGUEST_TEST_FAULTS_C_CONTRACTS_H_
#define CUGUEST_TEST_FAULTS_C_CONTRACTS_H_

#include <map>
#include <set>
#include <string>

namespace cuguest_faults {

class CContracts {
 public:
  explicit CContracts(const std::string& path);

  // Every function that is declared.
  std::set<std::string> functions() const;

  // The codes in the comment above it, in those that this one refers to ("those of f()", "as f()"),
  // and in Note [Codes].
  std::set<int> CodesOf(const std::string& function) const;

 private:
  std::map<std::string, std::string> comments_;
};

}  // namespace cuguest_faults

#endif  // CUGUEST_TEST_FAULTS_C_CONTRACTS_H_
