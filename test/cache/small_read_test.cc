// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recipe of docs/recipes/small_read.md: how many driver calls a read makes, and what it leaves.

#include "examples/recipes/small_read.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "cudasim/sim.h"
#include "test/support/raw_driver.h"
#include "test/support/test.h"

BOOST_AUTO_TEST_SUITE(small_read, *cuguest_test::OnlySim())

namespace {

using cudasim::Sim;
using cuguest_test::GetStack;
using cuguest_test::OwnContext;
using cuguest_test::SetStack;
using Stack = std::vector<CUcontext>;
using ReadBy = absl::Status (FileReader::*)(int, off_t, CUdeviceptr, std::size_t);

constexpr std::size_t kBytes = 4096;

// What a read of 4 KiB calls, once it has its stream and pages. docs/recipes/small_read.md has the
// rows, which test/docs/recipes_test.py compares.
struct Count {
  const char* current;
  const char* read;
  const char* read_inside;
};
constexpr Count kCounts[] = {
    {"the memory's context", "6", "8"},
    {"another context", "6", "10"},
    {"nothing", "6", "10"},
};

// Those of Read(), in their order.
struct Made {
  const char* call;
  const char* reason;
};
constexpr Made kMade[] = {
    {"cuThreadExchangeStreamCaptureMode", "the thread's capture mode is relaxed"},
    {"cuPointerGetAttribute", "whose memory it is"},
    {"cuCtxGetId", "that context's incarnation, the key of the cache"},
    {"cuMemcpyHtoDAsync", "the copy"},
    {"cuStreamSynchronize", "the wait"},
    {"cuThreadExchangeStreamCaptureMode", "the mode is what it was"},
};

// A file of 'x', longer than the staging memory.
class File {
 public:
  File() : file_(std::tmpfile()) {
    BOOST_TEST_REQUIRE(file_ != nullptr);
    const std::string bytes(2 * Staging::kBytes, 'x');
    BOOST_TEST(std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size());
    std::fflush(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::fclose(file_); }
  int get() const { return fileno(file_); }

 private:
  std::FILE* file_;
};

struct Memory {
  explicit Memory(CUcontext context, std::size_t bytes = kBytes) : size(bytes) {
    SetStack({context});
    BOOST_TEST(RAW(cuMemAlloc)(&address, size) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuMemsetD8)(address, 0, size) == CUDA_SUCCESS);
    SetStack({});
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { RAW(cuMemFree)(address); }

  bool IsRead(CUcontext context) const {
    std::string bytes(size, ' ');
    const Stack before = GetStack();
    SetStack({context});
    BOOST_TEST(RAW(cuMemcpyDtoH)(bytes.data(), address, size) == CUDA_SUCCESS);
    SetStack(before);
    return bytes == std::string(size, 'x');
  }

  CUdeviceptr address = 0;
  std::size_t size;
};

// In the order in which they are made.
std::vector<std::string> g_calls;

std::size_t CallsOf(FileReader* reader, ReadBy read, const File& file, CUdeviceptr to) {
  g_calls.clear();
  Sim::OnEveryCall([](const char* entry) { g_calls.emplace_back(entry); });
  const absl::Status status = (reader->*read)(file.get(), 0, to, kBytes);
  Sim::OnEveryCall(nullptr);
  BOOST_TEST(status.ok(), status);
  return g_calls.size();
}

}  // namespace

BOOST_AUTO_TEST_CASE(calls_of_a_small_read, *cuguest_test::NeedsDriver(12000, "cuCtxGetId")) {
  const OwnContext of_memory;
  const OwnContext other;
  const File file;
  const Memory memory(of_memory.get());
  FileReader reader;
  BOOST_TEST(reader.Read(file.get(), 0, memory.address, kBytes).ok());
  const Stack stacks[] = {{of_memory.get()}, {other.get()}, {}};
  for (std::size_t i = 0; i < std::size(kCounts); ++i) {
    SetStack(stacks[i]);
    const std::size_t inside = CallsOf(&reader, &FileReader::ReadInside, file, memory.address);
    BOOST_TEST(std::to_string(inside) == kCounts[i].read_inside);
    const std::size_t read = CallsOf(&reader, &FileReader::Read, file, memory.address);
    BOOST_TEST(std::to_string(read) == kCounts[i].read);
    BOOST_TEST(GetStack() == stacks[i]);
    std::vector<std::string> made;
    for (const Made& call : kMade) made.emplace_back(call.call);
    BOOST_TEST(g_calls == made, boost::test_tools::per_element());
  }
  SetStack({});
  BOOST_TEST(memory.IsRead(of_memory.get()));
}

BOOST_AUTO_TEST_CASE(a_read_longer_than_the_pages) {
  const OwnContext context;
  const File file;
  const Memory memory(context.get(), Staging::kBytes + kBytes);
  FileReader reader;
  BOOST_TEST(reader.Read(file.get(), 0, memory.address, memory.size).ok());
  BOOST_TEST(memory.IsRead(context.get()));
  const absl::Status beyond =
      reader.Read(file.get(), 2 * Staging::kBytes - 1, memory.address, kBytes);
  BOOST_TEST((beyond.code() == absl::StatusCode::kOutOfRange));
  int local = 0;
  const auto plain = reinterpret_cast<CUdeviceptr>(&local);
  BOOST_TEST(!reader.Read(file.get(), 0, plain, sizeof(local)).ok());
}

// Each context has a stream and pages of its own, and those of one that is over are not used.
BOOST_AUTO_TEST_CASE(contexts_that_come_and_go, *cuguest_test::NeedsDriver(12000, "cuCtxGetId")) {
  const auto before = Sim::Live();
  {
    const File file;
    FileReader reader;
    const OwnContext stays;
    const Memory first(stays.get());
    for (int i = 0; i < 3; ++i) {
      const OwnContext goes;
      const Memory memory(goes.get());
      for (const ReadBy read : {&FileReader::Read, &FileReader::ReadInside}) {
        BOOST_TEST((reader.*read)(file.get(), 0, memory.address, kBytes).ok());
        BOOST_TEST((reader.*read)(file.get(), 0, first.address, kBytes).ok());
        BOOST_TEST(memory.IsRead(goes.get()));
      }
      BOOST_TEST(GetStack() == Stack{});
    }
    BOOST_TEST(first.IsRead(stays.get()));
    SetStack({stays.get()});  // so that its stream and pages are destroyed with the reader
  }
  SetStack({});
  BOOST_TEST((Sim::Live() == before));
}

BOOST_AUTO_TEST_CASE(captures_of_the_host_survive) {
  const OwnContext context;
  const File file;
  const Memory memory(context.get());
  SetStack({context.get()});
  CUstream stream = nullptr;
  BOOST_TEST(RAW(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  for (const ReadBy read : {&FileReader::Read, &FileReader::ReadInside}) {
    FileReader reader;
    BOOST_TEST(RAW(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    for (int i = 0; i < 2; ++i) {  // cold, and warm
      BOOST_TEST((reader.*read)(file.get(), 0, memory.address, kBytes).ok());
    }
    CUgraph graph = nullptr;
    BOOST_TEST(RAW(cuStreamEndCapture)(stream, &graph) == CUDA_SUCCESS);
    BOOST_TEST(RAW(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  }
  BOOST_TEST(RAW(cuStreamDestroy)(stream) == CUDA_SUCCESS);
  SetStack({});
}

BOOST_AUTO_TEST_SUITE_END()
