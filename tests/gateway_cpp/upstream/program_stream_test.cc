// The stream to a router program's process, whose socket the test plays: it is not trusted.
#include "upstream/program_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "event_loop.h"
#include "raw_peer.h"
#include "upstream/grpc_messages.h"

namespace penstock::upstream {
namespace {

class Listening final : public ProgramStream::Owner {
 public:
  bool on_frame(const v1::ProgramFrame& frame) override {
    frames.push_back(frame);
    return believes;
  }
  void on_turn() override {}
  void on_end(std::string_view why) override { reason = why; }

  bool believes = true;
  std::vector<v1::ProgramFrame> frames;
  std::string reason;  // empty: it stands
};

class ProgramStreamTest : public testing::Test {
 protected:
  ~ProgramStreamTest() override { stream_->close(); }

  void ask(uint64_t id) { stream_->outgoing().add_asks()->set_ask_id(id); }
  template <class Done>
  bool talk_until(const Done& done) {
    return loop_.run_until([&] {
      peer_.talk();
      return done();
    });
  }
  bool is_up() {
    return talk_until([&] { return !peer_.http2.headers.empty(); });
  }
  void say(const std::string& message) {
    std::string framed;
    append_message_prefix(framed, static_cast<uint32_t>(message.size()));
    peer_.say(peer_.http2.answer(framed + message));
  }
  bool ends() {
    return talk_until([&] { return !owner_.reason.empty(); });
  }

  test::EventLoop loop_;
  RawPeer peer_{loop_.io(), 1U << 20U};
  Listening owner_;
  std::shared_ptr<ProgramStream> stream_ =
      connect_to_program(loop_.io(), peer_.address(), "secret", owner_);
};

TEST_F(ProgramStreamTest, AsksInOneFrameWhatOneTurnHasToAsk) {
  ask(1);
  ask(2);
  ASSERT_TRUE(talk_until([&] { return !peer_.http2.body.empty(); }));
  EXPECT_EQ(peer_.http2.headers[":path"], "/penstock.v1.Router/Route");
  EXPECT_EQ(peer_.http2.headers["authorization"], "Bearer secret");
  v1::GatewayFrame frame;
  ASSERT_TRUE(frame.ParseFromString(peer_.http2.body.substr(kMessagePrefixBytes)));
  EXPECT_EQ(frame.asks_size(), 2);
}

TEST_F(ProgramStreamTest, TellsWhatIsSaid) {
  ASSERT_TRUE(is_up());
  v1::ProgramFrame frame;
  frame.add_decisions()->set_replica_id("r1");
  say(frame.SerializeAsString());
  ASSERT_TRUE(talk_until([&] { return !owner_.frames.empty(); }));
  EXPECT_EQ(owner_.frames.at(0).decisions(0).replica_id(), "r1");
  EXPECT_FALSE(stream_->closed_to_asks());
}

TEST_F(ProgramStreamTest, EndsWithItsProcess) {
  ASSERT_TRUE(is_up());
  peer_.hang_up();
  ASSERT_TRUE(loop_.run_until([&] { return !owner_.reason.empty(); }));
  EXPECT_TRUE(stream_->closed_to_asks());
  ask(2);  // which nobody hears
  loop_.poll();
}

TEST_F(ProgramStreamTest, EndsAtAFrameThatIsTooLarge) {
  ASSERT_TRUE(is_up());
  v1::ProgramFrame frame;
  frame.add_decisions()->set_detail(std::string(kMostProgramFrameBytes, 'a'));
  say(frame.SerializeAsString());
  EXPECT_TRUE(ends());
  EXPECT_TRUE(owner_.frames.empty());
}

TEST_F(ProgramStreamTest, EndsAtWhatIsNoFrame) {
  ASSERT_TRUE(is_up());
  say("\xff\xff\xff");
  EXPECT_TRUE(ends());
  EXPECT_TRUE(owner_.frames.empty());
}

TEST_F(ProgramStreamTest, EndsWhereItsOwnerDoesNotBelieveAFrame) {
  owner_.believes = false;
  ASSERT_TRUE(is_up());
  say("");
  EXPECT_TRUE(ends());
  EXPECT_EQ(owner_.frames.size(), 1U);
}

TEST_F(ProgramStreamTest, TakesNoMoreQuestionsForOneThatDoesNotRead) {
  ASSERT_TRUE(is_up());
  peer_.reads = false;
  for (int i = 0; i < 2'000 && !stream_->closed_to_asks(); ++i) {
    stream_->outgoing().add_replies()->set_body(std::string(1UL << 20U, 'a'));
    loop_.poll();
  }
  EXPECT_TRUE(stream_->closed_to_asks());
}

}  // namespace
}  // namespace penstock::upstream
