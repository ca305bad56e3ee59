// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -----------------------------------------------------------------------------
// cudasim/sim.h
// -----------------------------------------------------------------------------
/// \file
/// Control of the simulated CUDA driver: a `libcuda.so.1` that models what a real
/// driver does to contexts, stacks and counts, so that a library's etiquette can
/// be tested where there is no GPU. Put its directory (the Meson and pkg-config
/// variable `simdir`) on LD_LIBRARY_PATH of the test; nothing is linked. On a real
/// driver `Sim::IsActive()` is false, and the same binary tests the real thing.
///
///   if (Sim::IsActive()) {
///     Sim::FailCall("cuCtxPopCurrent", /*nth=*/1, CUDA_ERROR_UNKNOWN);
///     ...
///     BOOST_TEST(Sim::Calls("cuCtxPushCurrent") == 1);
///   }
///
/// Older drivers are in the subdirectories 11.2, 11.4, 11.8, 12.0, 12.2, 12.4, 12.6 and 12.8:
/// with `simdir`/11.8 in front of `simdir` on LD_LIBRARY_PATH the driver claims CUDA 11.8, and
/// neither cuGetProcAddress nor dlsym finds what came later. Calls behave as measured on driver
/// 580 (CUDA 13.0) but where the headers of a CUDA release say otherwise: enumerators of
/// errors, attributes and flags that came later are unknown. PTX and cubins of every version
/// load on every driver.
///
/// It is a test double for contexts, not an emulator of GPUs: device memory is
/// host memory, work that waits for nothing is done when it is submitted (but see
/// Sim::ScheduleWork), and a kernel runs only if a host function was registered
/// under its name. What is undefined on a real driver
/// (pushing a destroyed handle, say, which corrupts the heap) aborts with the
/// name of the call and a stack trace.

#ifndef CUDASIM_SIM_H_
#define CUDASIM_SIM_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

/// Of inline functions: no symbol that two libraries of a process could share.
#define CUDASIM_HIDE [[gnu::visibility("hidden")]]

namespace cudasim {

/// What a host function that runs in place of a kernel is given.
struct SimLaunch {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void* const* parameters;        ///< one pointer per parameter, as for cuLaunchKernel
  const size_t* parameter_sizes;  ///< bytes, from the PTX signature
  size_t parameter_count;
  unsigned cluster[3];  ///< in blocks; 1, 1, 1 without clusters
  bool cooperative;
};

/// Returns CUDA_SUCCESS, or the sticky error (CUDA_ERROR_ILLEGAL_ADDRESS, ...)
/// that the kernel would have ended in: the device is then lost to the process.
using SimKernel = CUresult (*)(const SimLaunch& launch);

/// What is alive in the simulated process; all zero after clean work.
struct SimLive {
  size_t contexts;            ///< made with cuCtxCreate and not destroyed
  size_t primary_references;  ///< outstanding retains, over all devices
  size_t allocations;         ///< of every kind, registered and mapped memory too
  size_t streams;
  size_t events;
  size_t modules;
  size_t green_contexts;  ///< each is also one of the primary references
  size_t graphs;          ///< and executable ones; a capture in progress has one
  size_t pools;           ///< made with cuMemPoolCreate and not destroyed
  size_t virtual_memory;  ///< allocations of cuMemCreate, and reserved address ranges
  size_t arrays;          ///< and mipmapped ones, not their levels
  size_t textures;        ///< texture and surface objects
  size_t libraries;       ///< their modules are counted above
  size_t link_states;     ///< made with cuLinkCreate and not destroyed
  CUDASIM_HIDE friend bool operator==(const SimLive& a, const SimLive& b) {
    return a.contexts == b.contexts && a.primary_references == b.primary_references &&
           a.allocations == b.allocations && a.streams == b.streams && a.events == b.events &&
           a.modules == b.modules && a.green_contexts == b.green_contexts && a.graphs == b.graphs &&
           a.pools == b.pools && a.virtual_memory == b.virtual_memory && a.arrays == b.arrays &&
           a.textures == b.textures && a.libraries == b.libraries && a.link_states == b.link_states;
  }
  CUDASIM_HIDE friend bool operator!=(const SimLive& a, const SimLive& b) { return !(a == b); }
};

/// Sim
///
/// Entry names are the driver's base names ("cuCtxPushCurrent", whichever version
/// is called). Every function but IsActive() does nothing, or returns zero, where
/// the simulation is not the process's driver. Configuration (devices, version,
/// hidden entries) acts on what is resolved or initialised afterwards.
///
/// Threads: any.
class Sim {
 public:
  /// Whether this process's libcuda.so.1 is the simulation (loads it if nobody has).
  [[nodiscard]] static bool IsActive();

  /// The number of devices cuInit will find; 0 makes it fail with NO_DEVICE.
  /// Default 2. No effect after cuInit.
  static void SetDeviceCount(int count);

  /// The version the driver claims. cuGetProcAddress does not hand out entries that are newer;
  /// what dlsym finds stays that of the loaded library. Default 13000, or the directory's.
  static void SetDriverVersion(int version);

  /// Makes cuGetProcAddress answer "not found" for `entry`; nullptr shows all again.
  static void HideEntry(const char* entry);

  /// Whether a context can be created with an execution affinity, which a real driver supports
  /// under MPS alone; a count of multiprocessors is then at least 8 and rounded up to an even
  /// number, as on an H100. Default: no.
  static void SupportExecAffinity(bool supported);

  /// Whether a context can be created for CUDA in Graphics, with any client data but null; its
  /// CU_LIMIT_CIG_ENABLED is then 1. Default: no. Not measured: as <cuda.h> describes it.
  static void SupportCig(bool supported);

  /// Whether every device reaches all memory of the host, as with HMM or on a GH200:
  /// CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS is 1, and copies and fills take the addresses of
  /// plain memory for a device's. Default: no. Not measured: as the CUDA Programming Guide says.
  static void SupportPageableAccess(bool supported);

  /// Whether a device has memory pools: without, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED is 0,
  /// and cuMemAllocAsync() gives CUDA_ERROR_NOT_SUPPORTED. Default: yes. Not measured: as <cuda.h>
  /// says.
  static void SupportMemoryPools(bool supported);

  /// The id of the next context, which those that follow count on from; not 0. Default 1.
  static void SetNextContextId(std::uint64_t id);

  /// The `nth` call from now of `entry` (1 is the next) returns `code` and does
  /// nothing else; later ones work again. Several may be armed at a time; of two for one
  /// call, the one that was armed later is the next call's.
  /// `from_any_thread` false counts only the calling thread's calls.
  static void FailCall(const char* entry, unsigned nth, CUresult code, bool from_any_thread = true);
  static void ClearFaults();

  /// Runs `hook` at the beginning of every call, on the calling thread, before the simulation takes
  /// any lock: as a tool's callback, or a thread that is preempted there, would. Calls that `hook`
  /// itself makes run no hook. nullptr removes it; calls in progress may still run it.
  static void OnEveryCall(void (*hook)(const char* entry));

  /// Calls since the start or the last ResetCalls(), from every thread.
  [[nodiscard]] static std::uint64_t Calls(const char* entry);
  [[nodiscard]] static std::uint64_t TotalCalls();
  static void ResetCalls();

  /// Calls of what the simulation does not model, since the start or the last ResetCalls(): of the
  /// driver, the runtime and the toolkit libraries. Each returned its library's code for what is
  /// not supported: CUDA_ERROR_NOT_SUPPORTED, cudaErrorNotSupported, CUBLAS_STATUS_NOT_SUPPORTED
  /// and so on; CURAND_STATUS_ARCH_MISMATCH and ncclInvalidUsage, where there is none. Functions
  /// that are not modelled at all are counted, and calls of others with a flag or an attribute that
  /// is not. `symbol` is an exported name ("cuGraphGetEdges_v2", "cublasAsumEx"); null: of all of
  /// them.
  [[nodiscard]] static std::uint64_t UnmodelledCalls(const char* symbol = nullptr);

  /// The name of entry `index`, in no particular order; nullptr past the last.
  [[nodiscard]] static const char* EntryName(size_t index);

  [[nodiscard]] static SimLive Live();

  /// Runs `kernel` for every launch of a function of that name.
  static void RegisterKernel(const char* name, SimKernel kernel);

  /// Whether a launch of a kernel that has no host function does nothing and is counted, when it
  /// would run, instead of ending the process. Default false; the environment variable
  /// CUDASIM_UNKNOWN_KERNELS=skip sets it from the start.
  static void SkipUnknownKernels(bool skip);

  /// How many launches of kernel `name` were skipped; of all kernels if it is null.
  [[nodiscard]] static std::uint64_t SkippedLaunches(const char* name = nullptr);

  /// From now on work is not done by the call that submits it, so that a use of its results before
  /// it is done, or an order of two streams that nothing enforces, shows. The simulated GPU does
  /// one piece of work after another (a copy, a kernel, a record of an event), each chosen at
  /// random among those that wait for no other, and each takes `calls` driver calls of any thread.
  /// Calls that wait for work take no time. A program that makes the same calls in the same order,
  /// on the same seed, has its work done in the same order at the same calls, on every machine:
  /// nothing depends on time, except that
  /// - the GPU goes on with other work after a host function has run for 100 ms, and
  /// - all work is done once the program has made no call for a second.
  ///
  /// 0 calls return to the default: work that waits for nothing is done at once, and only host
  /// functions, and what waits for them, later, on a thread of the driver's. The environment
  /// variable CUDASIM_SCHEDULE=SEED:CALLS sets it from the start.
  ///
  /// The nodes of a graph are done in the order of their creation.
  static void ScheduleWork(std::uint64_t seed, unsigned calls);

  /// In a kernel: where a variable (`__device__`, `__constant__`, `__managed__`) of the kernel's
  /// module is in the context that the kernel runs in, and its bytes unless `size` is null.
  /// `name` is as in the PTX: mangled, for a variable of a namespace. It may be read and
  /// written as long as the kernel runs. False outside of a kernel, and for a name that the
  /// module does not have; nothing is written then.
  static bool FindVariable(const char* name, void** address, size_t* size = nullptr);

  /// In a kernel: the cuCtxGetId of the context that owns its module. 0 outside of one.
  [[nodiscard]] static std::uint64_t KernelContextId();

  /// In a kernel: whether it may read and write these bytes, all of them. Where it may not, a GPU
  /// ends in CUDA_ERROR_ILLEGAL_ADDRESS, which the kernel's function then returns: memory that was
  /// freed or is not the driver's; of a pool or a mapping that its device was given no access to;
  /// of a context of another device without peer access. False outside of a kernel.
  [[nodiscard]] static bool KernelReaches(const void* address, size_t bytes);

  /// What a kernel reads of a texture object of its context (of the current one, outside a kernel),
  /// as tex2D<float4> does by point sampling at coordinates that are not normalised: of an array
  /// its first slice, or of pitched memory. A coordinate beyond the edge is that of the edge.
  /// Integers come as floats of their value, exact to 24 bits; a channel that there is not is 0. Of
  /// linear memory it is tex1Dfetch: element `x`, and zeros outside.
  ///
  /// Zeros and CUDA_ERROR_NOT_SUPPORTED, for the kernel to return, where the way to read is not
  /// modelled: linear filtering, normalised coordinates, borders, channels of 8 or 16 bits,
  /// mipmapped arrays, sRGB, resource views. UnmodelledCalls("Sim::ReadTexture") counts them.
  /// Aborts for what is undefined on a GPU: another context's texture, a destroyed array, freed
  /// memory.
  static CUresult ReadTexture(CUtexObject texture, float x, float y, float texel[4]);

  /// What a kernel does with `bytes` bytes of a surface of its context, `x` bytes into row
  /// `y`. CUDA_ERROR_ILLEGAL_ADDRESS, for the kernel to return, where that is outside.
  /// Aborts as ReadTexture does.
  [[nodiscard]] static CUresult ReadSurface(CUsurfObject surface, size_t x, size_t y, void* data,
                                            size_t bytes);
  [[nodiscard]] static CUresult WriteSurface(CUsurfObject surface, size_t x, size_t y,
                                             const void* data, size_t bytes);

  /// From now on every call returns CUDA_ERROR_DEINITIALIZED, as at the very end
  /// of a process. There is no way back.
  static void Deinitialize();
};

}  // namespace cudasim

#endif  // CUDASIM_SIM_H_
