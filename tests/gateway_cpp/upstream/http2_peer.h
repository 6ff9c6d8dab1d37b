// The server's end of an HTTP/2 connection, in memory: what a replica would see and say, down to
// what no well-behaved gRPC server says.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::upstream {

class Http2Peer {
 public:
  // window: bytes of the request's body that it takes before it has to give leave for more.
  explicit Http2Peer(uint32_t window = 65'535) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &on_close);
    nghttp2_option* options = nullptr;
    nghttp2_option_new(&options);
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_session_server_new2(&session_, callbacks, this, options);
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &settings, 1);
    if (window > 65'535) {
      nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                            static_cast<int32_t>(window));
    }
  }
  Http2Peer(const Http2Peer&) = delete;
  Http2Peer& operator=(const Http2Peer&) = delete;
  ~Http2Peer() { nghttp2_session_del(session_); }

  // ---- what came
  std::map<std::string, std::string> headers;
  std::string body;
  int pings = 0;  // that ask, not those that answer
  bool closed = false;
  uint32_t closed_with = 0;

  void feed(std::string_view bytes) {
    nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()),
                             bytes.size());
  }
  // Gives leave for as much again as came.
  void consume() { nghttp2_session_consume(session_, kStream, std::exchange(unconsumed_, 0)); }

  // ---- what it says: the bytes for the other side
  std::string take() {
    std::string out;
    for (;;) {
      const uint8_t* bytes = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
      if (size <= 0) return out;
      out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    }
  }

  std::string answer(const std::string& bytes) {
    if (!std::exchange(answering_, true)) {
      nghttp2_data_provider source{};
      source.read_callback = &on_room;
      const std::array headers = {pair(":status", "200"), pair("content-type", "application/grpc")};
      nghttp2_submit_response(session_, kStream, headers.data(), headers.size(), &source);
    }
    out_ += bytes;
    nghttp2_session_resume_data(session_, kStream);
    return take();
  }

  // The answer's end as gRPC has it.
  std::string finish(const std::string& status) {
    const std::array trailers = {pair("grpc-status", status), pair("grpc-message", "not%20now")};
    finishing_ = true;
    nghttp2_session_resume_data(session_, kStream);
    std::string out = take();
    nghttp2_submit_trailer(session_, kStream, trailers.data(), trailers.size());
    return out + take();
  }

  // An answer of HTTP's alone, without a body.
  std::string refuse(const std::string& status) {
    const std::array headers = {pair(":status", status)};
    nghttp2_submit_response(session_, kStream, headers.data(), headers.size(), nullptr);
    return take();
  }

  std::string reset(uint32_t why) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, kStream, why);
    return take();
  }

  // GOAWAY; with `last` 0 the call was not taken at all.
  std::string go_away(int32_t last) {
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0);
    return take();
  }

 private:
  static constexpr int32_t kStream = 1;  // the first of a client

  static Http2Peer& self(void* user) { return *static_cast<Http2Peer*>(user); }

  // Both must live until the call they are for has returned.
  static nghttp2_nv pair(std::string_view name, std::string_view value) {
    const auto bytes = [](std::string_view text) {
      return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(text.data()));
    };
    return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
  }

  static int on_header(nghttp2_session*, const nghttp2_frame*, const uint8_t* name,
                       size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                       void* user) {
    self(user).headers[std::string(reinterpret_cast<const char*>(name), name_size)] =
        std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }
  static int on_data(nghttp2_session*, uint8_t, int32_t, const uint8_t* data, size_t size,
                     void* user) {
    self(user).body.append(reinterpret_cast<const char*>(data), size);
    self(user).unconsumed_ += size;
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    const bool asks = (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0;
    if (frame->hd.type == NGHTTP2_PING && asks) ++self(user).pings;
    return 0;
  }
  static int on_close(nghttp2_session*, int32_t, uint32_t error, void* user) {
    self(user).closed = true;
    self(user).closed_with = error;
    return 0;
  }
  static ssize_t on_room(nghttp2_session*, int32_t, uint8_t* room, size_t size, uint32_t* flags,
                         nghttp2_data_source*, void* user) {
    std::string& out = self(user).out_;
    const size_t given = std::min(size, out.size());
    std::memcpy(room, out.data(), given);
    out.erase(0, given);
    const bool last = self(user).finishing_ && out.empty();
    if (last) *flags = NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return given == 0 && !last ? static_cast<ssize_t>(NGHTTP2_ERR_DEFERRED)
                               : static_cast<ssize_t>(given);
  }

  nghttp2_session* session_ = nullptr;
  std::string out_;
  size_t unconsumed_ = 0;
  bool answering_ = false;
  bool finishing_ = false;
};

}  // namespace penstock::upstream
