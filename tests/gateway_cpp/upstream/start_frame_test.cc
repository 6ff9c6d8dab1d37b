#include "upstream/start_frame.h"

#include <gtest/gtest.h>

#include <string>

#include "penstock/v1/inference.pb.h"
#include "upstream/group_record.h"

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
  if (request.kv != nullptr) {
    message.mutable_kv()->set_seq_id(std::string(request.kv->seq_id));
    message.mutable_kv()->set_begin(request.kv->begin);
    message.mutable_kv()->set_moved_tokens(request.kv->moved_tokens);
  }
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

std::string record_of(const v1::Resume& resume) {
  v1::Chunk chunk;
  *chunk.mutable_groups() = resume.groups();
  std::string wire;
  append_groups(chunk, wire);
  std::string record(wire.size(), '\0');
  record.resize(static_cast<size_t>(record_groups({wire}, record.data()) - record.data()));
  return record;
}

TEST(StartFrame, SaysWhatTheClientHasOfAnAnswerThatGoesOn) {
  v1::Resume resume;
  resume.set_events(300);
  resume.set_created(1'700'000'000);
  resume.set_cached_tokens(16);
  for (uint32_t i = 0; i < 100'000; ++i) {
    v1::TokenGroup& group = *resume.add_groups();
    group.set_choice(i % 2);
    for (uint32_t id = i % 3; id <= 2; ++id) group.add_token_ids(i << id);
  }
  resume.mutable_groups(3)->set_finish_reason("length");
  resume.mutable_groups(4)->set_stop_reason("###");
  const std::string record = record_of(resume);
  const Resume seen{.groups = record, .events = 300, .created = 1'700'000'000, .cached_tokens = 16};
  CallRequest request = kWhole;
  request.resume = &seen;
  std::string text;
  append_start(text, {.call_id = 3, .credit_bytes = 1'000, .request = request});
  v1::ClientFrame expected;
  *expected.add_starts() = start_of(3, request);
  *expected.mutable_starts(0)->mutable_request()->mutable_resume() = resume;
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
