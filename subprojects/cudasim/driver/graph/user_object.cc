// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Source: test/graph_object_facts_test.cc.

#include "driver/graph/user_object.h"

#include <climits>
#include <memory>
#include <mutex>
#include <thread>

#include "driver/api.h"
#include "driver/entry.h"
#include "driver/graph/graph.h"
#include "driver/handle_table.h"
#include "driver/panic.h"

namespace cudasim::driver {
namespace {

struct UserObject {
  CUhostFn destroy = nullptr;
  void* data = nullptr;
  std::mutex mutex;
  unsigned long long references = 0;
};

struct ObjectEntry {
  Eternal incarnation;
  std::shared_ptr<UserObject> object;
};

HandleTable<CUuserObject, ObjectEntry>& Objects() {
  static auto& table = *new HandleTable<CUuserObject, ObjectEntry>(8);
  return table;
}

std::shared_ptr<UserObject> FindOrPanic(CUuserObject handle) {
  ObjectEntry entry;
  if (Objects().Find(handle, &entry) != Handled::kAlive) {
    PanicHandle(handle, "this is no user object that anybody has a reference to");
  }
  return entry.object;
}

bool IsCount(unsigned count) { return count != 0 && count <= INT_MAX; }

// As a driver does, on a thread of its own that may not call the driver.
void Destroy(const UserObject& object) {
  std::thread([&] {
    const CUstream none = nullptr;
    CallbackStream() = &none;
    object.destroy(object.data);
  }).join();
}

void Retain(CUuserObject handle, unsigned count) {
  const std::shared_ptr<UserObject> object = FindOrPanic(handle);
  const std::lock_guard<std::mutex> lock(object->mutex);
  object->references += count;
}

void ReleaseObject(CUuserObject handle, unsigned count) {
  const std::shared_ptr<UserObject> object = FindOrPanic(handle);
  {
    const std::lock_guard<std::mutex> lock(object->mutex);
    if (object->references < count) {
      PanicHandle(handle, "more references are released than there are, which is undefined");
    }
    object->references -= count;
    if (object->references > 0) return;
    Objects().Remove(handle);
  }
  Destroy(*object);
}

}  // namespace

UserReferences::UserReferences(const UserReferences& other) { AddAll(other); }

UserReferences::~UserReferences() {
  for (const auto& [object, count] : counts_) driver::ReleaseObject(object, count);
}

void UserReferences::AddAll(const UserReferences& other) {
  for (const auto& [object, count] : other.counts_) {
    Retain(object, count);
    Add(object, count);
  }
}

void UserReferences::Add(CUuserObject object, unsigned count) { counts_[object] += count; }

bool UserReferences::Release(CUuserObject object, unsigned count) {
  const auto found = counts_.find(object);
  if (found == counts_.end() || found->second < count) return false;
  found->second -= count;
  if (found->second == 0) counts_.erase(found);
  driver::ReleaseObject(object, count);
  return true;
}

CUresult UserObjectCreate(CUuserObject* handle, void* data, CUhostFn destroy, unsigned references,
                          unsigned flags) {
  if (handle == nullptr || destroy == nullptr || references == 0 ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ObjectEntry entry;
  entry.object = std::make_shared<UserObject>();
  entry.object->destroy = destroy;
  entry.object->data = data;
  entry.object->references = references;
  return Objects().Add(entry, handle);
}

CUresult UserObjectRetain(CUuserObject object, unsigned count) {
  if (object == nullptr || !IsCount(count)) return CUDA_ERROR_INVALID_VALUE;
  Retain(object, count);
  return CUDA_SUCCESS;
}

CUresult UserObjectRelease(CUuserObject object, unsigned count) {
  if (object == nullptr || !IsCount(count)) return CUDA_ERROR_INVALID_VALUE;
  ReleaseObject(object, count);
  return CUDA_SUCCESS;
}

CUresult GraphRetainUserObject(CUgraph handle, CUuserObject object, unsigned count,
                               unsigned flags) {
  GraphPointer graph;
  const CUresult code = FindGraph(handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  const bool moves = flags == CU_GRAPH_USER_OBJECT_MOVE;
  if (object == nullptr || !IsCount(count) || (flags != 0 && !moves)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!moves) Retain(object, count);
  graph->user_objects.Add(object, count);
  return CUDA_SUCCESS;
}

CUresult GraphReleaseUserObject(CUgraph handle, CUuserObject object, unsigned count) {
  GraphPointer graph;
  const CUresult code = FindGraph(handle, &graph);
  if (code != CUDA_SUCCESS) return code;
  if (object == nullptr || !IsCount(count)) return CUDA_ERROR_INVALID_VALUE;
  if (!graph->user_objects.Release(object, count)) {
    PanicHandle(object,
                "the graph has not so many references; a real driver releases somebody else's "
                "(measured on an H100, driver 580.159.04)");
  }
  return CUDA_SUCCESS;
}

}  // namespace cudasim::driver
