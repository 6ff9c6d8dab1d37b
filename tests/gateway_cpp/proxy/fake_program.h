// A router program without a process: the test says what it says.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "control_plane/program_directory.h"
#include "upstream/program_stream.h"

namespace penstock::proxy {

class FakeProgram final : public upstream::ProgramStream {
 public:
  explicit FakeProgram(upstream::ProgramStream::Owner& owner) : owner_(&owner) {}

  v1::GatewayFrame& outgoing() override { return told; }
  bool closed_to_asks() const override { return is_closed; }
  void close() override { owner_ = nullptr; }

  // ---- what the program does

  // False: the gateway takes it for nonsense.
  bool say(const v1::ProgramFrame& frame) {
    const bool good = owner_ != nullptr && owner_->on_frame(frame);
    if (good) owner_->on_turn();
    return good;
  }
  bool decide(uint64_t ask_id, const std::string& replica, const std::string& seq_id = "",
              uint32_t begin = 0) {
    v1::ProgramFrame frame;
    v1::RouteDecision& decision = *frame.add_decisions();
    decision.set_ask_id(ask_id);
    decision.set_replica_id(replica);
    decision.set_seq_id(seq_id);
    decision.set_begin(begin);
    return say(frame);
  }
  bool fail(uint64_t ask_id, const std::string& error) {
    v1::ProgramFrame frame;
    frame.add_decisions()->set_ask_id(ask_id);
    frame.mutable_decisions(0)->set_error(error);
    frame.mutable_decisions(0)->set_detail("line 3: " + error);
    return say(frame);
  }
  bool call(const v1::EngineCall& call) {
    v1::ProgramFrame frame;
    *frame.add_calls() = call;
    return say(frame);
  }
  void die() {
    is_closed = true;
    if (owner_ != nullptr) owner_->on_end("it was killed");
  }

  v1::GatewayFrame told;  // all that it was told so far
  bool is_closed = false;

 private:
  upstream::ProgramStream::Owner* owner_;  // null: the gateway has let go
};

}  // namespace penstock::proxy
