#include "dialects/stream_end.h"

#include <gtest/gtest.h>

namespace penstock::dialects {
namespace {

using openai::Dialect;

struct Whole {
  Dialect dialect;
  std::string before;
  std::string last;
};

class WholeStream : public testing::TestWithParam<Whole> {};

TEST_P(WholeStream, IsOneWhoseLastEventCame) {
  const auto& [dialect, before, last] = GetParam();
  StreamEnd end(dialect);
  end.note(before);
  EXPECT_FALSE(end.reached()) << before;
  EXPECT_FALSE(end.may_end(before));
  EXPECT_TRUE(end.may_end(before + last));
  EXPECT_TRUE(end.may_end(last));
  end.note(before + last);
  EXPECT_TRUE(end.reached()) << last;
  EXPECT_EQ(end.bytes(), last.size());
  end.note("");
  EXPECT_FALSE(end.reached()) << "nothing came";
  StreamEnd alone(dialect);
  alone.note(last);
  EXPECT_EQ(alone.bytes(), last.size());
}

INSTANTIATE_TEST_SUITE_P(
    Dialects, WholeStream,
    testing::Values(Whole{Dialect::kOpenAi, "data: {\"a\":1}\n\n", "data: [DONE]\n\n"},
                    Whole{Dialect::kResponses,
                          "event: response.created\ndata: {\"type\":\"response.created\"}\n\n",
                          "event: response.completed\ndata: {\"type\":\"response.completed\"}\n\n"},
                    Whole{Dialect::kAnthropic,
                          "event: message_delta\ndata: {\"type\":\"message_delta\"}\n\n",
                          "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"}));

TEST(StreamEnd, MayBeAnyEventThatDoesNotNameItsTypeFirst) {
  const StreamEnd responses(Dialect::kResponses);
  EXPECT_TRUE(responses.may_end("data: {\"type\":\"response.completed\"}\n\n"));
  EXPECT_TRUE(responses.may_end("event: response.incomplete\ndata: {}\n\n"));
  EXPECT_TRUE(responses.may_end("event: response.failed\ndata: {}\n\n"));
  EXPECT_TRUE(responses.may_end("event: response.completed\ndata: {}\n\nevent: x\ndata: {}\n\n"))
      << "what follows the last event does not hide it";
  EXPECT_FALSE(responses.may_end("event: response.output_text.delta\ndata: {}\n\n"));
}

TEST(StreamEnd, IsNotWhatTheModelSays) {
  StreamEnd messages(Dialect::kAnthropic);
  messages.note("event: content_block_delta\ndata: {\"text\":\"event: message_stop\\n\"}\n\n");
  EXPECT_FALSE(messages.reached());
  StreamEnd responses(Dialect::kResponses);
  responses.note(
      "data: {\"type\":\"response.output_text.delta\",\"delta\":\"response.completed\"}\n\n");
  EXPECT_FALSE(responses.reached());
}

TEST(StreamEnd, OfABrokenStreamSaysWhy) {
  const auto error = base::make_error(base::Kind::kDraining, "it ends");
  const openai::Answerer answerer{.request_id = "req_1", .model = "mini"};
  EXPECT_TRUE(StreamEnd(Dialect::kOpenAi).broken(error, answerer).starts_with("data: {\"error\":"));
  EXPECT_TRUE(StreamEnd(Dialect::kAnthropic)
                  .broken(error, answerer)
                  .starts_with("event: error\ndata: {\"type\":\"error\""));
  const std::string response = StreamEnd(Dialect::kResponses).broken(error, answerer);
  EXPECT_NE(response.find("\n\nevent: response.failed\n"), std::string::npos) << response;
}

}  // namespace
}  // namespace penstock::dialects
