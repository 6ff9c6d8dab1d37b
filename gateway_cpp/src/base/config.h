// All settings of one gateway: read from flags once, validated once, frozen from then on.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/error.h"
#include "base/log.h"

namespace penstock::base {

// What the command line asks for.
enum class Action : std::uint8_t { kRun, kHelp, kVersion, kLogFields };

// What one body may have of each, since an engine's loop pays by the element. Lower where other
// tenants' streams stutter under large bodies; raise for what your own clients need.
struct BodyElements {
  std::size_t messages = 2048;   // in lists of the body: messages, items, texts, documents
  std::size_t parts = 4096;      // in lists of those: contents, calls of tools
  std::size_t tools = 256;       // functions as well
  std::size_t values = 320'000;  // of any kind: token ids, mostly
};

// Each field says when to turn it.
struct GatewayConfig {
  Action action = Action::kRun;
  Address listen{"127.0.0.1", 8080};  // where clients connect
  bool open = false;     // whoever gets there from beyond loopback is served until there is a key
  std::string tls_cert;  // PEM: certificate and chain that clients see; empty: plain HTTP
  std::string tls_key;   // PEM: its key; both are files that are read again when they change
  bool share_port = false;     // another gateway may listen there too: one takes the other's place
  Address metrics;             // /metrics, /livez, /readyz on a thread of their own; no host: none
  std::string control;         // host:port of the head's Routes; empty: only what data_dir holds
  std::string node;            // the machine it runs on, as node agents name it; empty: not told
  std::string zone;            // its zone; empty: not told
  std::string id = "gateway";  // one for each gateway of a head: it names the snapshot file
  std::string data_dir;        // keeps the last snapshot; empty: none is kept
  std::string programs_dir;    // of router programs beside it; empty: none are asked
  std::string cluster_token;   // proves to head and replicas who we are; empty: none is sent
  std::string head_ca;         // PEM of who may vouch for the head; empty: no TLS to it
  unsigned threads = 1;        // I/O threads; default half of the cores: engines need the rest

  std::size_t body_limit_bytes = 16U << 20U;  // raise for very long prompts or images in the body
  BodyElements body_elements;
  std::size_t body_budget_bytes = 1U << 30U;  // of requests, and of answers; a quarter of memory
  std::size_t body_share_bytes = 0;           // of requests' for one tenant; 0: a quarter
  std::size_t body_least_rate = 1024;         // bytes a second; lower for very slow links
  std::size_t shadow_bytes = 64U << 20U;      // kept for shadows; raise if many find no room
  std::size_t resume_budget_bytes = 128U << 20U;  // 1,000 tokens of each of 20,000 streams
  std::size_t explain_budget_bytes = 16U << 20U;  // of what was decided; raise to look further back
  std::size_t header_limit_bytes = 32U << 10U;    // raise if a proxy in front adds large headers
  std::size_t stream_credit_bytes = 256U << 10U;  // held per slow client; more smooths bursts
  unsigned max_in_flight = 20000;    // requests at once; each open one costs a descriptor
  unsigned max_connections = 20000;  // lowered at start to what the descriptor limit allows

  std::chrono::milliseconds header_timeout{10'000};  // lower if idle attackers hold connections
  std::chrono::milliseconds body_timeout{60'000};    // raise for clients behind very slow links
  std::chrono::milliseconds idle_timeout{90'000};    // keep-alive; above the pools of our clients
  std::chrono::milliseconds write_timeout{
      120'000};                                 // a client that reads nothing for so long is gone
  std::chrono::milliseconds heartbeat{15'000};  // SSE comment in silence; below any proxy's timeout
  std::chrono::milliseconds first_event_deadline{600'000};  // a deployment's own limit goes first
  std::chrono::milliseconds silence{600'000};     // raise if an engine thinks long within an answer
  std::chrono::milliseconds quarantine{600'000};  // for requests under which engines died
  std::chrono::milliseconds drain{30'000};        // what running streams get after SIGTERM
  std::chrono::milliseconds handover{0};  // raise where somebody puts another gateway on its port

  double trace_sample = 0;                  // 0 to 1; lower where the collector cannot take as many
  std::chrono::milliseconds trace_slow{0};  // above what is usual, or most are traced

  std::vector<std::string> cors_origins;  // whose web pages may call: chat UIs; '*': any
  std::vector<std::string> allow_hosts;   // further names in Host; '*': any. Names it is reached by
  bool client_addresses = true;           // in the log; turn off where they may not be kept
  Level log_level = Level::kInfo;
};

// Reads flags as --name value or --name=value. An error's message names the flag and the value.
Result<GatewayConfig> parse_flags(int argc, const char* const* argv);

// Every flag with its default and meaning, for --help.
std::string usage();

// "0.1.0": the version this binary was built as.
std::string_view version();

}  // namespace penstock::base
