// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "examples/guest/picture_score.h"

#include <ffnvcodec/dynlink_loader.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuguest/c.h"

struct score {
  struct score_host host;
  cuguest_ref context;  // this incarnation of it, and no other
  cuguest_incident_listener listener;
  size_t bytes;
  CUdeviceptr scratch;
  unsigned char* pictures;  // two, in host memory
};

// What the host's own code did to its stack, in the host's log.
static void log_incident(const cuguest_incident* incident, void* user) {
  const struct score_host* const host = user;
  char text[200];
  snprintf(text, sizeof(text), "a callee %s; the stack was %s",
           cuguest_incident_name(incident->kind), cuguest_repair_name(incident->repair));
  host->log(host->user, text);
}

int score_open(const struct score_host* host, size_t bytes, struct score** opened) {
  const cuguest_ref no_context = CUGUEST_REF_INIT;
  const cuguest_incident_listener no_listener = CUGUEST_INIT(cuguest_incident_listener);
  CUGUEST_SCOPE(cuguest_guard, guard);
  struct score* const score = calloc(1, sizeof(*score));
  int code = 2;  // CUDA_ERROR_OUT_OF_MEMORY
  *opened = NULL;
  if (score == NULL) return code;
  score->host = *host;
  score->bytes = bytes;
  score->context = no_context;
  score->listener = no_listener;
  score->pictures = malloc(2 * bytes);
  if (score->pictures != NULL) code = cuguest_ref_borrow(&score->context, host->context);
  if (code == 0) {
    code = cuguest_incident_listener_register(&score->listener, &log_incident, &score->host);
  }
  if (code == 0) {
    // Which sees a push of the same context that is left behind, too.
    code = cuguest_guard_enter_ref(&guard, &score->context, CUGUEST_ALWAYS_PUSH, CUGUEST_HERE);
  }
  if (code == 0) code = (int)host->allocate(host->user, bytes, &score->scratch);
  if (code == 0) code = cuguest_guard_leave(&guard);  // finds what the allocator left behind
  if (code == 0) {
    *opened = score;
  } else {
    score_close(score);
  }
  return code;
}

// The host's logger runs where its author expects it: on the host's own stack.
static int log_in_host(struct score* score, const char* text) {
  CUGUEST_SCOPE(cuguest_host_scope, host);
  const int code = cuguest_host_scope_enter(&host, CUGUEST_HERE);
  if (code == 0) score->host.log(score->host.user, text);
  return code;
}

int score_compare(struct score* score, CUdeviceptr reference, CUdeviceptr distorted,
                  double* mean_squared_error) {
  struct CudaFunctions* const cuda = score->host.cuda;
  const CUdeviceptr device[2] = {reference, distorted};
  char text[100];
  double sum = 0;
  size_t i;
  CUGUEST_SCOPE(cuguest_guard, guard);
  int code = cuguest_guard_enter_ref(&guard, &score->context, CUGUEST_ELIDE, CUGUEST_HERE);
  for (i = 0; code == 0 && i < 2; ++i) {
    code = (int)cuda->cuMemcpyDtoD(score->scratch, device[i], score->bytes);
    if (code == 0) {
      code =
          (int)cuda->cuMemcpyDtoH(score->pictures + i * score->bytes, score->scratch, score->bytes);
    }
  }
  if (code != 0) return code;
  for (i = 0; i < score->bytes; ++i) {
    const double difference =
        (double)score->pictures[i] - (double)score->pictures[score->bytes + i];
    sum += difference * difference;
  }
  *mean_squared_error = sum / (double)score->bytes;
  snprintf(text, sizeof(text), "mean squared error %.1f", *mean_squared_error);
  code = log_in_host(score, text);
  return code == 0 ? cuguest_guard_leave(&guard) : code;
}

int score_close(struct score* score) {
  int code = 0;
  if (score == NULL) return 0;
  if (score->scratch != 0) {
    CUGUEST_SCOPE(cuguest_guard, guard);
    code = cuguest_guard_enter_ref(&guard, &score->context, CUGUEST_ELIDE, CUGUEST_HERE);
    if (code == 0) code = (int)score->host.cuda->cuMemFree(score->scratch);
  }
  cuguest_incident_listener_remove(&score->listener);
  free(score->pictures);
  free(score);
  return code;
}
