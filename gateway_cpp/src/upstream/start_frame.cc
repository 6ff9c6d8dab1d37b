#include "upstream/start_frame.h"

#include <google/protobuf/io/coded_stream.h>

#include <cstring>
#include <string_view>

#include "penstock/v1/inference.pb.h"
#include "upstream/group_record.h"

namespace penstock::upstream {

namespace {

using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kNumber = 0;
constexpr uint32_t kBytes = 2;

constexpr uint32_t tag_of(int field, uint32_t kind) {
  return static_cast<uint32_t>(field) << 3U | kind;
}

size_t size_of_field(int field, uint64_t number) {
  return CodedOutputStream::VarintSize32(tag_of(field, kNumber)) +
         CodedOutputStream::VarintSize64(number);
}

uint8_t* write(int field, uint32_t kind, uint64_t number, uint8_t* to) {
  to = CodedOutputStream::WriteTagToArray(tag_of(field, kind), to);
  return CodedOutputStream::WriteVarint64ToArray(number, to);
}

template <class Visitor>
void each_field(const KvHint& kv, Visitor& visitor) {
  visitor.text(v1::KvHint::kSeqIdFieldNumber, kv.seq_id);
  visitor.number(v1::KvHint::kBeginFieldNumber, kv.begin);
  visitor.number(v1::KvHint::kMovedTokensFieldNumber, kv.moved_tokens);
}

template <class Visitor>
void each_field(const TokenGroup& group, Visitor& visitor) {
  visitor.number(v1::TokenGroup::kChoiceFieldNumber, group.choice);
  visitor.text(v1::TokenGroup::kTokenIdsFieldNumber, group.ids);
  visitor.text(v1::TokenGroup::kFinishReasonFieldNumber, group.finish_reason);
  visitor.text(v1::TokenGroup::kStopReasonFieldNumber, group.stop_reason);
}

template <class Visitor>
void each_field(const Resume& resume, Visitor& visitor) {
  each_recorded(resume.groups, [&visitor](const TokenGroup& group) {
    visitor.message(v1::Resume::kGroupsFieldNumber, &group);
  });
  visitor.number(v1::Resume::kEventsFieldNumber, resume.events);
  visitor.number(v1::Resume::kCreatedFieldNumber, resume.created);
  visitor.number(v1::Resume::kCachedTokensFieldNumber, resume.cached_tokens);
}

// What the fields take that say something.
class Size {
 public:
  void text(int field, std::string_view text) {
    if (!text.empty()) bytes_ += size_of_field(field, text.size()) + text.size();
  }
  void number(int field, uint64_t number) {
    if (number != 0) bytes_ += size_of_field(field, number);
  }
  template <class Message>
  void message(int field, const Message* message) {
    if (message == nullptr) return;
    const size_t inner = size_of(*message);
    bytes_ += size_of_field(field, inner) + inner;
  }
  template <class Message>
  static size_t size_of(const Message& message) {
    Size size;
    each_field(message, size);
    return size.bytes();
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

// Writes them where there is room for them.
class Writer {
 public:
  explicit Writer(uint8_t* to) : to_(to) {}

  void text(int field, std::string_view text) {
    if (text.empty()) return;
    to_ = write(field, kBytes, text.size(), to_);
    std::memcpy(to_, text.data(), text.size());
    to_ += text.size();
  }
  void number(int field, uint64_t number) {
    if (number != 0) to_ = write(field, kNumber, number, to_);
  }
  template <class Message>
  void message(int field, const Message* message) {
    if (message == nullptr) return;
    to_ = write(field, kBytes, Size::size_of(*message), to_);
    each_field(*message, *this);
  }
  uint8_t* to() const { return to_; }

 private:
  uint8_t* to_;
};

template <class Visitor>
void each_field(const CallRequest& request, Visitor& visitor) {
  using Fields = v1::CallRequest;
  visitor.text(Fields::kRequestIdFieldNumber, request.request_id);
  visitor.text(Fields::kTraceparentFieldNumber, request.traceparent);
  visitor.text(Fields::kMethodFieldNumber, request.method);
  visitor.text(Fields::kPathFieldNumber, request.path);
  visitor.text(Fields::kBodyFieldNumber, request.body);
  visitor.text(Fields::kModelFieldNumber, request.model);
  visitor.text(Fields::kAdapterFieldNumber, request.adapter);
  // A negative number is written with all of its 64 bits.
  visitor.number(Fields::kPriorityFieldNumber,
                 static_cast<uint64_t>(static_cast<int64_t>(request.priority)));
  visitor.text(Fields::kTenantSaltFieldNumber, request.tenant_salt);
  visitor.number(Fields::kTokenGroupsFieldNumber, request.token_groups ? 1 : 0);
  visitor.number(Fields::kMaxPromptTokensFieldNumber, request.max_prompt_tokens);
  visitor.number(Fields::kMaxCompletionTokensFieldNumber, request.max_completion_tokens);
  visitor.text(Fields::kAdapterDigestFieldNumber, request.adapter_digest);
  visitor.number(Fields::kAdapterWaitMsFieldNumber, request.adapter_wait_ms);
  visitor.number(Fields::kTrimFieldNumber, request.trim ? 1 : 0);
  visitor.text(Fields::kTenantFieldNumber, request.tenant);
  visitor.number(Fields::kInputPriceFieldNumber, request.input_price);
  visitor.number(Fields::kOutputPriceFieldNumber, request.output_price);
  visitor.number(Fields::kCachedPriceFieldNumber, request.cached_price);
  visitor.message(Fields::kKvFieldNumber, request.kv);
  visitor.message(Fields::kResumeFieldNumber, request.resume);
}

}  // namespace

// Protobuf takes the fields of a message in any order.
void append_start(std::string& frame, const StartView& start, size_t body_bytes) {
  Size size;
  each_field(start.request, size);
  const size_t request = size.bytes();
  const size_t before_body =
      body_bytes > 0 ? size_of_field(v1::CallRequest::kBodyFieldNumber, body_bytes) : 0;
  const size_t whole_request = request + before_body + body_bytes;
  const size_t rest = size_of_field(v1::Start::kCallIdFieldNumber, start.call_id) +
                      size_of_field(v1::Start::kInitialCreditBytesFieldNumber, start.credit_bytes) +
                      size_of_field(v1::Start::kRequestFieldNumber, whole_request);
  const size_t tag = size_of_field(v1::ClientFrame::kStartsFieldNumber, rest + whole_request);
  const size_t before = frame.size();
  frame.resize(before + tag + rest + request + before_body);
  auto* to = reinterpret_cast<uint8_t*>(frame.data() + before);
  to = write(v1::ClientFrame::kStartsFieldNumber, kBytes, rest + whole_request, to);
  to = write(v1::Start::kCallIdFieldNumber, kNumber, start.call_id, to);
  to = write(v1::Start::kInitialCreditBytesFieldNumber, kNumber, start.credit_bytes, to);
  to = write(v1::Start::kRequestFieldNumber, kBytes, whole_request, to);
  Writer writer(to);
  each_field(start.request, writer);
  if (body_bytes == 0) return;
  write(v1::CallRequest::kBodyFieldNumber, kBytes, body_bytes, writer.to());
}

}  // namespace penstock::upstream
