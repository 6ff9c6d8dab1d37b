// A request flow whose deployment has a router program, and engines that move KV; the test plays
// both.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "control_plane/temporary_directory.h"
#include "fake_program.h"
#include "flow_fixture.h"
#include "penstock/v1/microserving.pb.h"

namespace penstock::proxy {

// Before the flow that looks into it.
struct ProgramsDirectory {
  test::TemporaryDirectory programs;
};

class ProgramFlowTest : private ProgramsDirectory, public RequestFlowTest {
 protected:
  ProgramFlowTest() : RequestFlowTest(programs.path()) {
    std::ofstream(programs.path() / "mini.json")
        << R"({"address":"127.0.0.1:7","token":"t","digests":["d1"]})";
    connect_ = [this](const auto& /*seat*/, auto& owner) {
      return streams_.emplace_back(std::make_shared<FakeProgram>(owner));
    };
    serve();
  }

  // p1 prefills, d1 and d2 decode; d2 is a candidate revision's, where one is judged.
  void serve() {
    auto deployment = routing::deployment("mini", {}, limits_);
    deployment.selection_policy = "program";
    deployment.program = program_;
    if (is_judged_) {
      deployment.canary = {{"mini", 1000, "digest-2"}};
      deployment.canary_rules = {{.uid = "c1", .step = 1, .candidate_digest = "digest-2"}};
    }
    routing::RouteSnapshot snapshot{.version = 1, .deployments = {deployment}, .replicas = {}};
    for (const auto& id : {"p1", "d1", "d2"}) {
      auto replica = routing::replica(id, "mini");
      replica.role = id[0] == 'p' ? routing::Role::kPrefill : routing::Role::kDecode;
      replica.microserving = true;
      replica.template_digest = is_judged_ && id[1] == '2' ? "digest-2" : "digest-1";
      snapshot.replicas.push_back(std::move(replica));
    }
    routes_.replace(snapshot);
    program_directory_.look(*routes_.table().current());
  }

  FakeProgram& program(size_t i = 0) { return *streams_.at(i); }
  const v1::RouteAsk& asked(int i = 0) { return program().told.asks(i); }
  const v1::EngineReply& replied(int i = 0) { return program().told.replies(i); }
  size_t replies() { return static_cast<size_t>(program().told.replies_size()); }

  // The program wants an engine to do something.
  bool wants(v1::EngineVerb verb, const std::string& replica, const std::string& seq_id = "",
             uint32_t end = 0, const std::string& to = "") {
    v1::EngineCall call;
    call.set_ask_id(asked().ask_id());
    call.set_call_id(++wanted_);
    call.set_verb(verb);
    call.set_replica_id(replica);
    call.set_to_replica_id(to);
    call.set_seq_id(seq_id);
    call.set_end(end);
    return program().call(call);
  }
  // An engine has done it.
  void answer(size_t i, const google::protobuf::Message& message) {
    call(i).content_type = "application/protobuf";
    call(i).chunk(message.SerializeAsString());
    call(i).finish();
  }
  void answer_tokens(size_t i, uint32_t length) {
    v1::TokenizeReply reply;
    for (uint32_t token = 0; token < length; ++token) reply.mutable_prompt()->add_token_ids(token);
    reply.set_length(length);
    reply.set_block_size(16);
    reply.add_block_hashes(77);
    answer(i, reply);
  }
  void answer_prepared(size_t i, uint32_t matched, uint32_t end) {
    v1::PrepRecvReply reply;
    reply.mutable_kv_addr()->set_nonce("n");
    reply.set_matched_len(matched);
    reply.set_end(end);
    answer(i, reply);
  }
  void answer_sent(size_t i, uint32_t moved) {
    v1::RemoteSendReply reply;
    reply.set_moved_tokens(moved);
    reply.set_moved_bytes(uint64_t{moved} * 1'000);
    answer(i, reply);
  }
  // The usual: the prompt's KV is on its way from p1 to d2, whose lease is "a".
  void prepare_and_send() {
    ask(kStream);
    wants(v1::ENGINE_VERB_PREP_RECV, "d2", "a");
    answer_tokens(0, 100);
    answer_prepared(1, 16, 96);
    wants(v1::ENGINE_VERB_REMOTE_SEND, "p1", "a", 96);
  }
  // Calls of that method, in their order.
  std::vector<std::string> paths() {
    std::vector<std::string> found;
    for (const auto& one : upstream_.calls) {
      const std::string& path = one->request.path();
      found.push_back(one->replica + " " + path.substr(path.rfind('/') + 1));
    }
    return found;
  }
  uint64_t count(admission::ProgramOutcome outcome) {
    return program_book_.row("mini", clock_.steady_now()).counts[static_cast<size_t>(outcome)];
  }

  bool is_judged_ = false;
  routing::Program program_{
      .digest = "d1",
      .name = "prefill_decode",
      .args = R"({"a":1})",
      .uses = {"commit", "lookup", "migrate", "prep_recv", "release", "remote_send", "tokenize"}};
  std::vector<std::shared_ptr<FakeProgram>> streams_;
  uint64_t wanted_ = 0;
};

}  // namespace penstock::proxy
