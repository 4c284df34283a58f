/// @file io/safetensors_header.hpp  Writing and reading the header of a safetensors file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/io/safetensors_json.hpp>
#include <isogloss/io/tensor_view.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace io {

/// Maximum header length, in bytes, for writing and reading; the limit of the format's own library.
inline constexpr std::uint64_t max_safetensors_header = 100'000'000;

namespace detail {

/// Reads a header and checks all of it against the number of bytes that follow it. `refuse(what)` is called
/// with the first problem and must not return.
///
/// Checked: one JSON object with the allowed keys, each once; known scalar types; at most `max_dimensions`
/// sizes, whose product does not overflow; offsets that match the sizes, are contiguous and without
/// overlap, and end where the file ends.
template <class Refuse>
SafetensorsHeader read_safetensors_header(std::string_view json, std::uint64_t bytes_after, Refuse&& refuse) {
    // The parser takes a NUL for the end of the text and would ignore what follows it.
    if (!json.starts_with('{') || json.find('\0') != std::string_view::npos)
        refuse(std::string("the header is not a JSON object; this is not a safetensors file"));
    SafetensorsHeader header;
    if (const std::string problem = read_json(json, header); !problem.empty()) refuse(problem);

    auto& entries = header.entries;
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::set<std::string_view> names;
    std::uint64_t end = 0;
    for (const auto& e : entries) {
        const auto needed = bytes_of(e.tensor.dtype, e.tensor.shape);
        if (!names.insert(e.tensor.name).second)
            refuse(message("the tensor ", in_quotes(e.tensor.name), " appears twice"));
        if (!needed || e.begin != end || e.end < e.begin ||
            e.end - e.begin != static_cast<std::uint64_t>(*needed))
            refuse(
                message("tensor ", in_quotes(e.tensor.name), ", ", info(e.tensor.dtype).name, " ",
                        dimensions_text(e.tensor.shape), ": found data_offsets [", e.begin, ", ", e.end,
                        "], expected to begin at ", end, " and to hold ",
                        needed ? std::to_string(*needed) + " bytes" : "a countable number of whole bytes"));
        end = e.end;
    }
    if (end != bytes_after)
        refuse(message("the tensors take ", end, " bytes, but ", bytes_after,
                       " follow the header; the file is truncated or too long"));
    return header;
}

/// The JSON of the tensors, to follow the metadata: `,"name":{…}` for each, at consecutive offsets.
/// Throws DataError for a name that is duplicate, reserved or not UTF-8, and for sizes that give no
/// whole number of bytes.
inline std::string safetensors_entries(std::span<const TensorSpec> tensors) {
    std::string json;
    std::set<std::string_view> names{"__metadata__"};
    Index begin = 0;
    for (const TensorSpec& t : tensors) {
        if (!names.insert(t.name).second)
            throw DataError("safetensors: the tensor name ", in_quotes(t.name),
                            " appears twice or is reserved; choose another");
        const auto needed = bytes_of(t.dtype, t.shape);
        if (!needed || *needed > std::numeric_limits<Index>::max() - begin)
            throw DataError("safetensors: tensor ", in_quotes(t.name), " is ", info(t.dtype).name, " ",
                            dimensions_text(t.shape),
                            "; the number of bytes is not whole, or too large to count");
        std::string sizes;
        for (const Index size : t.shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
        json += message(",", json_string(t.name), R"(:{"dtype":")", info(t.dtype).name, R"(","shape":[)",
                        sizes, R"(],"data_offsets":[)", begin, ",", begin + *needed, "]}");
        begin += *needed;
    }
    return json;
}

}  // namespace detail

}}}  // namespace isogloss::io
