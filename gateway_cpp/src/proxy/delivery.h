// What a request's client has had of its answer, and what is on its way to it. One for each
// request, whoever answers it in the end: a client never learns of what was tried before.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "dialects/stream_end.h"
#include "openai/errors.h"
#include "proxy/metadata.h"
#include "proxy/stage.h"
#include "runtime/payload.h"

namespace penstock::proxy {

// What its client has had.
enum class Had : uint8_t {
  kNothing,
  kSome,      // of a stream: its head, and maybe comments and events
  kAll,       // of a stream, whose end was not written yet
  kEnding,    // of a stream: its end was written, and may be on its way
  kEnded,     // of a stream: all there is
  kAnswered,  // an answer that is no stream, be it an error
};

inline constexpr Transitions<Had> kDelivery{
    {Had::kNothing, {Had::kSome, Had::kAnswered}},
    {Had::kSome, {Had::kAll, Had::kEnding}},
    {Had::kAll, {Had::kSome, Had::kEnded}},  // back: what was behind never came to it
    {Had::kEnding, {Had::kEnded}},
};

// With hundreds of streams every line of the cache that one of them takes is fetched anew: what
// each event looks at lies together, and the rest before it.
class Delivery {
 public:
  explicit Delivery(openai::Dialect dialect) : end_(dialect) {}

  Had had() const { return had_.now(); }
  bool refused() const { return had_.refused(); }
  // It has a status, and may have comments: it is a stream.
  bool is_stream() const { return had() != Had::kNothing && had() != Had::kAnswered; }
  bool has_all() const { return had() == Had::kAll || had() == Had::kEnded; }
  // Nothing more may be written.
  bool is_closed() const { return had() >= Had::kEnding; }

  void begin_stream() { had_.advance(Had::kSome); }
  void answer() { had_.advance(Had::kAnswered); }
  // The end of a stream is written.
  void end_stream() { had_.advance(has_all() ? Had::kEnded : Had::kEnding); }
  // What was written is with its system.
  void arrived() {
    if (has_all() || !end_.reached() || !held_end_.empty()) return;
    had_.advance(had() == Had::kSome ? Had::kAll : Had::kEnded);
  }
  // It left with something behind, which may be the last event.
  void lost() {
    if (had() == Had::kAll) had_.advance(Had::kSome);
  }

  // Of a stream: it wants to know of its making.
  void tell_making() { tells_making_ = true; }
  // Headers that it got before the replica said its own.
  void tell_early(std::vector<openai::Header> headers) { told_early_ = std::move(headers); }
  bool was_told_early() const { return !told_early_.empty(); }
  std::vector<openai::Header> take_told_early() { return std::exchange(told_early_, {}); }

  // Where what comes for the call is put, to be written.
  runtime::Payload& payload() { return payload_; }
  // All that came is in the payload; `is_over`: no more will.
  enum class More : uint8_t { kComes, kNone };
  void took(More more);
  // These events were passed on from where they lie.
  void passed_on(std::string_view events) {
    taken_ = events.size();
    end_.note(events);
  }
  // Bytes that came from the replica with the last piece.
  uint64_t taken() const { return taken_; }
  // Whether events may go on as they are, with nothing to be said before or after them. A last
  // event waits for what came with it: the replica's last word may take it back.
  bool may_pass_on(std::string_view events) const {
    return !tells_making_ && held_end_.empty() && !end_.may_end(events);
  }
  // The payload ends with the last event of a whole answer.
  bool reached_end() const { return end_.reached(); }
  // What its chunks say alike; null: nothing is told of their making.
  const openai::ChunkNames* names() const { return names_.get(); }
  // Goes before the last event, which the payload ends with.
  void put_before_end(std::string_view event);
  // The payload ends with `event` instead of the last event.
  void break_off(std::string_view event);
  // What a stream that is not whole ends with.
  std::string broken(const base::Error& error, const openai::Answerer& answerer) const {
    return end_.broken(error, answerer);
  }

  // Coarse: by the timers' clock.
  void note_written(base::SteadyTime now) { last_write_ = now; }
  void note_heard(base::SteadyTime now) { last_heard_ = now; }
  std::chrono::nanoseconds since_written(base::SteadyTime now) const { return now - last_write_; }
  std::chrono::nanoseconds since_heard(base::SteadyTime now) const { return now - last_heard_; }

 private:
  std::vector<openai::Header> told_early_;
  base::SteadyTime last_write_;  // the client's last sign of life from us
  base::SteadyTime last_heard_;  // the replica's
  uint64_t taken_ = 0;
  Stage<Had, kDelivery> had_;
  bool tells_making_ = false;
  dialects::StreamEnd end_;  // of a stream: what was taken last, and how it breaks
  std::string held_end_;     // the last event, before which something is still to be said
  runtime::Payload payload_;
  std::unique_ptr<openai::ChunkNames> names_;
};

}  // namespace penstock::proxy
