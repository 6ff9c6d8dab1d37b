#include "upstream/grpc_messages.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "framed.h"

namespace penstock::upstream {
namespace {

constexpr size_t kMost = 1'000'000;

struct Collected {
  std::vector<std::string> messages;
  bool feed(MessageReader& reader, std::string_view bytes) {
    return reader.feed(bytes, kMost, [this](std::string_view message) {
      messages.emplace_back(message);
      return true;
    });
  }
};

TEST(GrpcMessages, HaveAPrefixOfAFlagAndTheLengthInNetworkOrder) {
  std::string out;
  append_message_prefix(out, 0x01020304);
  EXPECT_EQ(out, std::string("\0\1\2\3\4", 5));
}

TEST(GrpcMessages, AreTheSameHoweverTheBytesAreCut) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> sent;
    std::string bytes;
    for (size_t i = random() % 6; i > 0; --i) {
      // Empty ones, short ones, and some that no read holds at once.
      const size_t size = random() % 3 == 0 ? random() % 3 : random() % 20'000;
      sent.emplace_back(size, static_cast<char>('a' + i));
      bytes += framed(sent.back());
    }
    MessageReader reader;
    Collected got;
    for (size_t at = 0; at < bytes.size();) {
      const size_t piece = 1 + random() % (random() % 2 == 0 ? 4 : 8'000);
      ASSERT_TRUE(got.feed(reader, std::string_view(bytes).substr(at, piece)));
      at += piece;
    }
    ASSERT_EQ(got.messages, sent) << "round " << round;
  }
}

TEST(GrpcMessages, AreTheSameOneByteAtATime) {
  MessageReader reader;
  Collected got;
  for (const char byte : framed("one") + framed("") + framed("three")) {
    ASSERT_TRUE(got.feed(reader, {&byte, 1}));
  }
  EXPECT_EQ(got.messages, (std::vector<std::string>{"one", "", "three"}));
}

TEST(GrpcMessages, ThatAreCompressedAreRefused) {
  MessageReader reader;
  Collected got;
  std::string bytes = framed("x");
  bytes.front() = '\1';
  EXPECT_FALSE(got.feed(reader, bytes));
  EXPECT_TRUE(got.messages.empty());
}

TEST(GrpcMessages, ThatAreTooLargeAreRefusedBeforeTheyCome) {
  MessageReader reader;
  Collected got;
  std::string prefix;
  append_message_prefix(prefix, kMost + 1);
  EXPECT_FALSE(got.feed(reader, prefix));
}

TEST(GrpcMessages, StopAtTheFirstThatIsRefused) {
  MessageReader reader;
  int taken = 0;
  EXPECT_FALSE(reader.feed(framed("a") + framed("b"), kMost, [&](std::string_view) {
    ++taken;
    return false;
  }));
  EXPECT_EQ(taken, 1);
}

}  // namespace
}  // namespace penstock::upstream
