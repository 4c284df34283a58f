/// @file json.hpp  Output for other programs: one JSON object per line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace program {

/// An object whose keys keep the order in which they were set.
using Json = nlohmann::ordered_json;

/// On one line, in UTF-8; invalid bytes, in file names for example, are replaced.
inline std::string dump(const Json& j) {
    return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace program
