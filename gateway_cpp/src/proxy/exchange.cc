#include "proxy/exchange.h"

#include "routing/hashing.h"

namespace penstock::proxy {

std::string_view Exchange::session_name() const {
  if (!ask.session.empty()) return ask.session;
  return request.session.empty() ? request.user : request.session;
}

uint64_t Exchange::session_hash() const {
  const std::string_view session = session_name();
  return session.empty() ? 0 : routing::hash_text(session);
}

uint64_t Exchange::share_hash() const {
  if (at.wanted.share != 0) return at.wanted.share;
  const std::string_view session = session_name();
  uint64_t whose = routing::hash_text(caller().tenant->id);
  if (session.empty()) {
    whose = routing::hash_both(whose, routing::hash_text(caller().key_id));
    whose = routing::hash_both(whose, routing::hash_bytes(large ? *large->text : ask.body));
  } else {
    whose = routing::hash_both(whose, routing::hash_text(session));
  }
  return whose;
}

uint64_t Exchange::share() {
  at.wanted.share = share_hash();
  return at.wanted.share;
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
