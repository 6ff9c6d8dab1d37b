// What every file of this folder includes and takes seconds to read.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "penstock/v1/inference.pb.h"
