#include "observe/curl_post.h"

#include <array>
#include <utility>

#include "observe/gzip.h"

namespace penstock::observe {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kLongestAnswer = 64U << 10U;  // an error and its reason, no more

void set_text(CURL* handle, CURLoption option, const std::string& text) {
  if (!text.empty()) curl_easy_setopt(handle, option, text.c_str());
}

}  // namespace

CurlPost::CurlPost(const Collector& collector) : compresses_(collector.compresses) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  handle_.reset(curl_easy_init());
  set_up(collector);
}

CurlPost::~CurlPost() {
  handle_.reset();
  curl_global_cleanup();
}

void CurlPost::set_up(const Collector& collector) {
  CURL* const handle = handle_.get();
  add_header("Content-Type: application/x-protobuf");
  add_header("Expect:");  // it would wait for a leave to send
  if (compresses_) add_header("Content-Encoding: gzip");
  for (const auto& [name, value] : collector.headers) {
    add_header(std::string(name).append(": ").append(value));
  }
  curl_easy_setopt(handle, CURLOPT_URL, collector.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(handle, CURLOPT_POST, 1L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);  // no end waits for a name server
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "penstock-gateway");
  set_text(handle, CURLOPT_CAINFO, collector.certificates);
  set_text(handle, CURLOPT_SSLCERT, collector.client_certificate);
  set_text(handle, CURLOPT_SSLKEY, collector.client_key);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &CurlPost::keep);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, &CurlPost::look);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, this);
}

void CurlPost::add_header(const std::string& line) {
  curl_slist* const list = curl_slist_append(headers_.get(), line.c_str());
  if (list == nullptr) return;
  static_cast<void>(headers_.release());  // the list's head may be another now
  headers_.reset(list);
}

PostAnswer CurlPost::send(const std::string& body, milliseconds within) {
  CURL* const handle = handle_.get();
  const std::string packed = compresses_ ? gzipped(body) : std::string();
  const std::string& sent = compresses_ ? packed : body;
  PostAnswer answer;
  std::array<char, CURL_ERROR_SIZE> why{};
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, sent.data());
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(sent.size()));
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(within.count()));
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, why.data());
  const CURLcode code = curl_easy_perform(handle);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, nullptr);
  if (code != CURLE_OK) {
    answer.error = why.front() != '\0' ? why.data() : curl_easy_strerror(code);
    return answer;
  }
  long status = 0;
  curl_off_t seconds = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &seconds);
  answer.status = static_cast<unsigned>(status);
  answer.retry_after = std::chrono::seconds(seconds);
  return answer;
}

void CurlPost::end_within(milliseconds left) {
  ends_at_.store(std::chrono::steady_clock::now() + left, std::memory_order_relaxed);
}

std::size_t CurlPost::keep(char* data, std::size_t size, std::size_t count, void* answer) {
  std::string& body = static_cast<PostAnswer*>(answer)->body;
  if (body.size() + size * count > kLongestAnswer) return 0;  // it is no collector
  body.append(data, size * count);
  return size * count;
}

// About once a second, and whenever something moves.
int CurlPost::look(void* self, curl_off_t /*all_down*/, curl_off_t /*down*/, curl_off_t /*all_up*/,
                   curl_off_t /*up*/) {
  const auto ends = static_cast<CurlPost*>(self)->ends_at_.load(std::memory_order_relaxed);
  return std::chrono::steady_clock::now() > ends ? 1 : 0;
}

}  // namespace penstock::observe
