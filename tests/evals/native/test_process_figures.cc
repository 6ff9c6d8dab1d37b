#include "process_figures.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace penstock::evals {
namespace {

TEST(ProcessFigures, CpuGrowsWithWork) {
  const int64_t before = cpu_nanoseconds(::getpid());
  volatile uint64_t sum = 0;
  for (uint64_t i = 0; i < 10'000'000; ++i) sum = sum + i;
  EXPECT_GT(cpu_nanoseconds(::getpid()), before + 1'000'000);
}

TEST(ProcessFigures, OwnMemoryIsKnown) {
  const Memory memory = memory_of(::getpid());
  EXPECT_GT(memory.pss_kib, 100);
  EXPECT_GE(memory.rss_kib, memory.pss_kib);
}

TEST(ProcessFigures, NoProcessHasNone) {
  EXPECT_EQ(cpu_nanoseconds(0x7ffffff0), -1);
  EXPECT_EQ(memory_of(0x7ffffff0).pss_kib, -1);
}

}  // namespace
}  // namespace penstock::evals
