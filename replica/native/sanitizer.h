// Tells ThreadSanitizer what it cannot see: gRPC's own locks, in libraries that are not
// instrumented, order an operation's start before its callback.
#pragma once

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace penstock::replica {

inline void hand_to_grpc([[maybe_unused]] void* reactor) {
#ifdef __SANITIZE_THREAD__
  __tsan_release(reactor);
#endif
}

inline void back_from_grpc([[maybe_unused]] void* reactor) {
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(reactor);
#endif
}

}  // namespace penstock::replica
