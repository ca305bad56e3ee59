// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The processes that a program starts and that cannot ask for a channel, by what /proc tells of
// them while they run. One that ends within a few tenths of a second may go unseen.
//
// Thread-safe: no.

#ifndef CUGUEST_AUDIT_COMMAND_PROCESS_WATCH_H_
#define CUGUEST_AUDIT_COMMAND_PROCESS_WATCH_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace cuguest::audit {

class ProcessWatch {
 public:
  // Of the process `root` and those that it starts, which were given `collector` as what the driver
  // loads and `variable`=`value`.
  ProcessWatch(int root, std::string collector, std::string variable, std::string value)
      : root_(root),
        collector_(std::move(collector)),
        expected_(std::move(variable) + "=" + std::move(value)) {}

  // Looks at those that are not `known` to have a channel, unless it has just done so.
  void Look(const std::set<int>& known);
  // The same once `root` has ended: at what it left behind, whatever its parent is by now.
  void LookAtLeft(const std::set<int>& known);
  // What was left behind and had not ended by then.
  [[nodiscard]] const std::set<int>& left() const { return left_; }

  struct Unreachable {
    std::string program;
    std::string why;
  };
  // Those that have loaded the driver, by process id. Some may have got a channel since.
  [[nodiscard]] const std::map<int, Unreachable>& found() const { return found_; }

 private:
  // Not before `next`, which becomes the time of the next look.
  template <typename Act>
  static void LookFor(std::uint64_t* next, const Act& act);
  void Visit(int pid, const std::set<int>& known);
  [[nodiscard]] std::string WhyUnreachable(int pid);
  [[nodiscard]] std::string Obstacle(int pid) const;
  [[nodiscard]] bool HasVariable(const std::string& environment) const;

  const int root_;
  const std::string collector_;
  const std::string expected_;
  std::uint64_t next_ = 0;
  std::uint64_t next_at_left_ = 0;
  std::set<int> left_;
  std::map<int, std::uint64_t> looked_;  // when, at the objects of a process
  std::map<int, Unreachable> found_;
};

}  // namespace cuguest::audit

#endif  // CUGUEST_AUDIT_COMMAND_PROCESS_WATCH_H_
