// Posts to a collector over HTTP or HTTPS, on one connection that stays open. One thread; main
// makes it, before there are others.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "observe/collector.h"
#include "observe/http_post.h"

namespace penstock::observe {

class CurlPost final : public HttpPost {
 public:
  explicit CurlPost(const Collector& collector);
  CurlPost(const CurlPost&) = delete;
  CurlPost& operator=(const CurlPost&) = delete;
  ~CurlPost() override;

  PostAnswer send(const std::string& body, std::chrono::milliseconds within) override;
  void end_within(std::chrono::milliseconds left) override;

 private:
  struct CloseHandle {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  void set_up(const Collector& collector);
  void add_header(const std::string& line);
  static std::size_t keep(char* data, std::size_t size, std::size_t count, void* answer);
  static int look(void* self, curl_off_t all_down, curl_off_t down, curl_off_t all_up,
                  curl_off_t up);

  const bool compresses_;
  std::unique_ptr<CURL, CloseHandle> handle_;
  std::unique_ptr<curl_slist, FreeList> headers_;
  std::atomic<base::SteadyTime> ends_at_{base::SteadyTime::max()};
};

}  // namespace penstock::observe
