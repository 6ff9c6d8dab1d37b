// A session between an event loop and a fake or raw replica, with what its tests say to it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "event_loop.h"
#include "fake_replica.h"
#include "log_capture.h"
#include "raw_peer.h"
#include "runtime/signal.h"
#include "upstream/replica_session.h"

namespace penstock::upstream {

class ReplicaSessionTest : public testing::Test {
 protected:
  static constexpr uint64_t kCredit = 1000;

  std::shared_ptr<ReplicaSession> session_to(const std::string& address) {
    return ReplicaSession::start(loop_.io(), sends_, address, "r1",
                                 {.credit_bytes = kCredit, .token = "", .gateway_id = "gw-1"},
                                 log_.log());
  }

  static CallRequest request(std::string_view id) {
    return {.request_id = id, .body = "{\"model\":\"mini\"}"};
  }

  std::string text_of(Call& call) {
    runtime::Payload payload;
    call.take(payload);
    return std::string(payload.bytes());
  }

  template <class Done>
  bool talk_until(RawPeer& peer, const Done& done) {
    return loop_.run_until([&] {
      peer.talk();
      return done();
    });
  }

  static std::string message_of(const v1::ServerFrame& frame) {
    std::string message;
    append_message_prefix(message, static_cast<uint32_t>(frame.ByteSizeLong()));
    frame.AppendToString(&message);
    return message;
  }
  static std::string chunk_of(const Call& call, const std::string& body) {
    v1::ServerFrame frame;
    add_chunk(frame, call.id(), body);
    return message_of(frame);
  }

  FakeReplica replica_;
  test::LogCapture log_;
  test::EventLoop loop_;
  runtime::SendBatch sends_;
  runtime::Signal news_;
  runtime::Signal more_news_;
};

}  // namespace penstock::upstream
