// Requests that wait for a place: what they are told, and what becomes of them.
#include <algorithm>

#include "flow_fixture.h"
#include "http/metrics_page.h"

namespace penstock::proxy {
namespace {

class AdmitTest : public RequestFlowTest {
 protected:
  AdmitTest() {
    limits_.max_ongoing = 1;
    limits_.queue_deadline = seconds(30);
    serve_from({"r1"});
  }
  ~AdmitTest() override {
    if (!other_.ended) other_.leave();
    loop_.poll();
  }

  // Another client's request takes the only place.
  void occupy() {
    ask_as(other_, kUnary);
    ASSERT_EQ(upstream_.calls.size(), 1U);
  }
  void end_other() {
    call(0).content_type = "application/json";
    call(0).chunk("{}");
    call(0).finish();
    loop_.poll();
  }
  uint32_t queued() { return routes_.of("mini").standing().queued; }
  std::string metrics() { return http::metrics_page(metrics_, {}); }
  admission::UsageCounts usage() {
    const auto rows = usage_.totals();
    return rows.empty() ? admission::UsageCounts{} : rows.at(0).counts;
  }

  FakeReply other_;
};

TEST_F(RequestFlowTest, SaysInItsLogWhoseItWasWhenNobodyElseKnowsThatAnyMore) {
  ask_with_key("key_0123456789abcdef0123456789abcdef");  // longer than strings hold inside
  call().content_type = "application/json";
  call().chunk("{}");
  call().finish();
  loop_.poll();
  EXPECT_EQ(settled_lines(), 1U);
  EXPECT_NE(log_text_.find(R"("key_id":"key_0123456789abcdef0123456789abcdef")"),
            std::string::npos);
}

TEST_F(RequestFlowTest, CountsWhatAKeyWithLimitsUsedHoweverManyOthersThereAre) {
  for (std::size_t i = 0; i < admission::UsageBook::kMostRows; ++i) {
    usage_.add("", std::to_string(i), "mini", "", {.requests = 1});
  }
  ask_with_key("limited", {.tokens = 1'000'000});
  call().content_type = "application/json";
  call().chunk("{}");
  call().finish();
  loop_.poll();
  const auto rows = usage_.totals();
  const auto of_key = [](const admission::UsageRow& row) { return row.key.key_id == "limited"; };
  const auto row = std::ranges::find_if(rows, of_key);
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->counts.tokens(), 5U);
}

TEST_F(AdmitTest, WaitsForAPlaceAndSaysHowLongItTook) {
  occupy();
  ask(kUnary);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(queued(), 1U);
  pass(milliseconds(1500));
  end_other();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  call(1).content_type = "application/json";
  call(1).chunk("{}");
  call(1).finish();
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_EQ(reply_.header("x-penstock-queue-ms"), "1500");
  EXPECT_NE(reply_.header("x-penstock-estimated-wait-ms"), "");
}

TEST_F(AdmitTest, TellsOfTheWaitsBeforeEachAttemptAndNotOfTheAttempts) {
  serve_from({"r1", "r2"});
  occupy();
  ask(kUnary);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  pass(milliseconds(700));
  call(1).lose(Source::kLost);
  loop_.poll();
  EXPECT_EQ(queued(), 1U);
  pass(milliseconds(1500));
  end_other();
  ASSERT_EQ(upstream_.calls.size(), 3U);
  call(2).content_type = "application/json";
  call(2).chunk("{}");
  call(2).finish();
  EXPECT_EQ(reply_.header("x-penstock-queue-ms"), "1500");
  const std::string log = log_.text();
  EXPECT_NE(log.find(R"("queue_wait_ms":1500,)"), std::string::npos) << log;
  EXPECT_NE(log.find(R"("admit_ms":1500,)"), std::string::npos) << log;
}

TEST_F(AdmitTest, RefusesAtTheQueuesDeadlineWithATimeToComeAgain) {
  occupy();
  ask(kUnary);
  pass(seconds(31));
  EXPECT_EQ(reply_.status, 408U);
  EXPECT_EQ(reply_.header("x-penstock-drop-reason"), "queue_deadline");
  EXPECT_NE(reply_.header("retry-after"), "");
  EXPECT_EQ(reply_.header("x-should-retry"), "true");
  EXPECT_NE(log_.text().find(R"("queue_wait_ms":31000,)"), std::string::npos) << "it waited";
  EXPECT_EQ(queued(), 0U);
  EXPECT_EQ(totals().rejected, 1U);
  EXPECT_NE(metrics().find(R"(drops_total{deployment="mini",reason="queue_deadline"} 1)"),
            std::string::npos);
}

TEST_F(AdmitTest, FreesTheTurnOfAClientThatLeavesAtOnce) {
  occupy();
  ask(kUnary);
  reply_.leave();
  loop_.poll();
  EXPECT_TRUE(done_);
  EXPECT_EQ(queued(), 0U);
  EXPECT_EQ(totals().cancelled, 1U);
  EXPECT_NE(metrics().find(R"(reason="client_gone"} 1)"), std::string::npos);
}

TEST_F(AdmitTest, OpensAStreamThatWaitsLongAndTellsItsHeadersAsComments) {
  occupy();
  ask(kStream);
  pass(seconds(16));
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_NE(reply_.text.find(": ping\n\n"), std::string::npos);
  end_other();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  call(1).chunk("data: a\n\n");
  EXPECT_NE(reply_.text.find(": x-penstock-replica: r1\n"), std::string::npos) << reply_.text;
  EXPECT_NE(reply_.text.find(": x-penstock-queue-ms: 16000\n"), std::string::npos) << reply_.text;
  EXPECT_LT(reply_.text.find("x-penstock-replica"), reply_.text.find("data: a"));
}

TEST_F(AdmitTest, RefusesAStreamThatWasOpenedInTheStream) {
  occupy();
  ask(kStream);
  pass(seconds(16));
  pass(seconds(16));
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_NE(reply_.text.find("queue_deadline"), std::string::npos) << reply_.text;
  EXPECT_NE(reply_.text.find(R"("retry_after_ms":)"), std::string::npos) << reply_.text;
}

TEST_F(AdmitTest, RefusesWhereTheQueueIsFull) {
  limits_.max_queued = 0;
  serve_from({"r1"});
  occupy();
  ask(kUnary);
  EXPECT_EQ(reply_.status, 429U);
  EXPECT_EQ(reply_.header("x-penstock-drop-reason"), "queue_full");
}

TEST_F(AdmitTest, RefusesTooManyChoices) {
  limits_.max_n = 2;
  serve_from({"r1"});
  ask(R"({"model":"mini","n":3,"messages":[{}]})");
  EXPECT_EQ(reply_.status, 400U);
  EXPECT_NE(reply_.text.find(R"("param":"n")"), std::string::npos) << reply_.text;
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(AdmitTest, LetsNoMoreInThanTheGatewayMayServe) {
  config_.max_in_flight = 1;
  occupy();
  ask(kUnary);
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_EQ(reply_.header("x-penstock-drop-reason"), "gateway_full");
  EXPECT_EQ(state_.in_flight, 1U);
  end_other();
  EXPECT_EQ(state_.in_flight, 0U);
}

TEST_F(AdmitTest, ChargesWhatAnAnswerCost) {
  ask(kUnary);
  call().content_type = "application/json";
  call().chunk("{}");
  call().finish();
  EXPECT_EQ(usage().requests, 1U);
  EXPECT_EQ(usage().prompt_tokens, 3U);
  EXPECT_EQ(usage().completion_tokens, 2U);
}

TEST_F(AdmitTest, ChargesACancelledStreamWhatTheReplicaSaysAndHoldsItsPlaceUntilThen) {
  ask(kStream);
  call().keeps_cancelled = true;
  call().chunk("data: a\n\n");
  reply_.leave();
  loop_.poll();
  EXPECT_TRUE(done_);
  EXPECT_EQ(in_flight(), 1U) << "the engine has not stopped yet";
  EXPECT_EQ(usage().completion_tokens, 0U);
  call().acknowledge(7, 5);
  EXPECT_EQ(in_flight(), 0U);
  EXPECT_EQ(usage().prompt_tokens, 7U);
  EXPECT_EQ(usage().completion_tokens, 5U);
}

TEST_F(AdmitTest, ChargesALostStreamItsPromptAndWhatCame) {
  ask(kStream);
  call().facts.set_prompt_tokens(11);
  call().chunk("data: a\n\n");
  v1::CallEvent event;
  event.mutable_chunk()->set_body("data: b\n\n");
  event.mutable_chunk()->set_tokens(3);
  call().put(event);
  call().lose(Source::kLost);
  EXPECT_EQ(usage().prompt_tokens, 11U);
  EXPECT_EQ(usage().completion_tokens, 3U);
}

TEST_F(AdmitTest, TellsAStreamOfItsMakingWhereItAsks) {
  Ask asked;
  asked.request_id = "req_2";
  asked.endpoint = endpoint_;
  asked.body = kStream;
  asked.received = clock_.steady_now();
  asked.caller = caller();
  asked.wants_metadata = true;
  loop_.spawn(run(std::move(asked)));
  loop_.poll();
  call().chunk(R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,)"
               "\"model\":\"mini\",\"choices\":[]}\n\n");
  call().chunk("data: [DONE]\n\n");
  EXPECT_EQ(reply_.text.find("[DONE]"), std::string::npos)
      << "it waits for the replica's last word";
  call().finish();
  const auto at = reply_.text.find(R"("choices":[],"penstock":{"trace_id":)");
  ASSERT_NE(at, std::string::npos) << reply_.text;
  EXPECT_NE(reply_.text.find(R"("replica":"r1")", at), std::string::npos) << reply_.text;
  EXPECT_NE(reply_.text.find(R"("completion_tokens":2)", at), std::string::npos) << reply_.text;
  EXPECT_TRUE(reply_.text.ends_with("}}\n\ndata: [DONE]\n\n")) << reply_.text;
  EXPECT_FALSE(reply_.cut_off);
}

}  // namespace
}  // namespace penstock::proxy
