// Half of the replicas die at once, with a thousand streams on all.
#include "dying_fleet.h"

namespace penstock::dispatch {
namespace {

class MassDeath : public testing::TestWithParam<std::uint64_t> {};

TEST_P(MassDeath, AllGoOnBeforeAnyNewcomerAndWithinTheMemory) {
  DyingFleet fleet({.configs = std::vector<std::string>(8, "a"), .seed = GetParam()});
  fleet.run(seconds(30));
  const std::size_t before = fleet.running();
  ASSERT_GT(before, 800u);
  ASSERT_EQ(fleet.refused(), 0);
  for (std::size_t i = 0; i < 4; ++i) fleet.kill(i);
  fleet.run(seconds(60));
  std::printf("running %zu went on %d longest %lld preempted %d refused %d came in %f\n", before,
              fleet.went_on(), (long long)fleet.longest_pause().count(), fleet.preempted(),
              fleet.refused(), fleet.came_in());
  EXPECT_GT(fleet.went_on(), 0.9 * before / 2);
  EXPECT_EQ(fleet.broken(), 0u);
  EXPECT_EQ(fleet.overtaken(), 0);
  EXPECT_EQ(fleet.preempted(), 0);
  EXPECT_LT(fleet.longest_pause(), seconds(10));
  EXPECT_GT(fleet.refused(), 100);
  EXPECT_GT(fleet.came_in(), 0.8);
}

TEST_P(MassDeath, ThoseOfOneConfigHoldUpNewcomersThereAlone) {
  DyingFleet fleet({.configs = {"a", "a", "a", "a", "b", "b", "b", "b"}, .seed = GetParam()});
  fleet.run(seconds(30));
  for (std::size_t i = 0; i < 3; ++i) fleet.kill(i);
  fleet.run(seconds(5));
  fleet.kill(4);
  fleet.run(seconds(60));
  std::printf("went on %d longest %lld preempted %d refused %d came in %f\n", fleet.went_on(),
              (long long)fleet.longest_pause().count(), fleet.preempted(), fleet.refused(),
              fleet.came_in());
  EXPECT_EQ(fleet.broken(), 0u);
  EXPECT_EQ(fleet.overtaken(), 0);
  EXPECT_EQ(fleet.preempted(), 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MassDeath, testing::Values(1, 2, 3));

}  // namespace
}  // namespace penstock::dispatch
