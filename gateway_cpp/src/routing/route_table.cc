#include "routing/route_table.h"

#include <algorithm>

#include "routing/adapter_split.h"

namespace penstock::routing {
namespace {

// How many names an error lists before it says "and N more".
constexpr std::size_t kNamesShown = 20;
constexpr std::size_t kShown = 200;  // of a hostile name

bool can_come(const DeploymentRoute& deployment) {
  return deployment.availability != base::Availability::kScaledToZero &&
         deployment.availability != base::Availability::kFailed;
}

// Names as errors list them: the first few, and how many more there are.
class ShownNames {
 public:
  void add(std::string_view name) {
    if (++count_ > kNamesShown) return;
    if (count_ > 1) text_ += ", ";
    text_ += name;
  }
  std::string text() const {
    if (count_ <= kNamesShown) return text_;
    return text_ + " and " + std::to_string(count_ - kNamesShown) + " more";
  }

 private:
  std::string text_;
  std::size_t count_ = 0;
};

base::Error no_routes() {
  auto error = base::make_error(base::Kind::kNoRoutes,
                                "this gateway has not heard from its control plane yet; try "
                                "again in a second");
  error.retry_after = std::chrono::seconds(1);
  return error;
}

// Never the base model in its place.
base::Error not_listed(std::string_view model, const AdapterAlias& alias, std::size_t share) {
  const std::string& version = alias.shares.empty() ? alias.adapter : alias.shares[share].adapter;
  return base::make_error(base::Kind::kAdapterUnknown,
                          "The model `" + std::string(model) + "` stands for the adapter `" +
                              version +
                              "`, which the control plane does not list for models of this "
                              "deployment's family. Its operator has to move the alias to one that "
                              "is listed.",
                          "model");
}

}  // namespace

Routes::Routes(const RouteSnapshot& snapshot)
    : version_(snapshot.version),
      known_(true),
      versions_(snapshot.adapters),
      replicas_(snapshot.replicas.size()),
      ended_keys_(snapshot.ended_keys.begin(), snapshot.ended_keys.end()),
      comparer_(snapshot.comparer),
      lost_accelerators_(snapshot.lost_accelerators) {
  for (const DeploymentRoute& route : snapshot.deployments) {
    deployments_[route.name] = std::make_shared<const DeploymentRoute>(route);
  }
  index();
  list_names();
}

// Deployments first: one may have a colon in its own name.
void Routes::index() {
  std::size_t aliases = 0;
  std::size_t shares = 0;
  for (const auto& [name, deployment] : deployments_) {
    aliases += deployment->adapters.size();
    for (const AdapterAlias& alias : deployment->adapters) {
      shares += std::max<std::size_t>(1, alias.shares.size());
    }
  }
  joined_.reserve(aliases);
  of_alias_.reserve(shares);
  by_name_.reserve(deployments_.size() + aliases);
  for (const auto& [name, deployment] : deployments_) by_name_[name] = {.deployment = &deployment};
  for (const auto& [name, deployment] : deployments_) {
    for (const AdapterAlias& alias : deployment->adapters) add_alias(deployment, alias);
  }
}

void Routes::add_alias(const std::shared_ptr<const DeploymentRoute>& deployment,
                       const AdapterAlias& alias) {
  const std::size_t first = of_alias_.size();
  if (alias.shares.empty()) of_alias_.push_back(version_of(alias.adapter, *deployment));
  for (const AdapterShare& share : alias.shares) {
    of_alias_.push_back(version_of(share.adapter, *deployment));
  }
  joined_.push_back(deployment->name + ":" + alias.alias);
  by_name_.try_emplace(joined_.back(), Named{&deployment, &alias, &of_alias_[first]});
}

// A head that lists no version at all is older than lists: its replicas know what they hold by name
// alone, and refuse anything else.
SharedVersion Routes::version_of(const std::string& name, const DeploymentRoute& deployment) const {
  if (versions_.empty()) {
    return std::make_shared<const AdapterVersion>(AdapterVersion{.name = name});
  }
  const SharedVersion* listed = versions_.find(name, deployment);
  return listed == nullptr ? nullptr : *listed;
}

void Routes::list_names() {
  ShownNames shown;
  each_name([&shown](const ModelName& name) { shown.add(name.name); });
  names_text_ = shown.text();
}

void Routes::each_name(const EachName& each) const {
  for (const auto& [name, deployment] : deployments_) {
    if (can_come(*deployment)) each_alias(*deployment, each);
  }
  std::size_t left = kVersionsNamed;
  for (const auto& [name, deployment] : deployments_) {
    if (can_come(*deployment)) left -= each_version(*deployment, left, each);
  }
}

void Routes::each_alias(const DeploymentRoute& deployment, const EachName& each) const {
  each({.name = deployment.name, .deployment = &deployment});
  for (const AdapterAlias& alias : deployment.adapters) {
    const auto stands_for = describe(deployment.name + ":" + alias.alias);
    if (stands_for) each(*stands_for);
  }
}

std::size_t Routes::each_version(const DeploymentRoute& deployment, std::size_t most,
                                 const EachName& each) const {
  const auto fitting = versions_.fitting(deployment);
  const auto named = fitting.first(std::min(most, fitting.size()));
  for (const SharedVersion& version : named) {
    each({deployment.name + ":" + version->name, &deployment, version.get()});
  }
  return named.size();
}

std::optional<Routes::Named> Routes::find(std::string_view model) const {
  const auto found = by_name_.find(model);
  return found == by_name_.end() ? find_version(model) : found->second;
}

// Neither a version nor its name has a colon.
std::optional<Routes::Named> Routes::find_version(std::string_view model) const {
  const std::size_t colon = model.rfind(':');
  if (colon == std::string_view::npos || model.find('@', colon) == std::string_view::npos) {
    return std::nullopt;
  }
  const auto deployment = deployments_.find(model.substr(0, colon));
  if (deployment == deployments_.end()) return std::nullopt;
  const SharedVersion* version = versions_.find(model.substr(colon + 1), *deployment->second);
  if (version == nullptr) return std::nullopt;
  return Named{&deployment->second, nullptr, version};
}

std::string_view Routes::lost_accelerators(std::string_view node) const {
  const auto found = std::ranges::find(lost_accelerators_, node, &LostAccelerators::node);
  return found == lost_accelerators_.end() ? std::string_view() : found->detail;
}

base::Result<Route> Routes::resolve(std::string_view model, const ShareHash& share_hash) const {
  if (!known_) return no_routes();
  if (model.empty()) {
    if (deployments_.size() == 1) return Route{deployments_.begin()->second};
    return missing_model();
  }
  const auto named = find(model);
  if (!named) return unknown_model(model);
  if (named->versions == nullptr) return Route{*named->deployment};
  std::size_t share = 0;
  if (named->alias != nullptr && named->alias->shares.size() > 1) {
    share = share_for(named->alias->shares, share_hash ? share_hash() : 0);
  }
  if (named->versions[share] == nullptr) return not_listed(model, *named->alias, share);
  return Route{*named->deployment, named->versions[share]};
}

base::Result<ModelName> Routes::describe(std::string_view model) const {
  if (!known_) return no_routes();
  const auto named = find(model);
  if (!named) return unknown_model(model);
  ModelName name{std::string(model), named->deployment->get()};
  if (named->versions == nullptr) return name;
  name.alias = named->alias;
  const std::size_t share = name.alias == nullptr ? 0 : largest_share(name.alias->shares);
  name.version = named->versions[share].get();
  if (name.version == nullptr) return not_listed(model, *name.alias, share);
  return name;
}

base::Error Routes::unknown_model(std::string_view model) const {
  std::string message = "The model `" + std::string(model.substr(0, kShown)) + "` does not exist. ";
  const std::string names = names_like(model);
  message += names.empty() ? "No deployment exists yet." : "These do: " + names + ".";
  return base::make_error(base::Kind::kModelNotFound, std::move(message), "model");
}

// Of an adapter that a deployment has not: what it has.
std::string Routes::names_like(std::string_view model) const {
  const std::size_t colon = model.rfind(':');
  const auto deployment = colon == std::string_view::npos
                              ? deployments_.end()
                              : deployments_.find(model.substr(0, colon));
  if (deployment == deployments_.end()) return names_text_;
  ShownNames shown;
  const auto show = [&shown](const ModelName& name) { shown.add(name.name); };
  each_alias(*deployment->second, show);
  each_version(*deployment->second, kVersionsNamed, show);
  return shown.text();
}

base::Error Routes::missing_model() const {
  std::string message = "'model' is missing. ";
  message +=
      names_text_.empty() ? "No deployment exists yet." : "Name one of these: " + names_text_ + ".";
  return base::make_error(base::Kind::kMissingParameter, std::move(message), "model");
}

base::MaybeError refuses(const Route& route, std::string_view endpoint) {
  const DeploymentRoute& deployment = *route.deployment;
  const auto& served = deployment.endpoints;
  if (served.empty() || std::ranges::find(served, endpoint) != served.end()) return std::nullopt;
  std::string message = "The model `" + deployment.name + "` does not answer at ";
  message.append(endpoint).append(". It serves ");
  for (const std::string& path : served) {
    if (&path != served.data()) message += ", ";
    message += path;
  }
  return base::make_error(base::Kind::kUnsupportedEndpoint, message + ".", "model");
}

}  // namespace penstock::routing
