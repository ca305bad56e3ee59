// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Events of two processes of a machine: what each of them knows of the other's records.

#ifndef CUDASIM_DRIVER_STREAM_SHARED_EVENT_H_
#define CUDASIM_DRIVER_STREAM_SHARED_EVENT_H_

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "driver/memory/shared_file.h"
#include "driver/stream/schedule.h"

namespace cudasim::driver {

// SharedEvent
//
// A page that the process that created an event of CU_EVENT_INTERPROCESS shares with those that
// open its handle. Each record has a number; the last 250 are known, and an older one that is still
// pending counts as done.
//
// Threads and processes: any.
class SharedEvent {
 public:
  static std::shared_ptr<SharedEvent> Create();  // null if there is no room for it

  // INVALID_VALUE for what is no handle, INVALID_CONTEXT for one of this process, MAP_FAILED if its
  // event was destroyed.
  static CUresult Open(const CUipcEventHandle& handle, std::shared_ptr<SharedEvent>* event);

  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;
  ~SharedEvent();

  bool is_imported() const;
  CUipcEventHandle handle() const;

  // Of the creator, which destroys its event: the handle opens nothing any more.
  void Destroy();
  bool is_destroyed() const;

  // A record that is submitted now, and the end of it.
  std::uint64_t Begin();
  void End(std::uint64_t record);

  std::uint64_t last() const;  // 0: there was none
  // Abandoned: its process ended before it was done.
  Progress ProgressOf(std::uint64_t record) const;

 private:
  struct Page;
  SharedEvent(const SharedFile& file, Page* page) : file_(file), page_(page) {}

  const SharedFile file_;
  Page* const page_;
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_STREAM_SHARED_EVENT_H_
