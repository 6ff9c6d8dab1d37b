#include "admission/canary_book.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace penstock::admission {
namespace {

using Verdict = CanaryCourse::Verdict;

// What was counted of a session; those of the candidate's arm stand above these.
enum Mark : std::uint32_t { kNone = 0, kCounted = 1, kBad = 2, kAnswered = 4, kSaved = 8 };
constexpr std::uint32_t kMarks = 4;

CanaryTimes bin_edges() {
  CanaryTimes edges{};
  for (std::size_t i = 0; i < edges.size(); ++i) {
    edges[i] = static_cast<std::uint64_t>(
        std::ceil(16'000 * std::exp2(static_cast<double>(i) / 8)));  // nanoseconds
  }
  return edges;
}

void add_time(CanaryTimes& times, const std::optional<std::chrono::nanoseconds>& time) {
  if (time) ++times[canary_bin(*time)];
}

// All that is told of a whole answer, whatever its session has had.
void add_answer(CanaryCounts& counts, const CanaryAnswer& answer) {
  if (answer.finish) ++counts.finishes[static_cast<std::size_t>(*answer.finish)];
  counts.prompt_tokens += answer.prompt_tokens;
  counts.completion_tokens += answer.completion_tokens;
}

void add_first_answer(CanaryCounts& counts, const CanaryAnswer& answer, bool is_warm) {
  ++counts.answered_sessions;
  if (answer.finish && is_bad(*answer.finish)) ++counts.bad_finishes;
  if (!is_warm) return;
  add_time(counts.ttft, answer.ttft);
  add_time(counts.between_tokens, answer.between_tokens);
  add_time(counts.total, answer.total);
}

}  // namespace

std::size_t canary_bin(std::chrono::nanoseconds time) {
  static const CanaryTimes kEdges = bin_edges();
  const auto took = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
  const auto above = std::ranges::upper_bound(kEdges, took);
  return above == kEdges.begin() ? 0 : static_cast<std::size_t>(above - kEdges.begin()) - 1;
}

void CanaryBook::begin(Entry& entry, const routing::CanaryRule& rule) const {
  entry.row = {
      .uid = rule.uid, .name = rule.name, .step = rule.step, .stable = {}, .candidate = {}};
  entry.sessions = {};
  entry.sessions.set_capacity(sessions_);
}

void CanaryBook::follow(const routing::RouteSnapshot& snapshot) {
  std::map<std::string_view, const routing::CanaryRule*> rules;  // by uid
  for (const routing::DeploymentRoute& route : snapshot.deployments) {
    for (const routing::CanaryRule& rule : route.canary_rules) rules.emplace(rule.uid, &rule);
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&rules](const auto& known) { return !rules.contains(known.first); });
  for (const auto& [uid, rule] : rules) {
    const auto found = entries_.find(uid);
    const bool is_known = found != entries_.end();
    if (is_known && found->second.row.step == rule->step) continue;
    if (is_known || entries_.size() < kMostRules) begin(entries_[rule->uid], *rule);
  }
}

void CanaryBook::ended(const routing::CanaryRule& rule, const End& end) {
  if (count(rule, end) && end.candidate && on_bad_) on_bad_();
}

// Whether its session has turned bad with it.
bool CanaryBook::count(const routing::CanaryRule& rule, const End& end) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(rule.uid);
  if (found == entries_.end() || found->second.row.step != rule.step) return false;
  Entry& entry = found->second;
  CanaryCounts& counts = end.candidate ? entry.row.candidate : entry.row.stable;
  const auto& [verdict, fault, saved] = end.outcome;
  if (verdict == Verdict::kRefused) ++counts.refused;
  if (verdict != Verdict::kBad && verdict != Verdict::kAnswered) return false;
  ++counts.requests;
  if (saved) ++counts.saved;
  const bool is_answered = verdict == Verdict::kAnswered;
  const bool is_warm = is_answered && note_warm(entry, rule, end.answer.replica);
  if (is_answered) add_answer(counts, end.answer);
  const std::uint32_t arm = end.candidate ? kMarks : 0;
  const std::uint32_t before = entry.sessions.find(end.session);
  const std::uint32_t news =
      (kCounted | (is_answered ? kAnswered : kBad) | (saved ? kSaved : kNone)) & ~(before >> arm);
  if (news == 0) return false;
  entry.sessions.put(end.session, before | news << arm);
  if ((news & kCounted) != 0) ++counts.sessions;
  if ((news & kBad) != 0) {
    ++counts.bad_sessions;
    ++counts.errors[static_cast<std::size_t>(fault)];
  }
  if ((news & kSaved) != 0) ++counts.saved_sessions;
  if ((news & kAnswered) != 0) add_first_answer(counts, end.answer, is_warm);
  return (news & kBad) != 0;
}

// Beyond kMostReplicas all begin anew: what is left out is left out of both arms.
bool CanaryBook::note_warm(Entry& entry, const routing::CanaryRule& rule,
                           std::string_view replica) {
  if (rule.warmup_requests == 0) return true;
  if (entry.warmups.size() >= kMostReplicas) entry.warmups.clear();
  std::uint32_t& answers = entry.warmups[std::string(replica)];
  if (answers >= rule.warmup_requests) return true;
  ++answers;
  return false;
}

std::vector<CanaryRow> CanaryBook::rows() const {
  const std::lock_guard lock(mutex_);
  std::vector<CanaryRow> rows;
  for (const auto& [uid, entry] : entries_) rows.push_back(entry.row);
  return rows;
}

}  // namespace penstock::admission
