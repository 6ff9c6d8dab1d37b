// What a client asks, and the client itself, as the request flow sees it: something that takes a
// whole answer or a stream of them, and may leave at any time. http/ implements it over a socket,
// tests as a list. One I/O thread; lives as long as the request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admission/tenants.h"
#include "base/clock.h"
#include "base/priority.h"
#include "openai/endpoints.h"
#include "openai/errors.h"
#include "proxy/held_answer.h"
#include "runtime/awaitable.h"
#include "runtime/body_budget.h"
#include "runtime/payload.h"
#include "runtime/sent.h"
#include "runtime/signal.h"

namespace penstock::proxy {

template <class T>
using Awaitable = runtime::Awaitable<T>;

// A request as it was read off the wire.
struct Ask {
  std::string request_id;         // ours
  std::string client_request_id;  // the caller's own; empty: none
  std::string traceparent;        // as the client wrote it, whatever that is; empty: none
  std::string_view client;        // its address, which lives longer; empty: not to be told
  const openai::Endpoint* endpoint = nullptr;  // that it came to: static, never null
  std::string body;
  runtime::BodyShare share;   // what the body holds of the budget; given back with it
  base::SteadyTime received;  // when the last byte of it had been read
  admission::Caller caller;
  std::optional<base::Priority> priority;  // that it names
  std::string session;                     // x-penstock-session; empty: none
  std::string category;                    // x-penstock-category, for router programs; empty: none
  bool wants_metadata = false;             // x-penstock-metadata: include
  bool may_degrade = true;                 // not x-penstock-degrade: never
};

struct AnswerHead {
  unsigned status = 200;
  std::string_view content_type;
  std::vector<openai::Header> headers;  // besides those that every answer has
};

// Where in a stream a piece stands.
enum class Piece : uint8_t {
  kMore,    // others follow
  kLast,    // the answer is complete
  kCutOff,  // the answer ends here without being complete: the connection is closed after it
};

using runtime::Sent;

// Why an answer goes no further, whatever its replica still says.
enum class Stop : uint8_t {
  kNo,
  kClientLeft,
  kClientSlow,  // it did not take what was written to it in time
  kDraining,    // the gateway ends, and the answer's time with it: the client is still there
  kKeyRevoked,  // the key that asked is good no more, by order at once: likewise
};

class Reply {
 public:
  virtual ~Reply() = default;

  // Raised when one of the following changes; the flow lets its call and its timers raise the same.
  virtual runtime::Signal& signal() = 0;
  virtual bool client_gone() const = 0;
  // It is gone because it took too little for too long, and not of its own will.
  virtual bool client_slow() const = 0;
  // The gateway ends now: what has no end yet is to end with an error. The signal tells.
  virtual bool cut_short() const = 0;
  // What of these holds. After kDraining an error can still be written, and nothing else.
  Stop stop() const {
    if (client_slow()) return Stop::kClientSlow;
    if (client_gone()) return Stop::kClientLeft;
    return cut_short() ? Stop::kDraining : Stop::kNo;
  }

  // A whole answer with its length, of HeldAnswer::kFreeBytes at most: sent at once, but for what
  // flush() waits for.
  virtual Sent answer_short(const AnswerHead& head, std::string_view body) = 0;
  // One of any length. Both stay the caller's until this returns.
  virtual Awaitable<Sent> answer(const AnswerHead& head, std::string_view body) = 0;
  // The same with what a replica made, which is let go of as it is sent.
  virtual Awaitable<Sent> answer(const AnswerHead& head, HeldAnswer& body) = 0;

  // The head of a stream; it leaves with the first piece.
  virtual void begin_stream(const AnswerHead& head) = 0;
  // Sends at once, or with all that comes at this moment, and empties `payload`.
  virtual Sent write(runtime::Payload& payload, Piece piece) = 0;
  // Writes a piece that others follow, from where it lies, with all that comes at this moment.
  // False: it has done nothing, be it that there are no bytes, that the client takes none now, or
  // that the answer is to stop().
  virtual bool write_along(std::string_view bytes) = 0;
  // Part of what was written is kept, be it that only later showed that the client does not take
  // it: flush() before the next write.
  virtual bool behind() const = 0;
  // Waits until everything written is with the client: kAll or kGone.
  virtual Awaitable<Sent> flush() = 0;
};

}  // namespace penstock::proxy
