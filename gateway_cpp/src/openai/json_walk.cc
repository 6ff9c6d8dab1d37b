#include "openai/json_walk.h"

#include <charconv>
#include <string_view>
#include <system_error>

namespace penstock::openai {
namespace {

namespace ondemand = simdjson::ondemand;
using simdjson::error_code;

constexpr int kDeepestPart = 6;  // messages[].content[].content[], in results of tools

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void skip_digits(std::string_view& text) {
  while (!text.empty() && is_digit(text.front())) text.remove_prefix(1);
}

// JSON's grammar only: a number of any size is a number, as it is in Python.
bool is_number(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return false;
  if (text.front() == '0') {
    text.remove_prefix(1);
  } else {
    skip_digits(text);
  }
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    if (text.empty() || !is_digit(text.front())) return false;
    skip_digits(text);
  }
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    text.remove_prefix(1);
    if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
    if (text.empty() || !is_digit(text.front())) return false;
    skip_digits(text);
  }
  return text.empty();
}

// Only a string with a backslash can be wrong: control characters and UTF-8 are checked before.
error_code walk_string(ondemand::value& value) {
  if (value.raw_json_token().find('\\') != std::string_view::npos) {
    return value.get_string().error();
  }
  return value.get_raw_json_string().error();
}

}  // namespace

std::string_view scalar_token(ondemand::value& value) {
  std::string_view token = value.raw_json_token();
  token = token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
  return token;
}

std::optional<std::uint64_t> whole_number(std::string_view token) {
  const char* end = token.data() + token.size();
  std::uint64_t count = 0;
  const auto whole = std::from_chars(token.data(), end, count);
  if (whole.ec == std::errc() && whole.ptr == end) return count;
  constexpr double kMost = 9e15;
  double number = 0;
  const auto real = std::from_chars(token.data(), end, number);
  const bool is_read = real.ec == std::errc() && real.ptr == end;
  if (!is_read || !(number >= 0 && number <= kMost))  // "nan" compares with nothing
    return std::nullopt;
  count = static_cast<std::uint64_t>(number);
  return static_cast<double>(count) == number ? std::optional(count) : std::nullopt;
}

// Only the first levels have messages and their parts in them: what is deeper, such as the input of
// a tool, is read as it is.
error_code Walker::walk_array(ondemand::value& value, int depth, Inside inside) {
  ondemand::array array;
  if (const auto error = value.get_array().get(array)) return error;
  const bool counts = inside == Inside::kMessages && depth < kDeepestPart;
  std::size_t& counted = depth == kFieldDepth ? elements.messages : elements.parts;
  for (auto element : array) {
    ondemand::value item;
    if (const auto error = element.get(item)) return error;
    ++elements.values;
    if (counts && item.type().value_unsafe() != ondemand::json_type::number) ++counted;
    if (const auto error = walk(item, depth + 1, inside)) return error;
  }
  return simdjson::SUCCESS;
}

error_code Walker::walk_object(ondemand::value& value, int depth, Inside inside) {
  ondemand::object object;
  if (const auto error = value.get_object().get(object)) return error;
  for (auto entry : object) {
    ondemand::field field;
    if (const auto error = std::move(entry).get(field)) return error;
    if (const auto error = unescaped_key(field).error()) return error;
    ++elements.values;
    if (const auto error = walk(field.value(), depth + 1, inside)) return error;
  }
  return simdjson::SUCCESS;
}

error_code Walker::walk(ondemand::value value, int depth, Inside inside) {
  if (depth > kDeepestNesting) return simdjson::DEPTH_ERROR;
  ondemand::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  switch (type) {
    case ondemand::json_type::array:
      return walk_array(value, depth, inside);
    case ondemand::json_type::object:
      return walk_object(value, depth, inside);
    case ondemand::json_type::string:
      return walk_string(value);
    case ondemand::json_type::number:
      return is_number(scalar_token(value)) ? simdjson::SUCCESS : simdjson::NUMBER_ERROR;
    case ondemand::json_type::boolean: {
      const std::string_view token = scalar_token(value);
      return token == "true" || token == "false" ? simdjson::SUCCESS : simdjson::T_ATOM_ERROR;
    }
    case ondemand::json_type::null:
      return scalar_token(value) == "null" ? simdjson::SUCCESS : simdjson::N_ATOM_ERROR;
  }
  return simdjson::TAPE_ERROR;
}

}  // namespace penstock::openai
