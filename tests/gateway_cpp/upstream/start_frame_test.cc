#include "upstream/start_frame.h"

#include <gtest/gtest.h>

namespace penstock::upstream {
namespace {

TEST(StartFrame, IsTheSameFrameAsWithTheBodyInIt) {
  const std::string body(300'000, 'x');
  v1::Start start;
  start.set_call_id(300);
  start.set_initial_credit_bytes(1'000);
  start.mutable_request()->set_request_id("req_1");
  start.mutable_request()->set_model("mini");
  v1::ClientFrame frame;
  ASSERT_TRUE(frame.ParseFromString(start_frame_before_body(start, body.size()) + body));
  v1::ClientFrame expected;
  start.mutable_request()->set_body(body);
  *expected.add_starts() = start;
  EXPECT_EQ(frame.SerializeAsString(), expected.SerializeAsString());
}

}  // namespace
}  // namespace penstock::upstream
