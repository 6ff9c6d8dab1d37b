// What a request is told of how it found its deployment.
#include "dispatch/queue_turn.h"

#include "dispatcher_fixture.h"

namespace penstock::dispatch {
namespace {

using base::Priority;

class QueueTurnTest : public DispatcherTest {};

TEST_F(QueueTurnTest, SaysThatThereWasRoom) {
  Asking first;
  const QueueTurn turn = admit(first).turn;
  EXPECT_EQ(turn.ready, 1U);
  EXPECT_EQ(turn.with_room, 1U);
  EXPECT_EQ(turn.running, 0U);
  EXPECT_EQ(turn.place, 0U);
  EXPECT_EQ(turn.estimated_wait.count(), 0);
}

TEST_F(QueueTurnTest, CountsThoseThatGoBeforeItByPriority) {
  limit(1);
  Asking runs;
  admit(runs);
  Asking normal("acme"), low("acme", Priority::kLow), other("blue"), high("acme", Priority::kHigh);
  EXPECT_EQ(admit(normal).turn.place, 1U);
  EXPECT_EQ(admit(low).turn.place, 2U);
  const auto before = [](const QueueTurn& turn, Priority priority) {
    return turn.ahead[static_cast<std::size_t>(priority)];
  };
  const QueueTurn others = admit(other).turn;
  EXPECT_EQ(others.place, 2U) << "before what is less urgent";
  EXPECT_EQ(before(others, Priority::kNormal), 1U);
  EXPECT_EQ(before(others, Priority::kLow), 0U);
  const QueueTurn turn = admit(high).turn;
  EXPECT_EQ(turn.place, 1U);
  EXPECT_EQ(turn.ahead, (admission::FairQueue::ByPriority{})) << "nobody, though three wait";
  EXPECT_EQ(turn.with_room, 0U);
  EXPECT_EQ(turn.running, 1U);
  EXPECT_GT(turn.work_a_second, 0U);
}

TEST_F(QueueTurnTest, GivesAQuietTenantItsFairPlace) {
  limit(1);
  Asking runs;
  admit(runs);
  std::vector<std::unique_ptr<Asking>> flood;
  for (int i = 0; i < 20; ++i) {
    flood.push_back(std::make_unique<Asking>("flood"));
    admit(*flood.back());
  }
  Asking quiet("quiet");
  const QueueTurn turn = admit(quiet).turn;
  EXPECT_LE(turn.place, 2U);
  EXPECT_GT(turn.work_before, 0U);
  EXPECT_EQ(turn.ahead[static_cast<std::size_t>(Priority::kNormal)], turn.place - 1);
}

TEST_F(QueueTurnTest, SaysWhatARefusalWasMadeOf) {
  limit(1, 1);
  Asking runs, waits, refused;
  admit(runs);
  admit(waits);
  const Admission no = admit(refused);
  ASSERT_TRUE(no.refusal);
  EXPECT_EQ(no.turn.ready, 1U);
  EXPECT_EQ(no.turn.ahead[static_cast<std::size_t>(Priority::kNormal)], 1U);
  EXPECT_EQ(no.turn.place, 0U);
}

TEST_F(QueueTurnTest, TellsTheChoiceThatWasMadeForWhoWaited) {
  limit(1);
  Asking runs, waits;
  admit(runs);
  routing::Pick pick;
  waits.ask.pick = &pick;
  admit(waits);
  EXPECT_EQ(pick.size(), 0U) << "nobody was chosen yet";
  runs.turn.leave();
  ASSERT_TRUE(waits.turn.has_place());
  EXPECT_EQ(pick.policy, "power_of_two");
  EXPECT_EQ(pick.look(0).replica, "r1");
  waits.turn.leave();
}

}  // namespace
}  // namespace penstock::dispatch
