#include "admission/wait_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "admission/queue_simulation.h"

namespace penstock::admission {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

base::SteadyTime after(milliseconds time) { return base::SteadyTime(time); }

// `places` runs of one second and one work each, over and over, for a hundred seconds.
WaitModel after_seconds_of_one(std::size_t places) {
  WaitModel model;
  for (int second = 0; second < 100; ++second) {
    std::vector<WaitModel::Run> runs;
    for (std::size_t i = 0; i < places; ++i) {
      runs.push_back(model.started(1, after(seconds(second))));
    }
    for (const WaitModel::Run run : runs) model.ended(run, after(seconds(second + 1)));
  }
  return model;
}

TEST(WaitModel, TakesTwentyTokensASecondForTruthBeforeItHasSeenARunEnd) {
  WaitModel model;
  EXPECT_NEAR(model.estimate(0, 1, after(seconds(0))).count(), 12'800, 1)
      << "an answer of 256 tokens";
  model.started(4 * 40, after(seconds(0)));
  EXPECT_EQ(model.estimate(0, 1, after(seconds(0))), seconds(2));
  EXPECT_EQ(model.estimate(4 * 40, 1, after(seconds(1))), seconds(4)) << "and as long again";
  EXPECT_EQ(model.between(1, after(seconds(0))), seconds(2));
  EXPECT_EQ(model.between(4, after(seconds(0))), milliseconds(500));
  EXPECT_FALSE(model.has_learnt());
  EXPECT_TRUE(after_seconds_of_one(1).has_learnt());
}

TEST(WaitModel, TakesNoRunToBeShorterThanTheOldestThatHasNotEnded) {
  WaitModel model;
  for (int i = 0; i < 1000; ++i) model.started(4 * 30, after(seconds(i == 0 ? 0 : 90)));
  const auto now = after(seconds(100));
  EXPECT_NEAR(static_cast<double>(model.between(1000, now).count()), 1e5, 1);
  EXPECT_NEAR(model.estimate(999 * 4 * 30, 1000, now).count(), 100'000, 1);
}

TEST(WaitModel, BelievesTheFirstRunThatEndsMoreThanWhatItTookForTruth) {
  for (const int tenths : {1, 200}) {
    WaitModel model;
    const auto first = model.started(4 * 30, after(seconds(0)));
    model.ended(first, after(milliseconds(100 * tenths)));
    EXPECT_NEAR(static_cast<double>(model.between(1, after(seconds(30))).count()), 1e5 * tenths, 1);
  }
}

TEST(WaitModel, FollowsTheClockWhereEveryRunTakesAsLong) {
  WaitModel model = after_seconds_of_one(4);
  for (int i = 0; i < 4; ++i) model.started(1, after(seconds(200)));
  const auto now = after(milliseconds(200'300));
  EXPECT_NEAR(model.estimate(0, 4, now).count(), 700, 40);
  EXPECT_NEAR(model.estimate(3, 4, now).count(), 700, 40);   // all four end together
  EXPECT_NEAR(model.estimate(4, 4, now).count(), 1700, 80);  // behind those of the next round
}

TEST(WaitModel, SaysWhatAWaitMayBeWhileNobodyKnowsWhetherPlacesComeFreeTogether) {
  WaitModel model;
  const auto four = [&](seconds from) {
    std::vector<WaitModel::Run> runs;
    for (int i = 0; i < 4; ++i) runs.push_back(model.started(1, after(from)));
    return runs;
  };
  for (const auto run : four(seconds(0))) model.ended(run, after(seconds(1)));
  four(seconds(1));
  const auto now = after(seconds(1));
  EXPECT_EQ(model.estimate(8, 4, now), milliseconds(2250)) << "evenly";
  EXPECT_NEAR(model.at_most(8, 4, now).count(), 3000, 1) << "together";
  EXPECT_FALSE(model.is_sure());
  EXPECT_TRUE(after_seconds_of_one(1).is_sure());
}

TEST(WaitModel, FindsTheOneThatStillRunsAfterACrowd) {
  for (const std::size_t crowd : {2U, 64U, 100U, 192U}) {
    for (std::size_t left = 0; left < crowd; left += 7) {
      WaitModel model;
      std::vector<WaitModel::Run> runs;
      for (std::size_t i = 0; i < crowd; ++i) runs.push_back(model.started(1, after(seconds(0))));
      for (std::size_t i = 0; i < crowd; ++i) {
        if (i != left) model.ended(runs[i], after(seconds(2)));
      }
      EXPECT_NEAR(model.at_most(0, 1, after(seconds(2))).count(), 2000, 1)
          << left << " of " << crowd;
    }
  }
}

TEST(WaitModel, TwiceThePlacesHalveTheWait) {
  WaitModel model = after_seconds_of_one(8);
  for (int i = 0; i < 8; ++i) model.started(1, after(milliseconds(200'000 + 125 * i)));
  const auto now = after(milliseconds(200'900));
  const auto with_eight = model.estimate(80, 8, now).count();
  EXPECT_NEAR(with_eight, 10'100, 700);
  EXPECT_NEAR(static_cast<double>(model.estimate(80, 4, now).count()), 2.0 * with_eight, 2000);
}

TEST(WaitModel, ARunThatWasCutShortTeachesNothing) {
  WaitModel model = after_seconds_of_one(1);
  for (int i = 0; i < 100; ++i) {
    model.ended(model.started(1, after(seconds(200))), after(milliseconds(200'001)), false);
  }
  model.started(1, after(seconds(300)));
  EXPECT_NEAR(model.estimate(9, 1, after(seconds(300))).count(), 10'000, 500);
}

TEST(WaitModel, ForgetsLongRunsSoonOnceShortOnesEnd) {
  WaitModel model;
  base::SteadyTime now = after(seconds(0));
  const auto run_in_fours = [&](milliseconds each, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      std::vector<WaitModel::Run> runs;
      for (int i = 0; i < 4; ++i) runs.push_back(model.started(1'000, now));
      now += each;
      for (const WaitModel::Run run : runs) model.ended(run, now);
    }
  };
  run_in_fours(seconds(40), 16);
  EXPECT_NEAR(static_cast<double>(model.between(4, now).count()), 1e7, 1e3);
  run_in_fours(milliseconds(500), 15);
  EXPECT_LT(model.between(4, now), milliseconds(250));
  EXPECT_GE(model.between(4, now), milliseconds(125));
}

TEST(WaitModel, NoEstimateIsLongerThanAnHour) {
  WaitModel model = after_seconds_of_one(1);
  model.started(1, after(seconds(200)));
  EXPECT_EQ(model.estimate(1'000'000'000, 1, after(seconds(200))), std::chrono::hours(1));
}

TEST(WaitModel, CountsThoseThatRun) {
  WaitModel model;
  const auto first = model.started(1, after(seconds(0)));
  const auto second = model.started(1, after(seconds(0)));
  model.ended(first, after(seconds(1)));
  EXPECT_EQ(model.running(), 1U);
  EXPECT_EQ(model.started(1, after(seconds(1))), first) << "a slot is used again";
  model.ended(second, after(seconds(2)));
  EXPECT_EQ(model.running(), 1U);
}

// How requests come and what they take.
struct Shape {
  const char* name;
  std::size_t places;
  double (*pace)(std::size_t running);
  double (*work)(std::mt19937_64& random, double now);
  bool known;   // the estimate is the work; else the same for all
  double load;  // of what the places can do; 0: as many clients as 5 times the places, closed loop
  bool bursts;  // a fifth of the time at 3.5 times the rate, the rest at 0.375
};

void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

double even(std::size_t) { return 1000; }
// A batch of 64 goes at a fifth of the pace of one alone.
double by_batch(std::size_t running) { return 5000 / (1 + static_cast<double>(running) / 16); }

double constant(std::mt19937_64&, double) { return 1000; }
double memoryless(std::mt19937_64& random, double) {
  return std::exponential_distribution<>(0.001)(random);
}
double heavy_tailed(std::mt19937_64& random, double) {  // lognormal, its deviation twice its mean
  const double variance = std::log(5.0);
  return std::lognormal_distribution<>(std::log(1000) - variance / 2, std::sqrt(variance))(random);
}
double longer_after_a_while(std::mt19937_64& random, double now) {
  return (now < 200 ? 1 : 3) * memoryless(random, now);
}

class Waits {
 public:
  Waits(const Shape& shape, std::uint64_t seed)
      : shape_(shape), random_(seed), simulation_(shape.places, shape.pace) {}

  // The part by which half of the estimates were off, of waits over 100 ms of those that came after
  // a hundred had been served.
  double median_error() {
    if (shape_.load == 0) {
      come_again();
    } else {
      come_by_themselves();
    }
    simulation_.run();
    std::vector<double> errors;
    const double from = hundredth_end();
    for (const auto& request : simulation_.requests()) {
      const double waited = request->waited();
      if (request->arrived < from || waited <= 0.1) continue;
      errors.push_back(std::abs(request->told - waited) / waited);
    }
    EXPECT_GT(errors.size(), 300U) << "too few waited to say anything";
    std::nth_element(errors.begin(), errors.begin() + errors.size() / 2, errors.end());
    return errors[errors.size() / 2];
  }

 private:
  static constexpr int kRequests = 4000;

  void arrive(double time) {
    const double work = shape_.work(random_, time);
    const double told = shape_.known ? std::ceil(work) : 1000;
    simulation_.arrive(time, "tenant", base::Priority::kNormal, static_cast<std::uint64_t>(told),
                       work);
  }

  void come_again() {
    int made = 0;
    for (; made < static_cast<int>(5 * shape_.places); ++made) arrive(0.001 * made);
    simulation_.on_end([this, made](const QueueSimulation::Request&) mutable {
      if (made++ < kRequests) arrive(simulation_.now() + 0.001);
    });
  }

  void come_by_themselves() {
    const double rate =
        shape_.load * static_cast<double>(shape_.places) * shape_.pace(shape_.places) / 1000;
    double time = 0;
    for (int made = 0; made < kRequests;) {
      const double in_cycle = std::fmod(time, 20);
      const bool busy = in_cycle < 4;
      const double now_rate = shape_.bursts ? rate * (busy ? 3.5 : 0.375) : rate;
      const double next = std::exponential_distribution<>(now_rate)(random_);
      const double change = (busy ? 4 : 20) - in_cycle + 1e-6;
      time += shape_.bursts ? std::min(next, change) : next;
      if (shape_.bursts && next > change) continue;
      arrive(time);
      ++made;
    }
  }

  double hundredth_end() const {
    std::vector<double> ends;
    for (const auto& request : simulation_.requests()) ends.push_back(request->ended);
    std::sort(ends.begin(), ends.end());
    return ends[99];
  }

  const Shape shape_;
  std::mt19937_64 random_;
  QueueSimulation simulation_;
};

class HalfOfTheEstimates : public testing::TestWithParam<Shape> {};

TEST_P(HalfOfTheEstimates, AreWithinThirtyPercentOfWaitsOverATenthOfASecond) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    EXPECT_LT(Waits(GetParam(), seed).median_error(), 0.3) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, HalfOfTheEstimates,
    testing::Values(Shape{"Constant4", 4, even, constant, true, 0, false},
                    Shape{"Constant64", 64, even, constant, true, 0, false},
                    Shape{"ConstantInBursts4", 4, even, constant, true, 0.9, true},
                    Shape{"ConstantInBursts64", 64, even, constant, true, 0.9, true},
                    Shape{"Memoryless4", 4, even, memoryless, false, 0, false},
                    Shape{"Memoryless64", 64, even, memoryless, false, 0, false},
                    Shape{"MemorylessInBursts4", 4, even, memoryless, false, 0.9, true},
                    Shape{"MemorylessInBursts64", 64, even, memoryless, false, 0.9, true},
                    Shape{"HeavyTailed64", 64, even, heavy_tailed, false, 0, false},
                    Shape{"HeavyTailedInBursts64", 64, even, heavy_tailed, false, 0.9, true},
                    Shape{"HeavyTailedForeseen4", 4, even, heavy_tailed, true, 0, false},
                    Shape{"HeavyTailedForeseen64", 64, even, heavy_tailed, true, 0, false},
                    Shape{"TooMuch4", 4, even, heavy_tailed, false, 1.1, false},
                    Shape{"TooMuch64", 64, even, heavy_tailed, false, 1.1, false},
                    Shape{"Longer4", 4, even, longer_after_a_while, false, 0, false},
                    Shape{"Longer64", 64, even, longer_after_a_while, false, 0, false},
                    Shape{"LongerInBursts4", 4, even, longer_after_a_while, false, 0.5, true},
                    Shape{"ByBatch64", 64, by_batch, memoryless, false, 0, false},
                    Shape{"ByBatchInBursts64", 64, by_batch, memoryless, false, 0.9, true},
                    Shape{"ByBatchConstantInBursts64", 64, by_batch, constant, true, 0.9, true}),
    [](const auto& info) { return std::string(info.param.name); });

// What half of a flood's estimates were off by, while another tenant that never waits for long, or
// a higher priority, wants half of the places.
double flood_error_beside(std::size_t places, base::Priority others) {
  std::mt19937_64 random(3);
  QueueSimulation simulation(places, even);
  double time = 0;
  while (time < 120) {
    time += std::exponential_distribution<>(0.5 * static_cast<double>(places))(random);
    simulation.arrive(time, "steady", others, 1000, memoryless(random, time));
  }
  const auto flood = [&](double at) {
    simulation.arrive(at, "flood", base::Priority::kNormal, 1000, memoryless(random, at));
  };
  for (std::size_t i = 0; i < 5 * places; ++i) flood(0);
  simulation.on_end([&](const QueueSimulation::Request& request) {
    if (request.entry.tenant == "flood") flood(simulation.now() + 0.001);
  });
  simulation.run(120);
  std::vector<double> errors;
  for (const auto& request : simulation.requests()) {
    if (request->entry.tenant != "flood" || request->started < 0 || request->arrived < 20) continue;
    errors.push_back(std::abs(request->told - request->waited()) / request->waited());
  }
  std::nth_element(errors.begin(), errors.begin() + errors.size() / 2, errors.end());
  return errors[errors.size() / 2];
}

TEST(WaitModel, AFloodIsToldOfThoseThatWillOvertakeIt) {
  for (const std::size_t places : {4, 64}) {
    EXPECT_LT(flood_error_beside(places, base::Priority::kNormal), 0.3) << places;
    EXPECT_LT(flood_error_beside(places, base::Priority::kHigh), 0.3) << places;
  }
}

TEST(WaitModel, HeavyTailsThatNobodyForeseesOnFewPlacesAreWithinAHalf) {
  for (const std::size_t places : {2, 4}) {
    const Shape shape{"", places, even, heavy_tailed, false, 0, false};
    for (const std::uint64_t seed : {1, 2, 3}) {
      EXPECT_LT(Waits(shape, seed).median_error(), 0.5) << places << " places, seed " << seed;
    }
  }
}

}  // namespace
}  // namespace penstock::admission
