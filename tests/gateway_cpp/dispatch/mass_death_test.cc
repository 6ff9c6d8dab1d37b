// Half of the replicas die at once, with a thousand streams on all.
#include "dying_fleet.h"

namespace penstock::dispatch {
namespace {

class MassDeath : public testing::TestWithParam<std::uint64_t> {};

// There is room for all of them by the limits, and not by the memory.
TEST_P(MassDeath, AllGoOnBeforeAnyNewcomerAndWithinTheMemory) {
  DyingFleet fleet({.configs = std::vector<std::string>(8, "a"), .seed = GetParam()});
  fleet.run(seconds(30));
  const std::size_t before = fleet.running();
  ASSERT_GT(before, 900u);
  ASSERT_EQ(fleet.refused(), 0);
  for (std::size_t i = 0; i < 4; ++i) fleet.kill(i);
  fleet.run(seconds(3));
  EXPECT_EQ(fleet.preempted(), 0) << "engines thrash";
  EXPECT_LT(fleet.most_waiting(), 60u) << "they wait in an engine, which they cannot leave";
  fleet.run(seconds(27));
  EXPECT_GT(fleet.went_on(), 450);
  EXPECT_EQ(fleet.broken(), 0u);
  EXPECT_EQ(fleet.overtaken(), 0);
  EXPECT_LT(fleet.longest_pause(), seconds(8));
  EXPECT_GT(fleet.refused(), 100);
  EXPECT_GT(fleet.came_in(), 0.7)
      << "newcomers are told when there is room, those before them included";
}

TEST_P(MassDeath, ThoseOfOneConfigHoldUpNewcomersThereAlone) {
  DyingFleet fleet({.configs = {"a", "a", "a", "a", "b", "b", "b", "b"}, .seed = GetParam()});
  fleet.run(seconds(30));
  for (std::size_t i = 0; i < 3; ++i) fleet.kill(i);
  fleet.run(seconds(5));
  fleet.kill(4);
  fleet.run(seconds(40));
  EXPECT_GT(fleet.went_on(), 450);
  EXPECT_EQ(fleet.broken(), 0u);
  EXPECT_EQ(fleet.overtaken(), 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MassDeath, testing::Values(1, 2));

}  // namespace
}  // namespace penstock::dispatch
