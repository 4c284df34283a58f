/// @file json.hpp  What the programs print for other programs: an object a line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace program {

/// An object whose keys stay in the order in which they were set.
using Json = nlohmann::ordered_json;

/// On one line, in UTF-8; bytes that are none, of file names for one, are replaced.
inline std::string dump(const Json& j) {
    return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace program
