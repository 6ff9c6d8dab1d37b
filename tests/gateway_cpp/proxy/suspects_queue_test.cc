// Suspects beside others that come all the time, each replica with one place.
#include <deque>

#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

class SuspectInTheQueueTest : public RequestFlowTest {
 protected:
  SuspectInTheQueueTest() { limits_.max_ongoing = 1; }
  ~SuspectInTheQueueTest() override {
    for (auto& reply : others_) {
      if (!reply.ended) reply.leave();
    }
    loop_.poll();
  }

  // The request of ask(kUnary) is a suspect from now on.
  void suspect() {
    suspects_.died({.fingerprint = fingerprint(kUnary),
                    .deployment = "mini",
                    .deployment_uid = "",
                    .path = "/p",
                    .deaths = {{"r9"}},
                    .until = {}},
                   clock_.wall_now());
  }
  static admission::Fingerprint fingerprint(const std::string& body) {
    return admission::fingerprint_of("", "/v1/chat/completions", body);
  }
  void another_asks() {
    const std::string name = std::to_string(others_.size());
    ask_as(others_.emplace_back(), R"({"model":"mini","messages":[{"n":)" + name + "}]}");
  }
  void answer(size_t i) {
    call(i).content_type = "application/json";
    call(i).chunk("{}");
    call(i).finish();
    loop_.poll();
  }
  bool is_suspects(size_t i) { return call(i).request.body() == kUnary; }

  std::deque<FakeReply> others_;
};

TEST_F(SuspectInTheQueueTest, HasItsTurnAsAnybodyElse) {
  serve_from({"r1"});
  suspect();
  another_asks();
  another_asks();
  ask(kUnary);
  another_asks();
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(upstream_.calls.size(), i + 1);
    EXPECT_EQ(is_suspects(i), i == 2) << i;
    pass(seconds(11));
    another_asks();
    answer(i);
  }
  ASSERT_EQ(upstream_.calls.size(), 4U);
  EXPECT_FALSE(is_suspects(3));
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 200U);
}

TEST_F(SuspectInTheQueueTest, LeavesAPlaceBesideAnotherSuspectAndHasTheNextElsewhere) {
  serve_from({"r1", "r2"});
  suspect();
  another_asks();
  another_asks();
  const auto aboard = suspects_.board(fingerprint("other"), call(0).replica, clock_.steady_now());
  ask(kUnary);
  another_asks();
  another_asks();
  answer(0);
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 3U);
  EXPECT_FALSE(is_suspects(2)) << "its turn has come, beside another suspect";
  pass(milliseconds(200));
  answer(1);
  ASSERT_EQ(upstream_.calls.size(), 4U);
  EXPECT_TRUE(is_suspects(3)) << "it goes before those that came after it";
  EXPECT_EQ(call(3).replica, call(1).replica);
}

}  // namespace
}  // namespace penstock::proxy
