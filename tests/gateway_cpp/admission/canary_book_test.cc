#include "admission/canary_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace penstock::admission {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Verdict = CanaryCourse::Verdict;
using End = CanaryBook::End;

constexpr CanaryCourse::Outcome kWhole{.verdict = Verdict::kAnswered};
constexpr CanaryCourse::Outcome kBroken{.verdict = Verdict::kBad,
                                        .fault = CanaryFault::kServerError};

routing::CanaryRule rule(const std::string& uid, std::uint32_t step = 1) {
  return {.uid = uid, .name = "next", .step = step, .candidate = "mini-2"};
}

routing::RouteSnapshot routes_with(const std::vector<routing::CanaryRule>& rules) {
  routing::RouteSnapshot snapshot{.version = 1, .deployments = {}, .replicas = {}};
  snapshot.deployments.push_back({.name = "mini", .model = "m", .adapters = {}, .limits = {}});
  snapshot.deployments.front().canary_rules = rules;
  return snapshot;
}

std::uint64_t sum(const auto& counts) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum += count;
  return sum;
}

class CanaryBookTest : public testing::Test {
 protected:
  CanaryBookTest() { book_.follow(routes_with({rule_})); }

  void stable(std::uint64_t session, const CanaryCourse::Outcome& outcome,
              const CanaryAnswer& answer = {}) {
    book_.ended(rule_, {session, false, outcome, answer});
  }
  void candidate(std::uint64_t session, const CanaryCourse::Outcome& outcome) {
    book_.ended(rule_, {session, true, outcome, {}});
  }
  CanaryRow row() const { return book_.rows().at(0); }
  CanaryCounts stable() const { return row().stable; }
  CanaryCounts candidate() const { return row().candidate; }

  CanaryBook book_;
  routing::CanaryRule rule_ = rule("u1");
};

TEST_F(CanaryBookTest, CountsASessionOnceHoweverOftenItAsks) {
  for (int i = 0; i < 8; ++i) stable(7, kWhole);
  EXPECT_EQ(stable().sessions, 1U);
  EXPECT_EQ(stable().answered_sessions, 1U);
  EXPECT_EQ(stable().requests, 8U);
  EXPECT_EQ(candidate(), CanaryCounts());
}

TEST_F(CanaryBookTest, TellsAtOnceOfEachSessionThatACandidateBroke) {
  int told = 0;
  CanaryBook book(CanaryBook::kSessions, [&told] { ++told; });
  book.follow(routes_with({rule_}));
  for (const bool is_candidate : {false, true, true}) {
    book.ended(rule_, {.session = 7, .candidate = is_candidate, .outcome = kBroken});
  }
  EXPECT_EQ(told, 1);
}

TEST_F(CanaryBookTest, TakesARetryLoopOfOneClientForOneBadSession) {
  for (int i = 0; i < 1000; ++i) candidate(7, kBroken);
  EXPECT_EQ(candidate().bad_sessions, 1U);
  EXPECT_EQ(candidate().errors[static_cast<std::size_t>(CanaryFault::kServerError)], 1U);
}

TEST_F(CanaryBookTest, CountsASessionAsBadByWhatBrokeFirstOnceAnyRequestDid) {
  candidate(7, kWhole);
  candidate(7, {.verdict = Verdict::kBad, .fault = CanaryFault::kTimeout});
  candidate(7, kBroken);
  EXPECT_EQ(candidate().sessions, 1U);
  EXPECT_EQ(candidate().bad_sessions, 1U);
  EXPECT_EQ(candidate().errors[static_cast<std::size_t>(CanaryFault::kTimeout)], 1U);
  EXPECT_EQ(sum(candidate().errors), 1U);
}

TEST_F(CanaryBookTest, CountsASavedRequestAsBadAndItsAnswerForNothing) {
  candidate(7, {.verdict = Verdict::kBad, .fault = CanaryFault::kRefused, .saved = true});
  EXPECT_EQ(candidate().saved, 1U);
  EXPECT_EQ(candidate().saved_sessions, 1U);
  EXPECT_EQ(candidate().bad_sessions, 1U);
  EXPECT_EQ(candidate().answered_sessions, 0U);
}

TEST_F(CanaryBookTest, CountsNothingOfWhatSaysNothingAndOfRefusalsTheirNumberAlone) {
  stable(7, {.verdict = Verdict::kNothing});
  stable(7, {.verdict = Verdict::kRefused});
  EXPECT_EQ(stable().refused, 1U);
  EXPECT_EQ(stable().requests, 0U);
  EXPECT_EQ(stable().sessions, 0U);
}

TEST_F(CanaryBookTest, MeasuresTheFirstWholeAnswerOfASession) {
  const CanaryAnswer first{.replica = "r1",
                           .finish = CanaryFinish::kLength,
                           .ttft = milliseconds(20),
                           .between_tokens = milliseconds(3),
                           .total = milliseconds(400),
                           .prompt_tokens = 10,
                           .completion_tokens = 5};
  stable(7, kBroken);
  stable(7, kWhole, first);
  stable(7, kWhole, {.replica = "r1", .finish = CanaryFinish::kStop, .total = milliseconds(1)});
  const CanaryCounts counts = stable();
  EXPECT_EQ(counts.ttft[canary_bin(milliseconds(20))], 1U);
  EXPECT_EQ(counts.between_tokens[canary_bin(milliseconds(3))], 1U);
  EXPECT_EQ(counts.total[canary_bin(milliseconds(400))], 1U);
  EXPECT_EQ(sum(counts.total), 1U);
  EXPECT_EQ(counts.bad_finishes, 1U);
  EXPECT_EQ(counts.finishes[static_cast<std::size_t>(CanaryFinish::kStop)], 1U);  // of answers
  EXPECT_EQ(counts.prompt_tokens, 10U);
  EXPECT_EQ(counts.completion_tokens, 5U);
}

TEST_F(CanaryBookTest, LeavesTheTimesOfAReplicasFirstAnswersOut) {
  rule_.warmup_requests = 2;
  for (std::uint64_t session = 1; session <= 5; ++session) {
    stable(session, kWhole, {.replica = "r1", .total = milliseconds(9)});
  }
  stable(6, kWhole, {.replica = "r2", .total = milliseconds(9)});
  EXPECT_EQ(sum(stable().total), 3U);
  EXPECT_EQ(stable().answered_sessions, 6U);
}

TEST_F(CanaryBookTest, BeginsAnewWithEachStepButReplicasStayWarm) {
  rule_.warmup_requests = 1;
  stable(7, kWhole, {.replica = "r1"});
  rule_.step = 2;
  book_.follow(routes_with({rule_}));
  EXPECT_EQ(stable(), CanaryCounts());
  stable(7, kWhole, {.replica = "r1"});
  EXPECT_EQ(stable().sessions, 1U);
  EXPECT_EQ(sum(stable().total), 1U);
}

TEST_F(CanaryBookTest, CountsNothingThatBeganUnderAnotherStepOrRun) {
  book_.follow(routes_with({rule("u1", 2)}));
  stable(7, kBroken);
  EXPECT_EQ(row().step, 2U);
  EXPECT_EQ(stable(), CanaryCounts());
  book_.follow(routes_with({rule("u2", 1)}));
  stable(7, kBroken);
  EXPECT_EQ(row().uid, "u2");
  EXPECT_EQ(stable(), CanaryCounts());
}

TEST_F(CanaryBookTest, KeepsItsCountsWhenRoutesChangeOtherwise) {
  stable(7, kBroken);
  book_.follow(routes_with({rule_, rule("u2")}));
  EXPECT_EQ(stable().bad_sessions, 1U);
  EXPECT_EQ(book_.rows().size(), 2U);  // one of which nothing is known yet is told of, too
}

TEST_F(CanaryBookTest, ForgetsRulesThatHaveLeftTheRoutesAndCountsSoManyAtMost) {
  std::vector<routing::CanaryRule> many;
  for (std::size_t i = 0; i <= CanaryBook::kMostRules; ++i) many.push_back(rule(std::to_string(i)));
  book_.follow(routes_with(many));
  EXPECT_EQ(book_.rows().size(), CanaryBook::kMostRules);
  book_.follow(routes_with({}));
  EXPECT_TRUE(book_.rows().empty());
}

TEST_F(CanaryBookTest, RemembersAHundredThousandSessions) {
  for (std::uint64_t session = 1; session <= CanaryBook::kSessions; ++session) {
    stable(session, kWhole);
  }
  for (std::uint64_t session = 1; session <= CanaryBook::kSessions; ++session) {
    stable(session, kBroken);
  }
  EXPECT_EQ(stable().sessions, CanaryBook::kSessions);
  EXPECT_EQ(stable().bad_sessions, CanaryBook::kSessions);
  stable(CanaryBook::kSessions + 1, kWhole);
  EXPECT_EQ(stable().sessions, CanaryBook::kSessions + 1);
}

TEST_F(CanaryBookTest, CountsForAllThreadsWhileSomebodyReads) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kOfEach = 500;
  std::vector<std::jthread> threads;
  for (std::uint64_t of = 0; of < kThreads; ++of) {
    threads.emplace_back([this, of] {
      for (std::uint64_t i = 0; i < kOfEach; ++i) candidate(1 + of * kOfEach + i, kBroken);
    });
  }
  std::uint64_t seen = 0;
  while (seen < kThreads * kOfEach) {
    const CanaryCounts counts = candidate();
    EXPECT_GE(counts.sessions, seen);
    EXPECT_EQ(counts.sessions, counts.bad_sessions);
    seen = counts.sessions;
  }
}

TEST(CanaryBinTest, HasEdgesThatGrowByAnEighthOfAPowerOfTwo) {
  EXPECT_EQ(canary_bin(microseconds(0)), 0U);
  EXPECT_EQ(canary_bin(microseconds(-5)), 0U);
  EXPECT_EQ(canary_bin(microseconds(16)), 0U);
  EXPECT_EQ(canary_bin(microseconds(32)), 8U);
  EXPECT_EQ(canary_bin(microseconds(32) - std::chrono::nanoseconds(1)), 7U);
  EXPECT_EQ(canary_bin(std::chrono::hours(1000)), kCanaryBins - 1);
}

// ---- whatever the order in which requests end

End any_end(std::mt19937& random) {
  const auto below = [&random](std::uint32_t bound) { return random() % bound; };
  constexpr std::array kVerdicts = {Verdict::kNothing, Verdict::kAnswered, Verdict::kBad,
                                    Verdict::kRefused};
  End end{.session = 1 + below(60), .candidate = below(2) == 0, .outcome = {}, .answer = {}};
  end.outcome.verdict = kVerdicts[below(kVerdicts.size())];
  if (end.outcome.verdict == Verdict::kBad) {
    end.outcome.fault = static_cast<CanaryFault>(below(kCanaryFaults));
    end.outcome.saved = end.candidate && below(2) == 0;
  }
  end.answer.finish = static_cast<CanaryFinish>(below(kCanaryFinishes));
  end.answer.total = milliseconds(below(1000));
  return end;
}

// Every number, so that two of them can be compared one by one.
std::vector<std::uint64_t> numbers(const CanaryCounts& counts) {
  std::vector<std::uint64_t> all = {
      counts.sessions,       counts.bad_sessions,  counts.answered_sessions, counts.bad_finishes,
      counts.requests,       counts.prompt_tokens, counts.completion_tokens, counts.saved,
      counts.saved_sessions, counts.refused};
  for (const auto* times : {&counts.ttft, &counts.between_tokens, &counts.total}) {
    all.insert(all.end(), times->begin(), times->end());
  }
  all.insert(all.end(), counts.errors.begin(), counts.errors.end());
  all.insert(all.end(), counts.finishes.begin(), counts.finishes.end());
  return all;
}

std::vector<std::uint64_t> numbers(const CanaryBook& book) {
  const CanaryRow row = book.rows().at(0);
  std::vector<std::uint64_t> all = numbers(row.stable);
  const auto candidate = numbers(row.candidate);
  all.insert(all.end(), candidate.begin(), candidate.end());
  return all;
}

void expect_sound(const CanaryCounts& counts) {
  EXPECT_GE(counts.sessions, counts.bad_sessions);
  EXPECT_GE(counts.sessions, counts.answered_sessions);
  EXPECT_GE(counts.answered_sessions, counts.bad_finishes);
  EXPECT_GE(counts.requests, counts.sessions);
  EXPECT_GE(counts.requests, counts.saved);
  EXPECT_GE(counts.bad_sessions, counts.saved_sessions);
  EXPECT_GE(counts.saved, counts.saved_sessions);
  EXPECT_EQ(sum(counts.errors), counts.bad_sessions);
  EXPECT_EQ(sum(counts.total), counts.answered_sessions);
}

class CanaryBookOrders : public testing::TestWithParam<unsigned> {};

// So small a memory that sessions are forgotten and come again.
TEST_P(CanaryBookOrders, GiveCountsThatOnlyGrowAndNeverMoreBadSessionsThanSessions) {
  std::mt19937 random(GetParam());
  CanaryBook book(10);
  const routing::CanaryRule of = rule("u1");
  book.follow(routes_with({of}));
  auto before = numbers(book);
  for (int i = 0; i < 200; ++i) {
    book.ended(of, any_end(random));
    const auto now = numbers(book);
    EXPECT_TRUE(std::ranges::equal(before, now, std::less_equal()));
    expect_sound(book.rows().at(0).stable);
    expect_sound(book.rows().at(0).candidate);
    before = now;
  }
}

// A session stays with its gateway: what two have counted is what one would have.
TEST_P(CanaryBookOrders, AddUpOverGateways) {
  std::mt19937 random(GetParam());
  const routing::CanaryRule of = rule("u1");
  CanaryBook all;
  std::array<CanaryBook, 2> parts;
  for (CanaryBook* book : {&all, &parts[0], &parts[1]}) book->follow(routes_with({of}));
  for (int i = 0; i < 2000; ++i) {
    const End end = any_end(random);
    all.ended(of, end);
    parts[end.session % 2].ended(of, end);
  }
  auto sums = numbers(parts[0]);
  std::ranges::transform(sums, numbers(parts[1]), sums.begin(), std::plus());
  EXPECT_EQ(sums, numbers(all));
}

INSTANTIATE_TEST_SUITE_P(Seeds, CanaryBookOrders, testing::Range(0U, 5U));

}  // namespace
}  // namespace penstock::admission
