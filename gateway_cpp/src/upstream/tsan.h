// Hand-over points that ThreadSanitizer cannot see, because Debian's libgrpc is not instrumented:
// what happened before GIVES on one thread is visible after TAKES on the other.
#pragma once

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define PENSTOCK_TSAN_GIVES(object) __tsan_release(static_cast<void*>(object))
#define PENSTOCK_TSAN_TAKES(object) __tsan_acquire(static_cast<void*>(object))
#else
#define PENSTOCK_TSAN_GIVES(object) static_cast<void>(object)
#define PENSTOCK_TSAN_TAKES(object) static_cast<void>(object)
#endif
