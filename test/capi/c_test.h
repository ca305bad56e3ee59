// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cases of a C program, each in a process of its own, so that a crash is a failure of one case and
// the first use of cuguest is each case's. The program prints what test/run counts, and takes the
// name of one case.

#ifndef CUGUEST_TEST_CAPI_C_TEST_H_
#define CUGUEST_TEST_CAPI_C_TEST_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#ifdef _WIN32
#include <process.h>
#include <windows.h>
#else
#include <sys/wait.h>
#endif

#define SKIPPED 77
#define CHECK(holds)                                                         \
  do {                                                                       \
    if (!(holds)) {                                                          \
      printf("%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #holds); \
      fflush(stdout);                                                        \
      _exit(1);                                                              \
    }                                                                        \
  } while (0)

struct test_case {
  const char* name;
  void (*run)(void);
};

#ifdef _WIN32

// The driver, as it is looked for there.
#define RTLD_NOW 0
static inline void* dlopen(const char* name, int flags) {
  return strcmp(name, "libcuda.so.1") == 0 && flags == RTLD_NOW
             ? (void*)LoadLibraryExA("nvcuda.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32)
             : NULL;
}
static inline void* dlsym(void* library, const char* name) {
  const FARPROC found = GetProcAddress((HMODULE)library, name);
  void* address;
  memcpy(&address, &found, sizeof(address));
  return address;
}

static int run_case(const struct test_case* one) {
  fflush(stdout);
  return (int)_spawnl(_P_WAIT, _pgmptr, _pgmptr, "--case", one->name, (const char*)NULL);
}

#else

static int run_case(const struct test_case* one) {
  int status = 0;
  pid_t child;
  fflush(stdout);
  child = fork();
  if (child == 0) {
    one->run();
    fflush(stdout);
    _exit(0);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  if (WIFSIGNALED(status)) printf("%s: signal %d\n", one->name, WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

#endif

static int run_cases(int argc, char** argv, const struct test_case* cases, int count) {
  int passed = 0, failed = 0, skipped = 0, i;
  for (i = 0; i < count; ++i) {
    int code;
    if (argc > 1 && strcmp(argv[argc - 1], cases[i].name) != 0) continue;
    if (argc > 2) { /* the process of the case */
      cases[i].run();
      return 0;
    }
    code = run_case(&cases[i]);
    passed += code == 0;
    skipped += code == SKIPPED;
    failed += code != 0 && code != SKIPPED;
    printf("%s: %s\n", code == 0 ? "ok" : code == SKIPPED ? "skipped" : "FAILED", cases[i].name);
  }
  printf("cases: %d passed, %d failed, %d skipped\n", passed, failed, skipped);
  if (failed > 0 || passed + skipped == 0) return 1;
  return passed == 0 ? SKIPPED : 0;
}

#endif  // CUGUEST_TEST_CAPI_C_TEST_H_
