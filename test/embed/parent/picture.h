// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef PICTURE_H_
#define PICTURE_H_

// What CUDA work would say; never null, valid until the next call.
__attribute__((visibility("default"))) const char* PictureStatus();

#endif  // PICTURE_H_
