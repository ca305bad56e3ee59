// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 0
/// \file
/// The version of the headers, for preprocessor checks. The one source of truth
/// is meson.build.

#ifndef CUGUEST_VERSION_H_
#define CUGUEST_VERSION_H_

#define CUGUEST_VERSION_MAJOR 0
#define CUGUEST_VERSION_MINOR 3
#define CUGUEST_VERSION_PATCH 1
#define CUGUEST_VERSION "0.3.1"

#endif  // CUGUEST_VERSION_H_
