#include "simulated/conversation.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "simulated/trimming.h"
#include "simulated/words.h"

namespace penstock::replica::simulated {
namespace {

// Ids of prompts' words lie below it.
constexpr uint64_t kVocabulary = uint64_t{1} << 31U;
constexpr uint64_t kOnes = 0x0101010101010101U;
constexpr uint64_t kHighs = kOnes * 0x80U;

// The high bits of those bytes of `word` that are `c`.
uint64_t where(uint64_t word, unsigned char c) {
  const uint64_t differing = word ^ (kOnes * c);
  return ~(((differing & ~kHighs) + ~kHighs) | differing) & kHighs;
}

uint64_t where_blank(uint64_t word) {
  return where(word, ' ') | where(word, '\n') | where(word, '\t') | where(word, '\r');
}

// Words begin behind blanks. Eight characters at a time: the engine's one thread reads every
// prompt, and all others wait for a large one.
uint32_t words_in(std::string_view text) {
  uint32_t words = 0;
  uint64_t blank_before = 0x80U;  // of the lowest byte, which is the first
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), sizeof(uint64_t)))) {
    uint64_t word = kOnes * static_cast<unsigned char>(' ');
    std::memcpy(&word, text.data(), std::min(text.size(), sizeof word));
    const uint64_t blank = where_blank(word);
    words += static_cast<uint32_t>(std::popcount(~blank & kHighs & (blank << 8U | blank_before)));
    blank_before = blank >> 56U;
  }
  return words;
}

void read_part(dom::element part, const std::string& name, Prompt* prompt) {
  const auto fields = as<dom::object>(part);
  if (!fields) refuse_type(name, "an object", part);
  const auto text = field(*fields, "text");
  if (text) prompt->add(read_text(*text, name + ".text"));
}

void read_content(dom::element content, const std::string& name, Prompt* prompt) {
  if (const auto text = as<std::string_view>(content)) return prompt->add(*text);
  const auto parts = as<dom::array>(content);
  if (!parts) refuse_type(name, "a string or an array of parts", content);
  for (const dom::element part : *parts) read_part(part, name, prompt);
}

// Returns the fields of the message.
dom::object read_message(dom::element element, size_t index, Prompt* prompt) {
  const std::string name = "messages." + std::to_string(index);
  const auto message = as<dom::object>(element);
  if (!message) refuse_type(name, "an object", element);
  const auto role = field(*message, "role");
  if (!role) {
    refuse("missing_required_parameter", name + ".role", "Field required: '" + name + ".role'.");
  }
  prompt->add(read_text(*role, name + ".role"));
  if (const auto content = field(*message, "content")) {
    read_content(*content, name + ".content", prompt);
  }
  return *message;
}

// Whether Penstock's mark in a message says that it stays. A mark of any other shape says nothing.
bool is_pinned(dom::object message) {
  const auto mark = field(message, "penstock");
  const auto fields = mark ? as<dom::object>(*mark) : std::nullopt;
  const auto pin = fields ? field(*fields, "pin") : std::nullopt;
  return pin && as<bool>(*pin).value_or(false);
}

// The text of a field; empty where it is none.
std::string_view text_of_field(dom::object object, std::string_view name) {
  const auto value = field(object, name);
  return value ? as<std::string_view>(*value).value_or("") : "";
}

std::vector<std::string_view> calls_of(dom::object message) {
  std::vector<std::string_view> ids;
  const auto calls = field(message, "tool_calls");
  const auto items = calls ? as<dom::array>(*calls) : std::nullopt;
  if (!items) return ids;
  for (const dom::element item : *items) {
    const auto call = as<dom::object>(item);
    const std::string_view id = call ? text_of_field(*call, "id") : "";
    if (!id.empty()) ids.push_back(id);
  }
  return ids;
}

Message said_of(dom::element element, size_t index) {
  Prompt alone;
  const dom::object fields = read_message(element, index, &alone);
  Message message;
  message.role = text_of_field(fields, "role");
  message.pinned = is_pinned(fields);
  if (message.role == "assistant") message.calls = calls_of(fields);
  if (message.role == "tool") message.result_of = text_of_field(fields, "tool_call_id");
  message.tokens = alone.tokens();
  return message;
}

}  // namespace

void Prompt::add(std::string_view text) {
  if (by_ids_) {
    constexpr std::string_view kBlanks = " \n\t\r";
    while (true) {
      text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
      if (text.empty()) return;
      const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
      add_token(mix(0, word) % kVocabulary);
      text.remove_prefix(word.size());
    }
  }
  hash_ = mix(hash_, text);
  tokens_ += words_in(text);
}

void Prompt::add_token(uint64_t id) {
  if (by_ids_) ids_.push_back(static_cast<uint32_t>(id));
  hash_ = mix(hash_, {reinterpret_cast<const char*>(&id), sizeof id});
  ++tokens_;
}

Prompt read_messages(dom::object body, bool by_ids) {
  Prompt prompt(by_ids);
  const auto messages = field(body, "messages");
  if (!messages) {
    refuse("missing_required_parameter", "messages", "Field required: 'messages'.");
  }
  const auto items = as<dom::array>(*messages);
  if (!items) refuse_type("messages", "an array", *messages);
  size_t index = 0;
  for (const dom::element message : *items) {
    read_message(message, index++, &prompt);
  }
  if (index == 0) refuse("invalid_value", "messages", "'messages' must have at least one message.");
  return prompt;
}

Prompt read_prompt(dom::object body, bool by_ids) {
  Prompt prompt(by_ids);
  const auto value = field(body, "prompt");
  if (!value) refuse("missing_required_parameter", "prompt", "Field required: 'prompt'.");
  if (const auto text = as<std::string_view>(*value)) {
    prompt.add(*text);
    return prompt;
  }
  const auto items = as<dom::array>(*value);
  if (!items) refuse_type("prompt", "a string or an array of token ids", *value);
  for (const dom::element item : *items) {
    const auto text = as<std::string_view>(item);
    if (text && items->size() == 1) {
      prompt.add(*text);
      return prompt;
    }
    const auto id = as<uint64_t>(item);
    if (!id) refuse_type("prompt", "one string or one array of token ids", item);
    prompt.add_token(*id);
  }
  return prompt;
}

std::optional<Shortened> shortened(dom::object body, uint64_t budget, bool by_ids) {
  const auto value = field(body, "messages");
  const auto items = value ? as<dom::array>(*value) : std::nullopt;
  if (!items) return std::nullopt;
  std::vector<Message> messages;
  for (const dom::element item : *items) messages.push_back(said_of(item, messages.size()));
  const auto kept = fitted(messages, budget);
  if (!kept) return std::nullopt;
  Shortened shorter{.prompt = Prompt(by_ids)};
  size_t index = 0;
  for (const dom::element item : *items) {
    if ((*kept)[index]) {
      read_message(item, index, &shorter.prompt);
    } else {
      ++shorter.messages;
    }
    ++index;
  }
  return shorter;
}

}  // namespace penstock::replica::simulated
