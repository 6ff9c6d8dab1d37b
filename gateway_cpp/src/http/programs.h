// All that a gateway has besides its threads for the router programs beside it. Owned by main.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "admission/program_book.h"
#include "base/clock.h"
#include "base/log.h"
#include "control_plane/deployment_reports.h"
#include "control_plane/program_directory.h"
#include "routing/route_table.h"

namespace penstock::http {

struct Programs {
  Programs(std::string path, base::Log& log) : directory(std::move(path), log) {}

  // Main's thread alone; how soon it is to look again, at the latest.
  std::chrono::milliseconds look(const routing::Routes& routes, base::SteadyTime now) {
    constexpr std::chrono::milliseconds kSoon{200};
    constexpr std::chrono::milliseconds kSeldom{500};
    if (now >= next_) {
      next_ = now + kSoon;
      book.keep_only([&](const std::string& name) { return routes.deployments().contains(name); });
      any_ = directory.look(routes);
    }
    return any_ ? kSoon : kSeldom;
  }

  control_plane::ProgramFacts facts(base::SteadyTime now) const { return {directory, book, now}; }

  admission::ProgramBook book;
  control_plane::ProgramDirectory directory;

 private:
  base::SteadyTime next_{};
  bool any_ = false;
};

}  // namespace penstock::http
