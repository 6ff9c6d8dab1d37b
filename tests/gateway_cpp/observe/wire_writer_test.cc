#include "observe/wire_writer.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "penstock/v1/explain.pb.h"

namespace penstock::observe {
namespace {

std::string written(std::string& room, const std::function<void(WireWriter&)>& write) {
  WireWriter writer(room);
  write(writer);
  return std::string(writer.bytes());
}

TEST(WireWriter, WritesWhatProtobufWrites) {
  std::mt19937_64 random(7);
  std::string room(16, '\0');  // it grows
  for (int i = 0; i < 2000; ++i) {
    v1::QueueTurn turn;
    turn.set_work_before(random() >> (random() % 64));
    turn.set_ready(static_cast<std::uint32_t>(random() >> (32 + random() % 32)));
    turn.set_priority(std::string(random() % 300, 'p'));
    v1::Stay stay;
    stay.set_deployment("mini");
    stay.set_passed_over(random() % 2 == 0);
    *stay.mutable_turn() = turn;
    const std::string bytes = written(room, [&](WireWriter& to) {
      to.number(v1::Stay::kPassedOverFieldNumber, stay.passed_over() ? 1 : 0);
      to.message(v1::Stay::kTurnFieldNumber, [&] {
        to.text(v1::QueueTurn::kPriorityFieldNumber, turn.priority());
        to.number(v1::QueueTurn::kWorkBeforeFieldNumber, turn.work_before());
        to.number(v1::QueueTurn::kReadyFieldNumber, turn.ready());
      });
      to.text(v1::Stay::kDeploymentFieldNumber, stay.deployment());
    });
    ASSERT_EQ(bytes, stay.SerializeAsString());
  }
}

TEST(WireWriter, PacksNumbersAndLeavesOutNone) {
  v1::RequestRecord record;
  for (const std::uint32_t us : {0U, 1U, 300U, 4'000'000'000U}) record.add_phase_us(us);
  std::string room;
  EXPECT_EQ(written(room,
                    [&record](WireWriter& to) {
                      to.numbers(v1::RequestRecord::kPhaseUsFieldNumber,
                                 std::vector<std::uint32_t>(record.phase_us().begin(),
                                                            record.phase_us().end()));
                    }),
            record.SerializeAsString());
}

TEST(WireWriter, CutsTextsOfOthersBetweenCharactersAndLetsNothingPassThatIsNoText) {
  std::string room;
  const auto read = [&room](std::string_view told, std::size_t most) {
    v1::RequestRecord record;
    EXPECT_TRUE(record.ParseFromString(written(room, [&](WireWriter& to) {
      to.foreign(v1::RequestRecord::kModelFieldNumber, told, most);
    })));
    return record.model();
  };
  EXPECT_EQ(read("caf\xC3\xA9", 5), "caf\xC3\xA9");
  EXPECT_EQ(read("caf\xC3\xA9", 4), "caf");
  EXPECT_EQ(read("\xFF mini", 10), "\xEF\xBF\xBD mini");
  EXPECT_EQ(read(std::string(1000, '\xFF'), 4).size(), 12U);
  EXPECT_EQ(read("", 4), "");
}

}  // namespace
}  // namespace penstock::observe
