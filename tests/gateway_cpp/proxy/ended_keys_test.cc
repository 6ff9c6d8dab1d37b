// Keys that are revoked together with what they have under way.
#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

class EndedKeysTest : public RequestFlowTest {
 protected:
  EndedKeysTest() {
    tenants_.replace({{.id = "acme", .keys = {{.id = "key_acme_of_long_name", .sha256 = {}}}}},
                     false, clock_.steady_now());
  }

  void ask_with_key(const std::string& body, std::string key_id = "key_acme_of_long_name") {
    Ask ask;
    ask.request_id = "req_1";
    ask.endpoint = endpoint_;
    ask.body = body;
    ask.received = clock_.steady_now();
    ask.caller = caller();
    ask.caller.key_id = std::move(key_id);
    loop_.spawn(run(std::move(ask)));
    loop_.poll();
  }

  void end_keys(const std::vector<std::string>& ids) {
    ended_keys_ = ids;
    serve_from({"r1"});
    pass(milliseconds(10));
  }
};

TEST_F(EndedKeysTest, AStreamEndsWithAnErrorThatSaysSoAndIsCutOff) {
  ask_with_key(kStream);
  call().chunk("data: a\n\n");
  end_keys({"key_acme_of_long_name"});
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_TRUE(call().cancelled);
  EXPECT_NE(reply_.text.find("\"code\":\"key_revoked\""), std::string::npos) << reply_.text;
  EXPECT_EQ(totals().succeeded, 0U);
}

TEST_F(EndedKeysTest, OneThatHasItsLastEventIsWhole) {
  ask_with_key(kStream);
  call().chunk("data: a\n\n" + kEnd);
  end_keys({"key_acme_of_long_name"});
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.text, "data: a\n\n" + kEnd);
  EXPECT_FALSE(reply_.cut_off);
}

TEST_F(EndedKeysTest, AWholeAnswerThatIsBeingMadeIs401) {
  ask_with_key(kUnary);
  end_keys({"key_acme_of_long_name"});
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 401U);
  EXPECT_TRUE(call().cancelled);
}

TEST_F(EndedKeysTest, OneThatWaitsForAReplicaIs401) {
  serve_from({"r1"}, routing::ReplicaState::kStarting);
  availability_ = base::Availability::kLoading;
  ask_with_key(kUnary);
  end_keys({"key_acme_of_long_name"});
  EXPECT_TRUE(done_);
  EXPECT_NE(reply_.status, 200U);
}

TEST_F(EndedKeysTest, ARequestThatComesInWithAKeyThatWasEndedMeanwhileGoesNowhere) {
  end_keys({"key_acme_of_long_name"});
  ask_with_key(kStream);
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 401U);
}

TEST_F(EndedKeysTest, OthersGoOn) {
  ask_with_key(kStream, "key_other");
  FakeReply without_key;
  ask_as(without_key, kStream);
  call(0).chunk("data: a\n\n");
  call(1).chunk("data: a\n\n");
  end_keys({"key_acme_of_long_name", ""});
  EXPECT_FALSE(done_);
  EXPECT_FALSE(without_key.ended);
  for (size_t i = 0; i < 2; ++i) {
    call(i).chunk(kEnd);
    call(i).finish();
  }
  EXPECT_TRUE(done_);
  EXPECT_FALSE(reply_.cut_off);
  EXPECT_FALSE(without_key.cut_off);
}

}  // namespace
}  // namespace penstock::proxy
