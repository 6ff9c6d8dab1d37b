// Writes one JSON object, field by field, in the order of the calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::evals {

class JsonObject {
 public:
  JsonObject& number(std::string_view name, double value);
  JsonObject& count(std::string_view name, int64_t value);
  JsonObject& text(std::string_view name, std::string_view value);
  // `json` is a whole JSON value.
  JsonObject& raw(std::string_view name, std::string_view json);

  std::string str() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

// A JSON string with its quotes; bytes outside printable ASCII become "?".
std::string json_string(std::string_view text);

}  // namespace penstock::evals
