// Fields are written in the falling order of their numbers: the last one stands first in the room.
// All is inlined into one function, which then keeps the writer in registers.
#include "proxy/record_bytes.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/trace_context.h"
#include "observe/wire_writer.h"
#include "penstock/v1/explain.pb.h"

namespace penstock::proxy {

namespace {

using observe::WireWriter;

constexpr size_t kMostText = 256;  // of what others say besides
constexpr size_t kMostPromptVersion = 64;

uint64_t us_of(std::chrono::nanoseconds time) {
  return static_cast<uint64_t>(
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(time).count()));
}

// As a uint32; what is too long for that is as long as it can.
uint32_t short_us_of(std::chrono::nanoseconds time) {
  return static_cast<uint32_t>(std::min<uint64_t>(us_of(time), UINT32_MAX));
}

uint32_t digit(char c) { return static_cast<uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10) & 0xFU; }

[[gnu::always_inline]] inline void write_trace(std::string_view hex, WireWriter& to) {
  std::array<char, 16> id{};
  if (hex.size() != 2 * id.size()) return;
  for (size_t i = 0; i < id.size(); ++i) {
    id[i] = static_cast<char>(digit(hex[2 * i]) << 4U | digit(hex[2 * i + 1]));
  }
  to.text(v1::RequestRecord::kTraceIdFieldNumber, {id.data(), id.size()});
}

// Each of them, the last one first.
template <auto Write, class Items>
[[gnu::always_inline]] inline void each_backwards(uint32_t field, const Items& items,
                                                  WireWriter& to) {
  for (auto item = items.rbegin(); item != items.rend(); ++item) {
    to.message(field, [&] { Write(*item, to); });
  }
}

[[gnu::always_inline]] inline void write_gap(const GapRecord& gap, WireWriter& to) {
  to.number(v1::Gap::kMsFieldNumber, gap.ms);
  to.number(v1::Gap::kAtUsFieldNumber, gap.at_us);
}

[[gnu::always_inline]] inline void write_leg(const LegRecord& leg, WireWriter& to) {
  using F = v1::Leg;
  to.foreign(F::kFailureFieldNumber, leg.failure, kMostText);
  to.number(F::kTookUsFieldNumber, short_us_of(leg.took));
  to.number(F::kTokensFieldNumber, leg.tokens);
  to.text(F::kReplicaFieldNumber, leg.replica);
  to.text(F::kCallFieldNumber, leg.call);
}

[[gnu::always_inline]] inline void write_look(const routing::Look& look, WireWriter& to) {
  to.text(v1::Look::kVerdictFieldNumber, routing::name(look.verdict));
  to.number(v1::Look::kLoadFieldNumber, look.load);
  to.text(v1::Look::kReplicaFieldNumber, look.replica);
}

[[gnu::always_inline]] inline void write_pick(const routing::Pick& pick, WireWriter& to) {
  to.number(v1::Pick::kMoreFieldNumber, pick.more);
  for (size_t i = pick.size(); i > 0; --i) {
    to.message(v1::Pick::kLooksFieldNumber, [&] { write_look(pick.look(i - 1), to); });
  }
  to.text(v1::Pick::kPolicyFieldNumber, pick.policy);
}

[[gnu::always_inline]] inline void write_attempt(const AttemptRecord& attempt, WireWriter& to) {
  using F = v1::Attempt;
  to.number(F::kCachedTokensFieldNumber, attempt.cached_tokens);
  to.number(F::kDecodeUsFieldNumber, attempt.decode_us);
  to.number(F::kPrefillUsFieldNumber, attempt.prefill_us);
  to.number(F::kQueuedUsFieldNumber, attempt.queued_us);
  to.foreign(F::kErrorFieldNumber, attempt.error, kMostText);
  to.number(F::kEndedUsFieldNumber, attempt.ended_us);
  to.number(F::kFirstUsFieldNumber, attempt.first_us);
  to.number(F::kSentUsFieldNumber, attempt.sent_us);
  if (!attempt.pick.policy.empty()) {
    to.message(F::kPickFieldNumber, [&] { write_pick(attempt.pick, to); });
  }
  to.text(F::kReasonFieldNumber, attempt.reason);
  to.text(F::kReplicaFieldNumber, attempt.replica);
}

[[gnu::always_inline]] inline void write_turn(const StayRecord& stay, WireWriter& to) {
  using F = v1::QueueTurn;
  const dispatch::QueueTurn& turn = stay.turn;
  const auto ahead = [&turn](base::Priority priority) {
    return turn.ahead[static_cast<size_t>(priority)];
  };
  to.number(F::kWaitedUsFieldNumber, us_of(stay.waited));
  to.text(F::kPriorityFieldNumber, base::name(stay.priority));
  to.number(F::kPlaceFieldNumber, turn.place);
  to.number(F::kAheadLowFieldNumber, ahead(base::Priority::kLow));
  to.number(F::kAheadNormalFieldNumber, ahead(base::Priority::kNormal));
  to.number(F::kAheadHighFieldNumber, ahead(base::Priority::kHigh));
  to.number(F::kWorkASecondFieldNumber, turn.work_a_second);
  to.number(F::kWorkBeforeFieldNumber, turn.work_before);
  to.number(F::kRunningFieldNumber, turn.running);
  to.number(F::kWithRoomFieldNumber, turn.with_room);
  to.number(F::kReadyFieldNumber, turn.ready);
  to.number(F::kEstimatedWaitMsFieldNumber, static_cast<uint32_t>(turn.estimated_wait.count()));
}

[[gnu::always_inline]] inline void write_stay(const StayRecord& stay, WireWriter& to) {
  using F = v1::Stay;
  to.text(F::kArmFieldNumber, stay.arm);
  to.number(F::kPassedOverFieldNumber, stay.passed_over ? 1 : 0);
  to.foreign(F::kLeftForFieldNumber, stay.left_for, kMostText);
  if (stay.has_turn || stay.waited.count() > 0)
    to.message(F::kTurnFieldNumber, [&] { write_turn(stay, to); });
  to.number(F::kCompletionEstimateFieldNumber, stay.completion_estimate);
  to.number(F::kPromptEstimateFieldNumber, stay.prompt_estimate);
  to.number(F::kEnteredUsFieldNumber, stay.entered_us);
  to.text(F::kAdapterFieldNumber, stay.adapter);
  to.text(F::kByFieldNumber, stay.by);
  to.number(F::kWayFieldNumber, static_cast<uint64_t>(stay.way));
  to.text(F::kDeploymentFieldNumber, stay.deployment);
}

static_assert(static_cast<int>(Way::kRung) == v1::Stay::WAY_RUNG);

[[gnu::always_inline]] inline void write_answer(const RequestRecord& record, WireWriter& to) {
  using F = v1::RequestRecord;
  to.number(F::kStreamedFieldNumber, record.streamed ? 1 : 0);
  to.text(F::kAskedFieldNumber, record.asked);
  to.text(F::kClientFieldNumber, record.client);
  to.number(F::kCostNanousdFieldNumber, record.cost_nanousd);
  each_backwards<write_gap>(F::kGapsFieldNumber, record.gaps, to);
  to.number(F::kCachedTokensFieldNumber, record.cached_tokens);
  to.number(F::kCompletionTokensFieldNumber, record.completion_tokens);
  to.number(F::kPromptTokensFieldNumber, record.prompt_tokens);
  to.number(F::kBytesFieldNumber, record.bytes);
  to.number(F::kEventsFieldNumber, record.events);
  to.number(F::kFirstByteUsFieldNumber, record.ttft ? std::max(1U, short_us_of(*record.ttft)) : 0);
  to.foreign(F::kModelVersionFieldNumber, record.model_version, kMostText);
}

[[gnu::always_inline]] inline void write_way(const RequestRecord& record, WireWriter& to) {
  using F = v1::RequestRecord;
  to.number(F::kQuarantinedFieldNumber, record.quarantined ? 1 : 0);
  to.number(F::kSuspectFieldNumber, record.suspect ? 1 : 0);
  for (auto rule = record.shadows.rbegin(); rule != record.shadows.rend(); ++rule) {
    to.text(F::kShadowsFieldNumber, *rule);
  }
  each_backwards<write_leg>(F::kLegsFieldNumber, record.legs, to);
  to.text(F::kProgramFieldNumber, record.program);
  to.number(F::kTrimmedTokensFieldNumber, record.trimmed_tokens);
  to.number(F::kTrimmedMessagesFieldNumber, record.trimmed_messages);
  to.text(F::kRungFieldNumber, record.rung);
  to.text(F::kDegradedFieldNumber, record.degraded);
  to.number(F::kOfCandidateFieldNumber, record.of_candidate ? 1 : 0);
  to.text(F::kCanaryFieldNumber, record.canary);
  to.number(F::kAttemptsMadeFieldNumber, record.attempts_made);
  each_backwards<write_attempt>(F::kAttemptsFieldNumber, record.attempts.all(), to);
  each_backwards<write_stay>(F::kStaysFieldNumber, record.stays.all(), to);
}

[[gnu::always_inline]] inline void write_end(const RequestRecord& record, WireWriter& to) {
  using F = v1::RequestRecord;
  std::array<uint32_t, base::kPhases> phases;
  std::ranges::transform(record.phases.spent, phases.begin(), short_us_of);
  to.numbers(F::kPhaseUsFieldNumber, phases);
  to.number(F::kDurationUsFieldNumber, us_of(record.duration));
  to.foreign(F::kMessageFieldNumber, record.message, kMostMessageBytes);
  to.text(F::kDropReasonFieldNumber, record.drop_reason);
  to.foreign(F::kErrorCodeFieldNumber, record.error_code, kMostText);
  to.text(F::kOutcomeFieldNumber, base::name(record.outcome));
  to.number(F::kStatusFieldNumber, record.status);
}

}  // namespace

std::string_view write_record(const RequestRecord& record, std::string& room) {
  using F = v1::RequestRecord;
  WireWriter to(room);
  write_answer(record, to);
  write_way(record, to);
  write_end(record, to);
  to.foreign(F::kPromptVersionFieldNumber, record.prompt_version, kMostPromptVersion);
  to.foreign(F::kModelFieldNumber, record.model, kMostModelBytes);
  to.text(F::kKeyIdFieldNumber, record.key_id);
  to.text(F::kTenantFieldNumber, record.tenant);
  to.text(F::kPathFieldNumber, record.path);
  to.number(F::kReceivedUsFieldNumber, record.received_us);
  write_trace(record.trace_id, to);
  to.foreign(F::kClientRequestIdFieldNumber, record.client_request_id, kMostModelBytes);
  to.text(F::kRequestIdFieldNumber, record.request_id);
  return to.bytes();
}

observe::RecordFacts facts_of(const RequestRecord& record) {
  return {.tenant = record.tenant,
          .outcome = record.outcome,
          .status = record.status,
          .received_us = record.received_us,
          .duration_us = us_of(record.duration),
          .first_byte_us = record.ttft ? us_of(*record.ttft) : 0,
          .operation = record.operation,
          .trace = record.trace};
}

}  // namespace penstock::proxy
