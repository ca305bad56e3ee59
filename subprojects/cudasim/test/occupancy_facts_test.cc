// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many blocks fit. The numbers are those of a device of 9.0.

#include <csignal>
#include <string>

#include "test/launches.h"
#include "test/support/child.h"

BOOST_AUTO_TEST_SUITE(occupancy_facts)

using namespace cudasim_facts;
using cudasim_test::OnlyIf;
using cudasim_test::OnlySim;

namespace {

bool IsHopper() {
  int major = 0;
  int minor = 0;
  OK(RAW(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  OK(RAW(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
  return major == 9 && minor == 0;
}

auto OnlyHopper() { return OnlyIf(&IsHopper, "the numbers are of compute capability 9.0"); }

int Multiprocessors() {
  int count = 0;
  OK(RAW(cuDeviceGetAttribute)(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  return count;
}

int Blocks(CUfunction function, int threads, size_t shared_bytes = 0) {
  int blocks = -7;
  OK(RAW(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, threads, shared_bytes));
  return blocks;
}

struct Potential {
  int blocks = -7;
  int threads = -7;
};

Potential Suggest(CUfunction function, CUoccupancyB2DSize shared_of, size_t shared_bytes,
                  int limit) {
  Potential potential;
  OK(RAW(cuOccupancyMaxPotentialBlockSize)(&potential.blocks, &potential.threads, function,
                                           shared_of, shared_bytes, limit));
  return potential;
}

void CheckSuggests(const Potential& potential, int blocks_each, int threads) {
  BOOST_TEST(potential.blocks == blocks_each * Multiprocessors());
  BOOST_TEST(potential.threads == threads);
}

CUresult Available(CUfunction function, int blocks, int threads, size_t* bytes) {
  return RAW(cuOccupancyAvailableDynamicSMemPerBlock)(bytes, function, blocks, threads);
}

size_t Available(CUfunction function, int blocks, int threads) {
  size_t bytes = 7;
  OK(Available(function, blocks, threads, &bytes));
  return bytes;
}

CUresult Clusters(const Launcher& launcher, const char* kernel, const Shape& shape, int* clusters) {
  const CUlaunchConfig config = ConfigOf(shape, launcher.stream);
  return RAW(cuOccupancyMaxActiveClusters)(clusters, launcher.Function(kernel), &config);
}

int Clusters(const Launcher& launcher, const char* kernel, const Shape& shape) {
  int clusters = -7;
  OK(Clusters(launcher, kernel, shape, &clusters));
  return clusters;
}

}  // namespace

BOOST_AUTO_TEST_CASE(warps_and_blocks_are_limited, *OnlyHopper()) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  const struct {
    int threads;
    int blocks;
  } rows[] = {{1, 32},  {32, 32}, {33, 32}, {64, 32},  {96, 21}, {128, 16},
              {256, 8}, {512, 4}, {768, 2}, {1024, 2}, {1025, 0}};
  for (const auto& row : rows) BOOST_TEST(Blocks(nothing, row.threads) == row.blocks);
}

BOOST_AUTO_TEST_CASE(shared_memory_is_limited, *OnlyHopper()) {
  const Launcher launcher;
  const CUfunction dynamic = launcher.Function("with_dynamic");
  BOOST_TEST(Blocks(dynamic, 32, 49152) == 4);
  BOOST_TEST(Blocks(dynamic, 32, 49153) == 0);
  OK(RAW(cuFuncSetAttribute)(dynamic, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
  const struct {
    size_t bytes;
    int blocks;
  } rows[] = {{0, 32},     {1024, 32},  {6272, 32},  {8192, 25},  {32768, 6}, {49153, 4},
              {100000, 2}, {115712, 2}, {116000, 1}, {232448, 1}, {232449, 0}};
  for (const auto& row : rows) BOOST_TEST(Blocks(dynamic, 32, row.bytes) == row.blocks);
  BOOST_TEST(Blocks(launcher.Function("with_shared"), 32) == 5);
}

BOOST_AUTO_TEST_CASE(shared_memory_has_32_bits, *OnlyHopper()) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  constexpr size_t kUnseen = size_t{1} << 32;
  for (const size_t bytes : {kUnseen, kUnseen + 8, kUnseen << 8}) {
    BOOST_TEST(Blocks(nothing, 256, bytes) == 8);
    CheckSuggests(Suggest(nothing, nullptr, bytes, 0), 2, 1024);
  }
  for (const size_t bytes : {kUnseen + 300000, kUnseen / 2, kUnseen / 2 - 1}) {
    BOOST_TEST(Blocks(nothing, 256, bytes) == 0);
    CheckSuggests(Suggest(nothing, nullptr, bytes, 0), 0, 0);
  }
}

BOOST_AUTO_TEST_CASE(a_bound_of_the_kernel_is_not_looked_at, *OnlyHopper()) {
  const Launcher launcher;
  BOOST_TEST(Blocks(launcher.Function("bounded"), 129) == 12);
}

BOOST_AUTO_TEST_CASE(a_block_size_is_suggested, *OnlyHopper()) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  const CUfunction with_shared = launcher.Function("with_shared");
  const auto by_thread = [](int threads) { return static_cast<size_t>(threads) * 64; };
  CheckSuggests(Suggest(nothing, nullptr, 0, 0), 2, 1024);
  CheckSuggests(Suggest(nothing, nullptr, 0, 5000), 2, 1024);
  CheckSuggests(Suggest(nothing, nullptr, 0, 1000), 4, 512);
  CheckSuggests(Suggest(nothing, nullptr, 0, 100), 32, 64);
  CheckSuggests(Suggest(nothing, nullptr, 0, 31), 32, 31);
  CheckSuggests(Suggest(nothing, nullptr, 20000, 0), 2, 1024);
  CheckSuggests(Suggest(nothing, by_thread, 0, 0), 4, 512);
  CheckSuggests(Suggest(launcher.Function("bounded"), nullptr, 20000, 0), 11, 128);
  CheckSuggests(Suggest(with_shared, nullptr, 0, 100), 5, 100);
  CheckSuggests(Suggest(with_shared, by_thread, 0, 0), 4, 128);
  // Nothing that could run is an answer, too.
  CheckSuggests(Suggest(nothing, nullptr, 300000, 0), 0, 0);
  CheckSuggests(Suggest(with_shared, nullptr, 20000, 0), 0, 0);
}

BOOST_AUTO_TEST_CASE(shared_memory_that_is_left, *OnlyHopper()) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  const CUfunction with_shared = launcher.Function("with_shared");
  const CUfunction dynamic = launcher.Function("with_dynamic");
  OK(RAW(cuFuncSetAttribute)(dynamic, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
  BOOST_TEST(Available(nothing, 2, 128) == 49152u);
  BOOST_TEST(Available(nothing, 8, 32) == 29184u);
  BOOST_TEST(Available(dynamic, 1, 1024) == 232448u);
  BOOST_TEST(Available(dynamic, 3, 32) == 77824u);
  BOOST_TEST(Available(dynamic, 31, 32) == 7424u);
  BOOST_TEST(Available(with_shared, 5, 32) == 5632u);
  // It is more than such blocks can have.
  BOOST_TEST(Available(dynamic, 2, 32) == 116736u);
  BOOST_TEST(Blocks(dynamic, 32, 116736) == 1);
  size_t bytes = 0;
  IS(Available(dynamic, 3, 1024, &bytes), INVALID_VALUE);
  IS(Available(dynamic, 33, 32, &bytes), INVALID_VALUE);
  IS(Available(with_shared, 6, 32, &bytes), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(wrong_arguments) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  int blocks = 0;
  int threads = 0;
  size_t bytes = 0;
  IS(RAW(cuOccupancyMaxActiveBlocksPerMultiprocessor)(nullptr, nothing, 32, 0), INVALID_VALUE);
  IS(RAW(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, nullptr, 32, 0), INVALID_HANDLE);
  IS(RAW(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, nothing, 0, 0), INVALID_VALUE);
  IS(RAW(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, nothing, -1, 0), INVALID_VALUE);
  for (const unsigned flags : {0u, 1u}) {
    OK(RAW(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(&blocks, nothing, 32, 0, flags));
    OK(RAW(cuOccupancyMaxPotentialBlockSizeWithFlags)(&blocks, &threads, nothing, nullptr, 0, 0,
                                                      flags));
  }
  IS(RAW(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(&blocks, nothing, 32, 0, 2),
     INVALID_VALUE);
  IS(RAW(cuOccupancyMaxPotentialBlockSizeWithFlags)(&blocks, &threads, nothing, nullptr, 0, 0, 2),
     INVALID_VALUE);
  const auto suggest = RAW(cuOccupancyMaxPotentialBlockSize);
  IS(suggest(nullptr, &threads, nothing, nullptr, 0, 0), INVALID_VALUE);
  IS(suggest(&blocks, nullptr, nothing, nullptr, 0, 0), INVALID_VALUE);
  IS(suggest(&blocks, &threads, nullptr, nullptr, 0, 0), INVALID_HANDLE);
  IS(suggest(&blocks, &threads, nothing, nullptr, 0, -1), INVALID_VALUE);
  IS(Available(nullptr, 1, 32, &bytes), INVALID_HANDLE);
  for (const int count : {0, -1}) IS(Available(nothing, count, 32, &bytes), INVALID_VALUE);
  for (const int size : {0, 1025}) IS(Available(nothing, 1, size, &bytes), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(any_context_will_do_but_not_none) {
  const Launcher a;
  const Launcher b;  // current
  const CUfunction of_a = a.Function("nothing");
  BOOST_TEST(Blocks(of_a, 32) > 0);
  BOOST_TEST(Available(of_a, 1, 32) > 0u);
  SetStack({});
  int blocks = 0;
  int threads = 0;
  size_t bytes = 0;
  IS(RAW(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, of_a, 32, 0), INVALID_CONTEXT);
  IS(RAW(cuOccupancyMaxPotentialBlockSize)(&blocks, &threads, of_a, nullptr, 0, 0),
     INVALID_CONTEXT);
  IS(Available(of_a, 1, 32, &bytes), INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(a_kernel_can_be_asked_about) {
  const Launcher launcher;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  OK(RAW(cuLibraryLoadData)(&library, kLaunchPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(RAW(cuLibraryGetKernel)(&kernel, library, "nothing"));
  const auto function = reinterpret_cast<CUfunction>(kernel);
  const Shape shape = With({Cluster(2)}, 48, 32);
  const CUlaunchConfig config = ConfigOf(shape, launcher.stream);
  int count = 0;
  BOOST_TEST(Blocks(function, 32) > 0);
  BOOST_TEST(Suggest(function, nullptr, 0, 0).threads > 0);
  BOOST_TEST(Available(function, 2, 32) > 0u);
  OK(RAW(cuOccupancyMaxActiveClusters)(&count, function, &config));
  OK(RAW(cuOccupancyMaxPotentialClusterSize)(&count, function, &config));
  SetStack({});
  IS(RAW(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&count, function, 32, 0), INVALID_CONTEXT);
  OK(RAW(cuLibraryUnload)(library));
}

BOOST_AUTO_TEST_CASE(clusters_that_fit, *OnlyHopper()) {
  const Launcher launcher;
  const int pairs = Multiprocessors() / 2;
  BOOST_TEST(Clusters(launcher, "nothing", With({Cluster(1)}, 48, 1024)) == 4 * pairs);
  BOOST_TEST(Clusters(launcher, "nothing", With({Cluster(2)}, 48, 1024)) == 2 * pairs);
  BOOST_TEST(Clusters(launcher, "nothing", With({Cluster(2)}, 48, 32)) == 8 * pairs);
  BOOST_TEST(Clusters(launcher, "nothing", With({Cluster(2)}, 2, 32)) == 8 * pairs);
  BOOST_TEST(Clusters(launcher, "with_shared", With({Cluster(2)}, 48, 32)) == 5 * pairs);
  BOOST_TEST(Clusters(launcher, "clustered", With({}, 48, 32)) == 8 * pairs);
  BOOST_TEST(Clusters(launcher, "nothing", With({Cluster(8)}, 48, 32)) > 0);
  BOOST_TEST(Clusters(launcher, "nothing", With({}, 48, 32)) == 0);
  BOOST_TEST(Clusters(launcher, "nothing", With({Cluster(2)}, 48, 1025)) == 0);
}

BOOST_AUTO_TEST_CASE(clusters_that_cannot_be) {
  const Launcher launcher;
  int count = 0;
  IS(Clusters(launcher, "nothing", With({Cluster(2)}, 47, 32), &count), INVALID_CLUSTER_SIZE);
  IS(Clusters(launcher, "nothing", With({Cluster(16)}, 48, 32), &count), INVALID_CLUSTER_SIZE);
  IS(Clusters(launcher, "clustered", With({Cluster(4)}, 48, 32), &count), INVALID_CLUSTER_SIZE);
  IS(Clusters(launcher, "must_cluster", With({}, 48, 32), &count), INVALID_CLUSTER_SIZE);
  IS(Clusters(launcher, "nothing", With({Cluster(2)}, 0, 32), &count), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(the_largest_cluster, *OnlyHopper()) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  const Shape shape = With({}, 48, 32);
  const CUlaunchConfig config = ConfigOf(shape, launcher.stream);
  int size = 0;
  OK(RAW(cuOccupancyMaxPotentialClusterSize)(&size, nothing, &config));
  BOOST_TEST(size == 8);
  OK(RAW(cuFuncSetAttribute)(nothing, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  OK(RAW(cuOccupancyMaxPotentialClusterSize)(&size, nothing, &config));
  BOOST_TEST(size == 16);
  IS(RAW(cuOccupancyMaxPotentialClusterSize)(&size, launcher.Function("must_cluster"), &config),
     INVALID_CLUSTER_SIZE);
}

BOOST_AUTO_TEST_CASE(the_stream_says_where_clusters_are) {
  const Launcher a;
  const Launcher b;  // current
  const CUfunction of_a = a.Function("nothing");
  const Shape shape = With({Cluster(2)}, 48, 32);
  CUlaunchConfig config = ConfigOf(shape, a.stream);
  int count = 0;
  const auto ask = [&] { return RAW(cuOccupancyMaxActiveClusters)(&count, of_a, &config); };
  OK(ask());
  config.hStream = nullptr;
  IS(ask(), INVALID_HANDLE);
  SetStack({});
  IS(ask(), INVALID_CONTEXT);
  config.hStream = a.stream;
  OK(ask());
  IS(RAW(cuOccupancyMaxActiveClusters)(nullptr, of_a, &config), INVALID_VALUE);
  IS(RAW(cuOccupancyMaxActiveClusters)(&count, of_a, nullptr), INVALID_VALUE);
  IS(RAW(cuOccupancyMaxActiveClusters)(&count, nullptr, &config), INVALID_VALUE);
  IS(RAW(cuOccupancyMaxPotentialClusterSize)(nullptr, of_a, &config), INVALID_VALUE);
  IS(RAW(cuOccupancyMaxPotentialClusterSize)(&count, of_a, nullptr), INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(no_question_invalidates_a_capture) {
  const Launcher launcher;
  const CUfunction nothing = launcher.Function("nothing");
  OK(Begin(launcher.stream, kGlobal));
  Blocks(nothing, 32);
  Suggest(nothing, nullptr, 0, 0);
  Available(nothing, 1, 32);
  Clusters(launcher, "nothing", With({Cluster(2)}, 48, 32));
  BOOST_TEST(StatusOf(launcher.stream) == kActive);
  End(launcher.stream);
}

CHILD(ask_for_shared_memory_nowhere) {
  RAW(cuInit)(0);
  const Launcher launcher;
  return static_cast<int>(Available(launcher.Function("nothing"), 1, 32, nullptr));
}

BOOST_AUTO_TEST_CASE(what_crashes_a_real_driver_panics, *OnlySim()) {
  const cudasim_test::Ended ended = cudasim_test::RunChild("ask_for_shared_memory_nowhere");
  BOOST_TEST(ended.code == -SIGABRT);
  BOOST_TEST((ended.output.find("a null argument") != std::string::npos), ended.output);
}

BOOST_AUTO_TEST_SUITE_END()
