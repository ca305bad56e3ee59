// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "driver/stream/shared_event.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace cudasim::driver {
namespace {

constexpr char kEventMagic[8] = "cudaevt";

// The contents of a CUipcEventHandle.
struct ExportedEvent {
  char magic[sizeof(kEventMagic)];
  SharedFile file;
};
static_assert(sizeof(ExportedEvent) <= sizeof(CUipcEventHandle));

using Number = std::atomic<std::uint64_t>;
static_assert(Number::is_always_lock_free, "it is shared by processes");

constexpr size_t kRecords = 250;

bool IsThere(std::uint64_t process) {
  return kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH;
}

}  // namespace

// Zeros are an event that was never recorded.
struct SharedEvent::Page {
  struct Pending {
    Number record;  // 0: it is done
    Number process;
  };
  Pending& At(std::uint64_t record) { return pending[record % kRecords]; }

  Number is_destroyed;
  Number begun;
  Number last;
  Pending pending[kRecords];
};

std::shared_ptr<SharedEvent> SharedEvent::Create() {
  static_assert(sizeof(Page) <= kPage);
  void* const page =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  SharedFile file;
  if (!SharePages(page, kPage, &file)) {
    munmap(page, kPage);
    return nullptr;
  }
  return std::shared_ptr<SharedEvent>(new SharedEvent(file, static_cast<Page*>(page)));
}

CUresult SharedEvent::Open(const CUipcEventHandle& handle, std::shared_ptr<SharedEvent>* event) {
  ExportedEvent exported;
  std::memcpy(static_cast<void*>(&exported), &handle, sizeof(exported));
  if (std::memcmp(exported.magic, kEventMagic, sizeof(kEventMagic)) != 0)
    return CUDA_ERROR_MAP_FAILED;
  if (exported.file.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  void* const page = MapShared(exported.file, kPage);
  if (page == nullptr) return CUDA_ERROR_MAP_FAILED;
  event->reset(new SharedEvent(exported.file, static_cast<Page*>(page)));
  return CUDA_SUCCESS;
}

SharedEvent::~SharedEvent() {
  if (!is_imported() && !is_destroyed()) close(file_.file);
  UnmapShared(page_, kPage);
}

bool SharedEvent::is_imported() const { return file_.process != getpid(); }

CUipcEventHandle SharedEvent::handle() const {
  ExportedEvent exported = {};
  std::memcpy(exported.magic, kEventMagic, sizeof(kEventMagic));
  exported.file = file_;
  CUipcEventHandle handle = {};
  std::memcpy(&handle, &exported, sizeof(exported));
  return handle;
}

void SharedEvent::Destroy() {
  if (page_->is_destroyed.exchange(1) == 0) close(file_.file);
}

bool SharedEvent::is_destroyed() const { return page_->is_destroyed.load() != 0; }

// It is pending before another process can see that it is the last one.
std::uint64_t SharedEvent::Begin() {
  const std::uint64_t record = page_->begun.fetch_add(1) + 1;
  Page::Pending& pending = page_->At(record);
  pending.process.store(static_cast<std::uint64_t>(getpid()));
  pending.record.store(record);
  std::uint64_t last = page_->last.load();
  while (last < record && !page_->last.compare_exchange_weak(last, record)) {
  }
  return record;
}

void SharedEvent::End(std::uint64_t record) {
  page_->At(record).record.compare_exchange_strong(record, 0);
}

std::uint64_t SharedEvent::last() const { return page_->last.load(); }

Progress SharedEvent::ProgressOf(std::uint64_t record) const {
  const Page::Pending& pending = page_->At(record);
  if (record == 0 || pending.record.load() != record) return Progress::kDone;
  if (IsThere(pending.process.load()) || pending.record.load() != record) {
    return Progress::kPending;
  }
  return Progress::kAbandoned;
}

}  // namespace cudasim::driver
