// A flow whose answers may go on at other replicas; the test plays these.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "flow_fixture.h"
#include "verdicts_fixture.h"

namespace penstock::proxy {

class ResumeTest : public VerdictsTest {
 protected:
  ResumeTest() {
    limits_.resume = true;
    limits_.resume_wait = seconds(10);
    serve({"r1", "r2", "r3"});
  }

  void serve(const std::vector<std::string>& replicas) {
    serve_from(replicas);
    for (size_t i = 0; i < replicas.size(); ++i) report(i);
  }
  void report(size_t i, const std::string& config_hash = "c1", bool resumes = true) {
    routes_.of("mini").report(routes_.replica("mini", i),
                              {.config_hash = config_hash, .resumes = resumes});
  }

  static std::string event(const std::string& text) { return "data: " + text + "\n\n"; }

  // Something of an answer, made of so many tokens. Its first call brings the head.
  void say(size_t i, const std::string& text, uint32_t tokens = 1, uint32_t events = 1) {
    v1::CallEvent said;
    if (!call(i).call->has_head()) *said.mutable_head() = head_;
    v1::Chunk& chunk = *said.mutable_chunk();
    chunk.set_body(text);
    chunk.set_events(events);
    chunk.set_tokens(tokens);
    auto& group = *chunk.add_groups();
    for (uint32_t token = 0; token < tokens; ++token) group.add_token_ids(151'000 + token);
    deliver(i, said);
  }
  // The rest of one whose tokens are so many in all.
  void end(size_t i, uint32_t completion_tokens) {
    say(i, kEnd, 0);
    v1::CallEvent said;
    said.mutable_finished()->add_finish_reasons("stop");
    auto& usage = *said.mutable_finished()->mutable_usage();
    usage.set_prompt_tokens(head_.prompt_tokens());
    usage.set_completion_tokens(completion_tokens);
    usage.set_cached_tokens(head_.cached_tokens());
    deliver(i, said);
  }
  void deliver(size_t i, v1::CallEvent& said) {
    if (call(i).put(said)) call(i).call->news().raise();
    loop_.poll();
  }
  void lose(size_t i, Source source = Source::kLost) {
    call(i).lose(source);
    loop_.poll();
  }
  void refuse(size_t i, const std::string& code, uint32_t status = 503,
              v1::Fault fault = v1::FAULT_UPSTREAM,
              v1::Retry retry = v1::RETRY_BEFORE_FIRST_TOKEN) {
    call(i).fail(status, code, fault, retry);
    loop_.poll();
  }
  void die(size_t i, const std::string& code = "engine_dead") {
    engine_dies(i, code);
    loop_.poll();
  }
  // Its client has so many tokens of an answer of r1.
  void ask_and_hear(uint32_t tokens = 40) {
    ask(kStream);
    say(0, event("a"), tokens);
  }
  uint64_t resumes(base::ResumeReason reason, base::ResumeOutcome outcome) {
    return shard_.deployment("mini")->resumes(reason, outcome);
  }
  bool is_logged(const std::string& text) {
    log_text_ += log_.text();
    return log_text_.find(text) != std::string::npos;
  }
  admission::UsageCounts used() {
    const auto totals = usage_.totals();
    return totals.empty() ? admission::UsageCounts{} : totals.at(0).counts;
  }

  v1::Head head_ = [] {
    v1::Head head;
    head.set_status(200);
    head.set_content_type("text/event-stream");
    head.set_prompt_tokens(7);
    head.set_cached_tokens(4);
    head.set_created(1'700'000'123);
    head.set_resumable(true);
    return head;
  }();
};

}  // namespace penstock::proxy
