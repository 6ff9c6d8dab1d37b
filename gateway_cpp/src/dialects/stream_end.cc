#include "dialects/stream_end.h"

#include "anthropic/errors.h"
#include "openai/errors.h"

namespace penstock::dialects {
namespace {

constexpr std::string_view kDone = "data: [DONE]\n\n";
constexpr std::string_view kStop = "event: message_stop\n";
constexpr std::string_view kEventEnd = "\n\n";

// Empty: it is not whole.
std::string_view last_event(std::string_view events) {
  if (!events.ends_with(kEventEnd)) return {};
  const std::size_t before = events.substr(0, events.size() - kEventEnd.size()).rfind(kEventEnd);
  return before == std::string_view::npos ? events : events.substr(before + kEventEnd.size());
}

// Of the last event, where it is the one that ends a message.
std::size_t message_stop(std::string_view events) {
  const std::string_view last = last_event(events);
  return last.starts_with(kStop) ? last.size() : 0;
}

}  // namespace

StreamEnd::StreamEnd(openai::Dialect dialect) : dialect_(dialect) {
  if (dialect == openai::Dialect::kResponses)
    response_ = std::make_unique<openai::ResponseStream>();
}

bool StreamEnd::may_end(std::string_view events) const {
  switch (dialect_) {
    case openai::Dialect::kOpenAi:
      return events.ends_with(kDone);
    case openai::Dialect::kResponses:
      return openai::ResponseStream::may_end(events);
    case openai::Dialect::kAnthropic:
      return message_stop(events) > 0;
  }
  return true;
}

void StreamEnd::note(std::string_view events) {
  switch (dialect_) {
    case openai::Dialect::kOpenAi:
      bytes_ = events.ends_with(kDone) ? kDone.size() : 0;
      break;
    case openai::Dialect::kResponses:
      bytes_ = response_->note(events);
      break;
    case openai::Dialect::kAnthropic:
      bytes_ = message_stop(events);
      break;
  }
}

std::string StreamEnd::broken(const base::Error& error, const openai::Answerer& answerer) const {
  switch (dialect_) {
    case openai::Dialect::kResponses:
      return response_->failed(error, answerer);
    case openai::Dialect::kAnthropic:
      return anthropic::error_event(error, answerer.request_id);
    case openai::Dialect::kOpenAi:
      break;
  }
  return openai::error_event(error);
}

}  // namespace penstock::dialects
