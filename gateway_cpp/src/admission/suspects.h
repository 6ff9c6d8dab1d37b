// The suspects of one gateway: its table of them, and which of them run where. Shared by all I/O
// threads, the subscription and the reports; takes a lock, except where there are no suspects,
// which is nearly always.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "admission/suspect_table.h"
#include "base/error.h"

namespace penstock::admission {

class Suspects;

// A suspect that runs on a replica, alone of its kind, for as long as this lives. Move only.
class Aboard {
 public:
  Aboard() = default;
  Aboard(Suspects* suspects, const Fingerprint& fingerprint)
      : suspects_(suspects), fingerprint_(fingerprint) {}
  Aboard(Aboard&& other) noexcept
      : suspects_(std::exchange(other.suspects_, nullptr)), fingerprint_(other.fingerprint_) {}
  Aboard& operator=(Aboard&& other) noexcept {
    leave();
    suspects_ = std::exchange(other.suspects_, nullptr);
    fingerprint_ = other.fingerprint_;
    return *this;
  }
  ~Aboard() { leave(); }

  void leave();

 private:
  Suspects* suspects_ = nullptr;
  Fingerprint fingerprint_;
};

class Suspects {
 public:
  // `changed` is called, on any thread, when there is something new to report.
  Suspects(
      std::string gateway_id, std::chrono::milliseconds quarantine,
      std::function<void()> changed = [] {});
  Suspects(const Suspects&) = delete;
  Suspects& operator=(const Suspects&) = delete;

  // There are none: no request needs a fingerprint.
  bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }

  // How often any became known, or stood worse than before: when that has changed, requests that
  // run may be among them.
  std::uint64_t findings() const { return findings_.load(std::memory_order_relaxed); }

  // May it run? A quarantined one is refused; otherwise, whether it is a suspect.
  base::Result<Suspicion> suspicion(const Fingerprint& fingerprint, base::WallTime now);
  // It runs somewhere.
  bool runs(const Fingerprint& fingerprint) const;
  // Another suspect runs on that replica.
  bool occupied(std::string_view replica_id) const;
  // Nothing if another suspect was faster, or the same one runs.
  std::optional<Aboard> board(const Fingerprint& fingerprint, const std::string& replica_id,
                              base::SteadyTime now);
  // When there may be a place for it on one of these replicas. Nobody knows how long an answer
  // takes: one that runs is taken to be half done.
  base::SteadyTime::duration free_in(const Fingerprint& fingerprint,
                                     std::span<const std::string_view> replica_ids,
                                     base::SteadyTime now) const;

  // Engines died under it, seen here and now: the deaths' gateway and times are filled in, and its
  // term.
  void died(Suspect suspect, base::WallTime now);
  // It was answered whole: from now on it is clear, here and, once the head has heard, everywhere.
  void answered(const Fingerprint& fingerprint, base::WallTime now);

  void merge(const std::vector<Suspect>& shown, base::WallTime now);
  std::vector<Suspect> unshown(base::WallTime now);

 private:
  friend class Aboard;
  struct Running {
    std::string replica_id;
    base::SteadyTime since;
  };

  void forget_old(base::WallTime now);
  void note_size();
  std::vector<Suspicion> suspicions(const std::vector<Suspect>& shown, base::WallTime now) const;
  void leave(const Fingerprint& fingerprint);

  const std::string gateway_id_;
  const std::chrono::milliseconds quarantine_;
  const std::function<void()> changed_;
  std::atomic<std::size_t> size_{0};
  std::atomic<std::uint64_t> findings_{0};

  mutable std::mutex mutex_;  // guards all below
  SuspectTable table_;
  base::WallTime looked_for_old_{};
  std::map<Fingerprint, Running> aboard_;  // suspects that run
};

// What the client of a suspect that has found no place in time is told: it is to come back.
base::Error suspect_must_wait(std::chrono::milliseconds free_in);

}  // namespace penstock::admission
