#include "proxy/shadow_questions.h"

#include <string>
#include <vector>

#include "shadow_fixture.h"

namespace penstock::proxy {
namespace {

// "next" judges what "mini" and others answered.
class ShadowQuestionsTest : public ShadowTest {
 protected:
  ShadowQuestionsTest() {
    rule_.judge = "next";
    publish();
  }
  ~ShadowQuestionsTest() override {
    questions_.stop();
    loop_.poll();
  }

  static v1::ShadowQuestion question(const std::string& id = "q1") {
    v1::ShadowQuestion asked;
    asked.set_id(id);
    asked.set_rule("u1");
    asked.set_deployment("next");
    asked.set_path("/v1/chat/completions");
    asked.set_body(kAsked);
    return asked;
  }
  void put(const v1::ShadowQuestion& asked) {
    questions_.ask(asked);
    loop_.poll();
  }
  // What it came to: an answer, or why there is none.
  const v1::ShadowReply& reply(size_t i = 0) { return pairs_.replies.at(i); }
  // Of a question that nobody is asked.
  std::string refusal_of(const v1::ShadowQuestion& asked) {
    const size_t calls = upstream_.calls.size();
    put(asked);
    if (upstream_.calls.size() > calls) return "it was asked";
    return pairs_.replies.empty() ? "no reply" : pairs_.replies.back().outcome();
  }
  std::string refusal_of_tenants(const std::string& tenant) {
    auto asked = question();
    asked.set_tenant(tenant);
    return refusal_of(asked);
  }
  void know(std::vector<admission::Tenant> tenants) {
    tenants_.replace(std::move(tenants), true, clock_.steady_now());
  }

  static constexpr const char* kAsked = R"({"model":"next","messages":[{}],"max_tokens":9})";
};

TEST_F(ShadowQuestionsTest, AsksTheJudgeAsNobodyBehindEverybody) {
  put(question());
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(call().replica, "r2");
  const v1::CallRequest& asked = call().request;
  EXPECT_EQ(asked.body(), kAsked);
  EXPECT_EQ(asked.path(), "/v1/chat/completions");
  EXPECT_EQ(asked.model(), "next");
  EXPECT_EQ(asked.tenant(), "");
  EXPECT_EQ(asked.tenant_salt(), "salt:asked");
  EXPECT_EQ(asked.priority(), admission::kShadowPriority);
  EXPECT_TRUE(pairs_.replies.empty());
  answer(0, "FIRST");
  ASSERT_EQ(pairs_.replies.size(), 1U);
  EXPECT_EQ(reply().id(), "q1");
  EXPECT_EQ(reply().outcome(), "");
  EXPECT_EQ(reply().answer().body(), "FIRST");
  EXPECT_EQ(reply().answer().status(), 200U);
  EXPECT_EQ(reply().answer().error_code(), "");
  EXPECT_EQ(questions_.size(), 0U);
  EXPECT_EQ(shadow_bytes_.held(), 0U);
  EXPECT_TRUE(pairs_.pairs.empty());
}

TEST_F(ShadowQuestionsTest, ChargesTheRule) {
  put(question());
  answer(0, "FIRST");
  const auto totals = usage_.totals();
  ASSERT_EQ(totals.size(), 1U);
  const auto& row = totals[0];
  EXPECT_EQ(row.key.tenant, "_shadow");
  EXPECT_EQ(row.key.key_id, "u1");
  EXPECT_EQ(row.key.deployment, "next");
  EXPECT_EQ(row.counts.completion_tokens, 2U);
  EXPECT_TRUE(metrics_.totals().empty());
}

TEST_F(ShadowQuestionsTest, AsksTheEmbedderWhereItHasEmbeddings) {
  rule_.judge = "";
  rule_.embedder = "next";
  publish();
  auto asked = question();
  asked.set_path("/v1/embeddings");
  asked.set_body(R"({"model":"next","input":["a","b"]})");
  put(asked);
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(call().request.path(), "/v1/embeddings");
  next_.endpoints = {"/v1/chat/completions"};
  publish();
  EXPECT_EQ(refusal_of(asked), "not_comparable");
}

TEST_F(ShadowQuestionsTest, AsksNobodyElse) {
  auto asked = question();
  asked.set_deployment("mini");
  EXPECT_EQ(refusal_of(asked), "not_allowed");
  asked.set_deployment("");
  EXPECT_EQ(refusal_of(asked), "not_allowed");
  asked = question();
  asked.set_rule("another");
  EXPECT_EQ(refusal_of(asked), "not_comparable");
  EXPECT_EQ(questions_.size(), 0U);
}

TEST_F(ShadowQuestionsTest, AsksNothingThatItCannotRead) {
  auto asked = question();
  asked.set_path("/v1/nothing");
  EXPECT_EQ(refusal_of(asked), "not_comparable");
  asked = question();
  asked.set_body("{");
  EXPECT_EQ(refusal_of(asked), "not_comparable");
  asked.set_body(kStream);
  EXPECT_EQ(refusal_of(asked), "not_comparable");
  asked.set_body(std::string(2UL << 20U, 'x'));  // more than may be held
  EXPECT_EQ(refusal_of(asked), "body_budget");
  EXPECT_EQ(shadow_bytes_.held(), 0U);
}

TEST_F(ShadowQuestionsTest, ShowsAProviderNothingOfThoseWhoForbidIt) {
  next_.managed = true;
  publish();
  know({{.id = "open"},
        {.id = "closed", .degrade_never = true},
        {.id = "elsewhere", .models = {"mini"}},
        {.id = "unseen", .shadow_never = true}});
  EXPECT_EQ(refusal_of_tenants("closed"), "not_allowed");
  EXPECT_EQ(refusal_of_tenants("elsewhere"), "not_allowed");
  EXPECT_EQ(refusal_of_tenants("unseen"), "not_allowed");
  EXPECT_EQ(refusal_of_tenants("gone"), "not_allowed");
  auto asked = question();
  asked.set_tenant("open");
  asked.set_confined(true);
  EXPECT_EQ(refusal_of(asked), "not_allowed");
  EXPECT_EQ(refusal_of_tenants("open"), "it was asked");
}

TEST_F(ShadowQuestionsTest, ShowsAnOwnModelAllButWhatIsNeverRepeated) {
  know({{.id = "closed", .degrade_never = true}, {.id = "unseen", .shadow_never = true}});
  EXPECT_EQ(refusal_of_tenants("unseen"), "not_allowed");
  EXPECT_EQ(refusal_of_tenants("gone"), "not_allowed");
  EXPECT_EQ(refusal_of_tenants("closed"), "it was asked");
}

TEST_F(ShadowQuestionsTest, GivesItsPlaceUpAtOnceWhenAClientNeedsIt) {
  next_.limits.max_ongoing = 1;
  publish();
  put(question());
  ASSERT_EQ(upstream_.calls.size(), 1U);
  ask_as(other_, R"({"model":"next","messages":[{}]})");
  EXPECT_TRUE(call(0).cancelled);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(reply().outcome(), "preempted");
  answer(1, "{}");
  EXPECT_EQ(other_.status, 200U);
}

TEST_F(ShadowQuestionsTest, WaitsForAPlaceAndThenNoMore) {
  next_.limits.max_ongoing = 1;
  publish();
  ask_as(other_, R"({"model":"next","messages":[{}]})");
  put(question());
  EXPECT_EQ(upstream_.calls.size(), 1U);
  for (int i = 0; i < 60; ++i) pass(milliseconds(100));
  EXPECT_EQ(reply().outcome(), "candidate_busy");
}

TEST_F(ShadowQuestionsTest, TellsOfAJudgeThatFails) {
  put(question());
  call().fail(500, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  EXPECT_EQ(reply().answer().status(), 500U);
  EXPECT_EQ(reply().answer().error_code(), "engine_error");
}

TEST_F(ShadowQuestionsTest, HasNotManyOfARuleUnderWay) {
  for (std::uint32_t i = 0; i < admission::ShadowBook::kMostQuestions; ++i) put(question());
  EXPECT_EQ(refusal_of(question()), "concurrency");
  EXPECT_EQ(shadow_book_.rows()[0].under_way, 0U);  // of the rule's copies
  answer(0, "FIRST");
  EXPECT_EQ(refusal_of(question()), "it was asked");
}

TEST_F(ShadowQuestionsTest, AsksNothingOfARuleWithoutMoney) {
  rule_.budget_used_up = true;
  publish();
  EXPECT_EQ(refusal_of(question()), "budget");
}

TEST_F(ShadowQuestionsTest, SaysNothingOnceItIsStopped) {
  put(question());
  questions_.stop();
  loop_.poll();
  put(question());
  EXPECT_TRUE(call().cancelled);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_TRUE(pairs_.replies.empty());
  EXPECT_EQ(questions_.size(), 0U);
}

}  // namespace
}  // namespace penstock::proxy
