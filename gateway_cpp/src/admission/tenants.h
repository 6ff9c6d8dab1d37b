// Who calls: API keys and their tenants. One TenantTable for the process; replace() is called only
// by the subscription, find() through one TenantReader for each I/O thread.
//
// A key is known by its SHA-256 alone, looked up by that and compared in constant time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "admission/key_hash.h"
#include "admission/tenant_meter.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/priority.h"
#include "base/published.h"

namespace penstock::admission {

struct ApiKey {
  std::string id;  // for people and usage: never the key
  KeyHash sha256{};
  base::WallTime expires_at{};  // the epoch: never
  DayAmount per_day = {};       // of this key, besides its tenant's
  bool operator==(const ApiKey&) const = default;
};

struct Tenant {
  std::string id;  // empty: whoever comes without a key, where none is required
  TenantLimits limits = {};
  std::vector<std::string> models = {};    // deployments it may use; empty: all
  std::vector<std::string> adapters = {};  // names of adapters it may use, "pirate"; empty: all
  base::Priority priority = base::Priority::kNormal;  // the highest it may name
  std::string cache_salt = {};  // keeps its prefix caches apart from others'; empty: shared
  bool degrade_never = false;
  // Its models hold for what stands in for another deployment, too. An older head does not say so.
  bool fallbacks_listed = false;
  bool shadow_never = false;  // its requests are never repeated for our own sake
  std::vector<ApiKey> keys = {};
  bool operator==(const Tenant&) const = default;

  // No deployment and no adapter is kept from it.
  bool may_use_all() const { return models.empty() && adapters.empty(); }
  // What a request runs at that names `asked`.
  base::Priority granted(std::optional<base::Priority> asked) const;
  // 403 where it may not use the deployment or the adapter ("pirate@1"; empty: the base model).
  base::MaybeError refuses(std::string_view deployment, std::string_view adapter) const;
  // Whether its requests may go to a deployment that they did not name: as a rung, or as a canary.
  bool lets_in(std::string_view fallback) const;
  // What it is told where `model`, as it named it, is no route's: `why`, which names those that
  // exist, unless any is kept from it.
  base::Error unresolved(const base::Error& why, std::string_view model) const;
};

// One who may call. Keeps its tenant alive however often the table is replaced.
struct Caller {
  std::shared_ptr<const Tenant> tenant;  // never null
  std::string key_id;                    // empty: without a key
  std::shared_ptr<TenantMeter> meter;    // never null
  DayAmount key_per_day = {};            // of the key, besides its tenant's
};

// Requests under way here.
struct TenantStreams {
  std::string tenant;
  std::uint32_t under_way = 0;
};

enum class KeyFault : std::uint8_t { kNoKey, kUnknownKey, kExpired };

// What the client is told: 401.
base::Error key_error(KeyFault fault);

// One whole set of tenants. Immutable apart from the meters.
class Tenants {
 public:
  struct Entry {
    std::shared_ptr<const Tenant> tenant;
    std::shared_ptr<TenantMeter> meter;
  };

  Tenants(std::vector<Entry> entries, Entry without_key, bool keys_required);

  // Where no key is required, one that is not known is as good as none; one that is over is not.
  std::variant<Caller, KeyFault> find(const KeyHash& hash, base::WallTime now) const;
  // For a key that means nothing; empty: none was presented.
  std::variant<Caller, KeyFault> find_without_key(std::string_view presented = {}) const;
  // Null: there is none of that id. Empty: whoever comes without a key. Looks at all of them.
  std::shared_ptr<const Tenant> of_id(std::string_view id) const;
  // Whether there is any key.
  bool knows_any() const { return !known_.empty(); }
  // Of tenants with a limit of them that have any.
  std::vector<TenantStreams> limited_streams() const;

 private:
  struct Known {
    ApiKey key;
    Entry entry;
  };
  struct FirstBytes {
    std::size_t operator()(const KeyHash& hash) const;
  };
  struct ConstantTime {
    bool operator()(const KeyHash& a, const KeyHash& b) const;
  };

  std::vector<Entry> entries_;
  std::unordered_map<KeyHash, Known, FirstBytes, ConstantTime> known_;
  Entry without_key_;
  bool keys_required_;
};

class TenantTable : public base::Published<Tenants> {
 public:
  // Until the first replace() there are no tenants.
  explicit TenantTable(bool keys_required = false);

  // Swaps the whole set; the meters of ids that stay go on. One thread at a time.
  void replace(std::vector<Tenant> tenants, bool keys_required, base::SteadyTime now);

 private:
  TenantTable(Tenants::Entry without_key, bool keys_required);

  const Tenants::Entry without_key_;
  std::map<std::string, std::shared_ptr<TenantMeter>> meters_;  // only replace() touches it
};

// A thread's own view of the table: one atomic load when nothing changed, and its own hasher.
class TenantReader {
 public:
  explicit TenantReader(const TenantTable& table) : tenants_(table) {}

  // `key` as the client presents it; empty: it presents none.
  std::variant<Caller, KeyFault> find(std::string_view key, base::WallTime now);

 private:
  TenantTable::Reader tenants_;
  KeyHasher hasher_;
};

}  // namespace penstock::admission
