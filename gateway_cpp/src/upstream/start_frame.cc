#include "upstream/start_frame.h"

#include <google/protobuf/io/coded_stream.h>

#include <array>

namespace penstock::upstream {

namespace {

// Before a field of `bytes` bytes: its number, that its length comes, and that.
void append_length(std::string& out, int field, size_t bytes) {
  using google::protobuf::io::CodedOutputStream;
  constexpr uint32_t kHasLength = 2;
  std::array<uint8_t, 16> text{};
  uint8_t* end = CodedOutputStream::WriteTagToArray(static_cast<uint32_t>(field) << 3U | kHasLength,
                                                    text.data());
  end = CodedOutputStream::WriteVarint64ToArray(bytes, end);
  out.append(reinterpret_cast<const char*>(text.data()), static_cast<size_t>(end - text.data()));
}

}  // namespace

// Protobuf takes the fields of a message in any order.
std::string start_frame_before_body(const v1::Start& start, size_t body_bytes) {
  std::string request = start.request().SerializeAsString();
  append_length(request, v1::CallRequest::kBodyFieldNumber, body_bytes);
  v1::Start rest;
  rest.set_call_id(start.call_id());
  rest.set_initial_credit_bytes(start.initial_credit_bytes());
  std::string text = rest.SerializeAsString();
  append_length(text, v1::Start::kRequestFieldNumber, request.size() + body_bytes);
  text += request;
  std::string frame;
  append_length(frame, v1::ClientFrame::kStartsFieldNumber, text.size() + body_bytes);
  return frame + text;
}

}  // namespace penstock::upstream
