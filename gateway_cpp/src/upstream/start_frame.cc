#include "upstream/start_frame.h"

#include <google/protobuf/io/coded_stream.h>

namespace penstock::upstream {

namespace {

using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kNumber = 0;
constexpr uint32_t kBytes = 2;

constexpr uint32_t tag_of(int field, uint32_t kind) {
  return static_cast<uint32_t>(field) << 3U | kind;
}

// All fields here have a number below sixteen, and so a tag of one byte.
size_t size_of(uint64_t number) { return 1 + CodedOutputStream::VarintSize64(number); }

uint8_t* write(int field, uint32_t kind, uint64_t number, uint8_t* to) {
  to = CodedOutputStream::WriteTagToArray(tag_of(field, kind), to);
  return CodedOutputStream::WriteVarint64ToArray(number, to);
}

}  // namespace

// Protobuf takes the fields of a message in any order.
void append_start(std::string& frame, const StartView& start, size_t body_bytes) {
  const size_t request = start.request.ByteSizeLong();
  const size_t before_body = body_bytes > 0 ? size_of(body_bytes) : 0;
  const size_t whole_request = request + before_body + body_bytes;
  const size_t rest = size_of(start.call_id) + size_of(start.credit_bytes) + size_of(whole_request);
  const size_t before = frame.size();
  frame.resize(before + size_of(rest + whole_request) + rest + request + before_body);
  auto* to = reinterpret_cast<uint8_t*>(frame.data() + before);
  to = write(v1::ClientFrame::kStartsFieldNumber, kBytes, rest + whole_request, to);
  to = write(v1::Start::kCallIdFieldNumber, kNumber, start.call_id, to);
  to = write(v1::Start::kInitialCreditBytesFieldNumber, kNumber, start.credit_bytes, to);
  to = write(v1::Start::kRequestFieldNumber, kBytes, whole_request, to);
  to = start.request.SerializeWithCachedSizesToArray(to);
  if (body_bytes > 0) write(v1::CallRequest::kBodyFieldNumber, kBytes, body_bytes, to);
}

}  // namespace penstock::upstream
