// A body that comes packed: unpacked piece by piece, each into room that the budget has given, so
// that a few bytes that unpack to gigabytes cost no more than a body at the limit. Others of the
// thread have their turn after each piece.
#include "http/chunk_decoder.h"
#include "http/read_errors.h"
#include "http/request_reader.h"

namespace penstock::http {

namespace {

constexpr size_t kPieceBytes = 16UL * 1024;
constexpr size_t kBesideBytes = Gunzip::kStateBytes + kPieceBytes;

bool has_left(const Connection& connection) { return connection.gone() || connection.cut_short(); }

}  // namespace

// The bytes of a body as they come, whichever way their end is told.
class RequestReader::PackedBytes {
 public:
  PackedBytes(const RequestHead& head, size_t most)
      : is_chunked_(head.is_chunked), left_(head.content_length.value_or(0)), chunks_(most) {}

  // Takes the next piece from `bytes` and returns how many of them it used.
  size_t take(std::string_view bytes) {
    piece_.clear();
    bytes = bytes.substr(0, kPieceBytes);
    if (is_chunked_) return chunks_.feed(bytes, piece_);
    piece_.append(bytes.substr(0, left_));
    left_ -= piece_.size();
    return piece_.size();
  }

  const std::string& piece() const { return piece_; }
  bool over() const {
    return is_chunked_ ? chunks_.state() != ChunkDecoder::State::kMore : left_ == 0;
  }
  std::string_view fault() const { return chunks_.fault(); }
  bool too_large() const { return chunks_.state() == ChunkDecoder::State::kTooLarge; }

 private:
  const bool is_chunked_;
  uint64_t left_;  // of a body that is counted
  ChunkDecoder chunks_;
  std::string piece_;
};

Awaitable<base::MaybeError> RequestReader::packed_body(const RequestHead& head,
                                                       runtime::BodyShare& share,
                                                       std::string& body) {
  Gunzip gunzip;
  PackedBytes packed(head, limits_.body_bytes);
  beside_ = kBesideBytes;
  base::MaybeError failed;
  while (!failed && !packed.over() && !has_left(connection_)) {
    failed = co_await next_piece(packed);
    if (!failed) failed = co_await unpack(gunzip, packed.piece(), share, body);
    if (!packed.over() && !has_left(connection_)) co_await connection_.yield();
  }
  beside_ = 0;
  if (failed || has_left(connection_)) co_return failed;
  if (!gunzip.whole()) co_return bad_gzip("it breaks off");
  fit(share, body);
  co_return std::nullopt;
}

// More of the body as it came; nothing where the client leaves, or at the end.
Awaitable<base::MaybeError> RequestReader::next_piece(PackedBytes& packed) {
  for (;;) {
    use(packed.take(unread()));
    if (packed.too_large()) co_return body_too_large(limits_.body_bytes);
    if (!packed.fault().empty()) co_return bad_request(packed.fault());
    if (!packed.piece().empty() || packed.over()) co_return std::nullopt;
    const auto filled = co_await fill();
    if (filled == Filled::kTooLate) co_return pace_.fault();
    if (filled == Filled::kGone) co_return std::nullopt;
    keep(fresh_);
  }
}

Awaitable<base::MaybeError> RequestReader::unpack(Gunzip& gunzip, std::string_view packed,
                                                  runtime::BodyShare& share, std::string& body) {
  while (!packed.empty() || gunzip.has_more()) {
    auto failed = co_await make_room(Gunzip::kStepBytes, limits_.body_bytes, share, body);
    if (failed || connection_.gone() || connection_.cut_short()) co_return failed;
    if (pace_.is_over()) co_return pace_.fault();
    packed.remove_prefix(gunzip.step(packed, body));
    if (!gunzip.fault().empty()) co_return bad_gzip(gunzip.fault());
    if (body.size() > limits_.body_bytes) co_return unpacked_body_too_large(limits_.body_bytes);
    if (!packed.empty() || gunzip.has_more()) co_await connection_.yield();
  }
  co_return std::nullopt;
}

}  // namespace penstock::http
