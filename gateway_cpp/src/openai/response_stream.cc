#include "openai/response_stream.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/json_text.h"
#include "openai/json_members.h"

namespace penstock::openai {

// What is read of an event: JSON, of which the views are parts.
struct ResponseStream::Event {
  std::string_view type;
  std::string_view response;
  std::string_view item;
  std::string_view delta;
  std::uint64_t output_index = 0;
  std::uint64_t content_index = 0;
  std::uint64_t sequence_number = 0;
};

struct ResponseStream::Row {
  std::string_view type;
  void (ResponseStream::*note)(const Event&);
};

namespace {

constexpr std::string_view kData = "data: ";
constexpr std::string_view kEventEnd = "\n\n";
constexpr std::array<std::string_view, 3> kEnds = {"response.completed", "response.incomplete",
                                                   "response.failed"};
// Of a response as it began: above it is what the client had echoed, of which nothing is kept.
constexpr std::size_t kKeptResponse = 64UL * 1024;

// The JSON of one event; empty: it is a comment, or no JSON.
std::string_view data_of(std::string_view event) {
  while (!event.empty()) {
    const std::string_view line = event.substr(0, event.find('\n'));
    if (line.starts_with(kData)) return line.substr(kData.size());
    event.remove_prefix(std::min(event.size(), line.size() + 1));
  }
  return {};
}

// What stands between a string's quotes.
std::string_view unquoted(std::string_view json) {
  return json.size() < 2 || json.front() != '"' ? std::string_view()
                                                : json.substr(1, json.size() - 2);
}

std::uint64_t number(std::string_view json) {
  std::uint64_t value = 0;
  std::from_chars(json.data(), json.data() + json.size(), value);
  return value;
}

std::string event_text(std::string_view type, std::uint64_t sequence, std::string_view response) {
  std::string out = "event: ";
  out.append(type).append("\ndata: {\"type\":\"").append(type);
  out.append("\",\"sequence_number\":").append(std::to_string(sequence));
  return out.append(",\"response\":").append(response).append("}\n\n");
}

std::string error_text(const base::Error& error) {
  return R"({"code":)" + base::json_string(error.code.empty() ? error.type : error.code) +
         R"(,"message":)" + base::json_string(error.message) + base::retry_member(error) + "}";
}

// All that a response must have, of one that never began.
std::string unbegun(const Answerer& answerer) {
  std::string out = R"({"id":)" + base::json_string("resp_" + std::string(answerer.request_id));
  out += R"(,"object":"response","created_at":)" + std::to_string(answerer.now);
  out += R"(,"model":)" + base::json_string(answerer.model);
  return out +
         R"(,"status":"in_progress","error":null,"incomplete_details":null,"instructions":null,)"
         R"("metadata":{},"output":[],"parallel_tool_calls":true,"temperature":null,)"
         R"("tool_choice":"auto","tools":[],"top_p":null,"store":false,"usage":null})";
}

// A response without what is as large as its client wants: what the API's schema asks for.
std::string frame_of(std::string_view response) {
  constexpr std::array<std::string_view, 7> kKept = {
      "id", "object", "created_at", "model", "status", "parallel_tool_calls", "tool_choice"};
  constexpr std::size_t kLargest = 4096;
  std::vector<Member> frame;
  for (MemberReader own(response); own.next();) {
    const bool kept = std::ranges::find(kKept, own.key()) != kKept.end();
    if (kept && own.value().size() <= kLargest) {
      frame.push_back({own.key(), std::string(own.value())});
    }
  }
  return with_members(R"({"tools":[],"instructions":null,"metadata":{},"incomplete_details":null,)"
                      R"("temperature":null,"top_p":null,"tool_choice":"auto"})",
                      frame);
}

}  // namespace

bool ResponseStream::may_end(std::string_view events) {
  return std::ranges::any_of(
      kEnds, [&](std::string_view type) { return events.find(type) != std::string_view::npos; });
}

std::size_t ResponseStream::note(std::string_view events) {
  while (!events.empty()) {
    const std::size_t end = events.find(kEventEnd);
    if (end == std::string_view::npos) return 0;
    if (note_event(events.substr(0, end))) return events.size();
    events.remove_prefix(end + kEventEnd.size());
  }
  return 0;
}

bool ResponseStream::note_event(std::string_view text) {
  Event event;
  for (MemberReader member(data_of(text)); member.next();) {
    const std::string_view value = member.value();
    if (member.key() == "type") event.type = unquoted(value);
    if (member.key() == "response") event.response = value;
    if (member.key() == "item") event.item = value;
    if (member.key() == "delta") event.delta = unquoted(value);
    if (member.key() == "output_index") event.output_index = number(value);
    if (member.key() == "content_index") event.content_index = number(value);
    if (member.key() == "sequence_number") event.sequence_number = number(value);
  }
  if (event.type.empty()) return false;
  static constexpr std::array kRows = {
      Row{"response.output_text.delta", &ResponseStream::add_text},
      Row{"response.reasoning_text.delta", &ResponseStream::add_reasoning},
      Row{"response.function_call_arguments.delta", &ResponseStream::add_arguments},
      Row{"response.output_item.added", &ResponseStream::add_item},
      Row{"response.output_item.done", &ResponseStream::end_item},
      Row{"response.created", &ResponseStream::begin},
      Row{"response.in_progress", &ResponseStream::begin},
  };
  if (std::ranges::find(kEnds, event.type) != kEnds.end()) return true;
  const auto row = std::ranges::find(kRows, event.type, &Row::type);
  next_sequence_ = event.sequence_number + 1;
  if (row != kRows.end()) (this->*row->note)(event);
  return false;
}

void ResponseStream::begin(const Event& event) {
  if (event.response.size() > kKeptResponse) {
    if (response_.empty()) response_ = frame_of(event.response);
  } else if (response_ != event.response) {
    response_ = event.response;
  }
}

void ResponseStream::add_item(const Event& event) {
  items_[event.output_index] = {.json = std::string(event.item), .parts = {}, .arguments = {}};
}

void ResponseStream::end_item(const Event& event) {
  items_[event.output_index] = {
      .json = std::string(event.item), .done = true, .parts = {}, .arguments = {}};
}

void ResponseStream::add_text(const Event& event) { add_part(event, "output_text"); }

void ResponseStream::add_reasoning(const Event& event) { add_part(event, "reasoning_text"); }

void ResponseStream::add_part(const Event& event, std::string_view type) {
  Part& part = items_[event.output_index].parts[event.content_index];
  part.type = type;
  part.text += event.delta;
}

void ResponseStream::add_arguments(const Event& event) {
  items_[event.output_index].arguments += event.delta;
}

std::string ResponseStream::failed(const base::Error& error, const Answerer& answerer) const {
  std::uint64_t sequence = next_sequence_;
  std::string events;
  std::string response = response_;
  // A client takes no response that never began.
  if (response.empty()) {
    response = unbegun(answerer);
    events = event_text("response.created", sequence++, response);
  }
  const std::array changes = {Member{"status", R"("failed")"}, Member{"error", error_text(error)},
                              Member{"output", output()}};
  return events + event_text("response.failed", sequence, with_members(response, changes));
}

std::string ResponseStream::output() const {
  std::string out = "[";
  for (const auto& [index, item] : items_) {
    if (item.json.empty()) continue;
    if (out.size() > 1) out += ',';
    out += item.done ? item.json : item_so_far(item);
  }
  return out + "]";
}

std::string ResponseStream::item_so_far(const Item& item) {
  std::vector<Member> changes = {{"status", R"("incomplete")"}};
  std::string content;
  for (const auto& [index, part] : item.parts) {
    content.append(content.empty() ? "[" : ",").append(R"({"type":")").append(part.type);
    content.append(R"(","text":")").append(part.text).append("\"");
    content += part.type == "output_text" ? R"(,"annotations":[]})" : "}";
  }
  if (!content.empty()) changes.push_back({"content", content + "]"});
  if (!item.arguments.empty()) changes.push_back({"arguments", '"' + item.arguments + '"'});
  return with_members(item.json, changes);
}

}  // namespace penstock::openai
