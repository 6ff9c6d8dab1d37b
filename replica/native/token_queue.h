// What one call has to say to its client, until a frame carries it away.
//
// Bounded: a push is always taken, and tells the producer when it made the queue full; the producer
// then stops until it hears of room. Held: body bytes beyond the client's credit wait here. Merged:
// all chunks that wait leave as one, as far as a frame has room. Any thread may call anything;
// after `close` or the end of the answer, pushes are ignored, and after `cancel` all but the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "penstock/v1/inference.pb.h"

namespace penstock::replica {

// A stretch of body bytes that the engine wrote at once. Of a stream it is sent whole or not at
// all: an event is never split. The body of a unary answer goes in parts of what a frame has room
// for.
struct Piece {
  uint32_t bytes = 0;
  uint32_t events = 0;
  uint32_t groups = 0;
  uint32_t tokens = 0;  // that were generated for it
};

// What a producer has to say of one call at once. Meant to be reused: `clear` keeps the memory.
struct News {
  bool has_head = false;
  v1::Head head;
  std::string body;
  std::vector<Piece> pieces;  // cover `body` and `groups` in order
  std::vector<v1::TokenGroup> groups;
  v1::CallEvent end;  // only `finished`, `failed` or `cancelled`; none: the answer goes on

  bool ends() const { return end.has_finished() || end.has_failed() || end.has_cancelled(); }

  // Adds a piece of `bytes` that were appended to `body`.
  void add_piece(size_t bytes, uint32_t events, uint32_t group_count, uint32_t tokens = 0);
  void clear();
};

class TokenQueue {
 public:
  static constexpr size_t kCapacityBytes = 64 << 10;

  struct Pushed {
    bool became_ready = false;  // there is something to send, and nobody was told of it yet
    bool full = false;          // stop producing until there is room
    bool closed = false;        // nobody will read this
  };
  struct Taken {
    size_t bytes = 0;       // of body
    bool anything = false;  // the event has content
    bool more = false;      // there is more that may be sent now: list the call again
    bool room = false;      // the producer was told to stop, and may go on
    bool ended = false;     // this was the last event of the call
  };

  // `credit_bytes`: body bytes that the client takes before it grants more; 0: without limit.
  explicit TokenQueue(uint64_t credit_bytes = 0, size_t capacity_bytes = kCapacityBytes);

  // Takes the content of `news` and clears it.
  Pushed push(News& news);
  // True if the call has to be listed as ready.
  bool add_credit(uint64_t bytes);
  // Fills `event` with what may be sent, up to `budget` body bytes, but of a stream at least one
  // piece.
  Taken take(v1::CallEvent* event, size_t budget);
  // The client wants no more: drops what waits, and tells the end, whatever it is, as Cancelled
  // with its usage. That goes without credit. True if the call has to be listed as ready.
  bool cancel();
  // The client is gone: drops what waits.
  void close();

 private:
  bool sendable() const;
  bool list_if_sendable();
  size_t held() const { return body_.size() - body_begin_; }
  Piece next_stretch(size_t budget);
  size_t part_of(const Piece& piece, size_t room) const;
  void take_pieces(v1::Chunk* chunk, size_t budget, Taken* taken);
  void take_end(v1::CallEvent* event, Taken* taken);
  void tell_end_as_cancelled();
  void drop_all();
  void drop_taken_pieces(size_t bytes, size_t groups);

  const size_t capacity_;
  const bool limited_;
  mutable std::mutex mutex_;
  int64_t credit_;
  bool has_head_ = false;
  v1::Head head_;
  bool unary_ = false;  // as the head said
  std::string body_;
  size_t body_begin_ = 0;  // what is before it has been taken
  std::vector<Piece> pieces_;
  size_t first_piece_ = 0;
  std::vector<v1::TokenGroup> groups_;
  v1::CallEvent end_;
  bool has_end_ = false;
  bool listed_ = false;
  bool producer_stopped_ = false;
  bool cancelled_ = false;
  bool closed_ = false;
};

}  // namespace penstock::replica
