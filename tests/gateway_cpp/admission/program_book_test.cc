#include "admission/program_book.h"

#include <gtest/gtest.h>

namespace penstock::admission {
namespace {

constexpr base::SteadyTime kAskedAt{std::chrono::hours(1)};
constexpr std::size_t index_of(ProgramOutcome outcome) { return static_cast<std::size_t>(outcome); }

TEST(ProgramBook, LeavesAProgramAloneThatFailsThreeTimesInARow) {
  ProgramBook book;
  for (const auto fault : {ProgramOutcome::kSlow, ProgramOutcome::kRaised}) {
    ASSERT_TRUE(book.ask("u", "mini", "d", kAskedAt));
    EXPECT_FALSE(book.ended("u", fault, "", kAskedAt));
  }
  EXPECT_TRUE(book.ended("u", ProgramOutcome::kDead, "it was killed", kAskedAt));
  EXPECT_FALSE(book.ask("u", "mini", "d", kAskedAt + std::chrono::seconds(9)));
  EXPECT_EQ(book.row("u", kAskedAt).paused_by, "dead");
  EXPECT_TRUE(book.ask("u", "mini", "d", kAskedAt + std::chrono::seconds(10)));
  EXPECT_EQ(book.row("u", kAskedAt + std::chrono::seconds(10)).paused_by, "");
}

TEST(ProgramBook, DoesNotHoldAgainstAProgramWhatIsNotItsFault) {
  ProgramBook book;
  for (int i = 0; i < 5; ++i) {
    for (const auto outcome : {ProgramOutcome::kSlow, ProgramOutcome::kAbandoned,
                               ProgramOutcome::kSlow, ProgramOutcome::kNoPlace}) {
      ASSERT_TRUE(book.ask("u", "mini", "d", kAskedAt));
      EXPECT_FALSE(book.ended("u", outcome, "", kAskedAt));
    }
  }
}

TEST(ProgramBook, AsksAnotherProgramAtOnce) {
  ProgramBook book;
  ASSERT_TRUE(book.ask("u", "mini", "d1", kAskedAt));
  for (int i = 0; i < 3; ++i) book.ended("u", ProgramOutcome::kRaised, "", kAskedAt);
  EXPECT_FALSE(book.ask("u", "mini", "d1", kAskedAt));
  EXPECT_TRUE(book.ask("u", "mini", "d2", kAskedAt));
}

TEST(ProgramBook, CountsByDeploymentAndShowsWhatWasSaidLastInOneLine) {
  ProgramBook book;
  book.ask("u1", "mini", "d", kAskedAt);
  book.ended("u1", ProgramOutcome::kRaised, "ValueError:\nno\xff", kAskedAt);
  book.moved("u1", 960, 1 << 20);
  book.ask("u2", "maxi", "d", kAskedAt);
  const auto rows = book.rows(kAskedAt);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].deployment, "mini");
  EXPECT_EQ(rows[0].counts[index_of(ProgramOutcome::kRaised)], 1U);
  EXPECT_EQ(rows[0].last[index_of(ProgramOutcome::kRaised)], "ValueError:?no?");
  EXPECT_EQ(rows[0].moved_tokens, 960U);
  book.keep_only([](const std::string& deployment) { return deployment == "maxi"; });
  EXPECT_EQ(book.rows(kAskedAt).size(), 1U);
}

}  // namespace
}  // namespace penstock::admission
