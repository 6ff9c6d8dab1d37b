#include "upstream/frame_reader.h"

namespace penstock::upstream {

namespace {

constexpr int kReadsPerFrame = 256;

// A field's number and how it is written, in one byte.
// https://protobuf.dev/programming-guides/encoding/
constexpr uint64_t number_field(int field) { return static_cast<uint64_t>(field) << 3U; }
constexpr uint64_t bytes_field(int field) { return static_cast<uint64_t>(field) << 3U | 2U; }

// The fields of a message, one after the other. Every method is false, and takes nothing, where the
// bytes are not what it reads.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }

  bool number(uint64_t& value) {
    uint64_t read = 0;
    for (size_t i = 0; i < rest_.size() && i < kMostBytes; ++i) {
      const auto byte = static_cast<unsigned char>(rest_[i]);
      read |= static_cast<uint64_t>(byte & 0x7fU) << (7 * i);
      if (byte > 0x7fU) continue;
      if (byte == 0 && i > 0) return false;  // written longer than need be: protobuf's to judge
      value = read;
      rest_.remove_prefix(i + 1);
      return true;
    }
    return false;
  }

  bool bytes(std::string_view& value) {
    const std::string_view before = rest_;
    uint64_t size = 0;
    if (number(size) && size <= rest_.size()) {
      value = rest_.substr(0, size);
      rest_.remove_prefix(size);
      return true;
    }
    rest_ = before;
    return false;
  }

 private:
  // Numbers of nine bytes have 63 bits: the rare ones beyond are protobuf's to judge.
  static constexpr size_t kMostBytes = 9;

  std::string_view rest_;
};

bool read_number(Fields& fields, uint32_t& value) {
  uint64_t number = 0;
  if (!fields.number(number)) return false;
  value = static_cast<uint32_t>(number);  // as protobuf cuts what is too large
  return true;
}

// False: there is more to it than a view holds.
bool read_chunk(std::string_view bytes, ChunkView& chunk) {
  Fields fields(bytes);
  while (!fields.empty()) {
    uint64_t tag = 0;
    bool good = fields.number(tag);
    if (tag == bytes_field(v1::Chunk::kBodyFieldNumber)) {
      good = good && fields.bytes(chunk.body);
    } else if (tag == number_field(v1::Chunk::kEventsFieldNumber)) {
      good = good && read_number(fields, chunk.events);
    } else if (tag == number_field(v1::Chunk::kTokensFieldNumber)) {
      good = good && read_number(fields, chunk.tokens);
    } else {
      good = false;
    }
    if (!good) return false;
  }
  return true;
}

// False: it is not the next chunk of a call and nothing else.
bool read_chunk_event(std::string_view bytes, FrameReader::Event& event) {
  Fields fields(bytes);
  uint64_t tag = 0;
  std::string_view chunk;
  return fields.number(tag) && tag == number_field(v1::CallEvent::kCallIdFieldNumber) &&
         fields.number(event.call_id) && fields.number(tag) &&
         tag == bytes_field(v1::CallEvent::kChunkFieldNumber) && fields.bytes(chunk) &&
         fields.empty() && read_chunk(chunk, event.chunk);
}

template <class Message>
bool parse_into(Message& message, std::string_view bytes) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

bool FrameReader::read(std::string_view message) {
  // Both keep the memory of the largest: not for ever.
  if (++reads_ % kReadsPerFrame == 0) {
    parsed_ = v1::ServerFrame();
    std::vector<Event>().swap(events_);
  }
  return read_in_place(message) || parse(message);
}

bool FrameReader::read_in_place(std::string_view message) {
  events_.clear();
  parsed_.Clear();
  Fields fields(message);
  while (!fields.empty()) {
    uint64_t tag = 0;
    std::string_view bytes;
    if (!fields.number(tag) || !fields.bytes(bytes)) return false;
    const bool is_event = tag == bytes_field(v1::ServerFrame::kEventsFieldNumber);
    const bool is_load = tag == bytes_field(v1::ServerFrame::kLoadFieldNumber);
    if (!(is_event && add_event(bytes)) && !(is_load && add_load(bytes))) return false;
  }
  return true;
}

bool FrameReader::add_event(std::string_view bytes) {
  Event& event = events_.emplace_back();
  if (read_chunk_event(bytes, event)) return true;
  event.other = parsed_.add_events();
  if (!parse_into(*event.other, bytes)) return false;
  event.call_id = event.other->call_id();
  return true;
}

// Loads that come twice are one, which protobuf puts together.
bool FrameReader::add_load(std::string_view bytes) {
  return !parsed_.has_load() && parse_into(*parsed_.mutable_load(), bytes);
}

bool FrameReader::parse(std::string_view message) {
  events_.clear();
  if (!parse_into(parsed_, message)) {
    parsed_.Clear();
    return false;
  }
  for (v1::CallEvent& event : *parsed_.mutable_events()) {
    events_.push_back({.call_id = event.call_id(), .chunk = {}, .other = &event});
  }
  return true;
}

}  // namespace penstock::upstream
