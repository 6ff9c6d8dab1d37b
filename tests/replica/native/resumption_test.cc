// The simulated engine goes on with answers that another began: what a client has and what comes
// are together the answer that nobody disturbed, wherever it was cut.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "simulated/simulated_engine.h"
#include "support.h"

namespace penstock::replica::simulated {
namespace {

using replica::test::chat_request;
using replica::test::Recorded;
using replica::test::recorded_call;

// An answer as its client and its gateway see it.
struct Whole {
  std::vector<std::string> events;
  std::vector<v1::TokenGroup> groups;
  uint32_t tokens = 0;  // as chunks tell them
  v1::Head head;
  v1::CallEvent end;
};

std::vector<std::string> split(const std::string& body) {
  std::vector<std::string> events;
  for (size_t from = 0; from < body.size();) {
    const size_t end = std::min(body.find("\n\n", from), body.size() - 2) + 2;
    events.push_back(body.substr(from, end - from));
    from = end;
  }
  return events;
}

std::string joined(std::span<const std::string> events) {
  return std::accumulate(events.begin(), events.end(), std::string());
}

class Resumption : public ::testing::Test {
 protected:
  SimulatedEngine& engine() {
    if (!engine_) engine_ = std::make_unique<SimulatedEngine>(settings_, inbox_);
    return *engine_;
  }
  Whole answer(v1::CallRequest request) {
    request.set_token_groups(true);
    const Recorded made = recorded_call(request);
    engine().start({&made.call, 1});
    Whole whole;
    uint32_t told = 0;
    for (const v1::CallEvent& event : made.recorder->await_end()) {
      if (event.has_head()) whole.head = event.head();
      whole.tokens += event.chunk().tokens();
      told += event.chunk().events();
      whole.groups.insert(whole.groups.end(), event.chunk().groups().begin(),
                          event.chunk().groups().end());
      whole.end = event;
    }
    whole.events = split(made.recorder->body());
    EXPECT_EQ(told, whole.events.size());
    return whole;
  }
  std::string refusal(const v1::CallRequest& request) {
    const v1::ErrorDetail error = answer(request).end.failed().error();
    EXPECT_EQ(error.fault(), v1::FAULT_UPSTREAM);
    return error.code() + ": " + error.message();
  }

  Settings settings_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::unique_ptr<SimulatedEngine> engine_;
};

v1::CallRequest completion_request(const std::string& fields) {
  v1::CallRequest request = chat_request("");
  request.set_path("/v1/completions");
  request.set_body(R"({"prompt":"Once upon a time")" + fields + "}");
  return request;
}

// Of a chat whose client has the role, and an event for each of `tokens` words.
v1::CallRequest resumed(v1::CallRequest request, const Whole& whole, size_t tokens,
                        uint32_t events) {
  v1::Resume& resume = *request.mutable_resume();
  for (size_t i = 0; i < tokens; ++i) *resume.add_groups() = whole.groups.at(i);
  resume.set_events(events);
  resume.set_created(whole.head.created());
  resume.set_cached_tokens(whole.head.cached_tokens());
  return request;
}

TEST_F(Resumption, WhereverAnAnswerIsCutTheRestComes) {
  settings_.behaviour.answer_tokens = 5;
  std::vector<v1::CallRequest> requests;
  for (const std::string limit :
       {"", R"(,"max_tokens":1)", R"(,"max_tokens":40)", R"(,"max_tokens":40,"stop":[" a"])"}) {
    for (const std::string more :
         {"", R"(,"stream_options":{"include_usage":true})", R"(,"return_token_ids":true)"}) {
      requests.push_back(completion_request(R"(,"stream":true)" + limit + more));
      requests.push_back(chat_request(R"("stream":true)" + limit + more));
    }
  }
  for (const v1::CallRequest& request : requests) {
    const Whole whole = answer(request);
    EXPECT_TRUE(whole.head.resumable());
    const size_t roles = request.path() == "/v1/completions" ? 0 : 1;
    for (size_t cut = 0; cut <= whole.events.size(); ++cut) {
      SCOPED_TRACE(request.path() + " " + request.body() + " cut at " + std::to_string(cut));
      const size_t tokens = std::min(cut - std::min(cut, roles), whole.groups.size());
      const Whole rest = answer(resumed(request, whole, tokens, static_cast<uint32_t>(cut)));
      EXPECT_EQ(joined(rest.events), joined(std::span(whole.events).subspan(cut)));
      ASSERT_EQ(rest.groups.size(), whole.groups.size() - tokens);
      for (size_t i = 0; i < rest.groups.size(); ++i) {
        EXPECT_EQ(rest.groups[i].SerializeAsString(), whole.groups[tokens + i].SerializeAsString());
      }
      EXPECT_EQ(rest.tokens, whole.tokens - tokens);
      EXPECT_EQ(rest.end.finished().usage().SerializeAsString(),
                whole.end.finished().usage().SerializeAsString());
      EXPECT_EQ(rest.end.finished().finish_reasons(0), whole.end.finished().finish_reasons(0));
      EXPECT_EQ(rest.head.created(), whole.head.created());
      EXPECT_EQ(rest.head.prompt_tokens(), whole.head.prompt_tokens());
      EXPECT_TRUE(rest.head.resumable());
    }
  }
}

TEST_F(Resumption, EventsThatTheClientLacksOfTheReplayComeFirst) {
  const v1::CallRequest request = chat_request(R"("stream":true,"max_tokens":9)");
  const Whole whole = answer(request);
  for (const uint32_t events : {0u, 1u, 3u}) {
    const Whole rest = answer(resumed(request, whole, 6, events));
    EXPECT_EQ(joined(rest.events), joined(std::span(whole.events).subspan(events)));
    EXPECT_EQ(rest.groups.size(), 3u) << "the gateway has the others";
    EXPECT_EQ(rest.tokens, 3u);
  }
}

TEST_F(Resumption, AnAnswerSaysWhenItBeganThoughItGoesOnLater) {
  const v1::CallRequest request = chat_request(R"("stream":true,"max_tokens":2)");
  v1::CallRequest later = resumed(request, answer(request), 1, 2);
  later.mutable_resume()->set_created(1'700'000'000);
  later.mutable_resume()->set_cached_tokens(1);
  const Whole rest = answer(later);
  EXPECT_NE(rest.events.at(0).find(R"("created":1700000000,)"), std::string::npos);
  EXPECT_EQ(rest.head.created(), 1'700'000'000);
  EXPECT_EQ(rest.head.cached_tokens(), 1u) << "as the first replica told it";
  EXPECT_EQ(rest.end.finished().usage().cached_tokens(), 1u);
}

TEST_F(Resumption, OnlyAStreamWhoseTokensAreAskedForCanGoOn) {
  EXPECT_FALSE(answer(chat_request("")).head.resumable()) << "no stream";
  const Recorded made = recorded_call(chat_request(R"("stream":true,"max_tokens":2)"));
  engine().start({&made.call, 1});
  EXPECT_FALSE(made.recorder->await_end().at(0).head().resumable()) << "nobody asked";
}

TEST_F(Resumption, WhatIsNotTheBeginningOfTheAnswerIsRefusedAndTheReasonSaid) {
  const v1::CallRequest request = chat_request(R"("stream":true,"max_tokens":3)");
  const Whole whole = answer(request);
  const auto bent = [&](auto bend) {
    v1::CallRequest bad = resumed(request, whole, 3, 4);
    bend(bad.mutable_resume());
    return refusal(bad);
  };
  using R = v1::Resume*;
  EXPECT_EQ(bent([](R r) { r->mutable_groups(1)->set_token_ids(0, 1); }).find("bad_resume: "), 0u);
  EXPECT_NE(bent([](R r) { r->mutable_groups(1)->set_token_ids(0, 1); }).find("token 1: token"),
            std::string::npos);
  for (const std::string& told : {
           bent([](R r) { *r->add_groups() = r->groups(2); }),
           bent([](R r) { r->mutable_groups(2)->clear_finish_reason(); }),
           bent([](R r) { r->mutable_groups(0)->set_finish_reason("length"); }),
           bent([](R r) { r->mutable_groups(2)->set_stop_reason("."); }),
           bent([](R r) { r->mutable_groups(0)->set_choice(1); }),
           bent([](R r) { r->mutable_groups(0)->clear_token_ids(); }),
           bent([](R r) { r->mutable_groups(0)->add_token_ids(5); }),
           bent([](R r) { r->set_events(7); }),
           bent([](R r) { r->set_events(UINT32_MAX); }),
           bent([](R r) { r->mutable_groups()->RemoveLast(); }),
           bent([](R r) { r->set_created(0); }),
           bent([](R r) { r->set_cached_tokens(99); }),
       }) {
    EXPECT_EQ(told.find("bad_resume: "), 0u) << told;
  }
  v1::CallRequest other = resumed(chat_request(R"("stream":true,"max_tokens":4)"), whole, 3, 4);
  EXPECT_EQ(refusal(other).find("bad_resume: "), 0u) << "that answer goes on there";
  other = resumed(chat_request(""), whole, 0, 0);
  EXPECT_NE(refusal(other).find("no stream"), std::string::npos);
  EXPECT_EQ(engine().figures().running, 0u);
  EXPECT_EQ(engine().figures().waiting, 0u);
}

TEST_F(Resumption, WhoeverContinuesNothingSaysWhyAndAnotherIsTried) {
  settings_.no_resume = "its self-test fails";
  const v1::CallRequest request = chat_request(R"("stream":true,"max_tokens":3)");
  const Whole whole = answer(request);
  EXPECT_FALSE(whole.head.resumable());
  const v1::ErrorDetail error = answer(resumed(request, whole, 1, 2)).end.failed().error();
  EXPECT_EQ(error.code(), "resume_unsupported");
  EXPECT_EQ(error.status(), 503u);
  EXPECT_EQ(error.retry(), v1::RETRY_BEFORE_FIRST_TOKEN);
  EXPECT_NE(error.message().find("its self-test fails"), std::string::npos);
}

TEST_F(Resumption, WhatWasMadeElsewhereIsComputedAgainButNotMadeAgain) {
  settings_.prefill_tokens_per_second = 1'000;
  const v1::CallRequest request = chat_request(R"("stream":true,"max_tokens":60)");
  const Whole whole = answer(request);
  const Figures before = engine().figures();
  const Whole rest = answer(resumed(request, whole, 50, 51));
  EXPECT_GE(rest.end.finished().timings().prefill_us(), 50'000u);
  EXPECT_EQ(engine().figures().prompt_tokens - before.prompt_tokens,
            whole.head.prompt_tokens() + 50);
  EXPECT_EQ(engine().figures().tokens - before.tokens, 10u);
}

TEST_F(Resumption, WhereOnlyTheEndIsLackingNothingWaitsForTheEngine) {
  const v1::CallRequest request = chat_request(R"("stream":true,"max_tokens":6)");
  const Whole whole = answer(request);
  engine_.reset();
  settings_.max_running = 1;
  settings_.behaviour.tokens_per_second = 1;
  const Recorded other = recorded_call(chat_request(R"("stream":true,"max_tokens":100)"));
  engine().start({&other.call, 1});
  const Recorded made = recorded_call(resumed(request, whole, 6, 7));
  engine().start({&made.call, 1});
  EXPECT_TRUE(made.recorder->ended()) << "though the only slot is taken";
  EXPECT_EQ(made.recorder->body(), joined(std::span(whole.events).subspan(7)));
  EXPECT_EQ(engine().figures().running, 1u);
}

TEST_F(Resumption, FaultsCountWhatIsMadeHere) {
  const v1::CallRequest request = chat_request(R"("stream":true,"max_tokens":60)");
  const Whole whole = answer(request);
  engine_.reset();
  settings_.behaviour.die_after_tokens = 3;
  v1::CallRequest again = resumed(request, whole, 50, 51);
  const Recorded made = recorded_call(again);
  engine().start({&made.call, 1});
  EXPECT_TRUE(made.recorder->await_sse_events(3));
  EXPECT_EQ(made.recorder->sse_events(), 3u);
}

TEST_F(Resumption, ACancelTellsWhatTheWholeAnswerCostSoFar) {
  const v1::CallRequest request = chat_request(R"("stream":true,"max_tokens":60)");
  const Whole whole = answer(request);
  engine_.reset();
  settings_.behaviour.ttft_ms = 3'600'000;
  const Recorded made = recorded_call(resumed(request, whole, 50, 51));
  engine().start({&made.call, 1});
  engine().cancel(made.call);
  EXPECT_EQ(made.recorder->await_end().at(0).cancelled().usage().completion_tokens(), 50u);
}

}  // namespace
}  // namespace penstock::replica::simulated
