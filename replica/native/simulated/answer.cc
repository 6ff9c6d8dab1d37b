#include "simulated/answer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <vector>

namespace penstock::replica::simulated {
namespace {

constexpr std::string_view kDone = "data: [DONE]\n\n";

std::string_view object_name(Endpoint endpoint, bool stream) {
  if (endpoint == Endpoint::kCompletion) return "text_completion";
  return stream ? "chat.completion.chunk" : "chat.completion";
}

std::string identity_of(const v1::CallRequest& request, const Ask& ask, int64_t created) {
  const std::string& model = request.model().empty() ? ask.model : request.model();
  const std::string_view kind = ask.endpoint == Endpoint::kChat ? "chatcmpl-" : "cmpl-";
  std::string text = "{\"id\":\"";
  text.append(kind).append(json_escaped(request.request_id()));
  text.append("\",\"object\":\"").append(object_name(ask.endpoint, ask.stream));
  text.append("\",\"created\":").append(std::to_string(created));
  text.append(",\"model\":\"").append(json_escaped(model)).append("\",");
  return text;
}

void append_ids(std::span<const uint32_t> ids, std::string* text) {
  text->append(",\"token_ids\":[");
  for (const uint32_t id : ids) text->append(std::to_string(id)).append(",");
  if (!ids.empty()) text->pop_back();
  text->append("]");
}

std::string quoted_or_null(std::string_view text) {
  if (text.empty()) return "null";
  return std::string("\"").append(text).append("\"");
}

}  // namespace

Answer::Answer(const v1::CallRequest& request, const Ask& ask, int64_t created)
    : endpoint_(ask.endpoint),
      stream_(ask.stream),
      include_usage_(ask.include_usage),
      token_groups_(request.token_groups()),
      return_token_ids_(ask.return_token_ids),
      seed_(ask.seed),
      prompt_tokens_(ask.prompt_tokens),
      trimmed_messages_(ask.trimmed_messages),
      trimmed_tokens_(ask.trimmed_tokens),
      created_(request.has_resume() ? request.resume().created() : created),
      delivered_events_(request.resume().events()),
      delivered_tokens_(static_cast<uint64_t>(request.resume().groups_size())),
      tokens_(ask.max_tokens > 0 ? ask.max_tokens : ask.behaviour.answer_tokens),
      finish_reason_(ask.max_tokens > 0 ? "length" : "stop"),
      identity_(identity_of(request, ask, created_)) {
  if (ask.max_tokens == 0 && ask.most_tokens > 0 && tokens_ > ask.most_tokens) {
    tokens_ = ask.most_tokens;
    finish_reason_ = "length";
  }
  if (!ask.stops.empty()) {
    if (const auto words = words_before_stop(seed_, tokens_, ask.stops)) {
      tokens_ = *words;
      finish_reason_ = "stop";
    }
  }
  if (!stream_) return;
  const bool chat = endpoint_ == Endpoint::kChat;
  prefix_.append("data: ").append(identity_).append("\"choices\":[{\"index\":0,");
  prefix_.append(chat ? "\"delta\":{\"content\":\"" : "\"text\":\"");
  suffix_.append(chat ? "\"}" : "\"").append(",\"logprobs\":null,\"finish_reason\":null");
  end_.append(include_usage_ ? "}],\"usage\":null}\n\n" : "}]}\n\n");
}

void Answer::add_begin(News* news) const {
  news->has_head = true;
  news->head.set_status(200);
  news->head.set_content_type(stream_ ? "text/event-stream" : "application/json");
  news->head.set_prompt_tokens(prompt_tokens_);
  news->head.set_trimmed_messages(trimmed_messages_);
  news->head.set_trimmed_tokens(trimmed_tokens_);
  news->head.set_created(created_);
  if (!stream_) return;
  if (events_before_words() > delivered_events_) {
    add_event("\"delta\":{\"role\":\"assistant\",\"content\":\"\"}", "", news);
  }
  const uint64_t shown = delivered_events_ - std::min(delivered_events_, events_before_words());
  for (uint64_t i = shown; i < delivered_tokens_; ++i) {
    const size_t before = news->body.size();
    add_word(word_at(seed_, i), news);
    news->add_piece(news->body.size() - before, 1, 0);
  }
}

void Answer::add_words(uint64_t first, uint64_t count, News* news) const {
  for (uint64_t i = first; i < first + count; ++i) {
    const Word word = word_at(seed_, i);
    const size_t before = news->body.size();
    add_word(word, news);
    news->add_piece(news->body.size() - before, 1, token_groups_ ? 1 : 0, 1);
    if (!token_groups_) continue;
    v1::TokenGroup& group = news->groups.emplace_back();
    group.add_token_ids(word.token_id);
    if (i + 1 == tokens_) group.set_finish_reason(std::string(finish_reason_));
  }
}

void Answer::add_word(const Word& word, News* news) const {
  news->body.append(prefix_).append(word.text).append(suffix_);
  if (return_token_ids_) append_ids({&word.token_id, 1}, &news->body);
  news->body.append(end_);
}

void Answer::add_end(News* news, uint32_t cached_tokens) const {
  if (!stream_) return add_unary(news, cached_tokens);
  if (delivered_events_ <= events_before_end()) {
    add_event(endpoint_ == Endpoint::kChat ? "\"delta\":{}" : "\"text\":\"\"", finish_reason_,
              news);
  }
  if (include_usage_ && delivered_events_ + 1 < events()) {
    const size_t before = news->body.size();
    news->body.append("data: ").append(identity_).append("\"choices\":[],");
    news->body.append(usage(cached_tokens));
    news->body.append("}\n\n");
    news->add_piece(news->body.size() - before, 1, 0);
  }
  if (delivered_events_ == events()) return;
  news->body.append(kDone);
  news->add_piece(kDone.size(), 1, 0);
}

void Answer::add_event(std::string_view content, std::string_view finish, News* news) const {
  const size_t before = news->body.size();
  news->body.append("data: ").append(identity_).append("\"choices\":[{\"index\":0,");
  news->body.append(content).append(",\"logprobs\":null,\"finish_reason\":");
  news->body.append(quoted_or_null(finish)).append("}]");
  if (include_usage_) news->body.append(",\"usage\":null");
  news->body.append("}\n\n");
  news->add_piece(news->body.size() - before, 1, 0);
}

void Answer::add_unary(News* news, uint32_t cached_tokens) const {
  const std::string text = text_of(seed_, tokens_);
  const size_t before = news->body.size();
  news->body.append(identity_).append("\"choices\":[{\"index\":0,");
  if (endpoint_ == Endpoint::kChat) {
    news->body.append("\"message\":{\"role\":\"assistant\",\"content\":\"").append(text);
    news->body.append("\",\"refusal\":null}");
  } else {
    news->body.append("\"text\":\"").append(text).append("\"");
  }
  news->body.append(",\"logprobs\":null,\"finish_reason\":");
  news->body.append(quoted_or_null(finish_reason_));
  std::vector<uint32_t> ids;
  if (token_groups_ || return_token_ids_) {
    for (uint64_t i = 0; i < tokens_; ++i) ids.push_back(word_at(seed_, i).token_id);
  }
  if (return_token_ids_) append_ids(ids, &news->body);
  news->body.append("}],").append(usage(cached_tokens)).append("}");
  if (token_groups_) {
    v1::TokenGroup& group = news->groups.emplace_back();
    group.mutable_token_ids()->Add(ids.begin(), ids.end());
    group.set_finish_reason(std::string(finish_reason_));
  }
  news->add_piece(news->body.size() - before, 1, token_groups_ ? 1 : 0,
                  static_cast<uint32_t>(tokens_));
}

std::string Answer::usage(uint32_t cached_tokens) const {
  std::string text = "\"usage\":{\"prompt_tokens\":" + std::to_string(prompt_tokens_) +
                     ",\"completion_tokens\":" + std::to_string(tokens_) +
                     ",\"total_tokens\":" + std::to_string(prompt_tokens_ + tokens_);
  if (cached_tokens > 0) {
    text.append(",\"prompt_tokens_details\":{\"cached_tokens\":");
    text.append(std::to_string(cached_tokens)).append("}");
  }
  return text + "}";
}

std::string json_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 7> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", c);
      out.append(escape.data());
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace penstock::replica::simulated
