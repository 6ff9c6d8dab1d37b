#include "upstream/grpc_codec.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

namespace penstock::upstream {

namespace {

// What may be on its way to us: calls have their own credit, so this never holds one back for
// another.
constexpr int32_t kWindowBytes = 16 * 1024 * 1024;
constexpr uint32_t kFrameBytes = 1024 * 1024;
constexpr size_t kKeptOutboxBytes = 64UL * 1024;
constexpr size_t kShownBytes = 300;  // of what a peer says for people

nghttp2_nv header(std::string_view name, std::string_view value,
                  uint8_t flags = NGHTTP2_NV_FLAG_NONE) {
  // nghttp2 copies both.
  const auto bytes = [](std::string_view text) {
    return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), flags};
}

std::string_view text_of(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

// What nghttp2 calls, with the codec as its user data.
struct GrpcCodec::Callbacks {
  static int on_data(nghttp2_session* /*session*/, uint8_t /*flags*/, int32_t /*stream*/,
                     const uint8_t* data, size_t size, void* user) {
    auto& codec = *static_cast<GrpcCodec*>(user);
    const std::string_view bytes = text_of(data, size);
    if (codec.over_ || codec.reader_.feed(bytes, codec.most_message_bytes_, codec.on_message_)) {
      return 0;
    }
    codec.end("a message came that makes no sense");
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }

  static int on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame,
                       const uint8_t* name, size_t name_size, const uint8_t* value,
                       size_t value_size, uint8_t /*flags*/, void* user) {
    auto& codec = *static_cast<GrpcCodec*>(user);
    if (frame->hd.stream_id != codec.stream_) return 0;
    codec.note_header(text_of(name, name_size), text_of(value, value_size));
    return 0;
  }

  // gRPC's answers end before their requests where the server has enough.
  static int on_frame(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    auto& codec = *static_cast<GrpcCodec*>(user);
    const bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    const bool may_end = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      codec.note_goaway(frame->goaway.last_stream_id, frame->goaway.error_code);
    }
    if (may_end && last && frame->hd.stream_id == codec.stream_) {
      codec.end("the replica ended it: " + codec.status_text(), PeerWord::kEnded);
    }
    return 0;
  }

  static int on_close(nghttp2_session* /*session*/, int32_t stream, uint32_t error, void* user) {
    auto& codec = *static_cast<GrpcCodec*>(user);
    if (stream != codec.stream_) return 0;
    const auto word = error == NGHTTP2_REFUSED_STREAM ? PeerWord::kNotSeen : PeerWord::kEnded;
    codec.end("the replica reset it: HTTP/2 error " + std::string(nghttp2_http2_strerror(error)),
              word);
    return 0;
  }

  static ssize_t on_room(nghttp2_session* /*session*/, int32_t /*stream*/, uint8_t* room,
                         size_t size, uint32_t* /*flags*/, nghttp2_data_source* /*source*/,
                         void* user) {
    const size_t given = static_cast<GrpcCodec*>(user)->give(reinterpret_cast<char*>(room), size);
    return given == 0 ? static_cast<ssize_t>(NGHTTP2_ERR_DEFERRED) : static_cast<ssize_t>(given);
  }
};

void GrpcCodec::Close::operator()(nghttp2_session* session) const { nghttp2_session_del(session); }

GrpcCodec::GrpcCodec(const CallTarget& target, OnMessage on_message)
    : on_message_(std::move(on_message)), most_message_bytes_(target.most_message_bytes) {
  nghttp2_session_callbacks* callbacks = nullptr;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) throw std::bad_alloc();
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &Callbacks::on_data);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, &Callbacks::on_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &Callbacks::on_close);
  nghttp2_session* session = nullptr;
  const int failed = nghttp2_session_client_new(&session, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  if (failed != 0) throw std::bad_alloc();
  http2_.reset(session);
  open(target);
}

GrpcCodec::~GrpcCodec() = default;

void GrpcCodec::open(const CallTarget& target) {
  const std::array settings = {
      nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindowBytes},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kFrameBytes}};
  nghttp2_submit_settings(http2_.get(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(http2_.get(), NGHTTP2_FLAG_NONE, 0, kWindowBytes);
  const std::string bearer = "Bearer " + target.token;
  const std::array headers = {header(":method", "POST"),
                              header(":scheme", "http"),
                              header(":path", target.path),
                              header(":authority", target.authority),
                              header("te", "trailers"),
                              header("content-type", "application/grpc"),
                              header("user-agent", "penstock-gateway"),
                              header("authorization", bearer, NGHTTP2_NV_FLAG_NO_INDEX)};
  const size_t sent = headers.size() - (target.token.empty() ? 1 : 0);
  nghttp2_data_provider body{};
  body.read_callback = &Callbacks::on_room;
  stream_ = nghttp2_submit_request(http2_.get(), nullptr, headers.data(), sent, &body, nullptr);
  if (stream_ < 0) end(nghttp2_strerror(stream_));
}

void GrpcCodec::note_header(std::string_view name, std::string_view value) {
  if (name == ":status") http_status_ = value.substr(0, kShownBytes);
  if (name == "grpc-status") grpc_status_ = value.substr(0, kShownBytes);
  if (name == "grpc-message") grpc_message_ = value.substr(0, kShownBytes);
}

void GrpcCodec::note_goaway(int32_t last_stream, uint32_t error) {
  going_away_ = true;
  if (last_stream >= stream_) return;
  end("the replica goes away and did not take it: HTTP/2 error " +
          std::string(nghttp2_http2_strerror(error)),
      PeerWord::kNotSeen);
}

// What was said first is the reason; what follows comes of it.
void GrpcCodec::end(std::string why, PeerWord word) {
  if (std::exchange(over_, true)) return;
  why_over_ = std::move(why);
  peer_word_ = word;
}

std::string GrpcCodec::status_text() const {
  if (grpc_status_.empty()) return "HTTP status " + http_status_ + " and no gRPC status";
  std::string text = "gRPC status " + grpc_status_;
  if (!grpc_message_.empty()) text += " (" + grpc_message_ + ")";
  return text;
}

char* GrpcCodec::add_message(uint32_t bytes, SharedBody tail) {
  if (given_ > outbox_.size() / 2) outbox_.erase(0, std::exchange(given_, 0));
  const size_t tail_bytes = tail ? tail->size() : 0;
  append_message_prefix(outbox_, bytes + static_cast<uint32_t>(tail_bytes));
  outbox_.resize(outbox_.size() + bytes);
  if (tail) {
    size_t before = outbox_.size() - given_;
    for (const Tail& other : tails_) before -= other.before;
    tail_bytes_ += tail_bytes;
    tails_.push_back({before, std::move(tail), tail_bytes, added()});
  }
  nghttp2_session_resume_data(http2_.get(), stream_);
  return outbox_.data() + outbox_.size() - bytes;
}

size_t GrpcCodec::give(char* room, size_t size) {
  const bool tail = !tails_.empty() && tails_.front().before == 0;
  const size_t given = tail ? give_tail(room, size) : give_text(room, size);
  total_given_ += given;
  return given;
}

size_t GrpcCodec::give_tail(char* room, size_t size) {
  Tail& tail = tails_.front();
  const size_t given = std::min(size, tail.left);
  if (tail.body) {
    tail.body->copy(room, given, tail.body->size() - tail.left);
  } else {
    std::memset(room, 0, given);
  }
  tail.left -= given;
  tail_bytes_ -= given;
  if (tail.left == 0) tails_.pop_front();
  return given;
}

void GrpcCodec::blank_tail(uint64_t end) {
  const auto is_at = [](const Tail& tail, uint64_t wanted) { return tail.end < wanted; };
  const auto found = std::lower_bound(tails_.begin(), tails_.end(), end, is_at);
  if (found != tails_.end() && found->end == end) found->body.reset();
}

size_t GrpcCodec::give_text(char* room, size_t size) {
  const size_t left = outbox_.size() - given_;
  const size_t given = std::min(size, tails_.empty() ? left : tails_.front().before);
  std::memcpy(room, outbox_.data() + given_, given);
  given_ += given;
  if (!tails_.empty()) tails_.front().before -= given;
  if (given_ == outbox_.size()) {
    given_ = 0;
    outbox_.clear();
    if (outbox_.capacity() > kKeptOutboxBytes) outbox_.shrink_to_fit();
  }
  return given;
}

void GrpcCodec::ping() { nghttp2_submit_ping(http2_.get(), NGHTTP2_FLAG_NONE, nullptr); }

void GrpcCodec::cancel() {
  nghttp2_submit_rst_stream(http2_.get(), NGHTTP2_FLAG_NONE, stream_, NGHTTP2_CANCEL);
}

void GrpcCodec::drop() {
  tails_.clear();
  tail_bytes_ = 0;
  outbox_ = {};
  given_ = 0;
}

void GrpcCodec::produce(std::string& out, size_t most) {
  while (out.size() < most) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(http2_.get(), &bytes);
    if (size < 0) end(nghttp2_strerror(static_cast<int>(size)));
    if (size <= 0) break;
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  }
  look_for_end();
}

void GrpcCodec::feed(std::string_view bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const ssize_t taken = nghttp2_session_mem_recv(http2_.get(), data, bytes.size());
  if (taken < 0)
    end("what came is no HTTP/2: " + std::string(nghttp2_strerror(static_cast<int>(taken))));
  look_for_end();
}

// After a fault of the peer's, for example, and once it was told of it.
void GrpcCodec::look_for_end() {
  if (nghttp2_session_want_read(http2_.get()) == 0) end("the HTTP/2 connection is over");
}

}  // namespace penstock::upstream
