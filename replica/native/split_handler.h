// Who answers where an engine of this process does: that engine, but for what is about KV that
// moves, which Python sees to.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "call.h"

namespace penstock::replica {

// Begins the paths of MicroServing's methods.
inline constexpr std::string_view kMicroServingPath = "/penstock.v1.MicroServing/";

class SplitHandler final : public CallHandler {
 public:
  SplitHandler(std::shared_ptr<CallHandler> python, std::shared_ptr<CallHandler> engine)
      : python_(std::move(python)), engine_(std::move(engine)) {}

  void start(std::span<const CallPtr> calls) override;
  void cancel(const CallPtr& call) override { of(call).cancel(call); }
  void room(std::span<const CallPtr> calls) override;
  v1::Usage cost(const CallPtr& call) override { return of(call).cost(call); }
  void tell_figures(v1::Load* load) const override { engine_->tell_figures(load); }
  void watch(std::function<void()> changed) override { engine_->watch(std::move(changed)); }

 private:
  CallHandler& of(const CallPtr& call) const { return call->for_python ? *python_ : *engine_; }

  const std::shared_ptr<CallHandler> python_;
  const std::shared_ptr<CallHandler> engine_;
};

}  // namespace penstock::replica
