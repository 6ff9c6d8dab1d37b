#include "simulated/resumption.h"

#include <algorithm>
#include <string>

#include "simulated/answer.h"
#include "simulated/words.h"

namespace penstock::replica::simulated {
namespace {

std::string misfit_of_group(const v1::TokenGroup& group, uint64_t index, const Answer& answer,
                            uint64_t seed) {
  const std::string which = "group " + std::to_string(index);
  if (index >= answer.tokens()) {
    return which + " is one too many: the answer has " + std::to_string(answer.tokens()) +
           " tokens";
  }
  if (group.choice() != 0) {
    return which + " is of choice " + std::to_string(group.choice()) + ": there is only choice 0";
  }
  const uint32_t id = word_at(seed, index).token_id;
  if (group.token_ids_size() != 1 || group.token_ids(0) != id) {
    const std::string got = group.token_ids_size() == 1
                                ? "token " + std::to_string(group.token_ids(0))
                                : "of " + std::to_string(group.token_ids_size()) + " tokens";
    return which + " is " + got + ": token " + std::to_string(id) + " stands there";
  }
  const std::string_view finish =
      index + 1 == answer.tokens() ? answer.finish_reason() : std::string_view();
  if (group.finish_reason() != finish || !group.stop_reason().empty()) {
    return which + " ends with '" + group.finish_reason() + group.stop_reason() + "', not '" +
           std::string(finish) + "'";
  }
  return {};
}

std::string misfit_of_events(const v1::Resume& resume, const Answer& answer) {
  const uint64_t tokens = answer.delivered_tokens();
  const uint64_t most =
      tokens == answer.tokens() ? answer.events() : answer.events_before_words() + tokens;
  if (resume.events() <= most) return {};
  return std::to_string(resume.events()) + " events are delivered, of " + std::to_string(tokens) +
         " tokens, which make " + std::to_string(most);
}

std::string misfit_of(const v1::CallRequest& request, const Ask& ask) {
  const v1::Resume& resume = request.resume();
  if (!ask.stream) return "the answer is no stream";
  if (resume.created() <= 0) {
    return "created is " + std::to_string(resume.created()) + ": it must be seconds since 1970";
  }
  if (resume.cached_tokens() > ask.prompt_tokens) {
    return std::to_string(resume.cached_tokens()) + " tokens were cached of a prompt of " +
           std::to_string(ask.prompt_tokens);
  }
  const Answer answer(request, ask, 0);
  uint64_t index = 0;
  for (const v1::TokenGroup& group : resume.groups()) {
    std::string why = misfit_of_group(group, index++, answer, ask.seed);
    if (!why.empty()) return why;
  }
  return misfit_of_events(resume, answer);
}

}  // namespace

std::optional<v1::ErrorDetail> misfit(const v1::CallRequest& request, const Ask& ask) {
  if (!request.has_resume()) return std::nullopt;
  const std::string why = misfit_of(request, ask);
  if (why.empty()) return std::nullopt;
  v1::ErrorDetail error;
  error.set_status(400);
  error.set_type("invalid_request_error");
  error.set_code("bad_resume");
  error.set_message("What is told as delivered is not the beginning of this answer: " + why + ".");
  error.set_fault(v1::FAULT_UPSTREAM);
  error.set_retry(v1::RETRY_NEVER);
  return error;
}

}  // namespace penstock::replica::simulated
