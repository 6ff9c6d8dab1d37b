// Reads HTTP/1.1 answers from bytes as they arrive, whatever way TCP cut them. Pure: no socket, no
// clock. One per client connection; used and owned by the thread of that connection.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace penstock::evals {

struct ResponseHead {
  int status = 0;
  bool event_stream = false;
  bool keep_alive = true;
};

class ResponseReader {
 public:
  enum class State { kHead, kBody, kDone, kBroken };
  using OnBody = std::function<void(std::string_view)>;

  // Takes bytes in, hands the body's bytes on without their framing. Returns how many bytes it
  // used: fewer than given when the answer ended (kDone) or is no HTTP (kBroken).
  size_t feed(std::string_view bytes, const OnBody& on_body);

  // The connection ended. An answer without a length is complete by that; any other is cut short.
  void end_of_input();

  // Ready for the next answer on the same connection.
  void reset();

  State state() const { return state_; }
  const ResponseHead& head() const { return head_; }
  bool has_head() const { return state_ == State::kBody || state_ == State::kDone; }

 private:
  enum class Framing { kLength, kChunked, kUntilClose };
  enum class ChunkPart { kSize, kData, kDataEnd, kTrailer };

  size_t feed_head(std::string_view bytes);
  size_t feed_body(std::string_view bytes, const OnBody& on_body);
  size_t feed_chunked(std::string_view bytes, const OnBody& on_body);
  size_t feed_line(std::string_view bytes);
  void parse_head(std::string_view head);
  void parse_field(std::string_view name, std::string_view value);
  void finish_line();

  State state_ = State::kHead;
  ResponseHead head_;
  Framing framing_ = Framing::kUntilClose;
  ChunkPart part_ = ChunkPart::kSize;
  size_t left_ = 0;   // bytes left of the chunk or of the length
  std::string line_;  // the head, or a chunk's line, as far as it has come
};

}  // namespace penstock::evals
