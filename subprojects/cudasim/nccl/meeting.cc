// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "nccl/meeting.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace cudasim::nccl {
namespace {

constexpr size_t kPlaceBytes = 1 << 16;  // of what a rank hands over at a time
constexpr auto kPatience = std::chrono::minutes(1);

}  // namespace

// New shared memory is all zeros, which is how this begins.
struct Meeting::Table {
  std::atomic<int> arrived;
  std::atomic<unsigned> round;
};
static_assert(std::atomic<int>::is_always_lock_free);

std::string NewMeeting() {
  static std::atomic<unsigned> made{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return "/cudasim-nccl-" + std::to_string(getpid()) + "-" + std::to_string(++made) + "-" +
         std::to_string(now);
}

Meeting::~Meeting() {
  if (table_ != nullptr) munmap(table_, bytes_);
}

Meeting::Outcome Meeting::Join(const std::string& name, int ranks, int rank, const Card& card) {
  const size_t bytes = sizeof(Table) + static_cast<size_t>(ranks) * (sizeof(Card) + kPlaceBytes);
  const int file = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
  if (file < 0) return Outcome::kNoMemory;
  void* memory = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (memory == MAP_FAILED) {
    shm_unlink(name.c_str());
    return Outcome::kNoMemory;
  }
  table_ = static_cast<Table*>(memory);
  bytes_ = bytes;
  ranks_ = ranks;
  rank_ = rank;
  std::memcpy(PlaceOf(rank), card.data(), sizeof(card));
  const bool met = WaitForAll();
  // Nobody looks for it any more.
  if (!met || rank == 0) shm_unlink(name.c_str());
  return met ? Outcome::kMet : Outcome::kNotMet;
}

char* Meeting::PlaceOf(int rank) const {
  return reinterpret_cast<char*>(table_ + 1) +
         static_cast<size_t>(rank) * (sizeof(Card) + kPlaceBytes);
}

std::vector<Meeting::Card> Meeting::Cards() const {
  std::vector<Card> cards(static_cast<size_t>(ranks_));
  for (int rank = 0; rank < ranks_; ++rank) {
    std::memcpy(cards[static_cast<size_t>(rank)].data(), PlaceOf(rank), sizeof(Card));
  }
  return cards;
}

bool Meeting::WaitForAll() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const unsigned round = table_->round.load();
  if (table_->arrived.fetch_add(1) + 1 == ranks_) {
    table_->arrived.store(0);
    table_->round.fetch_add(1);
    return true;
  }
  while (table_->round.load() == round) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

Meeting::Outcome Meeting::Exchange(const void* mine, size_t bytes,
                                   std::vector<std::vector<char>>* of_all) {
  of_all->assign(static_cast<size_t>(ranks_), std::vector<char>(bytes));
  for (size_t begin = 0; begin < bytes; begin += kPlaceBytes) {
    const size_t part = std::min(kPlaceBytes, bytes - begin);
    std::memcpy(PlaceOf(rank_) + sizeof(Card), static_cast<const char*>(mine) + begin, part);
    if (!WaitForAll()) return Outcome::kNotMet;
    for (int rank = 0; rank < ranks_; ++rank) {
      std::memcpy((*of_all)[static_cast<size_t>(rank)].data() + begin, PlaceOf(rank) + sizeof(Card),
                  part);
    }
    if (!WaitForAll()) return Outcome::kNotMet;  // all have read: the places are free
  }
  return Outcome::kMet;
}

}  // namespace cudasim::nccl
