// Answer bytes on their way to a client, with room in front and behind for one HTTP chunk frame, so
// that everything that came for a call since the last write leaves with one size line and one send.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock::runtime {

class Payload {
 public:
  static constexpr size_t kHeadroom = 16;  // bytes kept free in front

  bool empty() const { return buffer_.size() <= kHeadroom; }
  size_t capacity() const { return buffer_.capacity(); }
  size_t size() const { return empty() ? 0 : buffer_.size() - kHeadroom; }
  std::string_view bytes() const {
    return empty() ? std::string_view() : std::string_view(buffer_).substr(kHeadroom);
  }

  void append(std::string_view bytes) {
    if (buffer_.empty()) buffer_.assign(kHeadroom, ' ');
    buffer_.append(bytes);
  }

  // Takes the last `bytes` of them away.
  void drop_last(size_t bytes) { buffer_.resize(buffer_.size() - bytes); }

  // Writes `prefix` (at most kHeadroom bytes) before the bytes and `suffix` after them; the result
  // is valid until the next change. Framing is done once per payload.
  std::string_view framed(std::string_view prefix, std::string_view suffix) {
    buffer_.append(suffix);
    buffer_.replace(kHeadroom - prefix.size(), prefix.size(), prefix);
    return std::string_view(buffer_).substr(kHeadroom - prefix.size());
  }

  // Keeps the memory unless a burst made it large.
  void clear() {
    buffer_.clear();
    if (buffer_.capacity() > kKeptBytes) buffer_.shrink_to_fit();
  }

  void swap(Payload& other) noexcept { buffer_.swap(other.buffer_); }

 private:
  static constexpr size_t kKeptBytes = 16UL * 1024;

  std::string buffer_;  // empty, or kHeadroom bytes and then the payload
};

}  // namespace penstock::runtime
