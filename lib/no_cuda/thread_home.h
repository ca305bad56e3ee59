// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A home that a thread is always in. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_THREAD_HOME_H_
#define CUGUEST_LIB_NO_CUDA_THREAD_HOME_H_

#include <utility>

#include "cuguest/thread_home.h"
#include "lib/no_cuda/acquire.h"

CUGUEST_BEGIN_NAMESPACE

inline ThreadHome::ThreadHome(Acquired home, Keep keep, IfOver if_over, Location where) noexcept
    : where_(where), keep_(keep), if_over_(if_over) {
  static_cast<void>(MoveTo(std::move(home)));
}

inline ThreadHome::~ThreadHome() {}

inline Error ThreadHome::Check() noexcept {
  if (!has_ended_) return {};
  return internal::MakeError(CUDA_ERROR_ILLEGAL_STATE, "bind a thread to its home", "");
}

inline Error ThreadHome::MoveTo(Acquired home) noexcept {
  if (has_ended_) return Check();
  context_ = home.context();
  return {};
}

inline Error ThreadHome::Leave() noexcept {
  has_ended_ = true;
  return {};
}

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_THREAD_HOME_H_
