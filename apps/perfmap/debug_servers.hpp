#pragma once

#include <memory>
#include <perfmap/debuginfod.hpp>
#include <perfmap/module.hpp>
#include <string_view>
#include <utility>

#include "console.hpp"

namespace perfmap::app {

/// Says once why no server answers.
inline FetchDebugFile asking(const Debuginfod& servers, const Console& console) {
  return [servers, &console, told = std::make_shared<bool>(false)](std::string_view build_id) {
    auto path = servers.find(build_id);
    const std::optional<Error> failure = servers.failure();
    if (failure && !std::exchange(*told, true)) console.warn(failure->message);
    return path;
  };
}

}  // namespace perfmap::app
