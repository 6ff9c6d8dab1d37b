// What a request's client has had of its answer, and what is on its way to it. One for each
// request, whoever answers it in the end: a client never learns of what was tried before.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "dialects/stream_end.h"
#include "openai/errors.h"
#include "proxy/metadata.h"
#include "proxy/reply.h"
#include "runtime/payload.h"

namespace penstock::proxy {

// A piece of a stream, and what became of it.
struct Written {
  Piece piece;
  Sent sent;
};

// With hundreds of streams every line of the cache that one of them takes is fetched anew: what
// each event looks at lies together, and the rest before it.
struct Delivery {
  explicit Delivery(openai::Dialect dialect) : end(dialect) {}

  std::vector<openai::Header> told_early;  // that it got before the replica said its own
  std::optional<Written> written;  // while the stream's coroutine waited: it sees to the rest

  std::exception_ptr thrown;    // likewise
  base::SteadyTime last_write;  // the client's last sign of life from us, coarse
  base::SteadyTime last_heard;  // the replica's, coarse
  uint64_t taken = 0;           // bytes of the payload that came from the replica
  bool begun = false;           // it has a status, and may have comments: it is a stream
  bool whole = false;           // it has all of a stream: its last event was written
  bool closed = false;          // nothing more may be written
  bool tells_making = false;    // of a stream: it wants to know of its making
  dialects::StreamEnd end;      // of a stream: what was taken last, and how it breaks
  std::string held_end;         // the last event, before which something is still to be said
  runtime::Payload payload;
  std::unique_ptr<openai::ChunkNames> names;  // of the chunks, where their making is told
};

}  // namespace penstock::proxy
