// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing is kept, since nothing that is acquired holds a primary context. tier: 2

#ifndef CUGUEST_LIB_NO_CUDA_PRIMARY_KEEPER_H_
#define CUGUEST_LIB_NO_CUDA_PRIMARY_KEEPER_H_

#include "cuguest/primary_keeper.h"

CUGUEST_BEGIN_NAMESPACE

inline PrimaryKeeper::~PrimaryKeeper() {}
inline Error PrimaryKeeper::Keep(const Acquired& acquired) noexcept { return acquired.error(); }
inline bool PrimaryKeeper::Keeps(Device /*device*/) const noexcept { return kept_ != 0; }
inline Error PrimaryKeeper::Release(Device /*device*/) noexcept { return {}; }
inline Error PrimaryKeeper::ReleaseAll() noexcept { return {}; }

inline Error ReleaseKeptPrimary(Device /*device*/) noexcept { return {}; }
inline Error ReleaseKeptPrimaries() noexcept { return {}; }

CUGUEST_END_NAMESPACE

#endif  // CUGUEST_LIB_NO_CUDA_PRIMARY_KEEPER_H_
