// SPDX-License-Identifier: Apache-2.0
//
// The contexts of test cases.

#ifndef CUDASIM_TEST_SUPPORT_OWN_CONTEXT_H_
#define CUDASIM_TEST_SUPPORT_OWN_CONTEXT_H_

#include <cuda.h>

namespace cudasim_test {

// A context on `device`, floating, that nobody else has while the object lives. It may be one that
// an earlier case of the program had: its settings are then those of a new one, and whatever that
// case left in it is still there. A real driver makes contexts in a tenth of a second, those of all
// processes one after the other, so a program uses them again.
class OwnContext {
 public:
  explicit OwnContext(int device = 0);
  // One that no case has had, destroyed with the object.
  static OwnContext New(int device = 0) { return OwnContext(device, kDestroy); }

  OwnContext(OwnContext&& other) noexcept;
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
  // As cuCtxDestroy, it leaves the thread's stack if it is current.
  ~OwnContext();

  CUcontext get() const { return context_; }
  // The caller destroys it.
  CUcontext release();

  // Destroys those that no object has.
  static void DestroyIdle();

 private:
  enum End { kDestroy, kKeep };
  OwnContext(int device, End end);

  CUcontext context_ = nullptr;
  int device_;
  End end_;
};

}  // namespace cudasim_test

#endif  // CUDASIM_TEST_SUPPORT_OWN_CONTEXT_H_
