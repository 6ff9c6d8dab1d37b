// States whose steps are a table.
#include "proxy/stage.h"

#include <gtest/gtest.h>

namespace penstock::proxy {
namespace {

enum class Light : uint8_t { kRed, kGreen, kOff };

constexpr Transitions<Light> kLights{
    {Light::kRed, {Light::kGreen, Light::kOff}},
    {Light::kGreen, {Light::kRed}},
};
using Lamp = Stage<Light, kLights>;

TEST(StageTest, BeginsWithTheFirstState) {
  const Lamp stage;
  EXPECT_EQ(stage.now(), Light::kRed);
  EXPECT_FALSE(stage.refused());
}

TEST(StageTest, TakesTheStepsOfItsTable) {
  Lamp stage;
  stage.advance(Light::kGreen);
  stage.advance(Light::kRed);
  stage.advance(Light::kOff);
  EXPECT_EQ(stage.now(), Light::kOff);
  EXPECT_FALSE(stage.refused());
}

TEST(StageTest, HasNoStepThatItsTableDoesNotName) {
  EXPECT_FALSE(kLights.allow(Light::kGreen, Light::kOff));
  EXPECT_FALSE(kLights.allow(Light::kRed, Light::kRed));
  EXPECT_FALSE(kLights.allow(Light::kOff, Light::kRed)) << "what has no row is the end";
}

#if defined(__SANITIZE_ADDRESS__)
TEST(StageDeathTest, EndsTheProcessUnderASanitizerWhereAStepIsRefused) {
  EXPECT_DEATH(
      {
        Lamp stage;
        stage.advance(Light::kRed);
      },
      "");
}
#elif !defined(__SANITIZE_THREAD__)
TEST(StageTest, StaysWhereItIsAndSaysSoWhereAStepIsRefused) {
  Lamp stage;
  stage.advance(Light::kRed);
  EXPECT_TRUE(stage.refused());
  stage.advance(Light::kGreen);
  EXPECT_EQ(stage.now(), Light::kGreen);
}
#endif

}  // namespace
}  // namespace penstock::proxy
