#include "upstream/grpc_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "framed.h"
#include "http2_peer.h"

namespace penstock::upstream {
namespace {

class GrpcCodecTest : public testing::Test {
 protected:
  std::string produced() {
    std::string out;
    codec_.produce(out, 64UL * 1024 * 1024);
    return out;
  }
  // Lets both sides say what they have, until neither has more.
  void exchange() {
    for (;;) {
      const std::string ours = produced();
      peer_.feed(ours);
      const std::string theirs = peer_.take();
      if (ours.empty() && theirs.empty()) return;
      codec_.feed(theirs);
    }
  }
  void send(std::string_view message) {
    std::memcpy(codec_.add_message(static_cast<uint32_t>(message.size())), message.data(),
                message.size());
  }

  std::vector<std::string> got_;
  bool sensible_ = true;
  Http2Peer peer_{1'000};
  GrpcCodec codec_{{"10.0.0.1:9000", "/penstock.v1.Inference/Session", "secret"},
                   [this](std::string_view message) {
                     got_.emplace_back(message);
                     return sensible_;
                   }};
};

TEST_F(GrpcCodecTest, OpensTheCallAsGrpcWantsIt) {
  exchange();
  EXPECT_EQ(peer_.headers[":method"], "POST");
  EXPECT_EQ(peer_.headers[":scheme"], "http");
  EXPECT_EQ(peer_.headers[":authority"], "10.0.0.1:9000");
  EXPECT_EQ(peer_.headers[":path"], "/penstock.v1.Inference/Session");
  EXPECT_EQ(peer_.headers["content-type"], "application/grpc");
  EXPECT_EQ(peer_.headers["te"], "trailers");
  EXPECT_EQ(peer_.headers["authorization"], "Bearer secret");
  EXPECT_FALSE(codec_.over());
}

TEST_F(GrpcCodecTest, SendsMessagesInTheirOrder) {
  send("one");
  exchange();
  send("two");
  send("");
  exchange();
  EXPECT_EQ(peer_.body, framed("one") + framed("two") + framed(""));
}

TEST_F(GrpcCodecTest, SendsTheEndOfAMessageFromWhereItLiesAndLetsGoOfIt) {
  const auto body = std::make_shared<const std::string>(5'000, 'b');
  exchange();
  send("one");
  std::memcpy(codec_.add_message(4, body), "head", 4);
  std::memcpy(codec_.add_message(5, body), "other", 5);
  send("two");
  EXPECT_EQ(codec_.backlog(), 8 + 9 + 10 + 8 + 2 * body->size());
  EXPECT_EQ(body.use_count(), 3);
  std::string expected;
  for (const std::string& message :
       {std::string("one"), "head" + *body, "other" + *body, std::string("two")}) {
    expected += framed(message);
  }
  while (peer_.body.size() < expected.size()) {
    const size_t before = peer_.body.size();
    exchange();
    EXPECT_EQ(codec_.added(), expected.size());
    peer_.consume();
    ASSERT_GT(peer_.body.size(), before);
  }
  EXPECT_EQ(peer_.body, expected);
  EXPECT_EQ(body.use_count(), 1);
  EXPECT_EQ(codec_.given(), expected.size());
}

TEST_F(GrpcCodecTest, SendsZerosForTheEndOfAMessageThatNobodyWantsAnyMore) {
  const auto body = std::make_shared<const std::string>(5'000, 'b');
  exchange();
  send("one");
  std::memcpy(codec_.add_message(4, body), "head", 4);
  const uint64_t end = codec_.added();
  std::memcpy(codec_.add_message(5, body), "other", 5);
  send("two");
  exchange();
  const size_t sent = peer_.body.size();  // some of the first body, as much as there was room for
  const size_t backlog = codec_.backlog();
  codec_.blank_tail(end - 1);
  EXPECT_EQ(body.use_count(), 3) << "no message ends there";
  codec_.blank_tail(end);
  EXPECT_EQ(body.use_count(), 2);
  EXPECT_EQ(codec_.backlog(), backlog);
  std::string expected = framed("one") + framed("head" + *body);
  ASSERT_LT(sent, expected.size());
  std::fill(expected.begin() + static_cast<ptrdiff_t>(sent), expected.end(), '\0');
  expected += framed("other" + *body) + framed("two");
  while (peer_.body.size() < expected.size()) {
    const size_t before = peer_.body.size();
    peer_.consume();
    exchange();
    ASSERT_GT(peer_.body.size(), before);
  }
  EXPECT_EQ(peer_.body, expected);
}

TEST_F(GrpcCodecTest, LetsGoOfWhatItHoldsAndSaysNothingOfItAnyMore) {
  const auto body = std::make_shared<const std::string>(5'000, 'b');
  exchange();
  std::memcpy(codec_.add_message(4, body), "head", 4);
  send("more");
  exchange();
  codec_.drop();
  EXPECT_EQ(body.use_count(), 1);
  EXPECT_EQ(codec_.backlog(), 0U);
  const size_t before = peer_.body.size();
  peer_.consume();
  exchange();
  EXPECT_EQ(peer_.body.size(), before);
}

TEST_F(GrpcCodecTest, HoldsBackWhatThePeerHasNoRoomFor) {
  exchange();
  std::string expected;
  for (char letter = 'a'; letter < 'k'; ++letter) {
    const std::string message(700, letter);
    expected += framed(message);
    send(message);
  }
  exchange();
  EXPECT_EQ(peer_.body.size(), 1'000U);
  while (peer_.body.size() < expected.size()) {
    const size_t before = peer_.body.size();
    peer_.consume();
    exchange();
    ASSERT_GT(peer_.body.size(), before);
  }
  EXPECT_EQ(peer_.body, expected);
}

TEST_F(GrpcCodecTest, ProducesNoMoreThanItIsAskedForAndGoesOnLater) {
  exchange();
  send(std::string(300'000, 'x'));
  size_t most = 0;
  while (peer_.body.size() < 300'000 + kMessagePrefixBytes) {
    const size_t before = peer_.body.size();
    std::string piece;
    codec_.produce(piece, 100);
    most = std::max(most, piece.size());
    peer_.feed(piece);
    peer_.consume();
    codec_.feed(peer_.take());
    ASSERT_GT(peer_.body.size(), before);
  }
  EXPECT_LE(most, 100U + 1'000U + 9U) << "one frame over what was asked for";
}

TEST_F(GrpcCodecTest, ReadsMessagesHoweverTheConnectionCutsThem) {
  exchange();
  std::string bytes = peer_.answer(framed("one") + framed(std::string(50'000, 'x')));
  bytes += peer_.answer(framed("three"));
  std::mt19937 random(3);
  for (size_t at = 0; at < bytes.size();) {
    const size_t piece = 1 + random() % 900;
    codec_.feed(std::string_view(bytes).substr(at, piece));
    at += piece;
  }
  ASSERT_EQ(got_.size(), 3U);
  EXPECT_EQ(got_[0], "one");
  EXPECT_EQ(got_[1], std::string(50'000, 'x'));
  EXPECT_EQ(got_[2], "three");
  EXPECT_FALSE(codec_.over());
}

TEST_F(GrpcCodecTest, GivesLeaveForMoreAsItReads) {
  exchange();
  constexpr size_t kTotal = 40UL * 1024 * 1024;  // more than any window
  const std::string message(1024 * 1024, 'x');
  for (size_t sent = 0; sent < kTotal; sent += message.size()) {
    codec_.feed(peer_.answer(framed(message)));
    exchange();
  }
  EXPECT_EQ(got_.size(), kTotal / message.size());
}

TEST_F(GrpcCodecTest, AsksForASignOfLifeAndGetsOne) {
  exchange();
  codec_.ping();
  peer_.feed(produced());
  EXPECT_EQ(peer_.pings, 1);
  EXPECT_FALSE(peer_.take().empty());
}

TEST_F(GrpcCodecTest, IsOverWhenThePeerEndsTheCall) {
  exchange();
  codec_.feed(peer_.answer(framed("last")));
  codec_.feed(peer_.finish("14"));
  EXPECT_EQ(got_, std::vector<std::string>{"last"});
  EXPECT_TRUE(codec_.over());
  EXPECT_EQ(codec_.why_over(), "the replica ended it: gRPC status 14 (not%20now)");
  EXPECT_EQ(codec_.peer_word(), PeerWord::kEnded);
}

TEST_F(GrpcCodecTest, SendsNoTokenWhereThereIsNone) {
  Http2Peer peer;
  GrpcCodec codec({"a:1", "/s/m", ""}, [](std::string_view) { return true; });
  std::string ours;
  codec.produce(ours, 1'000'000);
  peer.feed(ours);
  EXPECT_EQ(peer.headers[":path"], "/s/m");
  EXPECT_FALSE(peer.headers.contains("authorization"));
}

TEST_F(GrpcCodecTest, IsOverWhenThePeerDoesNotTakeTheCall) {
  exchange();
  codec_.feed(peer_.refuse("503"));
  EXPECT_TRUE(codec_.over());
  EXPECT_EQ(codec_.why_over(), "the replica ended it: HTTP status 503 and no gRPC status");
}

TEST_F(GrpcCodecTest, IsOverWhenThePeerResetsTheCall) {
  exchange();
  codec_.feed(peer_.reset(NGHTTP2_CANCEL));
  EXPECT_TRUE(codec_.over());
  EXPECT_EQ(codec_.why_over(), "the replica reset it: HTTP/2 error CANCEL");
  EXPECT_EQ(codec_.peer_word(), PeerWord::kEnded);
}

TEST_F(GrpcCodecTest, GoesOnWhenAPeerThatLeavesStillTakesTheCall) {
  exchange();
  EXPECT_FALSE(codec_.going_away());
  codec_.feed(peer_.go_away(1));
  EXPECT_FALSE(codec_.over());
  EXPECT_TRUE(codec_.going_away());
  codec_.feed(peer_.answer(framed("still here")));
  EXPECT_EQ(got_, std::vector<std::string>{"still here"});
}

TEST_F(GrpcCodecTest, IsOverWhenAPeerThatLeavesHasNotTakenTheCall) {
  exchange();
  codec_.feed(peer_.go_away(0));
  EXPECT_TRUE(codec_.over());
  EXPECT_EQ(codec_.why_over(), "the replica goes away and did not take it: HTTP/2 error NO_ERROR");
  EXPECT_EQ(codec_.peer_word(), PeerWord::kNotSeen);
}

TEST_F(GrpcCodecTest, IsOverAfterAMessageThatMakesNoSense) {
  exchange();
  sensible_ = false;
  codec_.feed(peer_.answer(framed("nonsense") + framed("more")));
  EXPECT_EQ(got_.size(), 1U);
  EXPECT_TRUE(codec_.over());
  EXPECT_EQ(codec_.why_over(), "a message came that makes no sense");
  EXPECT_EQ(codec_.peer_word(), PeerWord::kNone);
}

TEST_F(GrpcCodecTest, IsOverWhenThePeerSpeaksSomethingElse) {
  exchange();
  codec_.feed("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  produced();  // what HTTP/2 has to say to that
  EXPECT_TRUE(codec_.over());
}

TEST_F(GrpcCodecTest, SurvivesBytesThatMakeNoSense) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Http2Peer peer;
    GrpcCodec codec({"a:1", "/s/m", ""}, [](std::string_view) { return true; });
    std::string ours;
    codec.produce(ours, 1'000'000);
    peer.feed(ours);
    std::string bytes = peer.take() + peer.answer(framed("fine"));
    for (size_t i = random() % 8; i > 0; --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    codec.feed(bytes);
    codec.feed(bytes);
    codec.produce(ours, 1'000'000);
  }
}

TEST_F(GrpcCodecTest, TellsThePeerThatTheCallIsNotWantedAnyMore) {
  send("work");
  exchange();
  codec_.cancel();
  peer_.feed(produced());
  EXPECT_TRUE(peer_.closed);
  EXPECT_EQ(peer_.closed_with, static_cast<uint32_t>(NGHTTP2_CANCEL));
}

}  // namespace
}  // namespace penstock::upstream
