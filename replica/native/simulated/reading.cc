#include "simulated/reading.h"

#include "errors.h"

namespace penstock::replica::simulated {

void refuse(std::string_view code, const std::string& param, const std::string& message) {
  throw BadRequest{client_error(400, code, param, message)};
}

void refuse_type(const std::string& param, const std::string& expected, dom::element found) {
  std::string value = simdjson::minify(found);
  if (value.size() > 60) value = value.substr(0, 60) + "...";
  refuse("invalid_type", param, "'" + param + "' must be " + expected + ", not " + value + ".");
}

std::optional<dom::element> field(dom::object object, std::string_view name) {
  std::optional<dom::element> found;
  for (const auto& [key, value] : object) {
    if (key == name) found = value;
  }
  return found && !found->is_null() ? found : std::nullopt;
}

bool read_bool(dom::object object, const std::string& name) {
  const auto value = field(object, name);
  if (!value) return false;
  const auto truth = as<bool>(*value);
  if (!truth) refuse_type(name, "a boolean", *value);
  return *truth;
}

std::optional<uint64_t> read_count(dom::object object, const std::string& name, uint64_t least,
                                   uint64_t most) {
  const auto value = field(object, name);
  if (!value) return std::nullopt;
  if (as<int64_t>(*value).value_or(0) < 0) {
    refuse("invalid_value", name, "'" + name + "' must be at least " + std::to_string(least) + ".");
  }
  const auto count = as<uint64_t>(*value);
  if (!count) refuse_type(name, "an integer", *value);
  if (*count < least || *count > most) {
    refuse("invalid_value", name,
           "'" + name + "' must be between " + std::to_string(least) + " and " +
               std::to_string(most) + ", not " + std::to_string(*count) + ".");
  }
  return count;
}

std::string_view read_text(dom::element value, const std::string& name) {
  const auto text = as<std::string_view>(value);
  if (!text) refuse_type(name, "a string", value);
  return *text;
}

}  // namespace penstock::replica::simulated
