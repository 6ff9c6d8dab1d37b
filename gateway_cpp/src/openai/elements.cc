#include "openai/elements.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace penstock::openai {
namespace {

struct Row {
  std::string_view what;
  std::size_t Elements::*has;
  std::size_t base::BodyElements::*most;
  std::string_view flag;
};

constexpr std::array kRows = {
    Row{"messages, items or texts", &Elements::messages, &base::BodyElements::messages, "messages"},
    Row{"content parts or calls", &Elements::parts, &base::BodyElements::parts, "parts"},
    Row{"tools", &Elements::tools, &base::BodyElements::tools, "tools"},
    Row{"values", &Elements::values, &base::BodyElements::values, "values"},
};

}  // namespace

base::Error too_many(const Elements& has, const base::BodyElements& most,
                     const std::string& field) {
  const auto* const row =
      std::ranges::find_if(kRows, [&](const Row& row) { return has.*row.has > most.*row.most; });
  std::string message = "'" + field + "' is too much at once: with it the body has ";
  message += std::to_string(has.*row->has).append(" ").append(row->what);
  message += ", at most " + std::to_string(most.*row->most) + " are taken (--body-";
  message.append(row->flag).append(" of the gateway); send fewer");
  return base::make_error(base::Kind::kInvalidValue, std::move(message), field);
}

}  // namespace penstock::openai
