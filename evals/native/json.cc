#include "json.h"

#include <cstdio>

namespace penstock::evals {

JsonObject& JsonObject::number(std::string_view name, double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.6g", value);
  return raw(name, digits);
}

JsonObject& JsonObject::count(std::string_view name, int64_t value) {
  return raw(name, std::to_string(value));
}

JsonObject& JsonObject::text(std::string_view name, std::string_view value) {
  return raw(name, json_string(value));
}

JsonObject& JsonObject::raw(std::string_view name, std::string_view json) {
  if (!fields_.empty()) fields_ += ",";
  fields_ += json_string(name) + ":";
  fields_ += json;
  return *this;
}

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += (c >= ' ' && c <= '~') ? c : '?';
  }
  return quoted + '"';
}

}  // namespace penstock::evals
