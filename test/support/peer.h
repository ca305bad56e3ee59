// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Another process of this machine that exports memory and an event, by the driver's own calls.
//
//   CHILD(is_a_peer) { return cuguest_test::ServeAsPeer(); }
//   BOOST_AUTO_TEST_CASE(...) {
//     cuguest_test::Peer peer;  // runs that child until it goes
//     peer.mail().memory ...

#ifndef CUGUEST_TEST_SUPPORT_PEER_H_
#define CUGUEST_TEST_SUPPORT_PEER_H_

#include <cuda.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "test/support/raw_driver.h"
#include "test/support/scenario.h"
#include "test/support/test.h"

namespace cuguest_test {

// What a peer exports, and what it can be asked to do.
struct PeerMail {
  static constexpr size_t kBytes = size_t{2} << 20;
  static constexpr unsigned char kValue = 0x11;  // of each byte

  CUipcMemHandle memory;
  CUipcEventHandle event;
};
enum class PeerDo : char {
  kRecordPending = 'r',  // records the event behind work that does not end
  kEndWork = 'e',        // ends that work
  kReadLast = 'l',       // answers with the last byte of its memory
  kReadFirst = 'f',      // with the first
  kGiveUp = 'g',         // frees the memory and destroys the event
  kQuit = 'q',
};

inline constexpr char kPeerVariable[] = "CUGUEST_TEST_PEER";

// The child's main function: answers each request with one byte.
inline int ServeAsPeer() {
  int in = -1;
  int out = -1;
  CHECK(std::sscanf(std::getenv(kPeerVariable), "%d,%d", &in, &out) == 2);
  const CUcontext context = MakeContext();
  CHECK(RAW(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
  PeerMail mail = {};
  CUdeviceptr memory = 0;
  CUevent event = nullptr;
  CUstream stream = nullptr;
  CHECK(RAW(cuMemAlloc)(&memory, PeerMail::kBytes) == CUDA_SUCCESS);
  CHECK(RAW(cuMemsetD8)(memory, PeerMail::kValue, PeerMail::kBytes) == CUDA_SUCCESS);
  CHECK(RAW(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(RAW(cuEventCreate)(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING) ==
        CUDA_SUCCESS);
  CHECK(RAW(cuIpcGetMemHandle)(&mail.memory, memory) == CUDA_SUCCESS);
  CHECK(RAW(cuIpcGetEventHandle)(&mail.event, event) == CUDA_SUCCESS);
  CHECK(write(out, &mail, sizeof(mail)) == sizeof(mail));
  static std::atomic<bool> is_working = false;
  char request = 0;
  while (read(in, &request, 1) == 1 && request != static_cast<char>(PeerDo::kQuit)) {
    unsigned char answer = 0;
    switch (static_cast<PeerDo>(request)) {
      case PeerDo::kRecordPending: {
        is_working = true;
        const auto work = [](void*) {
          while (is_working) std::this_thread::yield();
        };
        CHECK(RAW(cuLaunchHostFunc)(stream, work, nullptr) == CUDA_SUCCESS);
        CHECK(RAW(cuEventRecord)(event, stream) == CUDA_SUCCESS);
        break;
      }
      case PeerDo::kEndWork:
        is_working = false;
        CHECK(RAW(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
        break;
      case PeerDo::kReadLast:
        CHECK(RAW(cuMemcpyDtoH)(&answer, memory + PeerMail::kBytes - 1, 1) == CUDA_SUCCESS);
        break;
      case PeerDo::kReadFirst:
        CHECK(RAW(cuMemcpyDtoH)(&answer, memory, 1) == CUDA_SUCCESS);
        break;
      case PeerDo::kGiveUp:
        CHECK(RAW(cuMemFree)(memory) == CUDA_SUCCESS);
        CHECK(RAW(cuEventDestroy)(event) == CUDA_SUCCESS);
        break;
      default:
        CHECK(false);
    }
    CHECK(write(out, &answer, 1) == 1);
  }
  return 0;
}

// Peer
//
// Runs the program's child "is_a_peer" until it is told to quit. Threads: one.
class Peer {
 public:
  Peer() {
    int ends[4] = {};
    if (pipe(ends) != 0 || pipe(ends + 2) != 0) std::abort();
    in_ = ends[2];
    out_ = ends[1];
    for (const int own : {in_, out_}) fcntl(own, F_SETFD, FD_CLOEXEC);
    thread_ = std::thread([this, child_in = ends[0], child_out = ends[3]] {
      ended_ = RunSelf({"--child=is_a_peer"}, {kPeerVariable + ("=" + std::to_string(child_in)) +
                                               "," + std::to_string(child_out)});
      close(child_in);
      close(child_out);
    });
    if (read(in_, &mail_, sizeof(mail_)) == sizeof(mail_)) return;
    Quit();
    BOOST_FAIL(ended_.output);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() {
    Quit();
    BOOST_TEST(ended_.code == 0, ended_.output);
    close(in_);
    close(out_);
  }

  const PeerMail& mail() const { return mail_; }

  int Ask(PeerDo request) {
    unsigned char answer = 0;
    const bool is_answered = write(out_, &request, 1) == 1 && read(in_, &answer, 1) == 1;
    BOOST_TEST(is_answered);
    return answer;
  }

  // Returns when its process has ended.
  void Quit() {
    if (!thread_.joinable()) return;
    const PeerDo quit = PeerDo::kQuit;
    if (write(out_, &quit, 1) != 1) std::abort();
    thread_.join();
  }

 private:
  int in_ = -1;
  int out_ = -1;
  PeerMail mail_ = {};
  Ended ended_;
  std::thread thread_;
};

}  // namespace cuguest_test

#endif  // CUGUEST_TEST_SUPPORT_PEER_H_
