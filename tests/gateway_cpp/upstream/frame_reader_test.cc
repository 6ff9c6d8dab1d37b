#include "upstream/frame_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "upstream/frame_by_protobuf.h"

namespace penstock::upstream {
namespace {

using by_protobuf::reads_as_protobuf;

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
  const CallEvent& first = reader.events().front();
  EXPECT_EQ(first.call_id, 7U);
  EXPECT_EQ(first.chunk.body, "data: one\n\n");
  EXPECT_EQ(first.chunk.events, 1U);
  EXPECT_EQ(first.chunk.tokens, 2U);
  EXPECT_EQ(reader.events().back().call_id, 300U);
  for (const CallEvent& event : reader.events()) {
    EXPECT_EQ(event.rest, nullptr);
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
  EXPECT_EQ(reader.events()[0].rest, nullptr);
  EXPECT_EQ(reader.events()[1].call_id, 2U);
  ASSERT_NE(reader.events()[1].rest, nullptr);
  ASSERT_TRUE(reader.events()[1].rest->finished);
  EXPECT_EQ(reader.events()[1].rest->finished->usage->completion_tokens, 5U);
  EXPECT_EQ(reader.events()[2].chunk.body, "b");
  EXPECT_EQ(reader.load(), nullptr);
}

v1::TokenGroup group_of(uint32_t choice, std::initializer_list<uint32_t> ids,
                        const std::string& finish = "", const std::string& stop = "") {
  v1::TokenGroup group;
  group.set_choice(choice);
  for (const uint32_t id : ids) group.add_token_ids(id);
  group.set_finish_reason(finish);
  group.set_stop_reason(stop);
  return group;
}

TEST(FrameReaderTest, ReadsTokensOfAChunkWhereTheyLie) {
  v1::CallEvent event = chunk_of(1, "a");
  *event.mutable_chunk()->add_groups() = group_of(0, {17, 151'643});
  *event.mutable_chunk()->add_groups() = group_of(3, {0}, "stop", "###");
  const std::string message = frame_of({event, chunk_of(1, "b")});
  FrameReader reader;
  ASSERT_TRUE(reads_as_protobuf(reader, message));
  EXPECT_EQ(reader.events().front().rest, nullptr);
  const TokenGroupsView groups = reader.events().front().chunk.groups;
  EXPECT_GE(groups.bytes.data(), message.data());
  EXPECT_LE(groups.bytes.data() + groups.bytes.size(), message.data() + message.size());
  EXPECT_TRUE(reader.events().back().chunk.groups.empty());
}

TEST(FrameReaderTest, LeavesTokensThatProtobufWouldWriteOtherwiseToIt) {
  v1::CallEvent event = chunk_of(1, "a");
  *event.mutable_chunk()->add_groups() = group_of(0, {5}, "stop", "\xc3\xa9");
  FrameReader reader;
  ASSERT_TRUE(reads_as_protobuf(reader, frame_of({event})));
  EXPECT_NE(reader.events().front().rest, nullptr);
  EXPECT_FALSE(reader.events().front().chunk.groups.empty());
}

// All of an answer that has one token, as it comes in one event.
v1::CallEvent whole_answer() {
  v1::CallEvent event = chunk_of(9, "{}");
  v1::Head& head = *event.mutable_head();
  head.set_status(200);
  head.set_content_type("application/json");
  head.set_prompt_tokens(31);
  head.set_cached_tokens(16);
  head.set_queue_wait_us(8);
  head.set_backend_version("0.1.0");
  head.set_model_version("main");
  head.set_model("mini");
  head.set_trimmed_messages(2);
  head.set_trimmed_tokens(11);
  head.set_kv_moved_tokens(12);
  head.set_resumable(true);
  head.set_created(1'700'000'000);
  v1::Finished& finished = *event.mutable_finished();
  finished.mutable_usage()->set_prompt_tokens(31);
  finished.mutable_usage()->set_cost_nanousd(uint64_t{1} << 40U);
  finished.mutable_timings()->set_queue_us(3);
  finished.mutable_timings()->set_prefill_us(4);
  finished.mutable_timings()->set_decode_us(5);
  finished.add_finish_reasons("stop");
  finished.add_finish_reasons("");
  finished.set_adapter("pirate@1");
  for (auto* name : {finished.mutable_backend(), finished.mutable_backend_version(),
                     finished.mutable_model_version(), finished.mutable_request_id(),
                     finished.mutable_trace_id(), finished.mutable_model(),
                     finished.mutable_provider_request_id()}) {
    *name = "said";
  }
  finished.set_ttft_us(300);
  finished.set_total_us(400);
  return event;
}

TEST(FrameReaderTest, ReadsAWholeAnswerWhereItLies) {
  const std::string message = frame_of({whole_answer()});
  FrameReader reader;
  EXPECT_TRUE(reads_as_protobuf(reader, message));
  const CallEvent& event = reader.events().front();
  ASSERT_NE(event.rest, nullptr);
  EXPECT_EQ(event.rest->parsed, nullptr);  // nothing of it was protobuf's to read
  EXPECT_EQ(event.rest->head->model, "mini");
  EXPECT_EQ(event.rest->finished->adapter, "pirate@1");
  EXPECT_EQ(event.chunk.body, "{}");
}

TEST(FrameReaderTest, KeepsNothingOfAnEventForTheNext) {
  v1::CallEvent bare;
  bare.set_call_id(3);
  bare.mutable_finished();
  FrameReader reader;
  ASSERT_TRUE(reads_as_protobuf(reader, frame_of({whole_answer(), whole_answer()})));
  EXPECT_TRUE(reads_as_protobuf(reader, frame_of({bare, whole_answer(), bare})));
}

TEST(FrameReaderTest, ReadsNamesThatAreNotAsciiAsProtobufDoes) {
  v1::CallEvent named = whole_answer();
  named.mutable_head()->set_model("\xc3\xa9t\xc3\xa9");
  const std::string message = frame_of({named});
  FrameReader reader;
  EXPECT_TRUE(reads_as_protobuf(reader, message));
  EXPECT_EQ(reader.events().front().rest->head->model, named.head().model());
  std::string broken = message;  // no UTF-8 any more
  broken[broken.find('\xa9')] = 'x';
  EXPECT_TRUE(reads_as_protobuf(reader, broken));
  EXPECT_TRUE(reader.events().empty());
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

TEST(FrameReaderTest, TellsNothingOfAFrameBeforeWhateverProtobufReadInIt) {
  v1::ServerFrame loaded;
  loaded.mutable_load()->set_running(3);
  FrameReader reader;
  for (const std::string& before : {loaded.SerializeAsString(), field(15, "unknown"),
                                    frame_of({whole_answer()}), std::string("no frame")}) {
    reader.read(before);
    EXPECT_TRUE(reads_as_protobuf(reader, frame_of({chunk_of(1, "a")})));
    EXPECT_TRUE(reads_as_protobuf(reader, std::string()));
  }
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
           field(1, id + field(2, "") + field(2, {8, 1}) + field(2, {8, 2})),
           field(1, id + field(4, field(1, {8, 1}) + field(1, {16, 2}) + field(2, {8, 3}))),
           field(1, id + field(4, field(3, "a") + field(3, "") + unknown)),
           field(1, id + field(2, field(1, "a"))),
           field(1, id + field(5, "") + field(4, "")),
           field(1, id + field(6, field(1, {8, 1}))),
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

TEST(FrameReaderTest, ReadsAnyWritingOfTokensAsProtobufDoes) {
  const std::string id = {8, 5};
  const std::string body = field(1, "a");
  const std::string unknown = field(15, "later");
  const std::string group = field(3, {18, 2, 5, 6});
  const auto chunk_with = [&](const std::string& inner) { return field(1, id + field(3, inner)); };
  FrameReader reader;
  for (const std::string& message : {
           chunk_with(body + group + group + std::string{32, 2}),
           chunk_with(group + body + group),
           chunk_with(field(3, "")),
           chunk_with(field(3, {8, 0, 18, 1, 5})),
           chunk_with(field(3, {16, 5, 16, 6})),        // not packed
           chunk_with(field(3, {18, 1, 5, 18, 1, 6})),  // in two fields
           chunk_with(field(3, {18, 2, 5, '\x80'})),    // the last does not end
           chunk_with(field(3, {18, 2, '\x85', 0})),    // longer than need be
           chunk_with(field(3, std::string{18, 5} + std::string(4, '\xff') + '\x7f')),
           chunk_with(field(3, std::string{18, 6} + std::string(5, '\xff') + '\x01')),
           chunk_with(field(3, {18, 3, 5})),                           // there are fewer
           chunk_with(field(3, field(3, "stop") + field(4, "\xff"))),  // no text
           chunk_with(field(3, field(3, "stop") + field(3, "length"))),
           chunk_with(field(3, {18, 1, 5}) + unknown + group),
           chunk_with(field(3, field(2, {5}) + unknown)),
           field(1, id + field(3, group) + field(3, group)),
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
    for (uint64_t left = below(3); left > 0; --left) fill(*event.mutable_chunk()->add_groups());
    if (kind == 1) *event.mutable_head() = whole_answer().head();
    if (kind == 4) *event.mutable_finished() = whole_answer().finished();
    if (kind == 5) event = whole_answer();
    if (kind == 2) event.mutable_failed()->mutable_error()->set_message("lost");
    if (kind == 3) event.clear_chunk();
  }

  void fill(v1::TokenGroup& group) {
    const uint64_t kind = below(8);
    for (uint64_t left = kind == 0 ? below(200) : below(3); left > 0; --left) {
      group.add_token_ids(static_cast<uint32_t>(random_() >> below(64)));
    }
    if (kind == 1) group.set_choice(static_cast<uint32_t>(below(300)));
    if (kind == 2) group.set_finish_reason("length");
    if (kind <= 2 && below(2) == 0) group.set_stop_reason(below(2) == 0 ? "###" : "\xc3\xa9");
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
