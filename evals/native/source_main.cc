// penstock-sse-source: serves one recorded answer on a free loopback port, which it prints.
#include <cstdio>
#include <exception>

#include "flags.h"
#include "sse_source.h"

namespace penstock::evals {
namespace {

Recording recording_from(const Flags& flags) {
  const std::string kind = flags.text("kind", "stream");
  const std::string body = file_content(flags.text("recording"));
  if (kind == "stream") return Recording::of_stream(body);
  if (kind == "unary") return Recording::of_unary(body);
  throw BadFlag("--kind takes stream or unary, not \"" + kind + "\"");
}

void run(int count, const char* const* words) {
  const Flags flags(count, words, {"recording", "kind", "step-us"});
  raise_descriptor_limit();
  SseSource source(recording_from(flags), std::chrono::microseconds(flags.number("step-us", 0)));
  std::printf("{\"port\": %u, \"pid\": %d}\n", unsigned{source.port()}, ::getpid());
  std::fflush(stdout);
  source.run();
}

}  // namespace
}  // namespace penstock::evals

int main(int count, char** words) {
  try {
    penstock::evals::run(count, words);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "penstock-sse-source: error: %s\n", problem.what());
    return 2;
  }
}
