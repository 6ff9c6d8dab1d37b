#include "upstream/start_frame.h"

#include <gtest/gtest.h>

#include <string>

#include "penstock/v1/inference.pb.h"

namespace penstock::upstream {
namespace {

constexpr KvHint kKv{.seq_id = "req_1/a", .begin = 960, .moved_tokens = 300};
constexpr CallRequest kWhole{.request_id = "req_1",
                             .traceparent = "00-a-b-01",
                             .method = "POST",
                             .path = "/v1/completions",
                             .body = "{}",
                             .model = "mini:pirate",
                             .adapter = "pirate@1",
                             .priority = -1,
                             .tenant_salt = "salt",
                             .token_groups = true,
                             .max_prompt_tokens = 3'600,
                             .max_completion_tokens = 300,
                             .adapter_digest = "5ba4",
                             .adapter_wait_ms = 30'000,
                             .trim = true,
                             .tenant = "acme",
                             .input_price = 150'000'000,
                             .output_price = 9'000'000'000'000'000,
                             .cached_price = 1,
                             .kv = &kKv};

// As protobuf holds it.
v1::CallRequest message_of(const CallRequest& request) {
  v1::CallRequest message;
  message.set_request_id(std::string(request.request_id));
  message.set_traceparent(std::string(request.traceparent));
  message.set_method(std::string(request.method));
  message.set_path(std::string(request.path));
  message.set_body(std::string(request.body));
  message.set_model(std::string(request.model));
  message.set_adapter(std::string(request.adapter));
  message.set_priority(request.priority);
  message.set_tenant_salt(std::string(request.tenant_salt));
  message.set_token_groups(request.token_groups);
  message.set_max_prompt_tokens(request.max_prompt_tokens);
  message.set_max_completion_tokens(request.max_completion_tokens);
  message.set_adapter_digest(std::string(request.adapter_digest));
  message.set_adapter_wait_ms(request.adapter_wait_ms);
  message.set_trim(request.trim);
  message.set_tenant(std::string(request.tenant));
  message.set_input_price(request.input_price);
  message.set_output_price(request.output_price);
  message.set_cached_price(request.cached_price);
  if (request.kv == nullptr) return message;
  message.mutable_kv()->set_seq_id(std::string(request.kv->seq_id));
  message.mutable_kv()->set_begin(request.kv->begin);
  message.mutable_kv()->set_moved_tokens(request.kv->moved_tokens);
  return message;
}

v1::Start start_of(uint64_t call_id, const CallRequest& request) {
  v1::Start start;
  start.set_call_id(call_id);
  start.set_initial_credit_bytes(1'000);
  *start.mutable_request() = message_of(request);
  return start;
}

TEST(StartFrame, SaysAllThatIsAsked) {
  for (const int32_t priority : {-1, 0, 1}) {
    CallRequest request = kWhole;
    request.priority = priority;
    std::string text;
    append_start(text, {.call_id = 3, .credit_bytes = 1'000, .request = request});
    v1::ClientFrame expected;
    *expected.add_starts() = start_of(3, request);
    v1::ClientFrame frame;
    ASSERT_TRUE(frame.ParseFromString(text));
    EXPECT_EQ(frame.SerializeAsString(), expected.SerializeAsString());
  }
}

TEST(StartFrame, IsTheSameFrameAsWithTheBodyInIt) {
  const std::string body(300'000, 'x');
  CallRequest request = kWhole;
  request.body = {};
  std::string text;
  append_start(text, {.call_id = 300, .credit_bytes = 1'000, .request = request}, body.size());
  v1::ClientFrame frame;
  ASSERT_TRUE(frame.ParseFromString(text + body));
  v1::ClientFrame expected;
  request.body = body;
  *expected.add_starts() = start_of(300, request);
  EXPECT_EQ(frame.SerializeAsString(), expected.SerializeAsString());
}

TEST(StartFrame, FollowsOthersAndWhateverElseAFrameSays) {
  v1::ClientFrame expected;
  expected.add_cancels(7);
  std::string text = expected.SerializeAsString();
  for (const uint64_t id : {1UL, 200UL, 1UL << 40U}) {
    append_start(text, {.call_id = id, .credit_bytes = 1'000, .request = kWhole});
    *expected.add_starts() = start_of(id, kWhole);
  }
  v1::ClientFrame frame;
  ASSERT_TRUE(frame.ParseFromString(text));
  EXPECT_EQ(frame.SerializeAsString(), expected.SerializeAsString());
}

TEST(StartFrame, StartsACallThatHasNothingToSay) {
  std::string text;
  append_start(text, {.call_id = 1, .credit_bytes = 0, .request = {}});
  v1::ClientFrame frame;
  ASSERT_TRUE(frame.ParseFromString(text));
  ASSERT_EQ(frame.starts_size(), 1);
  EXPECT_EQ(frame.starts(0).call_id(), 1U);
  EXPECT_EQ(frame.starts(0).initial_credit_bytes(), 0U);
}

}  // namespace
}  // namespace penstock::upstream
