#include "openai/models.h"

#include <charconv>
#include <string_view>

#include "base/date_text.h"
#include "base/json_text.h"

namespace penstock::openai {
namespace {

void append_card(std::string& out, const ModelCard& card) {
  out += R"({"id":)";
  base::append_json_string(out, card.id);
  out += R"(,"object":"model","created":)" + std::to_string(card.created);
  out += R"(,"owned_by":"penstock","root":)";
  base::append_json_string(out, card.root);
  out += R"(,"parent":)";
  out += card.parent.empty() ? "null" : base::json_string(card.parent);
  out += R"(,"max_model_len":)";
  out += card.max_model_len == 0 ? "null" : std::to_string(card.max_model_len);
  out += R"(,"type":"model","display_name":)";
  base::append_json_string(out, card.id);
  const base::WallTime created{std::chrono::seconds(card.created)};
  out += R"(,"created_at":")" + base::date_text(created) + "\"}";
}

std::string id_or_null(std::span<const ModelCard> cards, const ModelCard* card) {
  return cards.empty() ? "null" : base::json_string(card->id);
}

}  // namespace

std::string model_body(const ModelCard& card) {
  std::string out;
  append_card(out, card);
  return out;
}

std::string model_list_body(std::span<const ModelCard> cards) {
  std::string out = R"({"object":"list","data":[)";
  for (const ModelCard& card : cards) {
    if (&card != cards.data()) out += ',';
    append_card(out, card);
  }
  out += R"(],"has_more":false,"first_id":)" + id_or_null(cards, cards.data());
  out += R"(,"last_id":)" + id_or_null(cards, cards.data() + cards.size() - 1) + '}';
  return out;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const char* digits = text.data() + i + 1;
      const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
      if (error == std::errc() && end == digits + 2) {
        out += static_cast<char>(value);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

}  // namespace penstock::openai
