// The coroutine type of the data plane: bound to one io_context's executor, which saves an
// allocation and an indirect call per operation against asio's default.
//
// GCC 12 miscompiles some coroutines (bad resume point, temporaries destroyed twice) when co_await
// stands inside a condition or a larger expression. So co_await is a statement, an initialiser or
// what co_return returns, and what a coroutine takes by reference has a name.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace penstock::runtime {

namespace asio = boost::asio;

using Executor = asio::io_context::executor_type;

template <class T>
using Awaitable = asio::awaitable<T, Executor>;

inline constexpr asio::use_awaitable_t<Executor> kAwait;

}  // namespace penstock::runtime
