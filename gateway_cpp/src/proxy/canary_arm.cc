// What a canary's arm is told once its request has ended.
#include "proxy/canary_arm.h"

#include "admission/canary_book.h"
#include "proxy/exchange.h"

namespace penstock::proxy {

// What is thrown is no memory: one count less.
void Exchange::end_canary() noexcept {
  try {
    record().canary = canary->rule->name;
    record().of_candidate = canary->candidate;
    const bool was_broken = record().resumption && record().resumption->was_broken;
    if (record().outcome == base::Outcome::kSucceeded && !was_broken) canary->course.answered();
    const auto outcome = canary->course.outcome(canary->candidate);
    parts.canaries.ended(*canary->rule, {.session = canary->session,
                                         .candidate = canary->candidate,
                                         .outcome = outcome,
                                         .answer = canary_answer()});
  } catch (...) {
    record().canary = {};
  }
}

// As far as it is whole. What its replica said of its end came with its last event.
admission::CanaryAnswer Exchange::canary_answer() const {
  const RequestRecord& told = settlement.record;
  admission::CanaryAnswer answer{.replica = told.replica,
                                 .total = settlement.age(),
                                 .prompt_tokens = told.prompt_tokens,
                                 .completion_tokens = told.completion_tokens};
  if (delivery.is_stream()) answer.ttft = told.ttft;
  if (told.generation.count() > 0 && told.completion_tokens > 1 && resumes() == 0) {
    answer.between_tokens = told.generation / (told.completion_tokens - 1);
  }
  if (!attempts.is_under_way() || !attempts.call().finished()) return answer;
  const upstream::Finished& end = attempts.call().outcome();
  admission::CanaryWords words{.finish_reasons = end.finish_reasons,
                               .counts_end = !at.route.deployment->managed};
  if (end.usage) words.completion_tokens = end.usage->completion_tokens;
  answer.finish = admission::canary_finish(words);
  return answer;
}

}  // namespace penstock::proxy
