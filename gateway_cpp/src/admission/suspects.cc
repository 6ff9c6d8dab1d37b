#include "admission/suspects.h"

#include <algorithm>
#include <functional>

#include "base/date_text.h"

namespace penstock::admission {
namespace {

using std::chrono::seconds;

constexpr seconds kForgetInterval{1};
// What clients are asked to wait; more than that, and some never come back.
constexpr seconds kShortestWait{1};
constexpr seconds kLongestWait{60};

base::Error quarantined(const Fingerprint& fingerprint, base::WallTime until) {
  auto error = base::make_error(
      base::Kind::kQuarantined,
      "Engines died again and again while they answered this very request, and it alone was there "
      "each time, so it is refused until " +
          base::date_text(until) + ". Its fingerprint is " + fingerprint.hex() +
          "; an operator can release it at /admin/v1/quarantine. Other requests are not affected.");
  error.drop_reason = "quarantined";
  return error;
}

}  // namespace

base::Error suspect_must_wait(std::chrono::milliseconds free_in) {
  const auto wait = std::clamp(std::chrono::ceil<seconds>(free_in), kShortestWait, kLongestWait);
  auto error = base::make_error(
      base::Kind::kOverloaded,
      "An engine died while it answered this very request, so it runs again only where no other "
      "such request does, and there is no room for it now. Try again in " +
          std::to_string(wait.count()) + " s.");
  error.drop_reason = "suspect_must_wait";
  error.retry_after = wait;
  return error;
}

void Aboard::leave() {
  if (Suspects* suspects = std::exchange(suspects_, nullptr)) suspects->leave(fingerprint_);
}

Suspects::Suspects(std::string gateway_id, std::chrono::milliseconds quarantine,
                   std::function<void()> changed)
    : gateway_id_(std::move(gateway_id)), quarantine_(quarantine), changed_(std::move(changed)) {}

// Looking through all of them for each request that is judged would hold up the others.
void Suspects::forget_old(base::WallTime now) {
  const bool is_due = now - looked_for_old_ >= kForgetInterval || now < looked_for_old_;
  if (!is_due) return;
  looked_for_old_ = now;
  table_.forget_old(now);
  note_size();
}

void Suspects::note_size() { size_.store(table_.size(), std::memory_order_relaxed); }

base::Result<Suspicion> Suspects::suspicion(const Fingerprint& fingerprint, base::WallTime now) {
  const std::lock_guard lock(mutex_);
  forget_old(now);
  const Suspicion suspicion = table_.suspicion(fingerprint, now);
  if (suspicion == Suspicion::kQuarantined)
    return quarantined(fingerprint, table_.until(fingerprint));
  return suspicion;
}

bool Suspects::runs(const Fingerprint& fingerprint) const {
  const std::lock_guard lock(mutex_);
  return aboard_.contains(fingerprint);
}

bool Suspects::occupied(std::string_view replica_id) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(aboard_.begin(), aboard_.end(), [replica_id](const auto& item) {
    return item.second.replica_id == replica_id;
  });
}

std::optional<Aboard> Suspects::board(const Fingerprint& fingerprint, const std::string& replica_id,
                                      base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  for (const auto& [other, place] : aboard_) {
    if (other == fingerprint || place.replica_id == replica_id) return std::nullopt;
  }
  aboard_.emplace(fingerprint, Running{replica_id, now});
  return std::optional<Aboard>(std::in_place, this, fingerprint);
}

base::SteadyTime::duration Suspects::free_in(const Fingerprint& fingerprint,
                                             std::span<const std::string_view> replica_ids,
                                             base::SteadyTime now) const {
  const std::lock_guard lock(mutex_);
  if (const auto same = aboard_.find(fingerprint); same != aboard_.end()) {
    return now - same->second.since;
  }
  auto shortest = base::SteadyTime::duration::max();
  for (const auto& [other, place] : aboard_) {
    const bool is_there =
        std::find(replica_ids.begin(), replica_ids.end(), place.replica_id) != replica_ids.end();
    if (is_there) shortest = std::min(shortest, now - place.since);
  }
  return shortest == base::SteadyTime::duration::max() ? kShortestWait : shortest;
}

void Suspects::leave(const Fingerprint& fingerprint) {
  const std::lock_guard lock(mutex_);
  aboard_.erase(fingerprint);
}

void Suspects::died(Suspect suspect, base::WallTime now) {
  suspect.until = now + quarantine_;
  for (EngineDeath& death : suspect.deaths) {
    death.at = now;
    death.gateway_id = gateway_id_;
  }
  {
    const std::lock_guard lock(mutex_);
    table_.add(suspect);
    note_size();
  }
  findings_.fetch_add(1, std::memory_order_relaxed);
  changed_();
}

void Suspects::answered(const Fingerprint& fingerprint, base::WallTime now) {
  {
    const std::lock_guard lock(mutex_);
    if (!table_.clear(fingerprint, now)) return;
  }
  changed_();
}

void Suspects::merge(const std::vector<Suspect>& shown, base::WallTime now) {
  const std::lock_guard lock(mutex_);
  const std::vector<Suspicion> before = suspicions(shown, now);
  table_.merge(shown);
  note_size();
  forget_old(now);
  const std::vector<Suspicion> after = suspicions(shown, now);
  const auto worse = std::mismatch(after.begin(), after.end(), before.begin(), std::less_equal{});
  if (worse.first != after.end()) findings_.fetch_add(1, std::memory_order_relaxed);
}

std::vector<Suspicion> Suspects::suspicions(const std::vector<Suspect>& shown,
                                            base::WallTime now) const {
  std::vector<Suspicion> suspicions;
  suspicions.reserve(shown.size());
  for (const Suspect& suspect : shown) {
    suspicions.push_back(table_.suspicion(suspect.fingerprint, now));
  }
  return suspicions;
}

std::vector<Suspect> Suspects::unshown(base::WallTime now) {
  if (empty()) return {};
  const std::lock_guard lock(mutex_);
  forget_old(now);
  return table_.unshown();
}

}  // namespace penstock::admission
