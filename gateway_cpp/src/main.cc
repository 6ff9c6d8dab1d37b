// The gateway process: reads its flags, serves, drains.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/config.h"
#include "proxy/record_log.h"
#include "serve.h"

namespace penstock {
namespace {

int end(const Ended& ended) {
  if (!ended.error.empty()) std::cerr << "penstock-gateway: error: " << ended.error << '\n';
  return ended.exit_code;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // until the gateway listens to it
  const auto config = base::parse_flags(argc, argv);
  if (!config) return end({kBadFlags, config.error().message});
  switch (config->action) {
    case base::Action::kHelp:
      std::cout << base::usage();
      return EXIT_SUCCESS;
    case base::Action::kVersion:
      std::cout << "penstock-gateway " << base::version() << '\n';
      return EXIT_SUCCESS;
    case base::Action::kLogFields:
      std::cout << proxy::log_field_table();
      return EXIT_SUCCESS;
    case base::Action::kRun:
      break;
  }
  return end(serve(*config));
}
