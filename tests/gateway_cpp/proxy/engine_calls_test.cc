// What a router program has engines do for a request, and what is left of it.
#include "proxy/engine_calls.h"

#include <gtest/gtest.h>

#include "program_fixture.h"

namespace penstock::proxy {
namespace {

using admission::ProgramOutcome;
using Paths = std::vector<std::string>;

template <class Message>
Message sent(const FakeUpstream::Opened& call) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(call.request.body()));
  return message;
}

TEST_F(ProgramFlowTest, KvIsMovedAndTheCallThatGeneratesSaysSo) {
  prepare_and_send();
  EXPECT_EQ(paths(), (Paths{"d2 Tokenize", "d2 PrepRecv", "p1 RemoteSend"}));
  EXPECT_EQ(sent<v1::TokenizeRequest>(call(0)).call().body(), kStream);
  const auto prepared = sent<v1::PrepRecvRequest>(call(1));
  EXPECT_EQ(prepared.seq_id(), "req_1/a");
  EXPECT_EQ(prepared.end(), 100U);
  EXPECT_EQ(prepared.prompt().token_ids_size(), 100);
  EXPECT_EQ(replied(0).matched_len(), 16U);
  EXPECT_EQ(replied(0).end(), 96U);
  const auto send = sent<v1::RemoteSendRequest>(call(2));
  EXPECT_EQ(send.kv_addr().nonce(), "n");
  EXPECT_EQ(send.seq_id(), "req_1/a");
  EXPECT_EQ(send.end(), 96U);
  answer_sent(2, 80);
  EXPECT_EQ(replied(1).moved_tokens(), 80U);
  program().decide(asked().ask_id(), "d2", "a", 96);
  ASSERT_EQ(upstream_.calls.size(), 4U);
  EXPECT_EQ(call(3).replica, "d2");
  EXPECT_EQ(call(3).request.kv().seq_id(), "req_1/a");
  EXPECT_EQ(call(3).request.kv().begin(), 96U);
  EXPECT_EQ(call(3).request.kv().moved_tokens(), 80U);
  call(3).facts.set_prompt_tokens(100);
  call(3).facts.set_kv_moved_tokens(80);
  call(3).chunk(kEnd);
  call(3).finish();
  EXPECT_EQ(reply_.header("x-penstock-kv-moved"), "80");
  EXPECT_EQ(upstream_.calls.size(), 4U) << "the lease ended with the call";
  EXPECT_EQ(program_book_.row("mini", clock_.steady_now()).moved_tokens, 80U);
  EXPECT_NE(log_.text().find("remote_send@p1=80/0ms"), std::string::npos);
}

TEST_F(ProgramFlowTest, ACopyOfTheBodyThatThereIsNoRoomForIsNotMade) {
  const std::string body = kStream;
  runtime::BodyBudget budget(2 * body.size());
  runtime::BodyShare other(budget);
  Ask ask;
  ask.request_id = "req_1";
  ask.endpoint = endpoint_;
  ask.body = body;
  ask.share = runtime::BodyShare(budget);
  ASSERT_TRUE(ask.share.grow_to(body.size()));
  ask.received = clock_.steady_now();
  ask.caller = caller();
  loop_.spawn(run(std::move(ask)));
  loop_.poll();
  ASSERT_TRUE(other.grow_to(1));
  wants(v1::ENGINE_VERB_LOOKUP, "d2");
  ASSERT_EQ(replies(), 1U);
  EXPECT_EQ(replied(0).error(), "no_room");
  EXPECT_TRUE(upstream_.calls.empty());
  other.shrink_to(0);
  wants(v1::ENGINE_VERB_LOOKUP, "d2");
  ASSERT_EQ(upstream_.calls.size(), 1U);
  answer_tokens(0, 100);
  EXPECT_EQ(budget.held(), body.size());
  reply_.leave();
  loop_.poll();
  EXPECT_EQ(budget.held(), 0U);
}

TEST_F(ProgramFlowTest, TheTimeOfEnginesIsNotTheProgramsOwn) {
  prepare_and_send();
  pass(seconds(2));
  EXPECT_TRUE(call(2).call != nullptr);
  answer_sent(2, 80);
  pass(milliseconds(200));
  ASSERT_EQ(upstream_.calls.size(), 5U) << "its release, and the plain call";
  EXPECT_EQ(count(ProgramOutcome::kSlow), 1U);
  EXPECT_FALSE(call(3).request.has_kv());
}

TEST_F(ProgramFlowTest, APlainAttemptAfterAFailedOneHasNoKv) {
  prepare_and_send();
  answer_sent(2, 80);
  program().decide(asked().ask_id(), "d2", "a", 96);
  call(3).lose(Source::kUnreachable);
  ASSERT_EQ(upstream_.calls.size(), 6U);
  EXPECT_EQ(paths()[4], "d2 Release");
  EXPECT_EQ(call(5).replica, "d1");
  EXPECT_FALSE(call(5).request.has_kv());
}

TEST_F(ProgramFlowTest, AClientThatLeavesEndsEveryLegAndItsLeases) {
  prepare_and_send();
  reply_.leave();
  loop_.poll();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call(2).cancelled);
  ASSERT_EQ(paths().back(), "d2 Release");
  EXPECT_EQ(sent<v1::ReleaseRequest>(*upstream_.calls.back()).seq_id(), "req_1/a");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(in_flight(i), 0U);
}

TEST_F(ProgramFlowTest, ASenderIsStoppedWhoseReceiverIsLost) {
  prepare_and_send();
  auto& receiver = routes_.replica("mini", 2);
  ASSERT_EQ(receiver.id().value, "d2");
  routes_.of("mini").note_failure(receiver, routing::Failure::kLoadEnded);
  pass(milliseconds(500));
  EXPECT_TRUE(call(2).cancelled);
  EXPECT_EQ(replied(1).error(), "unavailable");
}

TEST_F(ProgramFlowTest, AReceiverIsReleasedWhoseSenderIsLost) {
  prepare_and_send();
  call(2).lose(Source::kLost);
  EXPECT_EQ(replied(1).error(), "unavailable");
  EXPECT_EQ(paths().back(), "d2 Release");
  EXPECT_TRUE(is_down("p1"));
  program().decide(asked().ask_id(), "");
  EXPECT_EQ(upstream_.calls.back()->request.path(), "/v1/chat/completions");
}

TEST_F(ProgramFlowTest, WhatCameByASendThatBrokeIsToldToTheReplicaThatHasIt) {
  prepare_and_send();
  call(2).lose(Source::kLost);
  program().decide(asked().ask_id(), "d2");
  const auto& plain = *upstream_.calls.back();
  EXPECT_EQ(plain.replica, "d2");
  EXPECT_EQ(plain.request.kv().seq_id(), "req_1/a");
  EXPECT_EQ(plain.request.kv().moved_tokens(), 0U);
}

TEST_F(ProgramFlowTest, WhatAnEngineDiedOfUnderALegGoesToNoOther) {
  prepare_and_send();
  call(2).fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_NE(reply_.text.find("engine_dead"), std::string::npos);
  EXPECT_EQ(paths().back(), "d2 Release");
  EXPECT_FALSE(suspects_.empty());
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(in_flight(i), 0U);
}

TEST_F(ProgramFlowTest, ACauseIsPassedOnToTheProgram) {
  ask(kStream);
  wants(v1::ENGINE_VERB_PREP_RECV, "d2", "a");
  answer_tokens(0, 100);
  call(1).fail(400, "no_kv_capacity", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  EXPECT_EQ(replied().error(), "no_kv_capacity");
  EXPECT_FALSE(is_down("d2"));
  wants(v1::ENGINE_VERB_PREP_RECV, "d2", "b");
  call(2).fail(500, "words of its own", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  EXPECT_EQ(replied(1).error(), "unavailable");
}

TEST_F(ProgramFlowTest, AnEngineHasSoLongForACall) {
  ask(kStream);
  wants(v1::ENGINE_VERB_LOOKUP, "d1");
  pass(milliseconds(10'100));
  EXPECT_TRUE(call(0).cancelled);
  EXPECT_EQ(replied().error(), "deadline");
}

TEST_F(ProgramFlowTest, AProgramHasEnginesDoWhatItMayAndNothingElse) {
  program_.uses = {"prep_recv", "remote_send"};
  serve();
  ask(kStream);
  wants(v1::ENGINE_VERB_LOOKUP, "d1");
  wants(v1::ENGINE_VERB_UNSPECIFIED, "d1");
  wants(v1::ENGINE_VERB_PREP_RECV, "r99", "a");
  wants(v1::ENGINE_VERB_PREP_RECV, "d1", "");
  wants(v1::ENGINE_VERB_REMOTE_SEND, "d1", "a");
  ASSERT_EQ(replies(), 5U);
  EXPECT_EQ(upstream_.calls.size(), 0U);
  const Paths errors = {"not_in_uses", "not_in_uses", "bad_request", "bad_request", "no_lease"};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(replied(i).error(), errors[static_cast<size_t>(i)]) << i;
}

TEST_F(ProgramFlowTest, ANameIsOfOneLeaseWhileThatIsOnItsWay) {
  ask(kStream);
  wants(v1::ENGINE_VERB_PREP_RECV, "d2", "a");
  wants(v1::ENGINE_VERB_PREP_RECV, "d1", "a");
  wants(v1::ENGINE_VERB_MIGRATE, "p1", "a", 64, "d1");
  EXPECT_EQ(replied(0).error(), "bad_request");
  EXPECT_EQ(replied(1).error(), "bad_request");
  answer_tokens(0, 100);
  EXPECT_EQ(paths(), (Paths{"d2 Tokenize", "d2 PrepRecv"}));
}

TEST_F(ProgramFlowTest, WhatIsReleasedBeforeItIsThereIsReleasedAgain) {
  ask(kStream);
  wants(v1::ENGINE_VERB_PREP_RECV, "d2", "a");
  answer_tokens(0, 100);
  wants(v1::ENGINE_VERB_RELEASE, "d2", "a");
  answer(2, v1::ReleaseReply());
  program().decide(asked().ask_id(), "");
  EXPECT_TRUE(call(1).cancelled);
  EXPECT_EQ(paths()[3], "d2 Release");
}

TEST_F(ProgramFlowTest, ALegHasAPlaceAtItsEngineWhileItRuns) {
  limits_.max_ongoing = 1;
  serve();
  ask(kStream);
  const size_t own = in_flight(1) == 1 ? 1 : 2;
  const std::string other = own == 1 ? "d2" : "d1";
  wants(v1::ENGINE_VERB_PREP_RECV, other, "a");
  EXPECT_EQ(in_flight(3 - own), 1U);
  wants(v1::ENGINE_VERB_PREP_RECV, other, "b");
  EXPECT_EQ(replied().error(), "no_place");
  answer_tokens(0, 100);
  answer_prepared(1, 0, 96);
  EXPECT_EQ(in_flight(3 - own), 0U);
}

TEST_F(ProgramFlowTest, OnlyAProgramThatMaySeesTokens) {
  for (const bool sees : {false, true}) {
    program_.sees_tokens = sees;
    serve();
    FakeReply reply;
    const size_t calls = upstream_.calls.size();
    const size_t known = streams_.empty() ? 0 : replies();
    ask_as(reply, kStream);
    v1::EngineCall wanted;
    wanted.set_ask_id(program().told.asks().rbegin()->ask_id());
    wanted.set_verb(v1::ENGINE_VERB_TOKENIZE);
    wanted.set_replica_id("d1");
    program().call(wanted);
    answer_tokens(calls, 3);
    const auto& told = replied(static_cast<int>(known));
    EXPECT_EQ(told.length(), 3U);
    EXPECT_EQ(told.block_hashes(0), 77U);
    EXPECT_EQ(told.token_ids_size(), sees ? 3 : 0);
    EXPECT_EQ(told.body(), sees ? kStream : "");
    reply.leave();
    loop_.poll();
  }
}

TEST_F(ProgramFlowTest, AContextIsMovedByThreeCallsAndTheRestOfTheProgramGoesOn) {
  ask(kStream);
  wants(v1::ENGINE_VERB_MIGRATE, "p1", "", 64, "d1");
  answer_tokens(0, 100);
  answer_prepared(1, 16, 64);
  const auto send = sent<v1::RemoteSendRequest>(call(2));
  EXPECT_EQ(send.begin(), 16U);
  EXPECT_EQ(send.end(), 64U);
  answer_sent(2, 48);
  v1::CommitReply committed;
  committed.set_cached_len(64);
  answer(3, committed);
  EXPECT_EQ(paths(), (Paths{"p1 Tokenize", "d1 PrepRecv", "p1 RemoteSend", "d1 Commit"}));
  EXPECT_EQ(replied().moved_tokens(), 48U);
  EXPECT_EQ(replied().matched_len(), 64U);
  program().decide(asked().ask_id(), "d1");
  EXPECT_EQ(upstream_.calls.back()->request.kv().moved_tokens(), 48U);
}

TEST_F(ProgramFlowTest, AContextThatIsThereIsNotSentAgain) {
  ask(kStream);
  wants(v1::ENGINE_VERB_MIGRATE, "p1", "", 64, "d1");
  answer_tokens(0, 100);
  answer_prepared(1, 64, 64);
  EXPECT_EQ(paths().back(), "d1 Commit");
}

TEST_F(ProgramFlowTest, WhatAnEngineAnswersIsReadWithCare) {
  ask(kStream);
  wants(v1::ENGINE_VERB_LOOKUP, "d1");
  call(0).content_type = "application/protobuf";
  call(0).chunk("\xff\xff\xff");
  call(0).finish();
  EXPECT_EQ(replied().error(), "unavailable");
  wants(v1::ENGINE_VERB_LOOKUP, "d1");
  answer_tokens(1, 100);
  v1::LookupReply found;
  found.set_matched_len(64);
  answer(2, found);
  EXPECT_EQ(replied(1).matched_len(), 64U);
}

}  // namespace
}  // namespace penstock::proxy
