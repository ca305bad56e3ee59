// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contexts of test cases.

#ifndef CUDASIM_TEST_SUPPORT_OWN_CONTEXT_H_
#define CUDASIM_TEST_SUPPORT_OWN_CONTEXT_H_

#include <cuda.h>

namespace cudasim_test {

// A context on `device`, floating, that nobody else has while the object lives. A real driver makes
// and destroys contexts in a tenth of a second, those of all processes one after the other. So with
// one it may be a context that an earlier object had, with what was left in it: a case that changes
// a context's settings destroys it. The simulation's is new, and destroyed with the object.
class OwnContext {
 public:
  explicit OwnContext(int device = 0);
  OwnContext(OwnContext&& other) noexcept;
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
  // As cuCtxDestroy, it takes the context off the thread's stack if it is current.
  ~OwnContext();

  CUcontext get() const { return context_; }
  // The caller destroys it.
  CUcontext release();

  // Destroys the contexts that objects had: for a case in which one ends, once its object is gone,
  // and before one that needs a new one.
  static void DestroyIdle();

 private:
  CUcontext context_ = nullptr;
  int device_;
};

}  // namespace cudasim_test

#endif  // CUDASIM_TEST_SUPPORT_OWN_CONTEXT_H_
