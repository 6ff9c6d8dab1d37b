#include "admission/tenants.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::admission {
namespace {

bool allows(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "`" : ", `") + name + "`";
  return text;
}

base::Error denied(const std::string& tenant, std::string_view what, std::string_view name,
                   const std::vector<std::string>& names) {
  return base::make_error(base::Kind::kPermissionDenied,
                          "tenant `" + tenant + "` may not use the " + std::string(what) + " `" +
                              std::string(name) + "`; it may use " + list_of(names),
                          "model");
}

}  // namespace

base::Priority Tenant::granted(std::optional<base::Priority> asked) const {
  return std::min(asked.value_or(priority), priority);
}

base::MaybeError Tenant::refuses(std::string_view deployment, std::string_view adapter) const {
  if (!allows(models, deployment)) return denied(id, "model", deployment, models);
  const std::string_view name = adapter.substr(0, adapter.find('@'));
  if (!name.empty() && !allows(adapters, name)) return denied(id, "adapter", name, adapters);
  return std::nullopt;
}

bool Tenant::lets_in(std::string_view fallback) const {
  return !fallbacks_listed || allows(models, fallback);
}

base::Error Tenant::unresolved(const base::Error& why, std::string_view model) const {
  constexpr std::size_t kShown = 200;  // of a hostile name
  if (may_use_all() || why.kind == base::Kind::kNoRoutes) return why;
  if (model.empty()) {
    return base::make_error(base::Kind::kMissingParameter,
                            "'model' is missing. GET /v1/models lists what this key may use.",
                            "model");
  }
  return base::make_error(base::Kind::kModelNotFound,
                          "The model `" + std::string(model.substr(0, kShown)) +
                              "` does not exist, or this key may not use it. GET /v1/models lists "
                              "what it may use.",
                          "model");
}

base::Error key_error(KeyFault fault) {
  switch (fault) {
    case KeyFault::kNoKey:
      return base::make_error(base::Kind::kInvalidApiKey,
                              "this gateway asks for an API key; send it as `Authorization: Bearer "
                              "KEY`, `api-key` or `x-api-key`");
    case KeyFault::kExpired:
      return base::make_error(base::Kind::kInvalidApiKey,
                              "this API key has expired; ask the operator for another");
    case KeyFault::kUnknownKey:
      break;
  }
  return base::make_error(
      base::Kind::kInvalidApiKey,
      "this API key is not known, or was revoked; ask the operator for another");
}

std::size_t Tenants::FirstBytes::operator()(const KeyHash& hash) const {
  std::size_t first = 0;
  std::memcpy(&first, hash.data(), sizeof first);
  return first;
}

bool Tenants::ConstantTime::operator()(const KeyHash& a, const KeyHash& b) const {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Tenants::Tenants(std::vector<Entry> entries, Entry without_key, bool keys_required)
    : entries_(std::move(entries)),
      without_key_(std::move(without_key)),
      keys_required_(keys_required) {
  for (const Entry& entry : entries_) {
    for (const ApiKey& key : entry.tenant->keys) known_.insert({key.sha256, Known{key, entry}});
  }
}

std::variant<Caller, KeyFault> Tenants::find(const KeyHash& hash, base::WallTime now) const {
  const auto found = known_.find(hash);
  if (found == known_.end()) {
    if (keys_required_) return KeyFault::kUnknownKey;
    return find_without_key();
  }
  const Known& known = found->second;
  const bool expires = known.key.expires_at != base::WallTime{};
  if (expires && known.key.expires_at <= now) return KeyFault::kExpired;
  return Caller{known.entry.tenant, known.key.id, known.entry.meter, known.key.per_day};
}

std::variant<Caller, KeyFault> Tenants::find_without_key(std::string_view presented) const {
  if (keys_required_) return presented.empty() ? KeyFault::kNoKey : KeyFault::kUnknownKey;
  return Caller{without_key_.tenant, {}, without_key_.meter, {}};
}

std::shared_ptr<const Tenant> Tenants::of_id(std::string_view id) const {
  if (id.empty()) return without_key_.tenant;
  const auto has_id = [id](const Entry& entry) { return entry.tenant->id == id; };
  const auto found = std::ranges::find_if(entries_, has_id);
  return found == entries_.end() ? nullptr : found->tenant;
}

std::vector<TenantStreams> Tenants::limited_streams() const {
  std::vector<TenantStreams> found;
  for (const Entry& entry : entries_) {
    if (entry.tenant->limits.max_streams == 0) continue;
    const std::uint32_t under_way = entry.meter->streams();
    if (under_way > 0) found.push_back({entry.tenant->id, under_way});
  }
  return found;
}

TenantTable::TenantTable(bool keys_required)
    : TenantTable({std::make_shared<const Tenant>(), std::make_shared<TenantMeter>()},
                  keys_required) {}

TenantTable::TenantTable(Tenants::Entry without_key, bool keys_required)
    : Published(std::make_shared<const Tenants>(std::vector<Tenants::Entry>{}, without_key,
                                                keys_required)),
      without_key_(std::move(without_key)) {}

void TenantTable::replace(std::vector<Tenant> tenants, bool keys_required, base::SteadyTime now) {
  std::map<std::string, std::shared_ptr<TenantMeter>> meters;
  std::vector<Tenants::Entry> entries;
  for (Tenant& tenant : tenants) {
    std::shared_ptr<TenantMeter>& meter = meters[tenant.id];
    const auto known = meters_.find(tenant.id);
    if (known == meters_.end()) {
      meter = std::make_shared<TenantMeter>(tenant.limits);
    } else {
      meter = known->second;
      meter->set_limits(tenant.limits, now);
    }
    entries.push_back({std::make_shared<const Tenant>(std::move(tenant)), meter});
  }
  meters_ = std::move(meters);
  publish(std::make_shared<const Tenants>(std::move(entries), without_key_, keys_required));
}

std::variant<Caller, KeyFault> TenantReader::find(std::string_view key, base::WallTime now) {
  const Tenants& tenants = *tenants_.read();
  // Many clients send some key where none is needed.
  const bool means_nothing = key.empty() || !tenants.knows_any();
  return means_nothing ? tenants.find_without_key(key) : tenants.find(hasher_(key), now);
}

}  // namespace penstock::admission
