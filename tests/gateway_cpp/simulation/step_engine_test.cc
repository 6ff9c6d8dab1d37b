// What an engine that works in steps keeps to, whatever it is asked.
#include "simulation/step_engine.h"

#include <gtest/gtest.h>

#include <map>

#include "routing/hashing.h"

namespace penstock::simulation {
namespace {

constexpr StepCosts kCosts{
    .fixed = 0.01, .weights = 0.02, .token = 1e-4, .decode = 1e-3, .pair = 1e-8, .context = 1e-6};
constexpr StepLimits kLimits{.budget = 100, .sequences = 3, .block_tokens = 16, .blocks = 60};

TEST(StepEngine, AnIdleEngineAnswersAPromptAfterItsChunksAndNothingElse) {
  StepEngine engine(kCosts, kLimits);
  engine.add({.id = 1, .prompt = 150, .completion = 2});
  double first_token = 0;
  for (const double chunk : {100.0, 50.0}) {
    const StepEngine::Step step = engine.begin();
    ASSERT_EQ(step.batch.prefill_tokens, chunk);
    EXPECT_EQ(step.parts[0].gives_token, chunk == 50);
    engine.end(step);
    first_token += step.seconds;
  }
  // 50 tokens take less than the weights; 150 * 151 / 2 pairs.
  EXPECT_DOUBLE_EQ(first_token, 2 * 0.01 + 100 * 1e-4 + 0.01 + 0.02 + 11'325e-8);
  const StepEngine::Step decode = engine.begin();
  EXPECT_DOUBLE_EQ(decode.seconds, 0.01 + 0.02 + 1e-3 + 150e-6);
  EXPECT_TRUE(decode.parts[0].is_last);
  engine.end(decode);
  EXPECT_TRUE(engine.begin().parts.empty());
}

TEST(StepEngine, WhatIsPresentOfAPromptIsNotComputedButAttendedTo) {
  StepEngine engine(kCosts, kLimits);
  engine.add({.id = 1, .prompt = 150, .present = 144, .completion = 1});
  const StepEngine::Step step = engine.begin();
  EXPECT_EQ(step.batch.prefill_tokens, 6U);
  EXPECT_EQ(step.batch.pairs, 6 * 144 + 21);
  EXPECT_TRUE(step.parts[0].is_last);
}

TEST(StepEngine, EveryTokenIsComputedOnceWithinBudgetSequencesAndBlocks) {
  StepEngine engine(kCosts, kLimits);
  routing::Random random(7);
  std::map<std::uint32_t, StepEngine::Sequence> wanted;
  std::map<std::uint32_t, std::uint32_t> prefilled;
  std::map<std::uint32_t, std::uint32_t> given;
  std::size_t done = 0;
  for (std::uint32_t steps = 0; done < 300; ++steps) {
    ASSERT_LT(steps, 100'000U);
    if (wanted.size() < 300 && random.below(3) == 0) {
      const auto id = static_cast<std::uint32_t>(wanted.size());
      const auto prompt = static_cast<std::uint32_t>(2 + random.below(400));
      wanted[id] = {.id = id,
                    .prompt = prompt,
                    .present = static_cast<std::uint32_t>(random.below(prompt)),
                    .completion = static_cast<std::uint32_t>(1 + random.below(50))};
      engine.add(wanted[id]);
    }
    const StepEngine::Step step = engine.begin();
    ASSERT_LE(step.batch.prefill_tokens + step.batch.decodes, kLimits.budget);
    ASSERT_LE(step.parts.size(), kLimits.sequences);
    std::uint32_t blocks = 0;  // that the sequences of this step have filled already
    for (const StepEngine::Part& part : step.parts) {
      prefilled[part.id] += part.prefilled;
      given[part.id] += part.gives_token ? 1 : 0;
      blocks += engine.blocks_of(wanted[part.id].present + prefilled[part.id] + given[part.id]);
      ASSERT_EQ(part.is_last, given[part.id] == wanted[part.id].completion);
      done += part.is_last ? 1 : 0;
    }
    ASSERT_LE(blocks, kLimits.blocks);
    engine.end(step);
  }
  for (const auto& [id, sequence] : wanted) {
    EXPECT_EQ(prefilled[id], sequence.prompt - sequence.present);
    EXPECT_EQ(given[id], sequence.completion);
  }
  EXPECT_EQ(engine.free_blocks(), kLimits.blocks);
}

TEST(StepEngine, DecodesAreInEveryStepHoweverManyPromptsWait) {
  StepEngine engine(kCosts, kLimits);
  engine.add({.id = 9, .prompt = 16, .completion = 30});
  engine.end(engine.begin());
  for (std::uint32_t id = 0; id < 5; ++id) engine.add({.id = id, .prompt = 150, .completion = 1});
  for (int token = 1; token < 30; ++token) {
    const StepEngine::Step step = engine.begin();
    EXPECT_EQ(step.parts[0].id, 9U);
    EXPECT_TRUE(step.parts[0].gives_token);
    engine.end(step);
  }
}

TEST(StepEngine, APromptWaitsForBlocksThatAreFreeOrReservedForIt) {
  StepEngine engine(kCosts, kLimits);
  ASSERT_TRUE(engine.reserve(2, 320));
  EXPECT_FALSE(engine.reserve(3, 41 * 16));
  engine.add({.id = 1, .prompt = 600, .completion = 40});  // all that is left
  engine.end(engine.begin());
  EXPECT_EQ(engine.free_blocks(), 0U);
  engine.add({.id = 2, .prompt = 300, .present = 288, .completion = 20});
  engine.add({.id = 3, .prompt = 8, .completion = 8});
  for (int i = 0; i < 6; ++i) {
    const StepEngine::Step step = engine.begin();
    for (const StepEngine::Part& part : step.parts) EXPECT_NE(part.id, 3U);
    engine.end(step);
  }
  const StepEngine::Step step = engine.begin();
  ASSERT_EQ(step.parts.size(), 2U);
  EXPECT_EQ(step.parts[1].id, 2U);
}

}  // namespace
}  // namespace penstock::simulation
