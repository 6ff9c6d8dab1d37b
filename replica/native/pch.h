// What most files here include and takes seconds to read.
#pragma once

#include <grpcpp/grpcpp.h>

#include "penstock/v1/inference.pb.h"
