// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As much of a driver as c_test.c and cxx_test.cc look at, for Windows, where the simulation does
// not run: contexts of one device and their ids, stacks of threads, the primary context, and what
// memory and a stream belong to. Everything else is there, and refuses with
// CUDA_ERROR_NOT_SUPPORTED. test/embed/windows_test.py runs the same tests on it, on Linux too.

#include <stddef.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#define THIS_PROCESS() 1 /* is not forked */
#else
#include <unistd.h>
#define EXPORT __attribute__((visibility("default")))
#define THIS_PROCESS() ((int)getpid())
#endif

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  NOT_INITIALIZED = 3,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  NOT_FOUND = 500,
  CONTEXT_IS_DESTROYED = 709,
  NOT_SUPPORTED = 801
};
enum { DEPTH = 256, CONTEXTS = 256, OBJECTS = 16 };
enum { INVALID_ORDINAL = -2, DEVICE_MEMORY = 2 };
#define KNOWN_FLAGS 0xffU

typedef struct CUctx_st {
  unsigned long long id;
  int is_alive;
} context_t;
struct memory {
  unsigned long long begin, size;
  context_t* context;
};
struct stream {
  context_t* context;
};

static int initialized_by; /* a process */
static unsigned long long last_id, last_address = 0x700000000ULL;
static context_t primary, contexts[CONTEXTS];
static int count_of_contexts, references;
static struct memory memories[OBJECTS];
static struct stream streams[OBJECTS];
static __thread context_t* stack[DEPTH];
static __thread int depth, capture_mode;

#define NEED(holds, code)      \
  do {                         \
    if (!(holds)) return code; \
  } while (0)
#define NEED_INIT() NEED(initialized_by == THIS_PROCESS(), NOT_INITIALIZED)

static context_t* top(void) { return depth > 0 ? stack[depth - 1] : NULL; }

static int has_current(void) {
  NEED_INIT();
  NEED(top() != NULL, INVALID_CONTEXT);
  return top()->is_alive ? SUCCESS : CONTEXT_IS_DESTROYED;
}

static int is_device(int device) {
  NEED_INIT();
  return device == 0 ? SUCCESS : INVALID_DEVICE;
}

static int not_supported(void) { return NOT_SUPPORTED; }

EXPORT int cuInit(unsigned flags) {
  NEED(flags == 0, INVALID_VALUE);
  NEED(initialized_by == 0 || initialized_by == THIS_PROCESS(), NOT_INITIALIZED);
  initialized_by = THIS_PROCESS();
  return SUCCESS;
}

EXPORT int cuDriverGetVersion(int* version) {
  *version = 12040;
  return SUCCESS;
}

EXPORT int cuDeviceGetCount(int* count) {
  NEED_INIT();
  *count = 1;
  return SUCCESS;
}

EXPORT int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return is_device(ordinal);
}

EXPORT int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = 0;
  return is_device(device) == SUCCESS ? is_device(peer) : is_device(device);
}

EXPORT int cuCtxPushCurrent_v2(context_t* context) {
  NEED_INIT();
  NEED(context != NULL && depth < DEPTH, INVALID_CONTEXT);
  NEED(context->is_alive, CONTEXT_IS_DESTROYED);
  stack[depth++] = context;
  return SUCCESS;
}

EXPORT int cuCtxPopCurrent_v2(context_t** popped) {
  NEED_INIT();
  NEED(depth > 0, INVALID_CONTEXT);
  *popped = stack[--depth];
  return SUCCESS;
}

EXPORT int cuCtxGetCurrent(context_t** current) {
  NEED_INIT();
  *current = top();
  return SUCCESS;
}

EXPORT int cuCtxSetCurrent(context_t* context) {
  NEED_INIT();
  NEED(context == NULL || context->is_alive, CONTEXT_IS_DESTROYED);
  depth -= depth > 0;
  if (context != NULL) stack[depth++] = context;
  return SUCCESS;
}

EXPORT int cuCtxCreate_v2(context_t** created, unsigned flags, int device) {
  NEED_INIT();
  NEED((flags & ~KNOWN_FLAGS) == 0 && count_of_contexts < CONTEXTS, INVALID_VALUE);
  NEED(is_device(device) == SUCCESS, INVALID_DEVICE);
  *created = &contexts[count_of_contexts++];
  (*created)->id = ++last_id;
  (*created)->is_alive = 1;
  return cuCtxPushCurrent_v2(*created);
}

/* Takes it off the calling thread's stack alone. */
EXPORT int cuCtxDestroy_v2(context_t* context) {
  NEED_INIT();
  NEED(context != NULL && context != &primary, INVALID_CONTEXT);
  NEED(context->is_alive, CONTEXT_IS_DESTROYED);
  context->is_alive = 0;
  depth -= top() == context;
  return SUCCESS;
}

EXPORT int cuCtxGetId(context_t* context, unsigned long long* id) {
  NEED_INIT();
  if (context == NULL) context = top();
  NEED(context != NULL, INVALID_CONTEXT);
  NEED(context->is_alive, CONTEXT_IS_DESTROYED);
  *id = context->id;
  return SUCCESS;
}

EXPORT int cuCtxGetApiVersion(context_t* context, unsigned* version) {
  NEED_INIT();
  if (context == NULL) NEED(has_current() == SUCCESS, has_current());
  NEED(context == NULL || context->is_alive, INVALID_CONTEXT);
  *version = 3020;
  return SUCCESS;
}

EXPORT int cuCtxGetDevice(int* device) {
  *device = 0;
  return has_current();
}

EXPORT int cuDevicePrimaryCtxRetain(context_t** context, int device) {
  NEED(is_device(device) == SUCCESS, is_device(device));
  if (!primary.is_alive) primary.id = ++last_id;
  primary.is_alive = 1;
  ++references;
  *context = &primary;
  return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  NEED(is_device(device) == SUCCESS, is_device(device));
  NEED(references > 0, INVALID_CONTEXT);
  primary.is_alive = --references > 0;
  return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxReset_v2(int device) {
  primary.is_alive = 0;
  return is_device(device);
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *flags = 0;
  *active = primary.is_alive;
  return is_device(device);
}

EXPORT int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  *free_bytes = (size_t)1 << 30;
  *total = (size_t)1 << 31;
  return has_current();
}

EXPORT int cuMemAlloc_v2(unsigned long long* address, size_t size) {
  struct memory* one = memories;
  NEED(has_current() == SUCCESS, has_current());
  while (one->size != 0) ++one;
  one->begin = *address = last_address;
  one->size = size;
  one->context = top();
  last_address += 1ULL << 20;
  return SUCCESS;
}

EXPORT int cuMemFree_v2(unsigned long long address) {
  int i;
  for (i = 0; i < OBJECTS; ++i) {
    if (memories[i].begin == address) memories[i].size = 0;
  }
  return has_current();
}

static int get_attribute(void* value, int attribute, unsigned long long address) {
  static const struct memory none;
  const struct memory* one = &none;
  int i;
  for (i = 0; i < OBJECTS; ++i) {
    if (address - memories[i].begin < memories[i].size) one = &memories[i];
  }
  NEED_INIT();
  switch (attribute) {
    case 1: /* CU_POINTER_ATTRIBUTE_CONTEXT */
      *(context_t**)value = one->context;
      break;
    case 2: /* _MEMORY_TYPE */
      *(unsigned*)value = one->size != 0 ? DEVICE_MEMORY : 0;
      break;
    case 3: /* _DEVICE_POINTER */
      *(unsigned long long*)value = one->size != 0 ? address : 0;
      break;
    case 8: /* _IS_MANAGED */
      *(unsigned*)value = 0;
      break;
    case 9: /* _DEVICE_ORDINAL */
      *(int*)value = one->size != 0 ? 0 : INVALID_ORDINAL;
      break;
    case 11: /* _RANGE_START_ADDR */
      *(unsigned long long*)value = one->begin;
      break;
    case 12: /* _RANGE_SIZE */
      *(size_t*)value = (size_t)one->size;
      break;
    default: /* pointers and sizes that it has not */
      *(void**)value = NULL;
  }
  return one->size != 0 ? SUCCESS : INVALID_VALUE;
}

EXPORT int cuPointerGetAttribute(void* value, int attribute, unsigned long long address) {
  return get_attribute(value, attribute, address);
}

/* Of memory that it does not know, the values say so. */
EXPORT int cuPointerGetAttributes(unsigned count, int* attributes, void** values,
                                  unsigned long long address) {
  unsigned i;
  NEED_INIT();
  for (i = 0; i < count; ++i) (void)get_attribute(values[i], attributes[i], address);
  return SUCCESS;
}

EXPORT int cuStreamCreate(struct stream** stream, unsigned flags) {
  struct stream* one = streams;
  NEED(has_current() == SUCCESS && flags <= 1, has_current());
  while (one->context != NULL) ++one;
  one->context = top();
  *stream = one;
  return SUCCESS;
}

EXPORT int cuStreamDestroy_v2(struct stream* stream) {
  stream->context = NULL;
  return SUCCESS;
}

EXPORT int cuStreamGetCtx(struct stream* stream, context_t** context) {
  NEED((size_t)stream > 2 || has_current() == SUCCESS, has_current());
  *context = (size_t)stream > 2 ? stream->context : top();
  return SUCCESS;
}

EXPORT int cuStreamIsCapturing(struct stream* stream, int* status) {
  (void)stream;
  *status = 0;
  return SUCCESS;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  const int before = capture_mode;
  NEED_INIT();
  NEED(*mode >= 0 && *mode <= 2, INVALID_VALUE);
  capture_mode = *mode;
  *mode = before;
  return SUCCESS;
}

EXPORT int cuGetProcAddress(const char* name, void** address, int version,
                            unsigned long long flags) {
  typedef int (*function)(void);
#define ENTRY(name, symbol) \
  { #name, (function)&symbol }
  static const struct {
    const char* name;
    function address;
  } entries[] = {
      ENTRY(cuInit, cuInit),
      ENTRY(cuDriverGetVersion, cuDriverGetVersion),
      ENTRY(cuDeviceGetCount, cuDeviceGetCount),
      ENTRY(cuDeviceGet, cuDeviceGet),
      ENTRY(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer),
      ENTRY(cuCtxPushCurrent, cuCtxPushCurrent_v2),
      ENTRY(cuCtxPopCurrent, cuCtxPopCurrent_v2),
      ENTRY(cuCtxGetCurrent, cuCtxGetCurrent),
      ENTRY(cuCtxSetCurrent, cuCtxSetCurrent),
      ENTRY(cuCtxCreate, cuCtxCreate_v2),
      ENTRY(cuCtxDestroy, cuCtxDestroy_v2),
      ENTRY(cuCtxGetId, cuCtxGetId),
      ENTRY(cuCtxGetApiVersion, cuCtxGetApiVersion),
      ENTRY(cuCtxGetDevice, cuCtxGetDevice),
      ENTRY(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain),
      ENTRY(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2),
      ENTRY(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState),
      ENTRY(cuMemGetInfo, cuMemGetInfo_v2),
      ENTRY(cuPointerGetAttribute, cuPointerGetAttribute),
      ENTRY(cuPointerGetAttributes, cuPointerGetAttributes),
      ENTRY(cuStreamGetCtx, cuStreamGetCtx),
      ENTRY(cuStreamIsCapturing, cuStreamIsCapturing),
      ENTRY(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode),
  };
  /* From this version on there is another signature of that name, which this driver has not. */
  static const struct {
    const char* name;
    int version;
  } newer[] = {{"cuCtxCreate", 11040}, {"cuStreamGetCtx", 12050}, {"cuCtxGetDevice", 13000}};
  function found = &not_supported;
  size_t i;
  NEED(flags <= 1, INVALID_VALUE);
  *address = NULL;
  for (i = 0; i < sizeof(newer) / sizeof(newer[0]); ++i) {
    NEED(version < newer[i].version || strcmp(newer[i].name, name) != 0, NOT_FOUND);
  }
  for (i = 0; i < sizeof(entries) / sizeof(entries[0]); ++i) {
    if (strcmp(entries[i].name, name) == 0) found = entries[i].address;
  }
  memcpy(address, &found, sizeof(found));
  return SUCCESS;
}
