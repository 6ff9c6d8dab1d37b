// Prints a table of what each policy, or with the word `patterns` each pattern, does to the same
// requests. See README.md beside it.
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "pattern_table.h"
#include "world.h"

namespace {

using penstock::simulation::Figures;
using penstock::simulation::Settings;

// NAME=VALUE for each setting; false: one that does not exist.
bool set(Settings& settings, const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) return false;
  const std::string name = argument.substr(0, equals);
  const double value = std::strtod(argument.c_str() + equals + 1, nullptr);
  if (name == "replicas" && value >= 1) {
    settings.replicas = static_cast<std::size_t>(value);
  } else if (name == "rate" && value > 0) {
    settings.rate = value;
  } else if (name == "seconds" && value > 0) {
    settings.seconds = value;
  } else if (name == "deaths" && value >= 0) {
    settings.deaths = value;
  } else if (name == "seed") {
    settings.seed = static_cast<std::uint64_t>(value);
  } else {
    return false;
  }
  return true;
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void print(const std::string& policy, Figures figures) {
  const auto ms = [](double seconds) { return seconds * 1000; };
  std::printf(
      "| %s | %.0f | %.0f | %.0f | %.0f | %.1f %% of %.0f %% | %.2f | %.0f | %.0f %% | %llu | %llu "
      "|\n",
      policy.c_str(), ms(figures.wait.at(0.5)), ms(figures.wait.at(0.99)),
      ms(figures.first_token.at(0.5)), ms(figures.first_token.at(0.99)),
      percent(figures.cached_blocks, figures.prompt_blocks),
      percent(figures.shared_blocks, figures.prompt_blocks), figures.unevenness(),
      ms(figures.longest_tenant_wait()), 100 * figures.estimate_error.at(0.5),
      static_cast<unsigned long long>(figures.moved),
      static_cast<unsigned long long>(figures.lost));
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "patterns") {
    return penstock::simulation::print_patterns(std::span(arguments, count).subspan(2));
  }
  Settings settings;
  for (int i = 1; i < count; ++i) {
    if (set(settings, arguments[i])) continue;
    std::fprintf(stderr,
                 "'%s' is no setting: give replicas=, rate= (requests a second), seconds=, deaths= "
                 "(replicas a second) or seed= with a number\n",
                 arguments[i]);
    return 2;
  }
  std::printf(
      "| policy | wait p50 ms | p99 | TTFT p50 ms | p99 | prefix hits | busiest replica / mean | "
      "worst tenant's p99 wait ms | median error of the estimate | moved | lost |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const char* policy :
       {"round_robin", "least_loaded", "power_of_two", "prefix_aware", "session"}) {
    settings.policy = policy;
    print(policy, penstock::simulation::World(settings).run());
  }
}
