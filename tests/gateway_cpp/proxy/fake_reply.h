// A client without a socket: keeps what it is told, is slow or leaves when the test says so.
#pragma once

#include <string>
#include <string_view>

#include "proxy/reply.h"

namespace penstock::proxy {

class FakeReply final : public Reply {
 public:
  runtime::Signal& signal() override { return signal_; }
  bool client_gone() const override { return gone_; }
  bool client_slow() const override { return too_slow_; }
  bool cut_short() const override { return cut_short_; }

  Sent answer_short(const AnswerHead& head, std::string_view body) override {
    note(head);
    if (gone_) return Sent::kGone;
    text += body;
    ended = true;
    behind_ = slow_;
    return slow_ ? Sent::kBlocked : Sent::kAll;
  }
  Awaitable<Sent> answer(const AnswerHead& head, std::string_view body) override {
    note(head);
    text += body;
    ended = true;
    co_return gone_ ? Sent::kGone : Sent::kAll;
  }
  Awaitable<Sent> answer(const AnswerHead& head, HeldAnswer& body) override {
    note(head);
    while (!body.front().empty()) {
      while (slow_ && !gone_) co_await signal_.wait();
      if (gone_) co_return Sent::kGone;
      text += body.front();
      body.drop_front();
    }
    ended = true;
    co_return gone_ ? Sent::kGone : Sent::kAll;
  }
  void begin_stream(const AnswerHead& head) override {
    note(head);
    streamed = true;
  }
  Sent write(runtime::Payload& payload, Piece piece) override {
    gone_ = gone_ || gone_at_write_;
    if (gone_) return Sent::kGone;
    text += payload.bytes();
    payload.clear();
    ++writes;
    ended = piece != Piece::kMore;
    cut_off = piece == Piece::kCutOff;
    behind_ = slow_;
    return slow_ && !puts_off_ ? Sent::kBlocked : Sent::kAll;
  }
  bool write_along(std::string_view bytes) override {
    if (gone_ || gone_at_write_ || slow_ || writes == 0) return false;
    text += bytes;
    ++writes_along;
    return true;
  }
  bool behind() const override { return behind_; }
  Awaitable<Sent> flush() override {
    while (slow_ && !gone_) co_await signal_.wait();
    behind_ = false;
    co_return gone_ ? Sent::kGone : Sent::kAll;
  }

  // ---- what a client does

  void leave() {
    gone_ = true;
    signal_.raise();
  }
  // Nobody hears of it before something is written.
  void leave_unheard() { gone_at_write_ = true; }
  void be_too_slow() {
    too_slow_ = true;
    leave();
  }
  void end_gateway() {
    cut_short_ = true;
    signal_.raise();
  }
  void stop_reading() { slow_ = true; }
  // From now on it shows only after a write that it is not taken.
  void put_off() { puts_off_ = true; }
  void read_on() {
    slow_ = false;
    signal_.raise();
  }

  std::string header(std::string_view name) const {
    for (const auto& header : headers) {
      if (header.name == name) return header.value;
    }
    return {};
  }

  unsigned status = 0;  // 0: none yet
  std::string content_type;
  std::vector<openai::Header> headers;
  std::string text;  // all of the body
  int writes = 0;
  int writes_along = 0;
  bool streamed = false;
  bool ended = false;
  bool cut_off = false;

 private:
  void note(const AnswerHead& head) {
    status = head.status;
    content_type = head.content_type;
    headers = head.headers;
  }

  runtime::Signal signal_;
  bool gone_ = false;
  bool gone_at_write_ = false;
  bool slow_ = false;
  bool puts_off_ = false;
  bool behind_ = false;
  bool too_slow_ = false;
  bool cut_short_ = false;
};

}  // namespace penstock::proxy
