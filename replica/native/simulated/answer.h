// An answer in OpenAI's formats, byte by byte. Built once per call: what is the same in all its
// events is formatted then, and an event costs three appends. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "simulated/request.h"
#include "simulated/words.h"
#include "token_queue.h"

namespace penstock::replica::simulated {

class Answer {
 public:
  // `created`: seconds since 1970; what a `Resume` says stands before it. A call with a `Resume`
  // that is no `misfit` gets the rest of its answer: what its client has is left out everywhere.
  Answer(const v1::CallRequest& request, const Ask& ask, int64_t created);

  uint64_t tokens() const { return tokens_; }
  uint64_t delivered_tokens() const { return delivered_tokens_; }
  std::string_view finish_reason() const { return finish_reason_; }
  // Of the whole stream, and before its first word.
  uint64_t events() const { return events_before_end() + (include_usage_ ? 3 : 2); }
  uint64_t events_before_words() const { return endpoint_ == Endpoint::kChat ? 1 : 0; }

  // Head, and of a stream the events that lead to its first new word.
  void add_begin(News* news) const;
  // Words [first, first + count) of a stream, an event for each; none of them was delivered.
  void add_words(uint64_t first, uint64_t count, News* news) const;
  // The rest of a stream after its last word, or the whole body of a unary answer.
  void add_end(News* news, uint32_t cached_tokens = 0) const;

 private:
  uint64_t events_before_end() const { return events_before_words() + tokens_; }
  void add_word(const Word& word, News* news) const;
  void add_event(std::string_view content, std::string_view finish, News* news) const;
  void add_unary(News* news, uint32_t cached_tokens) const;
  std::string usage(uint32_t cached_tokens) const;

  const Endpoint endpoint_;
  const bool stream_;
  const bool include_usage_;
  const bool token_groups_;
  const bool return_token_ids_;
  const uint64_t seed_;
  const uint32_t prompt_tokens_;
  const uint32_t trimmed_messages_;
  const uint32_t trimmed_tokens_;
  const int64_t created_;
  const uint64_t delivered_events_;
  const uint64_t delivered_tokens_;
  uint64_t tokens_ = 0;
  std::string_view finish_reason_;
  std::string identity_;  // {"id":...,"object":...,"created":...,"model":...,
  std::string prefix_;    // of every event that has a word
  std::string suffix_;
  std::string end_;  // behind the word's ids, where they are told
};

// `text` as the inside of a JSON string.
std::string json_escaped(std::string_view text);

}  // namespace penstock::replica::simulated
