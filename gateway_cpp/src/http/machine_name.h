// What this machine is called: what it says itself, and the full name that the system's resolver
// gives, which may take name servers that do not answer. So that is asked on a thread that nobody
// waits for, not even the process's end. Any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace penstock::http {

class MachineName {
 public:
  // The full name of a name; empty: not known. May take long.
  using LookUp = std::function<std::string(const std::string& name)>;

  // `own`: what the machine calls itself; empty: not known, and nothing is looked up.
  explicit MachineName(std::string own, LookUp look_up);
  MachineName(const MachineName&) = delete;
  MachineName& operator=(const MachineName&) = delete;

  // Whether a host is this machine by its name, by that without its domain, or by its full name,
  // once that is known.
  bool is(std::string_view host) const;

 private:
  struct Found {
    std::string name;  // written before `known`
    std::atomic<bool> known{false};
  };

  const std::string own_;
  const std::shared_ptr<Found> full_;
};

// What the system says.
std::string own_machine_name();
std::string full_machine_name(const std::string& name);

}  // namespace penstock::http
