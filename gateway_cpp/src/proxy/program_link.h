// A stream to a router program's process, with the questions that are open on it. Its end is the
// end of all of them. Its I/O thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "control_plane/program_directory.h"
#include "proxy/routing_question.h"
#include "runtime/signal.h"
#include "upstream/program_stream.h"

namespace penstock::proxy {

// A stream, kept by its thread and by the questions that were put on it.
class ProgramLink final : public upstream::ProgramStream::Owner,
                          public std::enable_shared_from_this<ProgramLink> {
 public:
  // A question, for as long as it may be answered. Raises `news` for what comes.
  struct Open {
    RoutingQuestion* question;
    runtime::Signal* news;
    bool listed = false;
  };
  using Connect = std::function<std::shared_ptr<upstream::ProgramStream>(
      const control_plane::ProgramSeat& seat, upstream::ProgramStream::Owner& owner)>;

  ProgramLink(std::shared_ptr<const control_plane::ProgramSeat> seat, const Connect& connect)
      : seat_(std::move(seat)), stream_(connect(*seat_, *this)) {}
  ProgramLink(const ProgramLink&) = delete;
  ProgramLink& operator=(const ProgramLink&) = delete;
  ~ProgramLink() override { stream_->close(); }

  const control_plane::ProgramSeat& seat() const { return *seat_; }
  bool ended() const { return ended_; }
  bool closed_to_asks() const { return ended_ || stream_->closed_to_asks(); }
  // The program has said something that makes sense.
  bool heard() const { return heard_; }
  bool has_questions() const { return !open_.empty(); }

  uint64_t next_id() { return ++last_id_; }
  // Puts it; `ask` has its id.
  void ask(RoutingQuestion& question, runtime::Signal& news, v1::RouteAsk ask);
  void reply(v1::EngineReply reply);
  // Nobody wants to hear more of it.
  void close(const RoutingQuestion& question);

 private:
  // What a program may say for each question: twice as many things as it makes sense to.
  static constexpr uint64_t kWordsPerAsk = 2UL * (RoutingQuestion::kMostCalls + 1);
  static constexpr uint64_t kFirstWords = 1024;

  bool on_frame(const v1::ProgramFrame& frame) override;
  void on_turn() override;
  void on_end(std::string_view why) override;
  template <class Word>
  void hand_over(const Word& word);

  const std::shared_ptr<const control_plane::ProgramSeat> seat_;
  std::unordered_map<uint64_t, Open> open_;
  std::vector<uint64_t> to_wake_;
  uint64_t last_id_ = 0;
  uint64_t words_left_ = kFirstWords;
  bool heard_ = false;
  bool ended_ = false;
  const std::shared_ptr<upstream::ProgramStream> stream_;
};

}  // namespace penstock::proxy
