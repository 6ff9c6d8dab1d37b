#include "tls/channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "tls/hand_made_records.h"
#include "tls/made_certificate.h"
#include "tls/tls_client.h"

namespace penstock::tls {
namespace {

// A client and a channel that hand each other their bytes in parts of a given size.
class Pair {
 public:
  explicit Pair(size_t part, int version = TLS1_3_VERSION,
                std::string_view protocols = "\x08http/1.1")
      : client(version, protocols), channel(*credentials()), part_(part) {}

  // Until both are done or the channel has failed.
  bool shake_hands() {
    while (outcome_ == Channel::Handshake::kMore) {
      client.shake_hands();
      std::string sent = client.output();
      if (sent.empty()) return false;
      while (!sent.empty() && outcome_ == Channel::Handshake::kMore) step(sent);
      behind_ += sent;
    }
    return outcome_ == Channel::Handshake::kDone && client.shake_hands();
  }

  // What the channel reads of what the client has sent.
  std::string pass_to_channel() {
    std::string sent = std::exchange(behind_, {}) + client.output();
    std::string read;
    for (std::string_view rest = sent; !rest.empty();) {
      const auto bytes = rest.substr(0, part_);
      rest.remove_prefix(bytes.size());
      plain_.resize(bytes.size() + Channel::kMostHeld);
      std::string out;
      read += channel.open(bytes, plain_, out);
      answered += out.size();
      client.take_in(out);
    }
    return read;
  }
  std::string pass_to_client(std::string_view plain) {
    std::string out;
    EXPECT_TRUE(channel.seal(plain, out));
    for (std::string_view rest = out; !rest.empty();) {
      client.take_in(rest.substr(0, part_));
      rest.remove_prefix(std::min(part_, rest.size()));
    }
    return client.read();
  }

  test::TlsClient client;
  Channel channel;
  size_t answered = 0;  // bytes of TLS's own

 private:
  static std::shared_ptr<const Credentials> credentials() {
    static const test::CertificateFiles kFiles(test::made_certificate("localhost"));
    return *Credentials::load(kFiles.files());
  }
  void step(std::string& sent) {
    const std::string_view part = std::string_view(sent).substr(0, part_);
    std::string_view rest = part;
    std::string out;
    outcome_ = channel.shake_hands(rest, out);
    sent.erase(0, part.size() - rest.size());
    client.take_in(out);
  }

  const size_t part_;
  Channel::Handshake outcome_ = Channel::Handshake::kMore;
  std::string behind_;
  std::string plain_;
};

class ChannelTest : public testing::TestWithParam<std::tuple<size_t, int>> {
 protected:
  Pair pair_{std::get<0>(GetParam()), std::get<1>(GetParam())};
};

TEST_P(ChannelTest, CarriesBytesBothWaysHoweverTheyAreCut) {
  ASSERT_TRUE(pair_.shake_hands()) << pair_.channel.fault();
  pair_.client.write("GET / HTTP/1.1\r\n");
  pair_.client.write("Host: a\r\n\r\n");
  EXPECT_EQ(pair_.pass_to_channel(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string large(40'000, 'x');
  EXPECT_EQ(pair_.pass_to_client(large), large);
  pair_.client.write(large);
  EXPECT_EQ(pair_.pass_to_channel(), large);
  EXPECT_EQ(pair_.channel.state(), Channel::State::kOpen);
}

TEST_P(ChannelTest, TellsAGoodbyeFromTheBytesBeforeIt) {
  ASSERT_TRUE(pair_.shake_hands());
  pair_.client.write("last words");
  pair_.client.say_goodbye();
  EXPECT_EQ(pair_.pass_to_channel(), "last words");
  EXPECT_EQ(pair_.channel.state(), Channel::State::kEnded);
  EXPECT_EQ(pair_.pass_to_client("an answer all the same"), "an answer all the same");
  EXPECT_FALSE(pair_.client.was_told_goodbye());
}

TEST_P(ChannelTest, SaysGoodbyeOnlyWhenAsked) {
  ASSERT_TRUE(pair_.shake_hands());
  EXPECT_EQ(pair_.pass_to_client("whole"), "whole");
  EXPECT_FALSE(pair_.client.was_told_goodbye());
  std::string out;
  pair_.channel.say_goodbye(out);
  pair_.client.take_in(out);
  EXPECT_EQ(pair_.client.read(), "");
  EXPECT_TRUE(pair_.client.was_told_goodbye());
}

TEST_P(ChannelTest, BreaksAtARecordThatWasTamperedWith) {
  ASSERT_TRUE(pair_.shake_hands());
  pair_.client.write("secret");
  std::string sent = pair_.client.output();
  sent.back() = static_cast<char>(sent.back() ^ 1);
  std::string plain(sent.size() + Channel::kMostHeld, '\0');
  std::string out;
  EXPECT_EQ(pair_.channel.open(sent, plain, out), "");
  EXPECT_EQ(pair_.channel.state(), Channel::State::kBroken);
  EXPECT_FALSE(pair_.channel.fault().empty());
  EXPECT_FALSE(pair_.channel.seal("more", out));
}

INSTANTIATE_TEST_SUITE_P(Parts, ChannelTest,
                         testing::Combine(testing::Values(1, 2, 7, 1000, 1U << 20U),
                                          testing::Values(TLS1_2_VERSION, TLS1_3_VERSION)));

TEST(Channel, KeepsARequestThatComesWithTheLastOfTheHandshake) {
  Pair pair(1U << 20U);
  while (!pair.client.shake_hands()) {
    std::string sent = pair.client.output();
    std::string_view rest = sent;
    std::string out;
    pair.channel.shake_hands(rest, out);
    pair.client.take_in(out);
  }
  pair.client.write("GET /");
  const std::string sent = pair.client.output();
  std::string_view rest = sent;
  std::string out;
  ASSERT_EQ(pair.channel.shake_hands(rest, out), Channel::Handshake::kDone);
  std::string plain(rest.size() + Channel::kMostHeld, '\0');
  EXPECT_EQ(pair.channel.open(rest, plain, out), "GET /");
}

TEST(Channel, RefusesTls11) {
  Pair pair(1U << 20U, TLS1_1_VERSION);
  EXPECT_FALSE(pair.shake_hands());
  EXPECT_EQ(pair.channel.fault(), "unsupported protocol");
}

TEST(Channel, SpeaksHttp1AndSaysSo) {
  for (const std::string_view offered : {"\x02h2\x08http/1.1", "\x08http/1.0"}) {
    Pair pair(1U << 20U, TLS1_3_VERSION, offered);
    ASSERT_TRUE(pair.shake_hands());
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(pair.client.ssl(), &chosen, &size);
    EXPECT_TRUE(offered.ends_with(std::string(reinterpret_cast<const char*>(chosen), size)));
  }
  Pair pair(1U << 20U, TLS1_3_VERSION, "\x02h2");
  EXPECT_FALSE(pair.shake_hands()) << "HTTP/2 alone is no common language";
}

TEST(Channel, FailsAtGarbageAndSaysWhy) {
  Pair pair(1U << 20U);
  std::string_view garbage("\x16\x03\x01\x00\x05hello", 10);
  std::string out;
  EXPECT_EQ(pair.channel.shake_hands(garbage, out), Channel::Handshake::kFailed);
  EXPECT_FALSE(pair.channel.fault().empty());
  EXPECT_TRUE(out.starts_with('\x15')) << "an alert";
}

TEST(Channel, AnswersAFewNewKeysAndBreaksAtAFloodOfThem) {
  Pair pair(1U << 20U);
  ASSERT_TRUE(pair.shake_hands());
  for (int i = 0; i < 20; ++i) {
    SSL_key_update(pair.client.ssl(), SSL_KEY_UPDATE_REQUESTED);
    pair.client.write("x");
  }
  EXPECT_EQ(pair.pass_to_channel(), std::string(20, 'x'));
  EXPECT_EQ(pair.pass_to_client("under new keys"), "under new keys");
  const size_t before = pair.answered;
  for (int i = 0; i < 1000; ++i) {
    SSL_key_update(pair.client.ssl(), SSL_KEY_UPDATE_REQUESTED);
    pair.client.write("x");
  }
  pair.pass_to_channel();
  EXPECT_EQ(pair.channel.state(), Channel::State::kBroken);
  EXPECT_LT(pair.answered - before, 2000U);
}

// However little comes at once: neither data nor an answer shows that anything came.
TEST(Channel, BreaksAtKeysThatAreRenewedOneByOneWithoutDataOrAnswer) {
  for (const size_t part : {size_t{7}, size_t{1} << 20U}) {
    Pair pair(part);
    ASSERT_TRUE(pair.shake_hands());
    const size_t before = pair.answered;
    for (int i = 0; i < 200 && pair.channel.state() == Channel::State::kOpen; ++i) {
      SSL_key_update(pair.client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
      pair.client.shake_hands();
      EXPECT_EQ(pair.pass_to_channel(), "");
    }
    EXPECT_EQ(pair.channel.state(), Channel::State::kBroken);
    EXPECT_EQ(pair.channel.fault(), "too many messages of TLS's own");
    EXPECT_EQ(pair.answered, before);
  }
}

TEST(Channel, BreaksAtKeysThatAreRenewedBetweenBytesOfData) {
  Pair pair(1U << 20U);
  ASSERT_TRUE(pair.shake_hands());
  std::string read;
  for (int i = 0; i < 200; ++i) {
    SSL_key_update(pair.client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
    pair.client.write("x");
    read += pair.pass_to_channel();
  }
  EXPECT_EQ(pair.channel.state(), Channel::State::kBroken);
  EXPECT_EQ(read, std::string(64, 'x')) << "and nothing behind it is read";
}

// What the channel has read after `records`, each fed alone.
std::string read_one_by_one(Channel& channel, const std::vector<std::string>& records) {
  std::string read;
  for (const std::string& record : records) {
    std::string plain(record.size() + Channel::kMostHeld, '\0');
    std::string out;
    read += channel.open(record, plain, out);
  }
  return read;
}

TEST(Channel, PassesOverAFewEmptyRecords) {
  Pair pair(1U << 20U);
  test::HandMadeRecords made(pair.client);
  ASSERT_TRUE(pair.shake_hands());
  std::vector<std::string> records;
  for (int i = 0; i < 100; ++i) {
    records.push_back(made.record(""));
    records.push_back(made.record("x"));
  }
  EXPECT_EQ(read_one_by_one(pair.channel, records), std::string(100, 'x'));
  EXPECT_EQ(pair.channel.state(), Channel::State::kOpen);
}

TEST(Channel, BreaksAtEmptyRecordsWithoutEnd) {
  Pair pair(1U << 20U);
  test::HandMadeRecords made(pair.client);
  ASSERT_TRUE(pair.shake_hands());
  std::vector<std::string> records;
  for (int i = 0; i < 200; ++i) records.push_back(made.record(""));
  EXPECT_EQ(read_one_by_one(pair.channel, records), "");
  EXPECT_EQ(pair.channel.state(), Channel::State::kBroken);
}

TEST(Channel, OpensAllRecordsOfOneSegmentAndKeepsTheBeginningOfTheNext) {
  Pair pair(1U << 20U);
  ASSERT_TRUE(pair.shake_hands());
  std::string sent;
  for (int i = 0; i < 100; ++i) {
    pair.client.write("record " + std::to_string(i) + ";");
    sent += pair.client.output();
  }
  std::string plain(sent.size() + Channel::kMostHeld, '\0');
  std::string out;
  const std::string_view all(sent);
  std::string read(pair.channel.open(all.substr(0, all.size() - 5), plain, out));
  EXPECT_TRUE(read.starts_with("record 0;"));
  EXPECT_TRUE(read.ends_with("record 98;"));
  EXPECT_EQ(pair.channel.open(all.substr(all.size() - 5), plain, out), "record 99;");
  EXPECT_EQ(out, "");
}

TEST(Channel, RefusesToShakeHandsAgain) {
  Pair pair(1U << 20U, TLS1_2_VERSION);
  ASSERT_TRUE(pair.shake_hands());
  SSL_renegotiate(pair.client.ssl());
  pair.client.shake_hands();
  pair.pass_to_channel();
  pair.client.read();
  EXPECT_FALSE(pair.client.shake_hands());
  EXPECT_LT(pair.answered, 100U) << "an alert at most";
}

}  // namespace
}  // namespace penstock::tls
