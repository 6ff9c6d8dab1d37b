// The chunked transfer coding of one request body, read strictly: whatever two readers could read
// in two ways is a fault, and so is framing that outgrows its bounds. Extensions and trailers are
// passed over; nothing of them reaches anybody. Pure: bytes in, bytes out, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::http {

class ChunkDecoder {
 public:
  static constexpr size_t kSizeDigits = 16;
  static constexpr size_t kExtensionBytes = 256;        // of one chunk
  static constexpr size_t kExtensionsBytes = 4096;      // of all chunks of a body
  static constexpr size_t kTrailersBytes = 8UL * 1024;  // of all trailers together

  enum class State : uint8_t {
    kMore,      // the body goes on
    kDone,      // what was not used belongs to the next request
    kFault,     // fault() says what is wrong
    kTooLarge,  // the body is larger than it may be
  };

  explicit ChunkDecoder(size_t body_limit) : room_(body_limit) {}

  // Reads from `bytes`, appends what is of the body to `body`, and returns how many bytes it used:
  // all of them unless the state is another than kMore.
  size_t feed(std::string_view bytes, std::string& body);

  State state() const { return state_; }
  // For a person; empty unless the state is kFault.
  std::string_view fault() const { return fault_; }

 private:
  enum class At : uint8_t {
    kSizeBegin,
    kSize,
    kExtension,
    kSizeEnd,  // its line feed
    kData,
    kDataReturn,
    kDataEnd,
    kLineBegin,  // a trailer, or the end
    kTrailerName,
    kTrailerValue,
    kTrailerEnd,
    kEnd,  // the last line feed
  };

  void step(char c);
  void read_size(char c);
  void read_extension(char c);
  void end_of_size();
  void begin_line(char c);
  void read_trailer(char c);
  void expect(char c, char wanted, At next);
  size_t read_data(std::string_view bytes, std::string& body);
  void refuse(std::string_view fault);

  State state_ = State::kMore;
  At at_ = At::kSizeBegin;
  std::string_view fault_;
  size_t room_;            // bytes that the body may still grow by
  uint64_t left_ = 0;      // of the chunk that is read
  size_t digits_ = 0;      // of its size
  size_t extension_ = 0;   // bytes of its extensions
  size_t extensions_ = 0;  // bytes of all extensions
  size_t trailers_ = 0;    // bytes of all trailers
};

}  // namespace penstock::http
