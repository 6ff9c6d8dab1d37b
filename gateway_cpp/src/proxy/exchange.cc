#include "proxy/exchange.h"

namespace penstock::proxy {

std::string_view Exchange::session_name() const {
  if (!ask.session.empty()) return ask.session;
  return request.session.empty() ? request.user : request.session;
}

void Exchange::note_tokens(const upstream::Usage& seen) {
  record().prompt_tokens = seen.prompt_tokens;
  record().completion_tokens = seen.completion_tokens;
  record().cached_tokens = seen.cached_tokens;
}

void Exchange::log_refused() noexcept {
  try {
    parts.log.error("a request took a step that none may take",
                    {{"request_id", ask.request_id},
                     {"had", static_cast<int>(delivery.had())},
                     {"has", static_cast<int>(at.has())}});
  } catch (...) {  // no memory is left for that
  }
}

}  // namespace penstock::proxy
