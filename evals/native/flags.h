// Command lines of the form `--name value --name value`.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

namespace penstock::evals {

struct BadFlag : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Flags {
 public:
  // Throws BadFlag for a name that is not in `known`, and for a name without a value.
  Flags(int count, const char* const* words, const std::set<std::string>& known);

  // Throws BadFlag when the flag was not given.
  const std::string& text(const std::string& name) const;
  std::string text(const std::string& name, const std::string& otherwise) const;

  // Whole numbers of at least 0. Throws BadFlag for anything else.
  uint64_t number(const std::string& name) const;
  uint64_t number(const std::string& name, uint64_t otherwise) const;

 private:
  std::map<std::string, std::string> values_;
};

// The whole file. Throws BadFlag, naming the flag's value, when it cannot be read.
std::string file_content(const std::string& path);

}  // namespace penstock::evals
