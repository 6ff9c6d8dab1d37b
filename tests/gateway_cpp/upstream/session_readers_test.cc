// Who reads the chunks of a session's calls, and when they are sent.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>

#include "session_fixture.h"

namespace penstock::upstream {
namespace {

using SessionReadersTest = ReplicaSessionTest;

// Passes on what a batch takes, as streams do, and notes what is sent when.
class Along final : public ChunkReader, public runtime::SendBatch::Sender {
 public:
  Along(runtime::SendBatch& sends, std::string& sent) : sends_(sends), sent_(sent) {}
  bool read(Call& call, const ChunkView& chunk) noexcept override {
    if (!sends_.keep_more(*this, chunk.body)) return false;
    call.wrote(chunk.body.size());
    return true;
  }
  void send_kept(std::string_view bytes) override {
    sent_.append(bytes).append("|");
    if (when_sent) std::exchange(when_sent, nullptr)();
  }
  std::function<void()> when_sent;

 private:
  runtime::SendBatch& sends_;
  std::string& sent_;
};

TEST_F(SessionReadersTest, ReadersGetTheChunksOfAReadAndAreSentThemTogetherWhenAllOfItIsRead) {
  RawPeer peer(loop_.io());
  auto session = session_to(peer.address());
  const auto first = session->open(request("a"), news_);
  const auto second = session->open(request("b"), more_news_);
  ASSERT_TRUE(talk_until(peer, [&] { return !peer.http2.body.empty(); }));
  std::string sent;
  Along one(sends_, sent);
  Along two(sends_, sent);
  const Call::Reading reading_one(*first, one);
  const Call::Reading reading_two(*second, two);
  one.when_sent = [&] { EXPECT_TRUE(two.has_kept()) << "all of the read has been looked at"; };
  peer.say(peer.http2.answer(chunk_of(*first, "a1") + chunk_of(*first, "a2") +
                             chunk_of(*second, "b1") + chunk_of(*first, "a3")));
  ASSERT_TRUE(talk_until(peer, [&] { return sent.size() >= 10; }));
  EXPECT_EQ(sent, "a1a2a3|b1|");
  EXPECT_FALSE(first->has_bytes());
  EXPECT_FALSE(second->has_bytes());
  peer.say(peer.http2.answer(chunk_of(*first, "a4")));
  ASSERT_TRUE(talk_until(peer, [&] { return sent.size() >= 13; }));
  EXPECT_EQ(sent, "a1a2a3|b1|a4|");
}

TEST_F(SessionReadersTest, ACallMayGoWhileWhatWasReadForItIsSent) {
  RawPeer peer(loop_.io());
  auto session = session_to(peer.address());
  auto first = session->open(request("a"), news_);
  const auto second = session->open(request("b"), more_news_);
  ASSERT_TRUE(talk_until(peer, [&] { return !peer.http2.body.empty(); }));
  std::string sent;
  Along one(sends_, sent);
  Along two(sends_, sent);
  std::optional<Call::Reading> reading(std::in_place, *first, one);
  const Call::Reading reading_two(*second, two);
  // As where a client turns out to have gone when it is written to, with more for it read already.
  one.when_sent = [&] {
    reading.reset();
    first.reset();
    session.reset();
  };
  peer.say(
      peer.http2.answer(chunk_of(*first, "a1") + chunk_of(*second, "b1") + chunk_of(*first, "a2")));
  ASSERT_TRUE(talk_until(peer, [&] { return sent.size() >= 8; }));
  EXPECT_EQ(sent, "a1a2|b1|");
  EXPECT_EQ(first, nullptr);
  peer.say(peer.http2.answer(chunk_of(*second, "b2")));
  ASSERT_TRUE(talk_until(peer, [&] { return sent.size() >= 11; }));
  EXPECT_EQ(sent, "a1a2|b1|b2|");
}

TEST_F(SessionReadersTest, WhatNoReaderTakesIsKeptAndItsOwnerToldOnceARead) {
  RawPeer peer(loop_.io());
  auto session = session_to(peer.address());
  const auto call = session->open(request("a"), news_);
  ASSERT_TRUE(talk_until(peer, [&] { return !peer.http2.body.empty(); }));
  struct Never final : ChunkReader {
    bool read(Call& /*call*/, const ChunkView& chunk) noexcept override {
      offered += chunk.body;
      return false;
    }
    std::string offered;
  } never;
  const Call::Reading reading(*call, never);
  peer.say(peer.http2.answer(chunk_of(*call, "a1") + chunk_of(*call, "a2")));
  ASSERT_TRUE(talk_until(peer, [&] { return call->has_bytes(); }));
  EXPECT_EQ(never.offered, "a1") << "what follows waits behind it";
  EXPECT_EQ(text_of(*call), "a1a2");
}

}  // namespace
}  // namespace penstock::upstream
