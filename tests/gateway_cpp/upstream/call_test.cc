// What a call believes of what its replica says.
#include "upstream/call.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "runtime/signal.h"
#include "upstream/load_watch.h"

namespace penstock::upstream {
namespace {

struct Link final : CallLink {
  void grant(uint64_t /*call_id*/, uint64_t /*bytes*/) override {}
  void release(Call& call) override { told_to_stop = !call.is_over(); }
  bool told_to_stop = false;
};

struct Payee final : Payer {
  void cost(const Usage& usage) override { told.push_back(usage); }
  std::vector<Usage> told;
};

class CallTest : public testing::Test {
 protected:
  CallTest() { begin_call(); }

  void begin_call() {
    call_ = std::make_unique<Call>(link_, 1, 0, news_);
    call_->hold({.place = {}, .payer = payee_, .seen = {}});
  }
  bool say(const std::function<void(v1::CallEvent&)>& what) {
    v1::CallEvent parsed;
    what(parsed);
    CallEvent::Rest rest;
    return call_->deliver(event_of(parsed, rest));
  }
  bool say_chunk(uint32_t events, uint32_t tokens) {
    return say([=](v1::CallEvent& event) {
      event.mutable_chunk()->set_body("data: a\n\n");
      event.mutable_chunk()->set_events(events);
      event.mutable_chunk()->set_tokens(tokens);
    });
  }

  runtime::Signal news_;
  std::shared_ptr<Link> link_ = std::make_shared<Link>();
  std::shared_ptr<Payee> payee_ = std::make_shared<Payee>();
  std::unique_ptr<Call> call_;
};

TEST_F(CallTest, BelievesNoHeadThatIsNoneOfAnAnswer) {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  const std::vector<std::function<void(v1::Head&)>> bad = {
      [](v1::Head& head) { head.set_status(100); },
      [](v1::Head& head) { head.set_status(204); },
      [](v1::Head& head) { head.set_status(205); },
      [](v1::Head& head) { head.set_status(206); },
      [](v1::Head& head) { head.set_status(302); },
      [](v1::Head& head) { head.set_status(503); },
      [](v1::Head& head) { head.set_status(kMost); },
      [](v1::Head& head) { head.set_content_type("application/json\r\nset-cookie: a=b"); },
      [](v1::Head& head) { head.set_content_type(std::string("text/html\0", 10)); },
      [](v1::Head& head) { head.set_content_type("text/\xC3\xA9"); },
      [](v1::Head& head) { head.set_content_type(std::string(1000, 'a')); },
      [](v1::Head& head) { head.set_model(std::string(5000, 'a')); },
      [](v1::Head& head) { head.set_model_version(std::string(5000, 'a')); },
      [](v1::Head& head) { head.set_prompt_tokens(kMost); },
      [](v1::Head& head) { head.set_cached_tokens(kMost); },
      [](v1::Head& head) { head.set_trimmed_tokens(kMost); },
      [](v1::Head& head) { head.set_kv_moved_tokens(kMost); },
  };
  for (size_t i = 0; i < bad.size(); ++i) {
    begin_call();
    EXPECT_TRUE(say([&](v1::CallEvent& event) {
      event.mutable_head()->set_status(200);
      bad[i](*event.mutable_head());
      event.mutable_chunk()->set_body("{}");
    })) << i;
    ASSERT_TRUE(call_->failed()) << i;
    EXPECT_EQ(call_->failure().error.status(), 502U) << i;
    EXPECT_EQ(call_->failure().error.retry(), v1::RETRY_BEFORE_FIRST_TOKEN) << i;
    EXPECT_FALSE(call_->has_head() || call_->has_bytes()) << i;
    EXPECT_EQ(call_->failure().error.message().find_first_of("\r\n"), std::string::npos) << i;
    call_->cancel();
    EXPECT_TRUE(link_->told_to_stop) << i;
  }
}

TEST_F(CallTest, BelievesWhatAnswersSay) {
  for (const uint32_t status : {0U, 200U, 201U, 202U, 207U}) {
    begin_call();
    say([&](v1::CallEvent& event) {
      event.mutable_head()->set_status(status);
      event.mutable_head()->set_content_type("text/event-stream; charset=utf-8");
    });
    EXPECT_FALSE(call_->ended()) << status;
    EXPECT_TRUE(call_->has_head()) << status;
  }
}

TEST_F(CallTest, BeginsOnce) {
  const auto head = [](v1::CallEvent& event) { event.mutable_head()->set_status(200); };
  say(head);
  say(head);
  EXPECT_TRUE(call_->failed());
}

TEST_F(CallTest, TakesNothingThatComesAfterABrokenWord) {
  EXPECT_TRUE(say_chunk(1'000'000, 1));
  EXPECT_TRUE(call_->failed());
  EXPECT_FALSE(say_chunk(1, 1));
  EXPECT_FALSE(call_->has_bytes());
  EXPECT_FALSE(call_->is_over()) << "the replica goes on";
  EXPECT_FALSE(say([](v1::CallEvent& event) {
    event.mutable_finished()->mutable_usage()->set_prompt_tokens(7);
  }));
  EXPECT_TRUE(call_->is_over());
  EXPECT_TRUE(call_->failed());
  ASSERT_EQ(payee_->told.size(), 1U);
  EXPECT_EQ(payee_->told[0].prompt_tokens, 7U);
  call_->cancel();
  EXPECT_FALSE(link_->told_to_stop);
}

TEST_F(CallTest, CountsNoMoreTokensThanACallCanHave) {
  EXPECT_TRUE(say_chunk(1, 900'000'000));
  EXPECT_FALSE(call_->failed());
  EXPECT_TRUE(say_chunk(1, 900'000'000));
  EXPECT_TRUE(call_->failed());
}

TEST_F(CallTest, BelievesNoEndThatCostsWhatNothingCosts) {
  const std::vector<std::function<void(v1::Finished&)>> bad = {
      [](v1::Finished& end) { end.mutable_usage()->set_prompt_tokens(4'000'000'000); },
      [](v1::Finished& end) { end.mutable_usage()->set_cost_nanousd(~0ULL); },
      [](v1::Finished& end) { end.mutable_timings()->set_queue_us(~0ULL); },
      [](v1::Finished& end) { end.mutable_timings()->set_prefill_us(~0ULL); },
      [](v1::Finished& end) { end.set_adapter(std::string(5000, 'a')); },
      [](v1::Finished& end) {
        for (int i = 0; i < 100'000; ++i) end.add_finish_reasons("stop");
      },
  };
  for (size_t i = 0; i < bad.size(); ++i) {
    begin_call();
    payee_->told.clear();
    say_chunk(1, 5);
    say([&](v1::CallEvent& event) { bad[i](*event.mutable_finished()); });
    EXPECT_TRUE(call_->failed()) << i;
    EXPECT_TRUE(call_->is_over()) << i;
    ASSERT_EQ(payee_->told.size(), 1U) << i;
    EXPECT_EQ(payee_->told[0], (Usage{.completion_tokens = 5})) << "what was seen, " << i;
  }
}

TEST_F(CallTest, TakesAnEndThatNobodyAskedForAsAFailure) {
  EXPECT_TRUE(say([](v1::CallEvent& event) {
    event.mutable_cancelled()->mutable_usage()->set_completion_tokens(4);
  }));
  ASSERT_TRUE(call_->failed());
  EXPECT_EQ(call_->failure().source, CallFailure::Source::kReplica);
  EXPECT_EQ(call_->failure().error.status(), 502U);
  EXPECT_EQ(call_->failure().error.retry(), v1::RETRY_BEFORE_FIRST_TOKEN);
  EXPECT_TRUE(call_->is_over());
  ASSERT_EQ(payee_->told.size(), 1U);
  EXPECT_EQ(payee_->told[0].completion_tokens, 4U);
}

TEST_F(CallTest, TellsFailuresAtAPersonsLength) {
  say([](v1::CallEvent& event) {
    v1::ErrorDetail& error = *event.mutable_failed()->mutable_error();
    error.set_message(std::string(16 * 1024 - 1, 'a') + "\xC3\xA9" + std::string(100'000, 'b'));
    error.set_code(std::string(1000, 'c'));
    event.mutable_failed()->mutable_usage()->set_prompt_tokens(4'000'000'000);
  });
  ASSERT_TRUE(call_->failed());
  EXPECT_EQ(call_->failure().error.message(), std::string(16 * 1024 - 1, 'a'));
  EXPECT_EQ(call_->failure().error.code().size(), 256U);
  EXPECT_EQ(payee_->told.at(0).prompt_tokens, 1'000'000'000U);
}

TEST_F(CallTest, KeepsItsFirstFailureWhenTheConnectionEnds) {
  say_chunk(1'000'000, 1);
  const std::string before = call_->failure().error.message();
  EXPECT_FALSE(call_->fail({.source = CallFailure::Source::kLost, .error = {}}));
  EXPECT_EQ(call_->failure().error.message(), before);
  EXPECT_TRUE(call_->is_over());
}

// A chunk that says tokens but has no body, as what makes the next body.
v1::CallEvent tokens_alone(size_t ids) {
  v1::CallEvent event;
  v1::TokenGroup& group = *event.mutable_chunk()->add_groups();
  for (size_t i = 0; i < ids; ++i) group.add_token_ids(1);
  return event;
}

TEST_F(CallTest, KeepsTokensInTheirOrderUntilTheirBytesAreTaken) {
  struct Reader final : ChunkReader {
    bool read(Call& /*call*/, const ChunkView& /*chunk*/) noexcept override { return true; }
  } reader;
  const Call::Reading reading(*call_, reader);
  call_->keep_groups();
  say([](v1::CallEvent& event) { event = tokens_alone(2); });
  CallEvent next;
  next.chunk = {.body = "data: a\n\n", .events = 1};
  EXPECT_TRUE(call_->deliver(next)) << "it must not overtake tokens that wait";
  EXPECT_TRUE(call_->has_bytes());
  EXPECT_FALSE(call_->pending_groups().empty());
  runtime::Payload payload;
  call_->take(payload);
  EXPECT_TRUE(call_->pending_groups().empty());
  EXPECT_FALSE(call_->deliver(next)) << "the reader has it";
}

TEST_F(CallTest, KeepsNoMoreTokensThanAnAnswerHas) {
  call_->keep_groups();
  for (int i = 0; i < 20; ++i) {
    say([](v1::CallEvent& event) { event = tokens_alone(Call::kMostGroupBytes / 4); });
  }
  EXPECT_GT(call_->pending_groups().bytes.size(), Call::kMostGroupBytes)
      << "that some lack is seen";
  EXPECT_LT(call_->pending_groups().bytes.size(), 2 * Call::kMostGroupBytes);
}

TEST(LoadReport, HoldsNumbersThatSumsCanTake) {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  v1::Load load;
  load.set_kv_usage(std::numeric_limits<float>::quiet_NaN());
  load.set_calls(kMost);
  load.set_max_running(kMost);
  load.set_gateways(kMost);
  const routing::LoadReport report = report_of(load);
  EXPECT_EQ(report.kv_usage, 0.0F);
  EXPECT_EQ(report.calls, 1'000'000U);
  EXPECT_EQ(report.max_running, 1'000'000U);
  EXPECT_EQ(report.gateways, 10'000U);
  load.set_kv_usage(std::numeric_limits<float>::infinity());
  EXPECT_EQ(report_of(load).kv_usage, 1.0F);
}

}  // namespace
}  // namespace penstock::upstream
