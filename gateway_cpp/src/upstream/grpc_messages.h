// gRPC's framing of messages in a byte stream: a flag (1: compressed), the length in four bytes,
// the message. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::upstream {

constexpr size_t kMessagePrefixBytes = 5;

// Appends the prefix of a message of `bytes` bytes, which come next.
inline void append_message_prefix(std::string& out, uint32_t bytes) {
  const auto byte = [bytes](unsigned shift) { return static_cast<char>(bytes >> shift & 0xff); };
  out.append({'\0', byte(24), byte(16), byte(8), byte(0)});
}

// Finds the messages in bytes that come in pieces of any size.
class MessageReader {
 public:
  // Hands every message that is complete to `take(std::string_view) -> bool`, valid for that call.
  // False: a message is compressed or larger than `most` bytes, or `take` refused it; what follows
  // means nothing then.
  template <class Take>
  bool feed(std::string_view bytes, size_t most, const Take& take) {
    // A piece of many messages is read in place; only what is left over is copied.
    if (!partial_.empty()) {
      partial_.append(bytes);
      if (partial_.size() < wanted_) return true;
      bytes = partial_;
    }
    size_t done = 0;
    bool good = true;
    while (good && bytes.size() - done >= kMessagePrefixBytes) {
      const std::string_view rest = bytes.substr(done);
      const size_t length = length_of(rest);
      wanted_ = kMessagePrefixBytes + length;
      if (rest.front() != '\0' || length > most) return false;
      if (rest.size() < wanted_) break;
      good = take(rest.substr(kMessagePrefixBytes, length));
      done += wanted_;
      wanted_ = kMessagePrefixBytes;
    }
    keep(bytes.substr(done));
    return good;
  }

 private:
  static constexpr size_t kKeptBytes = 256UL * 1024;

  static size_t length_of(std::string_view prefix) {
    size_t length = 0;
    for (size_t i = 1; i < kMessagePrefixBytes; ++i) {
      length = length << 8 | static_cast<unsigned char>(prefix[i]);
    }
    return length;
  }

  // `rest` may lie in partial_.
  void keep(std::string_view rest) {
    if (partial_.empty()) {
      partial_.assign(rest);
    } else {
      partial_.erase(0, partial_.size() - rest.size());
    }
    if (partial_.empty() && partial_.capacity() > kKeptBytes) partial_.shrink_to_fit();
  }

  std::string partial_;                  // the beginning of a message
  size_t wanted_ = kMessagePrefixBytes;  // bytes in partial_ before another look is worth it
};

}  // namespace penstock::upstream
