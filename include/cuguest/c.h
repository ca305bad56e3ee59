// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tier: 2
/// \file
/// The guards, references and scopes of cuguest for C99. It includes neither <cuda.h> nor
/// anything else of CUDA, so that it may stand beside either <cuda.h> or ffnvcodec's headers:
/// contexts and streams are the driver's handles, codes are its CUresult as an int, and device
/// pointers are unsigned long long.
///
///   int blur(struct CUctx_st* context, struct picture* picture) {
///     CUGUEST_SCOPE(cuguest_guard, guard);
///     int code = cuguest_guard_enter(&guard, context, CUGUEST_ELIDE, CUGUEST_HERE);
///     if (code != 0) return code;            /* nothing has changed */
///     return launch_blur(picture);           /* runs with `context` current */
///   }                                        /* the caller's context is current again */
///
/// Note [Storage]
/// ~~~~~~~~~~~~~~
/// A guard, and whatever else has a beginning and an end here, is in a struct of the caller's. Each
/// struct begins with its size, as the caller was compiled, and has room to spare, so that it keeps
/// its size from release to release. It is made by CUGUEST_SCOPE, which leaves it with the block,
/// by CUGUEST_INIT or cuguest_init(), or of zeros alone (memset, calloc, a static variable): all of
/// these are storage in which nothing has begun. Its members are private, and it must not be
/// copied. It has to last until it is left, or until the thread that it is bound to has ended. Once
/// it is left, it may begin anew.
///
/// What holds a reference to a context (cuguest_primary, cuguest_acquired, cuguest_shared_context)
/// is moved to other storage by its `_move` function; guards and other scopes are not moved.
///
/// Note [Codes]
/// ~~~~~~~~~~~~
/// 0 is success. Beside what each function says, every one that is given storage returns
///
///   CUDA_ERROR_INVALID_VALUE (1)    it is null, or smaller than this library needs; or another
///                                   argument is none of those that are allowed
///   CUDA_ERROR_ILLEGAL_STATE (401)  to begin: it has begun; otherwise: it has not begun, or has
///                                   ended; to make another context a scope's, or reassert its
///                                   own: also if it is bound to another thread, or another scope
///                                   is open inside it
///
/// and has then changed nothing. So what ends something may be called on every way out. Ending a
/// scope also returns
///
///   CUDA_ERROR_NOT_READY (600)      another scope is open inside it, or this is another thread
///                                   than its own: it has ended, and its thread restores the stack
///                                   when it can, see Note [Scopes end in any order] of
///                                   docs/notes.md
///
/// and what asks the driver also
///
///   CUDA_ERROR_NOT_INITIALIZED (3)  in a forked child, see cuguest_error_advice()
///   CUDA_ERROR_DEINITIALIZED (4)    at exit, once the driver has ended
///   CUDA_ERROR_NOT_PERMITTED (800)  inside a stream callback or host function
///   CUDA_ERROR_SHARED_OBJECT_INIT_FAILED (303)  there is no driver. It is looked for again where
///                                   the process has loaded a library since, and eight times a
///                                   second; then at the cost of a dlopen that fails
///
/// The tests are named in docs/guarantees.md; other notes are in docs/notes.md.

#ifndef CUGUEST_C_H_
#define CUGUEST_C_H_

#include <stddef.h>

#if defined(CUGUEST_NAMESPACE_SUFFIX)
#include "cuguest/internal/c_names.h"
#endif

/// Whether the language has the attribute [[nodiscard]]: C++17 and C23.
#if defined(__cplusplus)
#define CUGUEST_C_HAS_NODISCARD (__cplusplus >= 201703L)
#elif defined(__STDC_VERSION__) && defined(__has_c_attribute)
#define CUGUEST_C_HAS_NODISCARD (__STDC_VERSION__ > 201710L && __has_c_attribute(nodiscard))
#else
#define CUGUEST_C_HAS_NODISCARD 0
#endif

/// Part of the shared library's interface; empty in a static build, as CUGUEST_API is (export.h),
/// and on Windows, which has no other. Spelled as the attribute that follows it.
#if defined(CUGUEST_STATIC) || defined(_WIN32)
#define CUGUEST_C_API
#elif CUGUEST_C_HAS_NODISCARD
#define CUGUEST_C_API [[gnu::visibility("default")]]
#else
#define CUGUEST_C_API __attribute__((visibility("default")))
#endif

/// A code that is dropped is a warning, which a cast to void silences: `(void)f();`. Empty for gcc
/// before C++17 and C23, whose own attribute warns of the cast, too.
#if CUGUEST_C_HAS_NODISCARD
#define CUGUEST_C_NODISCARD [[nodiscard]]
#elif defined(__clang__)
#define CUGUEST_C_NODISCARD __attribute__((warn_unused_result))
#else
#define CUGUEST_C_NODISCARD
#endif

/// Storage of `type`, which has not begun: `cuguest_guard guard = CUGUEST_INIT(cuguest_guard);`
/// As a function: cuguest_init().
#define CUGUEST_INIT(type) \
  {                        \
    sizeof(type), { 0 }    \
  }

/// The same as a variable `name`, which ends with the block. What leaving it gives is dropped;
/// leave it yourself to know. As functions: cuguest_init(), and the type's `_cleanup` at the end.
/// For gcc and clang, and so for clang-cl: other compilers, MSVC among them, do not have it.
#if defined(__GNUC__) || defined(__clang__)
#define CUGUEST_SCOPE(type, name) \
  __attribute__((cleanup(type##_cleanup))) type name = CUGUEST_INIT(type)
#endif

/// The place that incidents name: the two last arguments of what begins a scope. The name of the
/// file is kept, not copied.
#define CUGUEST_HERE __FILE__, __LINE__

/// The place as the two last parameters of a function of yours, and as it hands them on, so that
/// incidents name its caller:
///
///   int enter(cuguest_guard* guard, struct job* job, CUGUEST_PLACE) {
///     return cuguest_guard_enter(guard, job->context, CUGUEST_ELIDE, CUGUEST_GIVEN_PLACE);
///   }
///   #define ENTER(guard, job) enter(guard, job, CUGUEST_HERE)
#define CUGUEST_PLACE const char *cuguest_file, int cuguest_line
#define CUGUEST_GIVEN_PLACE cuguest_file, cuguest_line

#ifdef __cplusplus
extern "C" {
#endif

struct CUctx_st;
struct CUstream_st;

/// cuguest_init()
///
/// CUGUEST_INIT and CUGUEST_REF_INIT as a function: fills the `size` bytes of a struct of this
/// header with zeros, and its first member with `size`. Nothing is done if `storage` is null or has
/// no room for that member. What has begun in it is forgotten, not ended.
///
/// Threads: any. No driver call.
CUGUEST_C_API void cuguest_init(void* storage, size_t size);

/// cuguest_error_name(), cuguest_error_text(), cuguest_error_advice()
///
/// The name of a CUresult ("CUDA_ERROR_OUT_OF_MEMORY"); one sentence that says what it means and
/// what to do; and what a guard that was refused with it can add, as a phrase, or "". Never null,
/// never to be freed. No driver is needed or called.
///
/// Threads: any.
CUGUEST_C_API const char* cuguest_error_name(int code);
CUGUEST_C_API const char* cuguest_error_text(int code);
CUGUEST_C_API const char* cuguest_error_advice(int code);

/// cuguest_error_write()
///
/// All of these as one text, as Error::Write (error.h) has it of a guard: what was being done,
/// which is `doing`, a verb phrase ("enter a context"), and what can be added, the code's name and
/// number, and its meaning: "enter a context, no context was given: CUDA_ERROR_INVALID_CONTEXT
/// (201): ...". Writes as much to `text` as fits into `size` bytes with a NUL behind it, nothing if
/// `size` is 0, and returns the number of bytes without that which the whole has. Of code 0 it is
/// empty. `doing` may be null, which is as empty; `text` may be null if `size` is 0.
///
/// Threads: any. No driver is needed or called; nothing is allocated.
CUGUEST_C_API size_t cuguest_error_write(int code, const char* doing, char* text, size_t size);

/// cuguest_driver_lookup, cuguest_driver_adopt()
///
/// Makes the driver that `lookup` knows the process's, as Driver::Adopt (driver.h) does: for a host
/// that has loaded the driver itself. Call it before anything else of this copy of cuguest;
/// "libcuda.so.1" ("nvcuda.dll") is then never opened. `lookup` gives the address of the driver's
/// function `name` with the signature that API `version` (12000 is CUDA 12.0) introduced, as
/// cuGetProcAddress does, or null. What it does not know is not called: whatever needs it returns
/// CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER (36) then.
///
/// Requires: `lookup`, `user` and the functions that it gives outlive every use of this copy of
///           cuguest.
/// Threads: any. `lookup` is called during the call, and later on any thread.
/// Errors:  nothing has changed then.
///            CUDA_ERROR_INVALID_VALUE (1)               `lookup` is null
///            CUDA_ERROR_ILLEGAL_STATE (401)             after the first use that found a driver
///                                                       library, or another adopt
///            CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER (36) it has no address for cuCtxGetCurrent,
///                                                       cuCtxPushCurrent or cuCtxPopCurrent, or
///                                                       for neither of cuCtxGetId and
///                                                       cuCtxGetApiVersion
///            CUDA_ERROR_STUB_LIBRARY (34)               the driver says that it is one
///            CUDA_ERROR_OUT_OF_MEMORY (2)               no host memory
/// Cost:    a call of `lookup` for each entry of the table.
typedef void* (*cuguest_driver_lookup)(const char* name, int version, void* user);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_driver_adopt(cuguest_driver_lookup lookup,
                                                           void* user);

/// cuguest_is_initialized()
///
/// 1 if CUDA is initialised in this process, by whomever, else 0, as Driver::IsInitialized
/// (driver.h) says it: loads and initialises nothing.
///
/// Threads: any.
/// Cost:    none if no driver library is loaded, or this copy of cuguest has called cuInit; else
///          one driver call, which fails if the answer is 0.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_is_initialized(void);

/// cuguest_ref
///
/// One incarnation of a context, as ContextRef (context_ref.h): its handle and the id that the
/// driver gave it, which is never used again. A value: it may be copied, owns nothing and keeps
/// nothing alive.
/// One of zeros alone names none, as one by CUGUEST_REF_INIT.
typedef struct cuguest_ref {
  size_t size;
  struct CUctx_st* context;  ///< null: names none
  unsigned long long id;     ///< 0 below CUDA 12.0, where handles alone are compared
} cuguest_ref;
#define CUGUEST_REF_INIT \
  { sizeof(cuguest_ref), NULL, 0 }

/// Names the present incarnation of `context`; and the calling thread's current context.
///
/// Requires: the handle of `context` is alive.
/// Stack:   never touched.
/// Threads: any.
/// Errors:  `ref` then names none.
///            CUDA_ERROR_INVALID_CONTEXT (201)       `context` is null; nothing is current
///            CUDA_ERROR_CONTEXT_IS_DESTROYED (709)  exact for a primary context that was reset,
///                                                   best effort for a destroyed one
///            or the code of a missing driver
/// Cost:    one driver call (cuCtxGetId), contention-free; cuguest_ref_current two.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_ref_borrow(cuguest_ref* ref,
                                                         struct CUctx_st* context);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_ref_current(cuguest_ref* ref);

/// 0 while the incarnation is alive, as ContextRef::Check says with what certainty.
///
/// Threads: any.
/// Errors:  CUDA_ERROR_INVALID_CONTEXT (201)       `ref` names none
///          CUDA_ERROR_CONTEXT_IS_DESTROYED (709)  it was destroyed or reset, also when the handle
///                                                 names another incarnation
/// Cost:    one driver call, contention-free.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_ref_check(const cuguest_ref* ref);

/// How a guard enters: GuardMode of context_guard.h.
enum {
  CUGUEST_ELIDE = 0,        ///< no push where the context is current already
  CUGUEST_ALWAYS_PUSH = 1,  ///< always push
};

/// cuguest_guard
///
/// Makes a context current for a scope, and then leaves the calling thread's stack of contexts as
/// it found it, also when a callee did not: a ContextGuard, whose Notes say what is repaired and
/// how.
///
/// Stack:   +1 or +0 when it enters, undone when it leaves; net 0 over the scope. Where a callee
///          left another stack than it found, the caller's context is current afterwards, and the
///          rest is what it was on the likeliest reading: see Note [What is inferred].
/// Count:   none; it keeps nothing alive.
/// Threads: bound. Guards may be left in any order, see Note [Codes]. Left on another thread it has
///          ended, and an incident (CUGUEST_ELSEWHERE) reports it; its own thread closes it, at the
///          latest when it next begins or ends a scope.
/// Cost:    that of a ContextGuard: 2 driver calls elided, 4 switched or with CUGUEST_ALWAYS_PUSH,
///          and one more by reference. No lock; no allocation up to 16 scopes deep.
typedef struct cuguest_guard {
  size_t size;
  unsigned long long opaque[23];
} cuguest_guard;  // 192 bytes

/// Enters `context`; the other one refuses where the incarnation is over.
///
/// Requires: `context` is alive.
/// Errors:  nothing has changed then, and there is nothing to leave.
///          of cuguest_capture_guard_enter(), but CUDA_ERROR_NOT_SUPPORTED.
///            CUDA_ERROR_INVALID_CONTEXT (201)       `context` is null, or `ref` names none
///            CUDA_ERROR_CONTEXT_IS_DESTROYED (709)  the ref's incarnation was destroyed or reset
///            CUDA_ERROR_NOT_INITIALIZED (3)         a forked child, see cuguest_error_advice()
///            CUDA_ERROR_NOT_PERMITTED (800)         inside a stream callback
///            CUDA_ERROR_OUT_OF_MEMORY (2)           no memory of the driver, or (16 deep) here
///            CUDA_ERROR_SHARED_OBJECT_INIT_FAILED (303), _STUB_LIBRARY (34),
///            _CALL_REQUIRES_NEWER_DRIVER (36)       no usable driver, see driver.h
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_guard_enter(cuguest_guard* guard,
                                                          struct CUctx_st* context, int mode,
                                                          const char* file, int line);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_guard_enter_ref(cuguest_guard* guard,
                                                              const cuguest_ref* ref, int mode,
                                                              const char* file, int line);

/// Relaxes stream captures for as long as the guard lasts, as a cuguest_capture_guard with
/// CUGUEST_CAPTURE_RELAXED, so that what is allocated or freed inside invalidates nobody's capture.
/// Leaving the guard gives the mode back after the context: with it a Relaxed<ContextGuard>
/// (relaxed.h). Nothing to do the second time, and below CUDA 10.1, where there are no modes.
///
/// Errors:  the guard is as it was then: those of cuguest_capture_guard_enter(), but
///          CUDA_ERROR_NOT_SUPPORTED (801); CUDA_ERROR_ILLEGAL_STATE (401) also on another thread
///          than the guard's.
/// Cost:    one driver call, and one more when the guard is left.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_guard_relax(cuguest_guard* guard, const char* file,
                                                          int line);

/// Makes another context the guard's, for a loop over objects in many contexts: one entry for all,
/// which is replaced. As ContextGuard::MoveTo, see Note [Moving to another context] of
/// docs/notes.md.
///
/// Stack:   as right after entering `context` in place of the last one.
/// Errors:  those of cuguest_guard_enter(). The guard is where it was then, and may be moved or
///          left, unless its own context cannot be entered again, which cuguest_guard_reassert()
///          tells.
///          CUDA_ERROR_ILLEGAL_STATE (401), and nothing done, also if another guard of this copy of
///          cuguest is inside it, or a cuguest_host_scope has taken it out.
/// Cost:    three driver calls for a change at most, one where there is none; one more by
///          reference.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_guard_move_to(cuguest_guard* guard,
                                                            struct CUctx_st* context,
                                                            const char* file, int line);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_guard_move_to_ref(cuguest_guard* guard,
                                                                const cuguest_ref* ref,
                                                                const char* file, int line);

/// The guard's context as a reference, as ContextGuard::context().
///
/// Errors:  `ref` names none then.
///            CUDA_ERROR_CONTEXT_IS_DESTROYED (709)  it is over
///            or why the guard could not come back after a cuguest_host_scope
/// Cost:    none where it is known; of a guard that entered by a handle one driver call, the first
///          time, and it is one by reference from then on. On another thread one call each time.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_guard_ref(const cuguest_guard* guard,
                                                        cuguest_ref* ref);

/// After a call into foreign code: makes the guard's context current again if it is not. As
/// ContextGuard::Reassert.
///
/// Errors:  the code with which entering again failed; the caller's context is current then.
/// Cost:    one driver call when nothing is wrong, two when it entered by reference.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_guard_reassert(cuguest_guard* guard);

/// Ends the scope.
///
/// Errors:  0 when the caller's stack is as it was, or was repaired. Otherwise the scope has ended
///          all the same; the code is of this end, or of a move or a reassertion before it. An
///          incident has the driver's code if a call of the repair failed, else 0:
///          CUDA_ERROR_CONTEXT_IS_DESTROYED (709)  the caller's context is over, and no other's
///          CUDA_ERROR_INVALID_CONTEXT (201)  the caller's context is current; an entry beneath it
///                                      was over and could not be put back
///          CUDA_ERROR_NOT_READY (600)  see Note [Codes]. Where another scope is open inside it,
///                                      cuguest_guard_cleanup() reports CUGUEST_OUT_OF_TURN
///                                      instead.
///          another                     the driver refused what the repair needed
CUGUEST_C_API int cuguest_guard_leave(cuguest_guard* guard);
CUGUEST_C_API void cuguest_guard_cleanup(cuguest_guard* guard);

/// cuguest_push(), cuguest_push_ref(), cuguest_pop()
///
/// A guard without storage, for a library whose own interface is a push and a pop without a token:
/// cuguest_pop() ends the innermost cuguest_push() of the calling thread and of this copy of
/// cuguest, and verifies and repairs as cuguest_guard_leave() does. It always pushes.
/// cuguest_push_ref() refuses where the incarnation is over; for the rest it is a cuguest_push().
///
/// A cuCtxPopCurrent in between means what it meant: where it has taken off what the innermost push
/// left, and cuguest_pop() takes off what an older push left, so that what that one found is
/// current, both have ended and nothing is repaired. A push that a cuCtxPopCurrent has ended keeps
/// no scope around it open, and of any number of such pairs few are kept. What a cuCtxPushCurrent
/// left above the innermost push is a leaked push. Inside a cuguest_host_scope, cuguest_pop() ends
/// what that has taken out, once it has ended what was pushed there. Incidents name the file
/// "(cuguest_push)".
///
/// Stack:   +1 by cuguest_push(), undone by cuguest_pop().
/// Threads: bound; cuguest_pop() knows the pushes of its own thread alone, and in a forked child
///          none of the parent's.
/// Errors:  of cuguest_push() and cuguest_push_ref(), those of cuguest_guard_enter() and
///          cuguest_guard_enter_ref(). Of cuguest_pop(), those of cuguest_guard_leave();
///          CUDA_ERROR_ILLEGAL_STATE (401), and nothing done, if there is no push to end.
/// Cost:    cuguest_push() 2 driver calls, cuguest_push_ref() 3, cuguest_pop() 2. Where pushes pile
/// up that a
///          cuCtxPopCurrent may have ended, every sixteenth takes the stack apart to look, five
///          calls for each entry. No lock; no allocation up to 16 scopes deep.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_push(struct CUctx_st* context);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_push_ref(const cuguest_ref* ref);
CUGUEST_C_API int cuguest_pop(void);

/// cuguest_no_context_guard
///
/// Makes no context current for a scope: a NoContextGuard, which takes the whole stack off and puts
/// it back, and has room for 32 entries.
///
/// Stack:   empty inside the scope, as it was afterwards.
/// Threads: bound; as cuguest_guard.
/// Errors:  as cuguest_guard_enter, and CUDA_ERROR_NOT_SUPPORTED (801) if the stack is deeper, or
///          holds an entry whose context is destroyed.
/// Cost:    one driver call on an empty stack, and one more at the end; five more for every entry.
///          One allocation of 16 bytes an entry, which lasts as long as the scope, and is lost if
///          its thread ends first.
typedef struct cuguest_no_context_guard {
  size_t size;
  unsigned long long opaque[95];
} cuguest_no_context_guard;  // 768 bytes
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_no_context_guard_enter(
    cuguest_no_context_guard* guard, const char* file, int line);
CUGUEST_C_API int cuguest_no_context_guard_leave(cuguest_no_context_guard* guard);
CUGUEST_C_API void cuguest_no_context_guard_cleanup(cuguest_no_context_guard* guard);

/// cuguest_host_scope
///
/// Gives the host its own stack and stream-capture mode back around a callback: a HostScope, which
/// leaves the guards and scopes of this copy of cuguest that are open on the thread,
/// cuguest_capture_guard among them, and enters them again at its end. It stops where somebody
/// else's entry lies above what a guard left on the stack. A guard that could not come back says
/// why in cuguest_guard_reassert().
///
/// Stack:   leaves each guard's scope, and enters it again at the end.
/// Threads: bound; as cuguest_guard. Ended on another thread, its guards stay outside.
/// Errors:  of entering, the first that leaving a guard gave, or CUDA_ERROR_OUT_OF_MEMORY (2),
///          over 16 scopes deep. The guards are inside again then. Of ending, CUDA_ERROR_NOT_READY
///          (600): the guards come back when the scope inside it has ended.
/// Cost:    as HostScope.
typedef struct cuguest_host_scope {
  size_t size;
  unsigned long long opaque[15];
} cuguest_host_scope;
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_host_scope_enter(cuguest_host_scope* scope,
                                                               const char* file, int line);
CUGUEST_C_API int cuguest_host_scope_leave(cuguest_host_scope* scope);
CUGUEST_C_API void cuguest_host_scope_cleanup(cuguest_host_scope* scope);

/// The values of CUstreamCaptureMode.
enum {
  CUGUEST_CAPTURE_GLOBAL = 0,
  CUGUEST_CAPTURE_THREAD_LOCAL = 1,
  CUGUEST_CAPTURE_RELAXED = 2,
};

/// cuguest_capture_guard
///
/// Sets the calling thread's stream-capture mode for a scope: a CaptureModeGuard. With
/// CUGUEST_CAPTURE_RELAXED what Note [What a capture forbids] of docs/notes.md lists is allowed.
///
/// Stack:   never touched.
/// Threads: bound; as cuguest_guard, among scopes of this kind.
/// Errors:  nothing has changed then.
///            CUDA_ERROR_NOT_INITIALIZED (3)  before cuInit: nothing can be capturing
///            CUDA_ERROR_NOT_SUPPORTED (801)  a driver below CUDA 10.1
///            or the code of a missing driver
/// Cost:    two driver calls, contention-free.
typedef struct cuguest_capture_guard {
  size_t size;
  unsigned long long opaque[15];
} cuguest_capture_guard;
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_capture_guard_enter(cuguest_capture_guard* guard,
                                                                  int mode, const char* file,
                                                                  int line);
CUGUEST_C_API int cuguest_capture_guard_leave(cuguest_capture_guard* guard);
CUGUEST_C_API void cuguest_capture_guard_cleanup(cuguest_capture_guard* guard);

/// cuguest_primary
///
/// One reference to the primary context of a device: a PrimaryContext (primary_context.h). For a
/// library that means the primary context, whatever the caller has made current.
///
/// Stack:   never touched: the context does not become current, enter it by a guard.
/// Count:   one reference of the driver's count, until it is released.
/// Threads: distinct. Not from a stream callback.
typedef struct cuguest_primary {
  size_t size;
  unsigned long long opaque[15];
} cuguest_primary;

/// Takes a reference, and creates the context if nobody holds one.
///
/// Errors:  nothing is held then.
///            CUDA_ERROR_INVALID_DEVICE (101)        no such device
///            CUDA_ERROR_OUT_OF_MEMORY (2)           creating the context ran out of memory
///            CUDA_ERROR_DEVICE_UNAVAILABLE (46)     the device's compute mode refuses it
///            CUDA_ERROR_NOT_INITIALIZED (3)         a forked child, see cuguest_error_advice()
///            or the code of a missing driver, or an earlier sticky error
/// Cost:    as PrimaryContext::Retain: two driver calls where the context is active.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_primary_retain(cuguest_primary* primary, int device);

/// What is held, for cuguest_guard_enter_ref(): good until it is released. No driver call.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_primary_ref(const cuguest_primary* primary,
                                                          cuguest_ref* ref);

/// Moves the reference from `from` to `to`, where nothing may have begun; `from` is empty then.
///
/// Errors:  as Note [Codes]; the reference stays where it was.
/// Cost:    no driver call.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_primary_move(cuguest_primary* to,
                                                           cuguest_primary* from);

/// Errors:  the driver's code where it counts no reference any more; nothing is held all the same.
///            CUDA_ERROR_NOT_PERMITTED (800)  in a stream callback: it is still held
/// Cost:    one driver call.
CUGUEST_C_API int cuguest_primary_release(cuguest_primary* primary);
CUGUEST_C_API void cuguest_primary_cleanup(cuguest_primary* primary);

/// The same of a primary context that is active, and CUDA_ERROR_INVALID_CONTEXT (201) of one that
/// is not: as PrimaryContext::RetainIfActive, whose comment says when it creates it all the same.
///
/// Errors:  also those of cuguest_primary_retain().
/// Cost:    three driver calls.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_primary_retain_if_active(cuguest_primary* primary,
                                                                       int device);

/// What becomes of a primary context that is not active: IfInactive of acquire.h.
enum {
  CUGUEST_REFUSE = 0,
  CUGUEST_CREATE = 1,
  CUGUEST_CREATE_AND_KEEP = 2,  ///< for the process, until cuguest_release_kept_primary()
};

/// In place of a device, where none is meant.
enum { CUGUEST_NO_DEVICE = -1 };

/// Where an acquired context came from: Acquired::Source of acquire.h.
enum {
  CUGUEST_FROM_STREAM = 0,
  CUGUEST_FROM_POINTER = 1,
  CUGUEST_FROM_CURRENT = 2,
  CUGUEST_FROM_PRIMARY = 3,
  CUGUEST_FROM_CREATED = 4,
};

/// cuguest_acquired
///
/// The context that a device, a pointer or a stream means, found as Note [Where a context is looked
/// for] of docs/notes.md says, and what must be kept alive meanwhile. No context is created but
/// where that is asked for, and no stream capture is invalidated.
///
/// A current context of the device comes first, also with CUGUEST_CREATE, and is held by nobody
/// here: it lasts as long as its owner keeps it, and what works with it later, or on another
/// thread, has CUDA_ERROR_CONTEXT_IS_DESTROYED (709) then. cuguest_acquired_source() tells, and
/// cuguest_acquired_hold() holds it, if it is a primary context. A library that means the device's
/// primary context takes cuguest_primary_retain().
///
/// Stack:   never touched.
/// Count:   one reference to the primary context where that was found or created, or held on
///          request, until it is released; none otherwise.
/// Threads: distinct. Not from a stream callback.
typedef struct cuguest_acquired {
  size_t size;
  unsigned long long opaque[15];
} cuguest_acquired;

/// `pointer` may be any address in an allocation; `if_inactive` is for memory of a device that no
/// context owns. A special stream (null, legacy, per-thread) names no context: what it means is
/// that of cuguest_acquire_on(device, if_inactive), or, with CUGUEST_NO_DEVICE, the current one.
/// The context of any other is not compared with `device`.
///
/// Requires: the handle of a stream other than the special ones is alive.
/// Errors:  nothing is held then.
///            CUDA_ERROR_INVALID_CONTEXT (201)       there is none, and creating it was not asked
///                                                   for
///            CUDA_ERROR_INVALID_VALUE (1)           also: memory that CUDA does not know
///            CUDA_ERROR_INVALID_DEVICE (101)        no such device
///            CUDA_ERROR_CONTEXT_IS_DESTROYED (709)  it was destroyed or reset
///            CUDA_ERROR_NOT_INITIALIZED (3)         a forked child, see cuguest_error_advice()
///            or the code of a missing driver, or of creating the context
/// Cost:    as AcquireOn, AcquireFromPointer and AcquireFromStream.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_acquire_on(cuguest_acquired* acquired, int device,
                                                         int if_inactive);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_acquire_from_pointer(cuguest_acquired* acquired,
                                                                   unsigned long long pointer,
                                                                   int if_inactive);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_acquire_from_stream(cuguest_acquired* acquired,
                                                                  struct CUstream_st* stream,
                                                                  int device, int if_inactive);

/// The current context; where nothing is current, the primary context that is active on the first
/// device that has one: as AcquireAny().
///
/// Errors:  nothing is held then.
///            CUDA_ERROR_INVALID_CONTEXT (201)       there is neither
///            CUDA_ERROR_CONTEXT_IS_DESTROYED (709)  what is current was destroyed
///            CUDA_ERROR_NOT_INITIALIZED (3)         a forked child, see cuguest_error_advice()
///            or the code of a missing driver
/// Cost:    as AcquireAny.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_acquire_any(cuguest_acquired* acquired);

/// Takes a reference where there is none yet, as Acquired::Hold().
///
/// Errors:  it is as it was then.
///            CUDA_ERROR_NOT_SUPPORTED (801)         somebody has created the context: it lasts as
///                                                   long as they keep it
///            CUDA_ERROR_CONTEXT_IS_DESTROYED (709)  it was destroyed or reset
///            or those of cuguest_primary_retain()
/// Cost:    as Acquired::Hold.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_acquired_hold(cuguest_acquired* acquired);

/// The device of what was acquired, to `device`, which is left as it was on failure.
///
/// Stack:   as it was.
/// Errors:  CUDA_ERROR_INVALID_VALUE (1) also if `device` is null;
///          CUDA_ERROR_CONTEXT_IS_DESTROYED (709) where the driver has to be asked.
/// Cost:    as Acquired::GetDevice.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_acquired_device(const cuguest_acquired* acquired,
                                                              int* device);

/// What was acquired, for cuguest_guard_enter_ref(): good until it is released. And where it came
/// from; -1 where nothing is acquired. No driver call.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_acquired_ref(const cuguest_acquired* acquired,
                                                           cuguest_ref* ref);
CUGUEST_C_API int cuguest_acquired_source(const cuguest_acquired* acquired);

/// As cuguest_primary_move().
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_acquired_move(cuguest_acquired* to,
                                                            cuguest_acquired* from);

/// Errors:  as cuguest_primary_release().
/// Cost:    one driver call if a reference is held, else none.
CUGUEST_C_API int cuguest_acquired_release(cuguest_acquired* acquired);
CUGUEST_C_API void cuguest_acquired_cleanup(cuguest_acquired* acquired);

/// cuguest_release_kept_primary()
///
/// Gives back what CUGUEST_CREATE_AND_KEEP has kept, on `device`, or on all with CUGUEST_NO_DEVICE:
/// ReleaseKeptPrimary() of primary_keeper.h. Nothing to do where none is kept.
///
/// Stack:   never touched.
/// Threads: any.
/// Errors:  as cuguest_primary_release(): CUDA_ERROR_NOT_PERMITTED (800) in a stream callback: it
///          is kept as before then.
/// Cost:    one driver call for each.
CUGUEST_C_API int cuguest_release_kept_primary(int device);

/// cuguest_primary_keeper
///
/// Keeps, for the object that it is a part of, the primary contexts that were acquired for it: a
/// PrimaryKeeper (primary_keeper.h). It begins with the first that it keeps.
///
/// Stack:   never touched.
/// Count:   one reference to each primary context that is kept, until it is given back.
/// Threads: distinct.
typedef struct cuguest_primary_keeper {
  size_t size;
  unsigned long long opaque[7];
} cuguest_primary_keeper;

/// Keeps the primary context that `acquired` holds; nothing to do where it holds none.
///
/// Errors:  nothing more is kept then: CUDA_ERROR_NOT_SUPPORTED (801) if the device's number is
///          over 63, and those of cuguest_primary_retain().
/// Cost:    none where it is kept already, else two driver calls.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_primary_keeper_keep(cuguest_primary_keeper* keeper,
                                                                  const cuguest_acquired* acquired);
/// Gives back that of `device`; with CUGUEST_NO_DEVICE all, and the keeper has ended.
///
/// Errors:  as cuguest_primary_release(), but that a keeper which keeps none of `device` is
/// success.
CUGUEST_C_API int cuguest_primary_keeper_release(cuguest_primary_keeper* keeper, int device);
CUGUEST_C_API void cuguest_primary_keeper_cleanup(cuguest_primary_keeper* keeper);

/// cuguest_guard_enter_stream(), _pointer(), _device(), _acquired()
///
/// A cuguest_guard of the context that a stream, memory or a device means, found as
/// cuguest_acquire_from_stream() and its siblings do, and entered, in one call, which asks the
/// driver nothing twice: an AcquiredGuard (acquired_guard.h). A reference to a primary context is
/// the guard's until it is left.
///
/// Requires: as cuguest_acquire_from_stream().
/// Stack:   as cuguest_guard_enter().
/// Count:   one reference to the primary context where that was found or created, while the guard
///          lasts; of _acquired none: `acquired` is to outlive the guard.
/// Threads: bound; as cuguest_guard.
/// Errors:  those of acquiring and of cuguest_guard_enter(): nothing has changed then, and nothing
///          is held.
/// Cost:    as AcquiredGuard: four driver calls for a stream or a pointer whose context is current,
///          three for a device. Of _acquired that of cuguest_guard_enter_ref().
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_guard_enter_stream(cuguest_guard* guard,
                                                                 struct CUstream_st* stream,
                                                                 int device, int if_inactive,
                                                                 int mode, const char* file,
                                                                 int line);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_guard_enter_pointer(cuguest_guard* guard,
                                                                  unsigned long long pointer,
                                                                  int if_inactive, int mode,
                                                                  const char* file, int line);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_guard_enter_device(cuguest_guard* guard, int device,
                                                                 int if_inactive, int mode,
                                                                 const char* file, int line);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_guard_enter_acquired(cuguest_guard* guard,
                                                                   const cuguest_acquired* acquired,
                                                                   int mode, const char* file,
                                                                   int line);

/// What a cuguest_thread_home does beside binding: ThreadHome::Keep and ThreadHome::IfOver. Added.
enum {
  CUGUEST_HOME_HOLDS = 1,     ///< a reference to the primary context; any other is refused
  CUGUEST_HOME_REENTERS = 2,  ///< the next incarnation of the primary context
};

/// cuguest_thread_home
///
/// The context of a thread of the library's own, or of a task on somebody else's: a ThreadHome
/// (thread_home.h), which creates none, and holds none unless it is asked to. Guards inside find it
/// current, and elide.
///
/// Stack:   +1 while it has a context, whatever is current, undone when it is left.
/// Count:   none; with CUGUEST_HOME_HOLDS one reference to a primary context, until it is left.
/// Threads: bound; as cuguest_guard.
typedef struct cuguest_thread_home {
  size_t size;
  unsigned long long opaque[63];
} cuguest_thread_home;  // 512 bytes

/// Binds the calling thread to the context of `ref`, of a stream, of memory, of a device.
///
/// Requires: as cuguest_acquire_from_stream().
/// Errors:  nothing has changed then, and nothing is bound: those of acquiring, with
///          CUGUEST_REFUSE, and of cuguest_guard_enter_ref();
///            CUDA_ERROR_NOT_SUPPORTED (801)  CUGUEST_HOME_HOLDS, and the context is not its
///                                            device's primary one
/// Cost:    what acquiring costs, and three driver calls; with an option also that of
///          cuguest_acquired_hold().
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_thread_home_enter_ref(cuguest_thread_home* home,
                                                                    const cuguest_ref* ref,
                                                                    int options, const char* file,
                                                                    int line);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_thread_home_enter_stream(cuguest_thread_home* home,
                                                                       struct CUstream_st* stream,
                                                                       int options,
                                                                       const char* file, int line);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_thread_home_enter_pointer(cuguest_thread_home* home,
                                                                        unsigned long long pointer,
                                                                        int options,
                                                                        const char* file, int line);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_thread_home_enter_device(cuguest_thread_home* home,
                                                                       int device, int options,
                                                                       const char* file, int line);

/// Between two tasks: as ThreadHome::Check().
///
/// Errors:  CUDA_ERROR_CONTEXT_IS_DESTROYED (709)  it was destroyed or reset: the thread has what
///                                                 it had before
///          CUDA_ERROR_INVALID_CONTEXT (201)       the same, with CUGUEST_HOME_REENTERS: nobody has
///                                                 made the next incarnation active yet
///          CUDA_ERROR_ILLEGAL_STATE (401)         also: another scope is open inside it
///          or the code with which repairing failed
/// Cost:    two driver calls when nothing is wrong.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_thread_home_check(cuguest_thread_home* home);
/// Makes the context of `ref` the thread's home, with the same options; where that fails, it is
/// what it was, as ThreadHome::MoveTo says.
///
/// Errors:  those of cuguest_thread_home_enter_ref(), and CUDA_ERROR_ILLEGAL_STATE (401) as
///          cuguest_thread_home_check().
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_thread_home_move_to(cuguest_thread_home* home,
                                                                  const cuguest_ref* ref);
/// The incarnation that it is bound to, or was. No driver call.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_thread_home_ref(const cuguest_thread_home* home,
                                                              cuguest_ref* ref);
/// Errors:  as cuguest_guard_leave(), and cuguest_primary_release().
CUGUEST_C_API int cuguest_thread_home_leave(cuguest_thread_home* home);
CUGUEST_C_API void cuguest_thread_home_cleanup(cuguest_thread_home* home);

/// cuguest_free_memory(), cuguest_peer_access_check()
///
/// The bytes that a device has free, and those that it has in all, as GetFreeMemory (free_memory.h)
/// tells them: no context is left behind. Either pointer may be null. And 0 if a context on
/// `device` can be given access to the memory of `peer`, which is not done.
///
/// Stack:   as it was.
/// Count:   as it was.
/// Threads: any; not from a stream callback.
/// Errors:  nothing is written then.
///            CUDA_ERROR_INVALID_CONTEXT (201)          no context on `device` is current, its
///                                                      primary is not active, and CUGUEST_CREATE
///                                                      was not given
///            CUDA_ERROR_INVALID_DEVICE (101)           no such device
///            CUDA_ERROR_INVALID_VALUE (1)              `if_inactive` is no constant of it
///            CUDA_ERROR_PEER_ACCESS_UNSUPPORTED (217)  the devices have no link, or are the same
///                                                      one: see PeerAccess::Check (peer_access.h)
///            CUDA_ERROR_NOT_INITIALIZED (3)            a forked child
///            or the code of a missing driver, or an earlier sticky error
/// Cost:    as GetFreeMemory; of cuguest_peer_access_check() one driver call.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_free_memory(int device, int if_inactive, size_t* free,
                                                          size_t* total);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_peer_access_check(int device, int peer);

/// cuguest_shared_context
///
/// One reference to a context, counted for the whole process: a SharedContext (shared_context.h),
/// whose Note [Who destroys a shared context] says what the last holder does.
///
/// Stack:   never touched: what is created is floating, current on no thread.
/// Count:   one reference, until it is detached.
/// Threads: distinct.
typedef struct cuguest_shared_context {
  size_t size;
  unsigned long long opaque[15];
} cuguest_shared_context;

/// Makes a context with the flags of cuCtxCreate; adds one to the count of `context`, whose owner
/// does not matter.
///
/// Requires: `context` is alive.
/// Errors:  nothing is attached then.
///            CUDA_ERROR_INVALID_VALUE (1)           also: unknown flags; what cannot be a context
///            CUDA_ERROR_INVALID_DEVICE (101)        no such device
///            CUDA_ERROR_OUT_OF_MEMORY (2)           of the device, or no host memory to count it
///            CUDA_ERROR_CONTEXT_IS_DESTROYED (709)  it is over, or being destroyed by its last
///                                                   holder
///            CUDA_ERROR_NOT_INITIALIZED (3)         a forked child, see cuguest_error_advice()
///            or the code of a missing driver
/// Cost:    as SharedContext::Create and Attach.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_shared_context_create(cuguest_shared_context* shared,
                                                                    int device, unsigned flags);
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_shared_context_attach(cuguest_shared_context* shared,
                                                                    struct CUctx_st* context);
/// What is attached, for cuguest_guard_enter_ref(): good until it is detached. No driver call.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_shared_context_ref(
    const cuguest_shared_context* shared, cuguest_ref* ref);

/// As cuguest_primary_move().
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_shared_context_move(cuguest_shared_context* to,
                                                                  cuguest_shared_context* from);

/// Errors:  CUDA_ERROR_CONTEXT_IS_DESTROYED (709) if the context was destroyed or reset meanwhile,
///          and the code with which destroying it failed; nothing is attached all the same, unless
///          it is CUDA_ERROR_NOT_PERMITTED (800), for the last holder in a stream callback: it is
///          attached as before then.
/// Cost:    as SharedContext::Release.
CUGUEST_C_API int cuguest_shared_context_detach(cuguest_shared_context* shared);
CUGUEST_C_API void cuguest_shared_context_cleanup(cuguest_shared_context* shared);

/// cuguest_per_context_type
///
/// What the values of a cuguest_per_context are, and how they are made and destroyed. `user` is
/// passed to each function. They return by `return`, and leave the stack of contexts as they found
/// it; what they leave there all the same is taken off. They may call the cache, but for
/// cuguest_per_context_close(), and `make` not for the value that it is making.
typedef struct cuguest_per_context_type {
  size_t size;
  size_t value_size;  ///< in bytes, at least 1
  size_t alignment;   ///< of a value, a power of two; 0: that of malloc
  /// Makes a value at `value`, which is zeros, with its context current. Returns 0, or a code that
  /// cuguest_per_context_get() returns; then there is no value.
  int (*make)(const cuguest_ref* context, void* value, void* user);
  /// Destroys what `value` owns, with its context current.
  void (*destroy)(void* value, void* user);
  /// Called instead of `destroy` where the context is over, or cannot be entered: destroys what
  /// `value` owns of the host, without a driver call. Null: it owns nothing there.
  void (*leak)(void* value, void* user);
  void* user;
} cuguest_per_context_type;

/// cuguest_per_context
///
/// A cache of a value for each context, made once and found without a lock: a PerContext
/// (per_context.h). It is keyed by one incarnation of a context, see cuguest_ref. Zeros alone, or
/// CUGUEST_INIT, are an empty cache; it may be a static variable, whose first use several threads
/// make at the same time. What is never closed is left to the end of the process.
///
/// Stack:   net 0 in every call. `make` and `destroy` run with the value's context current.
/// Count:   none; it keeps no context alive. Call cuguest_per_context_forget() before destroying a
///          context, or cuguest_per_context_forget_destroyed() afterwards. Primary contexts need
///          neither.
/// Threads: any; cuguest_per_context_close() not at the same time as another call. All that pin a
///          value share it; making that safe is up to the caller. No lock is held while the driver
///          or a function of the type is called.
/// Fork:    a forked child finds the values that are there, makes and destroys none, and waits for
///          nothing.
/// Cost:    2 KiB of host memory from the first cuguest_per_context_get() on, and 2.5 KiB for each
///          value. 41 KB of an embedder's size, 16 KB more than a guard alone.
/// Needs:   CUDA 12.0 to tell incarnations apart, as PerContext.
typedef struct cuguest_per_context {
  size_t size;
  unsigned long long opaque[15];
} cuguest_per_context;

/// cuguest_per_context_pin
///
/// Keeps a value from ending while it is held, also after it was dropped: it can be read, but in a
/// dead context its driver objects are dead too.
///
/// Threads: distinct; it may be released on another thread than it was taken on.
typedef struct cuguest_per_context_pin {
  size_t size;
  unsigned long long opaque[15];
} cuguest_per_context_pin;

/// Pins the value of `context`, made now if there is none. Threads that ask for one context at the
/// same time wait for the one that makes its value; if `make` fails, each of the others tries for
/// itself. From the first call on, also if that fails, `type` is the cache's; it is copied.
///
/// Errors:  those of `make`; and as follows. Nothing is pinned then.
///            CUDA_ERROR_INVALID_VALUE (1)           also: `type` lacks `make` or `destroy`, has no
///                                                   bytes or an alignment that is none, or differs
///                                                   from the cache's
///            CUDA_ERROR_ILLEGAL_STATE (401)         `pin` holds a value; `cache` is a copy, or
///                                                   being closed; or this is called from a `make`
///                                                   of the cache for the same context, or one that
///                                                   waits for this thread
///            CUDA_ERROR_OUT_OF_MEMORY (2)           no host memory
///            CUDA_ERROR_NOT_INITIALIZED (3)         a forked child that has no value to find
///            or those of cuguest_guard_enter_ref()
/// Cost:    a value that is there: no lock, no allocation, no driver call. Otherwise as
///          PerContext::GetOrMake.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_per_context_get(cuguest_per_context* cache,
                                                              const cuguest_per_context_type* type,
                                                              const cuguest_ref* context,
                                                              cuguest_per_context_pin* pin);

/// The same of a value that is there.
///
/// Requires: the incarnation that `context` names is alive.
/// Errors:  CUDA_ERROR_NOT_FOUND (500)  there is none, or it is only being made
/// Cost:    no driver call.
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_per_context_find(cuguest_per_context* cache,
                                                               const cuguest_ref* context,
                                                               cuguest_per_context_pin* pin);

/// The value that is pinned, until it is unpinned; null where none is. No driver call.
CUGUEST_C_API void* cuguest_per_context_value(const cuguest_per_context_pin* pin);

/// Releases the value. It may do so after its cache was closed.
CUGUEST_C_API int cuguest_per_context_unpin(cuguest_per_context_pin* pin);
CUGUEST_C_API void cuguest_per_context_pin_cleanup(cuguest_per_context_pin* pin);

/// Drops the value of exactly this incarnation, and destroys it and what was dropped of it before,
/// unless it is pinned. Call it before destroying the context; PerContext::Forget says what other
/// threads may be doing. The other one is for an incarnation that is destroyed or reset: it gives
/// the values up, without a driver call.
///
/// Errors:  CUDA_ERROR_NOT_FOUND (500)  there was no value to drop
/// Cost:    as PerContext::Forget and ForgetDestroyed.
CUGUEST_C_API int cuguest_per_context_forget(cuguest_per_context* cache,
                                             const cuguest_ref* context);
CUGUEST_C_API int cuguest_per_context_forget_destroyed(cuguest_per_context* cache,
                                                       const cuguest_ref* context);

/// Drops all values; drops those whose context is known to be dead. `count`, which may be null,
/// gets how many those were.
///
/// Requires: of cuguest_per_context_forget_all(), that each of these contexts goes on, or is a
///           primary context.
/// Cost:    as PerContext::ForgetAll and DropDead.
CUGUEST_C_API int cuguest_per_context_forget_all(cuguest_per_context* cache, size_t* count);
CUGUEST_C_API int cuguest_per_context_drop_dead(cuguest_per_context* cache, size_t* count);

/// How many values can be found. No driver call.
CUGUEST_C_API size_t cuguest_per_context_size(const cuguest_per_context* cache);

/// Drops all values, as the destructor of PerContext does, and frees the cache, which is empty
/// then. A value that is still pinned is leaked, with its memory.
///
/// Requires: no other call with `cache` is running.
/// Errors:  CUDA_ERROR_ILLEGAL_STATE (401)  nothing was got from it; it is a copy
/// Cost:    one or two driver calls for each value, and as cuguest_per_context_forget().
CUGUEST_C_API int cuguest_per_context_close(cuguest_per_context* cache);
CUGUEST_C_API void cuguest_per_context_cleanup(cuguest_per_context* cache);

/// What a guard found: Incident::Kind of incident.h. Later releases may add to them.
enum {
  CUGUEST_REPLACED = 0,
  CUGUEST_LEAKED_PUSH = 1,
  CUGUEST_EXTRA_POP = 2,
  CUGUEST_DESTROYED = 3,
  CUGUEST_FAILED = 4,
  CUGUEST_CAPTURE_MODE = 5,
  CUGUEST_LAST_ERROR = 6,
  CUGUEST_ELSEWHERE = 7,
  CUGUEST_UNASKED = 8,
  CUGUEST_OUT_OF_TURN = 9,
  CUGUEST_OWED = 10,
};

/// What it did about it: Repair of incident.h.
enum {
  CUGUEST_REPAIRED = 0,
  CUGUEST_INFERRED = 1,
  CUGUEST_UNREPAIRED = 2,
};

/// An incident, as Incident of incident.h. Valid only while the callback runs.
typedef struct cuguest_incident {
  size_t size;  ///< of what the library has filled in: members of a later release may be missing
  int kind;
  int repair;
  int result;  ///< the code that stopped a repair; 0 if none did
  int line;    ///< of the guard, as `file`
  const char* file;
  struct CUctx_st* expected;  ///< what the guard expected on top when it looked
  struct CUctx_st* found;     ///< what was there; null for an empty stack
  struct CUctx_st* current;   ///< what is current now, after the repair
  unsigned long thread;       ///< the system's id of the calling thread (gettid)
} cuguest_incident;

/// "left a push behind", ...: fits "a callee ..."; and "repaired", ... Never null, never
/// to be freed.
///
/// Threads: any. No driver call.
CUGUEST_C_API const char* cuguest_incident_name(int kind);
CUGUEST_C_API const char* cuguest_repair_name(int repair);

/// Called on the guard's thread, after the repair, and on several threads at a time. It may use
/// CUDA if it leaves the stack as it found it, and leave the scope that reports: if that was to
/// move or to be reasserted, it gives CUDA_ERROR_ILLEGAL_STATE (401) and has ended. It may clean
/// up again what reports that it owes a reference, which it no longer has. It may leave a
/// function of this header that works on a scope by longjmp(), see cuguest_incident_listener; not
/// one that enters a cuguest_host_scope, which reports what it finds.
typedef void (*cuguest_incident_callback)(const cuguest_incident* incident, void* user);

/// cuguest_incident_listener
///
/// `callback` is called with `user` for every incident of this copy of cuguest, from registering
/// until removing: an IncidentListener, whose comment says what removing waits for. Once removing
/// has returned, neither is used again.
///
/// Threads: distinct; its owner and its own callback may remove it at the same time: one of them
///          removes it, the other gets CUDA_ERROR_ILLEGAL_STATE (401), which of the owner waits as
///          long as removing does. After a longjmp() out of the callback the scope is left, or
///          outside (not entered, where that was the call), and to leave it again gives 0, or what
///          a move found of the caller's stack; what its end closes besides is closed when the
///          thread next ends a scope. The listeners after this one miss that incident. Until it is
///          removed on that thread, or another incident comes up there no deeper on its stack,
///          another thread that removes it waits, at the longest until the thread has ended.
/// Errors:  CUDA_ERROR_INVALID_VALUE (1) also if `callback` is null.
/// Cost:    no driver call; no allocation, unless more than 16 incidents are reported at one time.
///          Without memory for that, one is counted and no listener called. No lock of ours is held
///          while a callback runs.
typedef struct cuguest_incident_listener {
  size_t size;
  unsigned long long opaque[15];
} cuguest_incident_listener;
CUGUEST_C_API CUGUEST_C_NODISCARD int cuguest_incident_listener_register(
    cuguest_incident_listener* listener, cuguest_incident_callback callback, void* user);
CUGUEST_C_API int cuguest_incident_listener_remove(cuguest_incident_listener* listener);
CUGUEST_C_API void cuguest_incident_listener_cleanup(cuguest_incident_listener* listener);

/// How many incidents there were since the library was loaded, of `kind`; of every kind for -1.
/// 0 for what is no kind.
///
/// Threads: any. No driver call.
CUGUEST_C_API unsigned long long cuguest_incident_count(int kind);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // CUGUEST_C_H_
