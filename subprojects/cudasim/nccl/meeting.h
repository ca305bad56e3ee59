// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the ranks of a communicator meet: shared memory that they find by the communicator's
// unique id, in one process or in several of one machine.

#ifndef CUDASIM_NCCL_MEETING_H_
#define CUDASIM_NCCL_MEETING_H_

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace cudasim::nccl {

// A name that nobody else has.
std::string NewMeeting();

class Meeting {
 public:
  // What a rank says of itself when it joins.
  using Card = std::array<char, 32>;

  // One who waits gives up after a minute, because a rank that does not come would otherwise keep
  // the others for ever, as it does with NCCL.
  enum class Outcome { kMet, kNotMet, kNoMemory };

  Meeting() = default;
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting();

  // Waits until all have joined.
  Outcome Join(const std::string& name, int ranks, int rank, const Card& card);

  // What the ranks said, in their order.
  [[nodiscard]] std::vector<Card> Cards() const;

  // Waits until all are in it, with `bytes` each, and gives all of theirs, in their order.
  Outcome Exchange(const void* mine, size_t bytes, std::vector<std::vector<char>>* of_all);

 private:
  struct Table;

  [[nodiscard]] char* PlaceOf(int rank) const;
  bool WaitForAll();

  Table* table_ = nullptr;
  size_t bytes_ = 0;
  int ranks_ = 0;
  int rank_ = 0;
};

}  // namespace cudasim::nccl

#endif  // CUDASIM_NCCL_MEETING_H_
