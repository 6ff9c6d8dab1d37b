#include "upstream/start_frame.h"

#include <gtest/gtest.h>

namespace penstock::upstream {
namespace {

v1::CallRequest some_request() {
  v1::CallRequest request;
  request.set_request_id("req_1");
  request.set_model("mini");
  return request;
}

v1::Start start_of(uint64_t call_id, const v1::CallRequest& request) {
  v1::Start start;
  start.set_call_id(call_id);
  start.set_initial_credit_bytes(1'000);
  *start.mutable_request() = request;
  return start;
}

TEST(StartFrame, IsTheSameFrameAsWithTheBodyInIt) {
  const std::string body(300'000, 'x');
  v1::CallRequest request = some_request();
  std::string text;
  append_start(text, {.call_id = 300, .credit_bytes = 1'000, .request = request}, body.size());
  v1::ClientFrame frame;
  ASSERT_TRUE(frame.ParseFromString(text + body));
  v1::ClientFrame expected;
  request.set_body(body);
  *expected.add_starts() = start_of(300, request);
  EXPECT_EQ(frame.SerializeAsString(), expected.SerializeAsString());
}

TEST(StartFrame, FollowsOthersAndWhateverElseAFrameSays) {
  v1::CallRequest request = some_request();
  request.set_body("{}");
  v1::ClientFrame expected;
  expected.add_cancels(7);
  std::string text = expected.SerializeAsString();
  for (const uint64_t id : {1UL, 200UL, 1UL << 40U}) {
    append_start(text, {.call_id = id, .credit_bytes = 1'000, .request = request});
    *expected.add_starts() = start_of(id, request);
  }
  v1::ClientFrame frame;
  ASSERT_TRUE(frame.ParseFromString(text));
  EXPECT_EQ(frame.SerializeAsString(), expected.SerializeAsString());
}

TEST(StartFrame, StartsACallThatHasNothingToSay) {
  std::string text;
  append_start(text, {.call_id = 1, .credit_bytes = 0, .request = v1::CallRequest()});
  v1::ClientFrame frame;
  ASSERT_TRUE(frame.ParseFromString(text));
  ASSERT_EQ(frame.starts_size(), 1);
  EXPECT_EQ(frame.starts(0).call_id(), 1U);
  EXPECT_EQ(frame.starts(0).initial_credit_bytes(), 0U);
}

}  // namespace
}  // namespace penstock::upstream
