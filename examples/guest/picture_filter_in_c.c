// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How does a library in C work in a context that FFmpeg hands it?
//
// The library, picture_score.c, compares pictures as libvmaf does. It is handed the context of
// FFmpeg's hardware device and the functions that ffnvcodec has loaded, whose headers cannot stand
// beside <cuda.h>; cuguest/c.h includes nothing of CUDA. It links neither a CUDA library nor
// Abseil nor libstdc++: only the archive of cuguest's core.
//
//      in the host's logger             [A]<        mean squared error 9.0
//      when it returned                 [A]<

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void* find_symbol(void* library, const char* name);
#define FFNV_LOAD_FUNC(path) dlopen((path), RTLD_LAZY)
#define FFNV_SYM_FUNC(library, name) find_symbol((library), (name))
#define FFNV_FREE_FUNC(library) dlclose(library)

#include <ffnvcodec/dynlink_cuda.h>
#include <ffnvcodec/dynlink_loader.h>

#include "cuguest/c.h"
#include "examples/guest/picture_score.h"

enum { SKIPPED = 77, BYTES = 64 * 48 };

static int failures;
#define CHECK(holds)                                                                 \
  do {                                                                               \
    if (!(holds)) {                                                                  \
      ++failures;                                                                    \
      printf("FAILED: %s:%d: this does not hold: %s\n", __FILE__, __LINE__, #holds); \
    }                                                                                \
  } while (0)

// The loader wants the graphics functions of every driver, and the simulation has none.
static CUresult refuse(void) { return (CUresult)801; }
static void* find_symbol(void* library, const char* name) {
  CUresult (*const function)(void) = &refuse;
  void* address = dlsym(library, name);
  if (address == NULL && dlsym(library, "cudasimControl") != NULL) {
    memcpy(&address, &function, sizeof(address));
  }
  return address;
}

struct host {
  CudaFunctions* cuda;
  CUcontext application, ffmpeg;
  int forgets_to_pop;
};

// The calling thread's stack. Pops everything, and pushes it again.
static const char* draw(const struct host* host) {
  static char text[100];
  CUcontext entries[8];
  int depth = 0;
  size_t used = 0;
  while (depth < 8 && host->cuda->cuCtxPopCurrent(&entries[depth]) == CUDA_SUCCESS) ++depth;
  text[0] = '\0';
  while (depth > 0) {
    const char* const name = entries[--depth] == host->application ? "[A] " : "[F] ";
    CHECK(host->cuda->cuCtxPushCurrent(entries[depth]) == CUDA_SUCCESS);
    used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", name);
  }
  if (used > 0) text[used - 1] = '<';
  return text;
}

static void print_row(const struct host* host, const char* when, const char* remark) {
  const char* const stack = draw(host);
  printf("   %-32s %-11s %s\n", when, stack, remark);
  CHECK(strcmp(stack, "[A]<") == 0);
}

static void log_line(void* user, const char* text) {
  print_row(user, "in the host's logger", text);
}

static CUresult allocate(void* user, size_t bytes, CUdeviceptr* memory) {
  const struct host* const host = user;
  if (host->forgets_to_pop) CHECK(host->cuda->cuCtxPushCurrent(host->ffmpeg) == CUDA_SUCCESS);
  return host->cuda->cuMemAlloc(memory, bytes);
}

// A frame of FFmpeg's, which pushes and pops its context.
static CUdeviceptr make_frame(const struct host* host, unsigned char value) {
  unsigned char pixels[BYTES];
  CUdeviceptr frame = 0;
  CUcontext popped = NULL;
  memset(pixels, value, sizeof(pixels));
  CHECK(host->cuda->cuCtxPushCurrent(host->ffmpeg) == CUDA_SUCCESS);
  CHECK(host->cuda->cuMemAlloc(&frame, BYTES) == CUDA_SUCCESS);
  CHECK(host->cuda->cuMemcpyHtoD(frame, pixels, BYTES) == CUDA_SUCCESS);
  CHECK(host->cuda->cuCtxPopCurrent(&popped) == CUDA_SUCCESS && popped == host->ffmpeg);
  return frame;
}

static void call_library(struct host* host) {
  const struct score_host handed = {host->cuda, host->ffmpeg, &log_line, &allocate, host};
  const CUdeviceptr reference = make_frame(host, 10), distorted = make_frame(host, 13);
  struct score* score = NULL;
  double error = 0;
  int code;
  print_row(host, "before the library is called", "");
  code = score_open(&handed, BYTES, &score);
  if (code == 0) code = score_compare(score, reference, distorted, &error);
  print_row(host, "when it returned", code == 0 ? "" : cuguest_error_name(code));
  CHECK(code == 0 && error == 9.0);
  CHECK(score_close(score) == 0);
  print_row(host, "when it was closed", "");
}

static CUcontext make_context(const struct host* host) {
  CUcontext context = NULL, popped = NULL;
  CHECK(host->cuda->cuCtxCreate(&context, 0, 0) == CUDA_SUCCESS);
  CHECK(host->cuda->cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
  return context;
}

int main(void) {
  struct host host = {NULL, NULL, NULL, 0};
  printf("How does a library in C work in a context that FFmpeg hands it?\n");
  if (cuda_load_functions(&host.cuda, NULL) != 0 || host.cuda->cuInit(0) != CUDA_SUCCESS) {
    fprintf(stderr, "skipped: there is no driver, or no device\n");
    return SKIPPED;
  }
  host.application = make_context(&host);
  host.ffmpeg = make_context(&host);
  CHECK(host.cuda->cuCtxPushCurrent(host.application) == CUDA_SUCCESS);

  printf("\n1. The application works in A, and FFmpeg's context F is handed to the library\n\n");
  call_library(&host);
  CHECK(cuguest_incident_count(-1) == 0);

  printf("\n2. The host's allocator pushes F, and forgets to pop it\n\n");
  host.forgets_to_pop = 1;
  call_library(&host);
  CHECK(cuguest_incident_count(CUGUEST_LEAKED_PUSH) == 1 && cuguest_incident_count(-1) == 1);

  CHECK(host.cuda->cuCtxDestroy(host.ffmpeg) == CUDA_SUCCESS);
  CHECK(host.cuda->cuCtxDestroy(host.application) == CUDA_SUCCESS);
  cuda_free_functions(&host.cuda);
  printf("\n%s\n", failures == 0 ? "Every check passed." : "A CHECK FAILED.");
  return failures == 0 ? 0 : 1;
}
