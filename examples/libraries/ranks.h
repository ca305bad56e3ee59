// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An example as ranks of MPI, with a GPU each: as many as there are GPUs.

#ifndef CUGUEST_EXAMPLES_LIBRARIES_RANKS_H_
#define CUGUEST_EXAMPLES_LIBRARIES_RANKS_H_

#include <cuda_runtime_api.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "examples/support/example.h"

namespace support {

inline int ranks = 0;
inline int rank = 0;

inline int CountDevices() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

// RunExample() in each rank. Started alone, the program starts itself with mpirun. Skipped without
// MPI, and where there are not two GPUs.
inline int RunRanks(int argc, char** argv, const char* question, Demonstration demonstration) {
  if (argc == 1 && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) {
    const std::string one_each = std::to_string(std::max(CountDevices(), 2));
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);  // in a container, say
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    execlp("mpirun", "mpirun", "--oversubscribe", "--bind-to", "none", "-n", one_each.c_str(),
           Beside("ranks_with_nccl").c_str(), static_cast<char*>(nullptr));
  }
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return kSkipped;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int code = kSkipped;
  const int devices = CountDevices();
  if (ranks < 2 || devices < ranks) {
    std::fprintf(stderr, "skipped: %d ranks have %d devices, and each of two or more needs one\n",
                 ranks, devices);
  } else {
    // Rank 0 prints; what another rank finds wrong, it prints to stderr.
    if (rank != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return 1;
    code = RunExample(question, demonstration);
  }
  MPI_Finalize();
  return code;
}

}  // namespace support

#endif  // CUGUEST_EXAMPLES_LIBRARIES_RANKS_H_
