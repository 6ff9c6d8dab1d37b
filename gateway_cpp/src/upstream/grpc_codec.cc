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
constexpr size_t kMostMessageBytes = 256UL * 1024 * 1024;
constexpr size_t kKeptOutboxBytes = 64UL * 1024;

nghttp2_nv header(std::string_view name, std::string_view value) {
  // nghttp2 copies both.
  const auto bytes = [](std::string_view text) {
    return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

// What nghttp2 calls, with the codec as its user data.
struct GrpcCodec::Callbacks {
  static int on_data(nghttp2_session* /*session*/, uint8_t /*flags*/, int32_t /*stream*/,
                     const uint8_t* data, size_t size, void* user) {
    auto& codec = *static_cast<GrpcCodec*>(user);
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    if (codec.over_ || codec.reader_.feed(bytes, kMostMessageBytes, codec.on_message_)) return 0;
    codec.over_ = true;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }

  // gRPC's answers end before their requests where the server has enough.
  static int on_frame(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    auto& codec = *static_cast<GrpcCodec*>(user);
    const bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    const bool may_end = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (may_end && last && frame->hd.stream_id == codec.stream_) codec.over_ = true;
    return 0;
  }

  static int on_close(nghttp2_session* /*session*/, int32_t stream, uint32_t /*error*/,
                      void* user) {
    auto& codec = *static_cast<GrpcCodec*>(user);
    if (stream == codec.stream_) codec.over_ = true;
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

GrpcCodec::GrpcCodec(const std::string& authority, const std::string& path, OnMessage on_message)
    : on_message_(std::move(on_message)) {
  nghttp2_session_callbacks* callbacks = nullptr;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) throw std::bad_alloc();
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &Callbacks::on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &Callbacks::on_close);
  nghttp2_session* session = nullptr;
  const int failed = nghttp2_session_client_new(&session, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  if (failed != 0) throw std::bad_alloc();
  http2_.reset(session);
  open(authority, path);
}

GrpcCodec::~GrpcCodec() = default;

void GrpcCodec::open(const std::string& authority, const std::string& path) {
  const std::array settings = {
      nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindowBytes},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kFrameBytes}};
  nghttp2_submit_settings(http2_.get(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(http2_.get(), NGHTTP2_FLAG_NONE, 0, kWindowBytes);
  const std::array headers = {header(":method", "POST"),
                              header(":scheme", "http"),
                              header(":path", path),
                              header(":authority", authority),
                              header("te", "trailers"),
                              header("content-type", "application/grpc"),
                              header("user-agent", "penstock-gateway")};
  nghttp2_data_provider body{};
  body.read_callback = &Callbacks::on_room;
  stream_ =
      nghttp2_submit_request(http2_.get(), nullptr, headers.data(), headers.size(), &body, nullptr);
  over_ = stream_ < 0;
}

char* GrpcCodec::add_message(uint32_t bytes) {
  if (given_ > outbox_.size() / 2) outbox_.erase(0, std::exchange(given_, 0));
  append_message_prefix(outbox_, bytes);
  outbox_.resize(outbox_.size() + bytes);
  nghttp2_session_resume_data(http2_.get(), stream_);
  return outbox_.data() + outbox_.size() - bytes;
}

size_t GrpcCodec::give(char* room, size_t size) {
  const size_t given = std::min(size, outbox_.size() - given_);
  std::memcpy(room, outbox_.data() + given_, given);
  given_ += given;
  total_given_ += given;
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

void GrpcCodec::produce(std::string& out, size_t most) {
  while (out.size() < most) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(http2_.get(), &bytes);
    if (size < 0) over_ = true;
    if (size <= 0) break;
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  }
  look_for_end();
}

void GrpcCodec::feed(std::string_view bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (nghttp2_session_mem_recv(http2_.get(), data, bytes.size()) < 0) over_ = true;
  look_for_end();
}

// After a fault of the peer's, for example, and once it was told of it.
void GrpcCodec::look_for_end() {
  if (nghttp2_session_want_read(http2_.get()) == 0) over_ = true;
}

}  // namespace penstock::upstream
