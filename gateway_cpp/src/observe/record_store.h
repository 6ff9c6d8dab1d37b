// What requests that have ended were decided to, kept for whoever asks: in one budget, of which one
// tenant has a quarter at most. Where it is full, the tenant that has most loses its oldest, so
// that whoever floods it pushes out what is his own; of a tenant's, ordinary ones go first, as long
// as they are a quarter of them, then those of which there are most.
//
// Any thread. The lock is held for a record, or for a few that are looked at: whoever searches lets
// requests that settle go first.
#pragma once

#include <array>
#include <atomic>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "observe/record_sink.h"
#include "penstock/v1/explain.pb.h"

namespace penstock::observe {

class RecordTail;

// For what a record is kept: all but the last kind are kept longest.
enum class RecordKind : std::uint8_t {
  kError,    // it failed, or was no good request
  kRefusal,  // admission said no
  kSlow,
  kOrdinary,
};
inline constexpr std::size_t kRecordKinds = 4;
std::string_view name(RecordKind kind);  // metrics

// Why one is kept no more although no hour has passed since.
enum class RecordDrop : std::uint8_t { kBudget, kTenantShare };
inline constexpr std::size_t kRecordDrops = 2;
std::string_view name(RecordDrop reason);  // metrics

struct RecordTotals {
  std::array<std::uint64_t, kRecordKinds> records{};  // now
  std::uint64_t bytes = 0;
  std::array<std::uint64_t, kRecordDrops> dropped{};  // since the start
};

class RecordStore final : public RecordSink {
 public:
  static constexpr std::chrono::microseconds kSlow = std::chrono::seconds(10);

  // `budget`: of all that is kept, in bytes; 0: nothing is. `began`: requests came from then on.
  // `slow`: a request that lasts longer.
  explicit RecordStore(std::size_t budget, base::WallTime began = {},
                       std::chrono::microseconds slow = kSlow);
  ~RecordStore() override;

  void take(const RecordFacts& facts, std::string_view bytes) override;

  // As bytes, the newest that came first; of one microsecond those with the higher request_id.
  std::vector<std::string> list(const v1::RequestFilter& filter) const;
  // Those that are called so: the one that we called so, then a hundred at most of those that their
  // clients did, the last that ended first.
  std::vector<std::string> find(std::string_view id) const;
  // Those that end from now on, as long as the tail is held. `wake` is called when some are there,
  // under the store's lock: it may only wake.
  std::shared_ptr<RecordTail> tail(v1::RequestFilter filter, std::function<void()> wake);
  // All that came from then on and have ended are kept, in microseconds since 1970; of those
  // before, some may be. 0: none is.
  std::uint64_t kept_since_us() const;
  bool keeps() const { return budget_ > 0; }
  RecordTotals totals() const;

 private:
  struct Tenant;
  using Hook = boost::intrusive::list_member_hook<>;
  // One of them; its bytes lie behind it.
  struct Kept {
    Hook of_all;
    Hook of_kind;
    Tenant* tenant = nullptr;
    std::uint64_t received_us = 0;
    std::uint64_t duration_us = 0;
    std::uint32_t size = 0;
    std::uint16_t status = 0;
    RecordKind kind = RecordKind::kOrdinary;

    std::string_view bytes() const { return {reinterpret_cast<const char*>(this + 1), size}; }
    std::size_t takes() const { return sizeof(Kept) + size; }
    std::uint64_t ended_us() const { return received_us + duration_us; }
    RecordFacts facts() const;
  };
  using All = boost::intrusive::list<
      Kept, boost::intrusive::member_hook<Kept, Hook, &Kept::of_all>>;  // as they ended
  using OfKind =
      boost::intrusive::list<Kept, boost::intrusive::member_hook<Kept, Hook, &Kept::of_kind>>;
  struct Shelf {
    OfKind records;
    std::size_t bytes = 0;
  };
  struct Tenant {
    std::string id;
    std::array<Shelf, kRecordKinds> shelves;
    std::size_t bytes = 0;
    boost::intrusive::set_member_hook<> order;

    Shelf& shelf(RecordKind kind) { return shelves[static_cast<std::size_t>(kind)]; }
    RecordKind first_to_go() const;
  };
  struct LessBytes {
    bool operator()(const Tenant& a, const Tenant& b) const { return a.bytes < b.bytes; }
  };
  using ByBytes = boost::intrusive::multiset<
      Tenant,
      boost::intrusive::member_hook<Tenant, boost::intrusive::set_member_hook<>, &Tenant::order>,
      boost::intrusive::compare<LessBytes>>;
  // Where somebody looks through all, from the newest on; null: at the end.
  struct Cursor {
    const Kept* next = nullptr;
  };
  // Called with the lock held; false: enough.
  using Look = std::function<bool(const Kept&)>;

  RecordKind kind_of(const RecordFacts& facts) const;
  static Kept* make(const RecordFacts& facts, std::string_view bytes);
  static void free(Kept* kept);
  std::unique_lock<std::mutex> lock_to_take();
  void let_takers_in() const;
  Tenant& tenant_of(std::string_view id);
  void weigh(Tenant& tenant, std::size_t more, std::size_t less);
  void add(Kept& kept, Tenant& tenant);
  void drop(Tenant& tenant, RecordDrop why, std::uint64_t now_us, All& gone);
  void pass_by(const RecordFacts& facts, std::string_view bytes);
  const Kept* older(const Kept& kept) const;
  // `looked` is called between the looks, without the lock.
  void look_through(const Look& look, const std::function<void()>& looked) const;
  bool look_at_some(Cursor& cursor, const Look& look) const;
  void offer(const RecordFacts& facts, std::string_view bytes);

  const std::size_t budget_;
  const std::uint64_t slow_us_;
  std::atomic<unsigned> takers_{0};  // who wait for the lock, to have a record kept
  mutable std::mutex mutex_;         // guards all below
  std::map<std::string, Tenant, std::less<>> tenants_;
  ByBytes by_bytes_;
  All all_;
  RecordTotals totals_;
  std::uint64_t kept_since_us_;
  mutable std::vector<Cursor*> cursors_;
  std::vector<std::weak_ptr<RecordTail>> tails_;
};

}  // namespace penstock::observe
