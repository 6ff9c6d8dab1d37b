// The table of the gateway's flags, which their parsing and --help follow from.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/config.h"

namespace penstock::base {

// How a flag's text gets into the config, and what is there without the flag.
struct Setting {
  // Empty if all is well, else what the text should have been.
  std::function<std::string(GatewayConfig&, std::string_view)> set;
  std::string standing;  // empty: nothing
};

struct Flag {
  std::string_view name;
  std::string_view value_name;  // empty: it takes none
  std::string_view help;
  Setting setting;
};

std::span<const Flag> flags();

}  // namespace penstock::base
