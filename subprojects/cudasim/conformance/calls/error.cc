// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of errors, and functions by name.

#include <iterator>

#include "conformance/call.h"

namespace conformance {
namespace {

template <typename Function>
Run Text(Function function) {
  return [=](Frame& frame) {
    const char* text = nullptr;
    const CUresult code = function(frame.As<CUresult>(0), &text);
    std::string line = text != nullptr ? text : "0";
    for (char& letter : line) letter = letter == ' ' ? '_' : letter;
    frame.SayText(line);
    return code;
  };
}

const Param kCodes = Number({0,   1,   2,   3,   4,   5,   6,   34,  46,  99,  100, 101,  102, 200,
                             201, 202, 205, 216, 226, 300, 400, 401, 402, 500, 600, 700,  702, 708,
                             709, 710, 719, 720, 721, 800, 801, 803, 900, 901, 902, 903,  904, 905,
                             906, 907, 908, 909, 910, 911, 912, 915, 916, 917, 999, 1000, -1});

constexpr const char* kNames[] = {
    "cuInit",
    "cuCtxGetDevice",
    "cuCtxPushCurrent",
    "cuCtxCreate",
    "cuStreamGetCtx",
    "cuMemAlloc",
    "cuGreenCtxCreate",
    "cuStreamBeginCapture",
    "cuLaunchKernel",
    "cuGetProcAddress",
    "cuDevicePrimaryCtxRelease",
    "cuCtxGetId",
    "cuLibraryLoadData",
    "cuMemAllocAsync",
    "cuCtxSynchronize",
    "cuNoSuchFunction",
    "cuMemcpyHtoD",
    "cuStreamGetCaptureInfo",
    "cuCtxPushCurrent_v2",
    "",
};

int FindFunction(Frame& frame) {
  void* function = nullptr;
  std::memset(&function, Frame::kUntouched, sizeof(function));
  CUdriverProcAddressQueryResult status{};
  std::memset(&status, Frame::kUntouched, sizeof(status));
  const CUresult code =
      RAW(cuGetProcAddress)(kNames[frame.Number(0)], &function, frame.As<int>(1),
                            frame.As<cuuint64_t>(2), frame.IsNull(3) ? nullptr : &status);
  frame.SayText(function == nullptr ? "0" : "+");
  if (!frame.IsNull(3)) frame.SayOut(3, &status, sizeof(status), false);
  return code;
}

// The forms of before CUDA 3.2, with addresses of 32 bits, are not simulated.
bool IsSimulated(const World&, const Values& values) {
  const std::string name = kNames[values[0].number];
  return values[1].number >= 3020 || values[1].number <= 0 || name.rfind("cuMem", 0) != 0;
}

Param Name() {
  Param param = Number({});
  for (size_t i = 0; i < std::size(kNames); ++i) param.numbers.push_back(static_cast<int>(i));
  return param;
}

}  // namespace

Room ErrorRoom() {
  return {
      "errors and names",
      {
          {"cuGetErrorName", Text(RAW(cuGetErrorName)), 2, {kCodes}},
          {"cuGetErrorString", Text(RAW(cuGetErrorString)), 2, {kCodes}},
          {"cuGetProcAddress",
           FindFunction,
           4,
           {Name(),
            Number({2000, 4000, 7000, 10010, 11030, 12000, 12040, 12050, 13000, 14000, 0, -1}),
            Number({0, 0, 1, 2, 3, 8}), Out("", 10)},
           {},
           IsSimulated},
          {DRIVER(cuDriverGetVersion), 1, {Out()}},
          {DRIVER(cuInit), 1, {Number({0, 0, 1})}},
      },
  };
}

}  // namespace conformance
