// What a running process has spent and holds, read from the kernel by its pid.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace penstock::evals {

// User and system time of all its threads, ended ones included; -1 when there is no such process.
int64_t cpu_nanoseconds(pid_t pid);

struct Memory {
  int64_t pss_kib = -1;  // shared pages divided by their sharers; -1 when not readable
  int64_t rss_kib = -1;
};

Memory memory_of(pid_t pid);

}  // namespace penstock::evals
