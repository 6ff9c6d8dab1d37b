// penstock-load: one load against one port of this machine, reported as one JSON object on stdout.
#include <netinet/in.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "flags.h"
#include "json.h"
#include "load_client.h"

namespace penstock::evals {
namespace {

constexpr uint64_t kOwnDescriptors = 32;  // beside those of connections

std::string bearer(const std::string& key) {
  return key.empty() ? "" : "\r\nauthorization: Bearer " + key;
}

Target target_from(const Flags& flags) {
  Target target;
  target.address.sin_family = AF_INET;
  target.address.sin_port = htons(uint16_t(flags.number("port")));
  target.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string body = file_content(flags.text("body-file"));
  target.request =
      "POST " + flags.text("path") +
      " HTTP/1.1\r\nhost: 127.0.0.1"
      "\r\ncontent-type: application/json\r\naccept: */*\r\nuser-agent: penstock-load" +
      bearer(flags.text("key", "")) + "\r\ncontent-length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  return target;
}

// "name=pid,name=pid"
std::vector<std::pair<std::string, pid_t>> watched_from(std::string_view list) {
  std::vector<std::pair<std::string, pid_t>> watched;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string item(list.substr(0, comma));
    const size_t equals = item.find('=');
    if (equals == std::string::npos) throw BadFlag("--watch takes name=pid, not \"" + item + "\"");
    watched.emplace_back(item.substr(0, equals), std::stoi(item.substr(equals + 1)));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return watched;
}

LoadOptions options_from(const Flags& flags) {
  LoadOptions options;
  options.target = target_from(flags);
  options.connections = flags.number("connections");
  options.connects_per_second = flags.number("connects-per-second", 4000);
  options.requests = flags.number("requests", 0);
  options.warmup = std::chrono::milliseconds(flags.number("warmup-ms", 1'000));
  options.window = std::chrono::milliseconds(flags.number("window-ms", 4'000));
  options.first_events_from_start = flags.text("first-events", "window") == "start";
  options.watched = watched_from(flags.text("watch", ""));
  options.watched.emplace_back("client", ::getpid());
  options.on_window = [] { std::fputs("measuring\n", stderr); };
  return options;
}

std::string json_of(const Histogram& nanoseconds) {
  const auto us = [&](double share) { return double(nanoseconds.quantile(share)) / 1e3; };
  JsonObject object;
  object.count("count", int64_t(nanoseconds.count())).number("p50", us(0.5));
  object.number("p90", us(0.9)).number("p99", us(0.99)).number("p999", us(0.999));
  return object.number("max", double(nanoseconds.max()) / 1e3).str();
}

std::string json_of(const WatchedProcess& process) {
  JsonObject object;
  object.text("name", process.name).count("pid", process.pid);
  object.count("cpu_ns", process.cpu_ns);
  object.count("pss_before_kib", process.before.pss_kib).count("pss_kib", process.at_end.pss_kib);
  return object.count("rss_before_kib", process.before.rss_kib)
      .count("rss_kib", process.at_end.rss_kib)
      .str();
}

std::string json_of(const LoadReport& report, const Tally& tally) {
  std::string processes = "[";
  for (const WatchedProcess& process : report.processes) {
    if (processes.size() > 1) processes += ',';
    processes += json_of(process);
  }
  JsonObject object;
  object.number("seconds", report.seconds);
  object.count("events", int64_t(report.counts.events));
  object.count("answers", int64_t(report.counts.answers));
  object.count("failed_requests", int64_t(report.counts.failed_requests));
  object.count("stream_errors", int64_t(report.counts.stream_errors));
  object.count("truncated", int64_t(report.counts.truncated));
  object.text("problem", report.problem);
  object.number("longest_silence_us", double(report.longest_silence.count()) / 1e3);
  object.raw("first_event_us", json_of(tally.first_event_ns));
  object.raw("gap_us", json_of(tally.gap_ns)).raw("answer_us", json_of(tally.answer_ns));
  processes += ']';
  return object.raw("processes", processes).str();
}

void check_descriptors(uint64_t connections) {
  const uint64_t allowed = raise_descriptor_limit();
  if (connections + kOwnDescriptors <= allowed) return;
  throw BadFlag("--connections " + std::to_string(connections) + " needs as many open files, and " +
                std::to_string(allowed) + " are allowed: raise the hard limit (ulimit -Hn)");
}

// Whoever keeps a load up beside another one ends it by a signal.
void stop_at_signals(LoadClient& client) {
  static LoadClient* stopped;
  stopped = &client;
  std::signal(SIGTERM, [](int) { stopped->stop(); });
}

int run(int count, const char* const* words) {
  const Flags flags(count, words,
                    {"port", "path", "body-file", "connections", "connects-per-second", "requests",
                     "warmup-ms", "window-ms", "first-events", "watch", "key"});
  const LoadOptions options = options_from(flags);
  check_descriptors(options.connections);
  LoadClient client(options);
  stop_at_signals(client);
  const LoadReport report = client.run();
  std::printf("%s\n", json_of(report, client.tally()).c_str());
  return 0;
}

}  // namespace
}  // namespace penstock::evals

int main(int count, char** words) {
  try {
    return penstock::evals::run(count, words);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "penstock-load: error: %s\n", problem.what());
    return 2;
  }
}
