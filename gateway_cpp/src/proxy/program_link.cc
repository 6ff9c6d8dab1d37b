#include "proxy/program_link.h"

#include <utility>

namespace penstock::proxy {
void ProgramLink::ask(RoutingQuestion& question, runtime::Signal& news, v1::RouteAsk ask) {
  open_.emplace(question.id(), Open{.question = &question, .news = &news});
  words_left_ += kWordsPerAsk;
  *stream_->outgoing().add_asks() = std::move(ask);
}

void ProgramLink::reply(v1::EngineReply reply) {
  if (!ended_) *stream_->outgoing().add_replies() = std::move(reply);
}

void ProgramLink::close(const RoutingQuestion& question) {
  const bool was_open = open_.erase(question.id()) > 0;
  if (was_open && question.state() != Asked::kDecided && !ended_) {
    stream_->outgoing().add_cancels(question.id());
  }
}

// What comes for a question that is closed by now is passed over, as far as it may say anything.
bool ProgramLink::on_frame(const v1::ProgramFrame& frame) {
  const auto words = static_cast<uint64_t>(frame.calls_size() + frame.decisions_size()) + 1;
  if (words > words_left_) return false;
  words_left_ -= words;
  heard_ = true;
  for (const auto& call : frame.calls()) hand_over(call);
  for (const auto& decision : frame.decisions()) hand_over(decision);
  return true;
}

template <class Word>
void ProgramLink::hand_over(const Word& word) {
  const auto found = open_.find(word.ask_id());
  if (found == open_.end()) return;
  found->second.question->take(word);
  if (!std::exchange(found->second.listed, true)) to_wake_.push_back(word.ask_id());
}

// Whoever is woken may close questions, itself included.
void ProgramLink::on_turn() {
  const auto self = shared_from_this();
  for (const uint64_t id : std::exchange(to_wake_, {})) {
    const auto found = open_.find(id);
    if (found == open_.end()) continue;
    found->second.listed = false;
    found->second.news->raise();
  }
}

void ProgramLink::on_end(std::string_view why) {
  ended_ = true;
  for (auto& [id, open] : open_) {
    // What it has decided by then stands.
    if (open.question->is_open()) open.question->fail(admission::ProgramOutcome::kDead, why);
    if (!std::exchange(open.listed, true)) to_wake_.push_back(id);
  }
  on_turn();
}

}  // namespace penstock::proxy
