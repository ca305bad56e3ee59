// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// User objects: counted references to what an application wants to be told about when the graphs
// that use it are gone.

#ifndef CUDASIM_DRIVER_GRAPH_USER_OBJECT_H_
#define CUDASIM_DRIVER_GRAPH_USER_OBJECT_H_

#include <cuda.h>

#include <map>

namespace cudasim::driver {

// UserReferences
//
// References that a graph or an executable graph owns; it releases them when it goes. A copy has
// references of its own.
class UserReferences {
 public:
  UserReferences() = default;
  UserReferences(const UserReferences& other);
  UserReferences& operator=(const UserReferences&) = delete;
  ~UserReferences();

  // New references to the same objects, as many.
  void AddAll(const UserReferences& other);

  // Takes over references that somebody has.
  void Add(CUuserObject object, unsigned count);

  // Releases some; false if there are fewer, and then none.
  bool Release(CUuserObject object, unsigned count);

 private:
  std::map<CUuserObject, unsigned> counts_;
};

}  // namespace cudasim::driver

#endif  // CUDASIM_DRIVER_GRAPH_USER_OBJECT_H_
