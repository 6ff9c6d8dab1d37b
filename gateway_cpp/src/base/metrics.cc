#include "base/metrics.h"

#include <algorithm>

namespace penstock::base {
namespace {

// Who holds a part that no request counts in: its shard, and Metrics.
constexpr long kHolders = 2;

bool is_idle(const Metrics::Parts& parts) {
  return std::ranges::all_of(parts, [](const auto& part) { return part.use_count() <= kHolders; });
}

void add_settled(DeploymentTotals& sum, Outcome outcome, std::uint64_t count) {
  sum.requests += count;
  if (outcome == Outcome::kSucceeded) sum.succeeded += count;
  if (outcome == Outcome::kFailed) sum.failed += count;
  if (outcome == Outcome::kRejected) sum.rejected += count;
  if (outcome == Outcome::kCancelled) sum.cancelled += count;
}

void add(DeploymentTotals& sum, const DeploymentMetrics& part) {
  sum.in_flight += static_cast<std::uint64_t>(std::max<std::int64_t>(part.in_flight.value(), 0));
  part.each_settled([&sum](Outcome outcome, unsigned /*status*/, std::uint64_t count) {
    add_settled(sum, outcome, count);
  });
  sum.prompt_tokens += part.prompt_tokens.value();
  sum.completion_tokens += part.completion_tokens.value();
  part.each_times([&sum](const RequestTimes& times) {
    sum.ttft_sum += std::chrono::microseconds(times.ttft.counts().sum_ns() / 1000);
  });
  sum.queue_wait_sum += std::chrono::microseconds(part.sent_wait_us.value());
  sum.sent += part.sent.value();
  sum.resumed += part.resumes(ResumeOutcome::kResumed);
  sum.not_resumed += part.resumes(ResumeOutcome::kTold);
  for (std::size_t i = 0; i < kObjectives; ++i) {
    sum.slo[i].requests += part.slo[i].requests.value();
    sum.slo[i].bad += part.slo[i].bad.value();
  }
}

}  // namespace

const std::shared_ptr<DeploymentMetrics>& MetricsShard::deployment(std::string_view name) {
  const auto known = deployments_.find(name);
  if (known != deployments_.end() && !known->second->retired_.load(std::memory_order_acquire)) {
    return known->second;
  }
  std::erase_if(deployments_, [](const auto& entry) { return entry.second->retired_.load(); });
  auto& part = deployments_[std::string(name)];
  part = std::make_shared<DeploymentMetrics>(std::string(name));
  all_.enlist(part);
  return part;
}

TenantMetrics& MetricsShard::tenant(std::string_view id) {
  auto known = tenants_.find(id);
  if (known != tenants_.end()) return known->second;
  const std::string_view label = all_.tenant_label(id);
  known = tenants_.find(label);
  if (known != tenants_.end()) return known->second;
  const std::lock_guard lock(tenants_mutex_);
  return tenants_[std::string(label)];
}

std::string_view Metrics::tenant_label(std::string_view id) const {
  if (id.empty()) return kWithoutKey;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!tenants_full_.load(std::memory_order_acquire)) lock.lock();
  const auto known = tenants_.find(id);
  if (known != tenants_.end()) return *known;
  if (tenants_.size() >= kMostTenants) return kOtherTenants;
  const std::string& label = *tenants_.emplace(id).first;
  tenants_full_.store(tenants_.size() >= kMostTenants, std::memory_order_release);
  return label;
}

MetricsShard& Metrics::add_shard() {
  const std::lock_guard lock(mutex_);
  return shards_.emplace_back(*this);
}

void Metrics::enlist(const std::shared_ptr<DeploymentMetrics>& part) {
  const std::lock_guard lock(mutex_);
  deployments_[part->name()].push_back(part);
}

void Metrics::keep_only(const std::function<bool(const std::string&)>& is_deployment) {
  const std::lock_guard lock(mutex_);
  std::erase_if(deployments_, [&](const auto& entry) {
    const auto& [name, parts] = entry;
    if (name == kUnknownDeployment || is_deployment(name) || !is_idle(parts)) return false;
    for (const auto& part : parts) part->retired_.store(true, std::memory_order_release);
    return true;
  });
}

Metrics::Deployments Metrics::deployments() const {
  const std::lock_guard lock(mutex_);
  return deployments_;
}

std::vector<const MetricsShard*> Metrics::shards() const {
  const std::lock_guard lock(mutex_);
  std::vector<const MetricsShard*> shards;
  for (const MetricsShard& shard : shards_) shards.push_back(&shard);
  return shards;
}

std::uint64_t Metrics::bytes_sent() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const MetricsShard& shard : shards_) sum += shard.bytes_sent.value();
  return sum;
}

std::vector<DeploymentTotals> Metrics::totals() const {
  std::vector<DeploymentTotals> out;
  for (const auto& [name, parts] : deployments()) {
    if (name == kUnknownDeployment) continue;
    DeploymentTotals& sum = out.emplace_back();
    sum.deployment = name;
    for (const auto& part : parts) add(sum, *part);
  }
  return out;
}

}  // namespace penstock::base
