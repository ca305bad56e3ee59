// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/core/concurrency.h"

CUGUEST_BEGIN_INTERNAL_NAMESPACE

std::atomic<bool> AsymmetricFence::s_kernel_helps{true};

void AsymmetricFence::Prepare() noexcept {}

bool AsymmetricFence::Heavy() noexcept {
  FlushProcessWriteBuffers();
  return true;
}

CUGUEST_END_INTERNAL_NAMESPACE
