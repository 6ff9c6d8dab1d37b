#include "openai/chunk_names.h"

#include <simdjson.h>

#include "openai/json_walk.h"

namespace penstock::openai {
namespace {

namespace ondemand = simdjson::ondemand;

// The JSON of the first event that has any.
std::string_view first_data(std::string_view events) {
  constexpr std::string_view kData = "data: ";
  const std::size_t at = events.find(kData);
  if (at == std::string_view::npos) return {};
  events.remove_prefix(at + kData.size());
  return events.substr(0, events.find('\n'));
}

constexpr std::size_t kUsual =
    4096;  // a first chunk is no larger, but where it tells of the prompt

// What is broken keeps what was read before.
void read_names(ondemand::object& chunk, ChunkNames& names) {
  int missing = 4;
  for (auto entry : chunk) {
    ondemand::field field;
    std::string_view key;
    if (std::move(entry).get(field) || unescaped_key(field).get(key)) return;
    if (key == "created") {
      ondemand::json_type type{};
      const bool is_read = !field.value().type().get(type);
      if (is_read && type == ondemand::json_type::number)
        names.created = scalar_token(field.value());
    } else if (key == "id" || key == "object" || key == "model") {
      std::string_view text;
      if (field.value().get_string().get(text)) continue;
      (key == "id" ? names.id : key == "object" ? names.object : names.model) = text;
    } else {
      continue;
    }
    if (--missing == 0) return;
  }
}

}  // namespace

ChunkNames chunk_names(std::string_view events) {
  static thread_local ondemand::parser usual;
  ondemand::parser large;
  const simdjson::padded_string json(first_data(events));
  ChunkNames names;
  ondemand::document document;
  ondemand::object chunk;
  const auto error = (json.size() > kUsual ? large : usual).iterate(json).get(document);
  if (!error && !document.get_object().get(chunk)) read_names(chunk, names);
  return names;
}

}  // namespace penstock::openai
