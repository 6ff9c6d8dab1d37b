#include "process_figures.h"

#include <time.h>

#include <fstream>
#include <limits>
#include <string>

namespace penstock::evals {

int64_t cpu_nanoseconds(pid_t pid) {
  clockid_t clock = 0;
  timespec spent{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &spent) != 0) return -1;
  return int64_t{spent.tv_sec} * 1'000'000'000 + spent.tv_nsec;
}

Memory memory_of(pid_t pid) {
  Memory memory;
  std::ifstream figures("/proc/" + std::to_string(pid) + "/smaps_rollup");
  figures.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  std::string name;
  int64_t kib = 0;
  std::string unit;
  while (figures >> name >> kib >> unit) {
    if (name == "Pss:") memory.pss_kib = kib;
    if (name == "Rss:") memory.rss_kib = kib;
  }
  return memory;
}

}  // namespace penstock::evals
