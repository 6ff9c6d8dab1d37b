#include "admission/suspects.h"

#include <algorithm>
#include <array>
#include <ctime>

namespace penstock::admission {
namespace {

std::string utc_text(base::WallTime time) {
  const std::time_t seconds = base::WallTime::clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

base::Error quarantined(const Fingerprint& fingerprint, base::WallTime until) {
  auto error = base::make_error(
      base::Kind::kQuarantined,
      "Engines died twice while they answered this very request, so it is refused until " +
          utc_text(until) + ". Its fingerprint is " + fingerprint.hex() +
          "; an operator can release it at /admin/v1/quarantine. Other requests are not affected.");
  error.drop_reason = "quarantined";
  return error;
}

}  // namespace

base::Error suspect_must_wait() {
  auto error = base::make_error(
      base::Kind::kOverloaded,
      "An engine died while it answered this very request, so it runs again only where no other "
      "such request does, and there is no room for it now. Try again in a second.");
  error.drop_reason = "suspect_must_wait";
  error.retry_after = std::chrono::seconds(1);
  return error;
}

void Aboard::leave() {
  if (Suspects* suspects = std::exchange(suspects_, nullptr)) suspects->leave(fingerprint_);
}

Suspects::Suspects(std::string gateway_id, std::chrono::milliseconds quarantine,
                   std::function<void()> changed)
    : gateway_id_(std::move(gateway_id)), quarantine_(quarantine), changed_(std::move(changed)) {}

void Suspects::note_size() { size_.store(table_.size(), std::memory_order_relaxed); }

base::Result<Standing> Suspects::judge(const Fingerprint& fingerprint, base::WallTime now) {
  const std::lock_guard lock(mutex_);
  table_.forget_old(now);
  note_size();
  const Standing standing = table_.standing(fingerprint);
  if (standing == Standing::kQuarantined)
    return quarantined(fingerprint, table_.until(fingerprint));
  if (standing == Standing::kSuspect && aboard_.contains(fingerprint)) return suspect_must_wait();
  return standing;
}

bool Suspects::occupied(std::string_view replica_id) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(aboard_.begin(), aboard_.end(),
                     [replica_id](const auto& item) { return item.second == replica_id; });
}

std::optional<Aboard> Suspects::board(const Fingerprint& fingerprint,
                                      const std::string& replica_id) {
  const std::lock_guard lock(mutex_);
  for (const auto& [other, replica] : aboard_) {
    if (other == fingerprint || replica == replica_id) return std::nullopt;
  }
  aboard_.emplace(fingerprint, replica_id);
  return std::optional<Aboard>(std::in_place, this, fingerprint);
}

void Suspects::leave(const Fingerprint& fingerprint) {
  const std::lock_guard lock(mutex_);
  aboard_.erase(fingerprint);
}

void Suspects::died(Suspect suspect, const std::vector<std::string>& replica_ids,
                    base::WallTime now) {
  suspect.until = now + quarantine_;
  for (const std::string& id : replica_ids) suspect.deaths.push_back({id, now, gateway_id_});
  {
    const std::lock_guard lock(mutex_);
    table_.add(suspect);
    note_size();
  }
  changed_();
}

void Suspects::answered(const Fingerprint& fingerprint) {
  const std::lock_guard lock(mutex_);
  table_.clear(fingerprint);
}

void Suspects::merge(const std::vector<Suspect>& shown, base::WallTime now) {
  const std::lock_guard lock(mutex_);
  table_.merge(shown);
  table_.forget_old(now);
  note_size();
}

std::vector<Suspect> Suspects::unshown(base::WallTime now) {
  if (empty()) return {};
  const std::lock_guard lock(mutex_);
  table_.forget_old(now);
  note_size();
  return table_.unshown();
}

}  // namespace penstock::admission
