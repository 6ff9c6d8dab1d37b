// Reads the requests of one connection, one after the other, each in two steps: its head, and then,
// if somebody wants it, its body. Strict framing, limits and deadlines for both, and others' turn
// after some bytes. One for each session; its I/O thread only.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "http/body_pace.h"
#include "http/connection.h"
#include "http/gunzip.h"
#include "http/strict_head.h"
#include "runtime/body_budget.h"

namespace penstock::http {

struct ReadLimits {
  size_t head_bytes;
  size_t body_bytes;
  size_t body_rate;                        // bytes a second at least; 0: any
  std::chrono::milliseconds head_timeout;  // also until a new connection's first byte
  std::chrono::milliseconds body_timeout;
  std::chrono::milliseconds idle_timeout;  // between requests
};

// The connection ended, or was idle for too long: nothing to say.
struct NoMore {};

// The client has not taken the answer before: Connection::flush(), and then ask again.
struct AnswerFirst {};

// What no request can be made of: to be told to the client, and then the connection closed.
struct Unreadable {
  base::Error error;
  RequestHead head = {};  // what could be read of it, to know who will read the answer
};

class RequestReader {
 public:
  using Incoming = std::variant<RequestHead, Unreadable, NoMore, AnswerFirst>;

  RequestReader(Connection& connection, const ReadLimits& limits)
      : connection_(connection),
        limits_(limits),
        timer_(connection.timers(), connection.signal()),
        pace_(connection.timers(), timer_, limits.body_timeout, limits.body_rate) {}

  // The next head; its views are good until the next next(). A body that was not read before is not
  // skipped: ask no more of this connection then.
  Awaitable<Incoming> next();

  // The body of the head that came last, where all of it has come with the head, as it is, and
  // there is room for it. False: nothing is taken.
  bool take_body(const RequestHead& head, runtime::BodyShare& share, std::string& body);
  // The body of the head that came last, unpacked, whose share of the budget grows with it. The
  // client may be gone afterwards.
  Awaitable<base::MaybeError> body(const RequestHead& head, runtime::BodyShare& share,
                                   std::string& body);

  // Shortens the wait for the next request, from now.
  void hurry(std::chrono::milliseconds idle_timeout) {
    limits_.idle_timeout = idle_timeout;
    if (idle_) timer_.arm(idle_timeout);
  }

 private:
  enum class Filled : uint8_t { kMore, kTooLate, kGone, kAnswerFirst };

  std::optional<Incoming> whole_head();
  Awaitable<Incoming> rest_of_head();
  Incoming take_head(size_t size);
  Incoming oversized_head(std::string_view begun);
  Awaitable<Filled> fill();
  Awaitable<base::MaybeError> counted_body(uint64_t length, runtime::BodyShare& share,
                                           std::string& body);
  Awaitable<base::MaybeError> chunked_body(runtime::BodyShare& share, std::string& body);
  bool find_room(size_t bytes, size_t most, runtime::BodyShare& share, std::string& body) const;
  Awaitable<base::MaybeError> make_room(size_t bytes, size_t most, runtime::BodyShare& share,
                                        std::string& body);
  // A body of unknown length was given room for a read at least; what it does not need goes back.
  static void fit(runtime::BodyShare& share, std::string& body);
  Awaitable<void> go_on();

  // A packed body: packed_body.cc
  class PackedBytes;
  Awaitable<base::MaybeError> packed_body(const RequestHead& head, runtime::BodyShare& share,
                                          std::string& body);
  Awaitable<base::MaybeError> next_piece(PackedBytes& packed);
  Awaitable<base::MaybeError> unpack(Gunzip& gunzip, std::string_view packed,
                                     runtime::BodyShare& share, std::string& body);

  bool owes_answer() const { return connection_.owes_before_reading() && !connection_.gone(); }
  std::string_view unread() const { return std::string_view(buffer_).substr(begin_); }
  void use(size_t bytes);
  void keep(std::string_view bytes);
  bool skip_blank_lines();

  Connection& connection_;
  ReadLimits limits_;
  runtime::TimerWheel::Timer timer_;
  BodyPace pace_;
  std::string head_;    // the bytes of the head that came last
  std::string buffer_;  // read and not yet used, from begin_ on
  size_t begin_ = 0;
  size_t searched_ = 0;     // of what is unread, for the head's end
  std::string_view fresh_;  // what fill() read: good until the next wait
  size_t blank_ = 0;        // bytes of blank lines before this request
  size_t beside_ = 0;       // bytes that the body's share has to hold besides: what unpacks it
  bool idle_ = true;
  bool reads_head_ = false;
  bool has_asked_ = false;
};

}  // namespace penstock::http
