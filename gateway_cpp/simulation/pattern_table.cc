#include "pattern_table.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cluster.h"

namespace penstock::simulation {
namespace {

struct Row {
  const char* name;
  Pattern pattern;
  bool balanced;
};
constexpr std::array kRows{Row{"data parallel", Pattern::kDataParallel, false},
                           Row{"P/D", Pattern::kPrefillDecode, false},
                           Row{"P/D, balanced", Pattern::kPrefillDecode, true},
                           Row{"one of double size", Pattern::kDoubleEngine, false}};

struct TableSettings {
  Machine machine = kA100;
  PatternLoad load{.requests = 4000, .balance = 0.1};
  std::uint64_t seeds = 5;
  std::vector<double> rates{1.6, 2.4, 3.2, 4.0, 4.8, 5.6};
};

// Of a text like "1.6,2.4".
std::vector<double> numbers(const std::string& text) {
  std::vector<double> found;
  for (std::size_t at = 0;; ++at) {
    found.push_back(std::strtod(text.c_str() + at, nullptr));
    if ((at = text.find(',', at)) == std::string::npos) return found;
  }
}

// False: no such setting, or not a value of it.
bool set(TableSettings& settings, const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) return false;
  const std::string name = argument.substr(0, equals);
  const std::string text = argument.substr(equals + 1);
  const double value = std::strtod(text.c_str(), nullptr);
  const auto whole = static_cast<std::uint32_t>(value);
  if (name == "machine") {
    for (const Machine& machine : kMachines) {
      if (machine.name == text) return settings.machine = machine, true;
    }
    return false;
  }
  if (name == "policy") {
    settings.load.policy = text;
    return text == "power_of_two" || text == "least_loaded" || text == "round_robin";
  }
  if (name == "rates") {
    settings.rates = numbers(text);
    return std::ranges::all_of(settings.rates, [](double rate) { return rate > 0; });
  }
  if (name == "balance" && value >= 0 && value < 1) return settings.load.balance = value, true;
  if (name == "requests" && value >= 1) return settings.load.requests = whole, true;
  if (name == "prompt" && value > 1) return settings.load.prompt = whole, true;
  if (name == "completion" && value >= 1) return settings.load.completion = whole, true;
  if (name == "seeds" && value >= 1) return settings.seeds = whole, true;
  return false;
}

Latencies measure(const TableSettings& settings, const Row& row, double rate) {
  Latencies latencies;
  PatternLoad load = settings.load;
  load.rate = rate;
  if (!row.balanced) load.balance = 0;
  for (load.seed = 1; load.seed <= settings.seeds; ++load.seed) {
    Cluster(settings.machine, row.pattern, load).run(latencies);
  }
  return latencies;
}

void print(double rate, const Row& row, Latencies& latencies, Latencies& data_parallel) {
  std::printf("| %.1f | %s |", rate, row.name);
  if (latencies.grows) {
    std::printf(" grows | | | | | | | |\n");
    return;
  }
  for (Distribution* one : {&latencies.first_token, &latencies.token, &latencies.whole}) {
    const int digits = one == &latencies.token ? 1 : 0;
    std::printf(" %.*f | %.*f |", digits, 1000 * one->mean(), digits, 1000 * one->at(0.99));
  }
  if (&latencies == &data_parallel || data_parallel.grows) {
    std::printf(" | |\n");
    return;
  }
  const auto change = [](double value, double base) { return 100 * (value / base - 1); };
  std::printf(" %+.0f %% | %+.0f %% |\n",
              change(latencies.whole.mean(), data_parallel.whole.mean()),
              change(latencies.whole.at(0.99), data_parallel.whole.at(0.99)));
}

}  // namespace

int print_patterns(std::span<char* const> arguments) {
  TableSettings settings;
  for (const char* argument : arguments) {
    if (set(settings, argument)) continue;
    std::fprintf(stderr,
                 "'%s' is no setting, or no value of it: give machine=a100 or here, policy=, "
                 "rates= (requests a second, with commas), requests=, seeds=, prompt= and "
                 "completion= (tokens) or balance= (share)\n",
                 argument);
    return 2;
  }
  const StepLimits& limits = settings.machine.limits;
  if (settings.load.prompt + settings.load.completion > limits.blocks * limits.block_tokens) {
    std::fprintf(stderr, "no engine of this machine has room for one such request\n");
    return 2;
  }
  std::printf(
      "| requests/s | pattern | TTFT mean ms | p99 | TPOT mean ms | p99 | JCT mean ms | p99 | "
      "mean beside data parallel | p99 |\n|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const double rate : settings.rates) {
    Latencies data_parallel = measure(settings, kRows.front(), rate);
    print(rate, kRows.front(), data_parallel, data_parallel);
    for (const Row& row : std::span(kRows).subspan(1)) {
      Latencies latencies = measure(settings, row, rate);
      print(rate, row, latencies, data_parallel);
    }
  }
  return 0;
}

}  // namespace penstock::simulation
