#include "upstream/frame_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "upstream/frame_by_protobuf.h"

namespace penstock::upstream {
namespace {

using test::reads_as_protobuf;

v1::CallEvent chunk_of(uint64_t call_id, const std::string& body, uint32_t events = 1,
                       uint32_t tokens = 1) {
  v1::CallEvent event;
  event.set_call_id(call_id);
  event.mutable_chunk()->set_body(body);
  event.mutable_chunk()->set_events(events);
  event.mutable_chunk()->set_tokens(tokens);
  return event;
}

std::string frame_of(std::initializer_list<v1::CallEvent> events) {
  v1::ServerFrame frame;
  for (const v1::CallEvent& event : events) *frame.add_events() = event;
  return frame.SerializeAsString();
}

// A field that holds bytes, of a number below 16.
std::string field(char number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

TEST(FrameReaderTest, ReadsChunksWhereTheyLie) {
  FrameReader reader;
  const std::string message = frame_of({chunk_of(7, "data: one\n\n", 1, 2), chunk_of(300, "two")});
  ASSERT_TRUE(reader.read(message));
  ASSERT_EQ(reader.events().size(), 2U);
  const FrameReader::Event& first = reader.events().front();
  EXPECT_EQ(first.call_id, 7U);
  EXPECT_EQ(first.chunk.body, "data: one\n\n");
  EXPECT_EQ(first.chunk.events, 1U);
  EXPECT_EQ(first.chunk.tokens, 2U);
  EXPECT_EQ(reader.events().back().call_id, 300U);
  for (const FrameReader::Event& event : reader.events()) {
    EXPECT_EQ(event.other, nullptr);
    EXPECT_GE(event.chunk.body.data(), message.data());
    EXPECT_LE(event.chunk.body.data() + event.chunk.body.size(), message.data() + message.size());
  }
}

TEST(FrameReaderTest, TellsEventsInTheirOrderWhateverTheySay) {
  v1::CallEvent end;
  end.set_call_id(2);
  end.mutable_finished()->mutable_usage()->set_completion_tokens(5);
  const std::string message = frame_of({chunk_of(1, "a"), end, chunk_of(3, "b")});
  FrameReader reader;
  ASSERT_TRUE(reader.read(message));
  ASSERT_EQ(reader.events().size(), 3U);
  EXPECT_EQ(reader.events()[0].other, nullptr);
  ASSERT_NE(reader.events()[1].other, nullptr);
  EXPECT_EQ(reader.events()[1].call_id, 2U);
  EXPECT_EQ(reader.events()[1].other->finished().usage().completion_tokens(), 5U);
  EXPECT_EQ(reader.events()[2].chunk.body, "b");
  EXPECT_EQ(reader.load(), nullptr);
}

TEST(FrameReaderTest, LeavesTokensOfAChunkToProtobuf) {
  v1::CallEvent event = chunk_of(1, "a");
  event.mutable_chunk()->add_groups()->add_token_ids(17);
  FrameReader reader;
  ASSERT_TRUE(reader.read(frame_of({event})));
  ASSERT_NE(reader.events().front().other, nullptr);
  EXPECT_EQ(reader.events().front().other->chunk().groups(0).token_ids(0), 17U);
}

TEST(FrameReaderTest, TellsTheLoadOfTheLastFrameOnly) {
  v1::ServerFrame frame;
  frame.mutable_load()->set_running(3);
  FrameReader reader;
  ASSERT_TRUE(reader.read(frame.SerializeAsString()));
  ASSERT_NE(reader.load(), nullptr);
  EXPECT_EQ(reader.load()->running(), 3U);
  ASSERT_TRUE(reader.read(frame_of({chunk_of(1, "a")})));
  EXPECT_EQ(reader.load(), nullptr);
}

TEST(FrameReaderTest, ShowsNothingOfWhatIsNoFrame) {
  const std::string whole = frame_of({chunk_of(1, "a"), chunk_of(2, "b")});
  FrameReader reader;
  EXPECT_FALSE(reader.read(whole.substr(0, whole.size() - 1)));
  EXPECT_TRUE(reader.events().empty());
  EXPECT_TRUE(reader.read(whole));
  EXPECT_EQ(reader.events().size(), 2U);
}

TEST(FrameReaderTest, ReadsAnyWritingOfAFrameAsProtobufDoes) {
  const std::string id = {8, 5};
  const std::string body = field(1, "a");
  const std::string chunk = field(3, body);
  const std::string load = field(2, {16, 4});
  const std::string long_number = {8, '\x85', '\x80', '\x80', '\x80', '\x80', '\x80', '\x80', 0};
  const std::string long_tag = {'\x8a', '\x80', '\x80', '\x80', '\x80', 0};
  const std::string long_size = {
      static_cast<char>(0x80 | (id + chunk).size()), '\x80', '\x80', '\x80', '\x80', 0};
  const std::string too_large = {16, '\xff', '\xff', '\xff', '\xff', '\x7f'};
  const std::string of_ten_bytes = std::string(1, 8) + std::string(9, '\xff') + '\x01';
  const std::string of_eleven_bytes = std::string(1, 8) + std::string(10, '\xff') + '\x01';
  const std::string unknown = field(15, "later");
  FrameReader reader;
  for (const std::string& message : {
           std::string(),
           field(1, ""),
           field(1, id),
           field(1, chunk),
           field(1, chunk + id),
           field(1, id + chunk + chunk),
           field(1, id + chunk + id),
           field(1, id + chunk + unknown),
           field(1, id + field(3, "")),
           field(1, id + field(3, body + unknown)),
           field(1, id + field(3, body + body)),
           field(1, id + field(3, too_large)),
           field(1, long_number + chunk),
           long_tag + field(1, id + chunk).substr(1),
           field(1, id + chunk).substr(0, 1) + long_size + id + chunk,
           field(1, of_ten_bytes + chunk),
           field(1, of_eleven_bytes + chunk),
           field(1, id + chunk) + load + load,
           load + field(1, id + chunk),
           unknown + field(1, id + chunk),
           std::string{0, 0},
           std::string{'\x0b', '\x0c'},
       }) {
    EXPECT_TRUE(reads_as_protobuf(reader, message)) << testing::PrintToString(message);
  }
}

// Frames of all kinds of events.
class SomeFrames {
 public:
  explicit SomeFrames(unsigned seed) : random_(seed) {}

  std::string next() {
    v1::ServerFrame frame;
    for (uint64_t left = below(6); left > 0; --left) fill(*frame.add_events());
    if (below(4) == 0) frame.mutable_load()->set_waiting_tokens(below(1U << 20U));
    return frame.SerializeAsString();
  }
  // With some bytes changed, cut out or put in.
  std::string damaged(std::string text) {
    for (uint64_t left = below(4); left > 0 && !text.empty(); --left) {
      const size_t at = below(text.size());
      const auto byte = static_cast<char>(below(256));
      if (below(3) == 0) {
        text.insert(at, 1, byte);
      } else if (below(2) == 0) {
        text.erase(at, below(3));
      } else {
        text[at] = byte;
      }
    }
    return text;
  }

 private:
  uint64_t below(uint64_t end) {
    return std::uniform_int_distribution<uint64_t>(0, end - 1)(random_);
  }

  void fill(v1::CallEvent& event) {
    event = chunk_of(below(3) == 0 ? random_() : below(200), std::string(below(40), 'x'),
                     static_cast<uint32_t>(below(3)), static_cast<uint32_t>(below(300)));
    const uint64_t kind = below(10);
    if (kind == 0) event.mutable_chunk()->add_groups()->add_token_ids(1);
    if (kind == 1) event.mutable_head()->set_status(200);
    if (kind == 2) event.mutable_failed()->mutable_error()->set_message("lost");
    if (kind == 3) event.clear_chunk();
  }

  std::mt19937_64 random_;
};

TEST(FrameReaderTest, ReadsAnyBytesAsProtobufDoes) {
  SomeFrames frames(20'240'901);
  FrameReader reader;
  for (int i = 0; i < 20'000; ++i) {
    const std::string whole = frames.next();
    ASSERT_TRUE(reads_as_protobuf(reader, whole)) << testing::PrintToString(whole);
    const std::string damaged = frames.damaged(whole);
    ASSERT_TRUE(reads_as_protobuf(reader, damaged)) << testing::PrintToString(damaged);
  }
}

}  // namespace
}  // namespace penstock::upstream
