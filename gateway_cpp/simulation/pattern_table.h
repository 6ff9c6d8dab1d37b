// The table of what each pattern does to the same requests, rate by rate.
#pragma once

#include <span>
#include <string>

namespace penstock::simulation {

// NAME=VALUE for each setting; 2 where one does not exist, else 0: the program's end.
int print_patterns(std::span<char* const> arguments);

}  // namespace penstock::simulation
