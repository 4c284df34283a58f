/// @file io/safetensors_header.hpp  Writing and reading the JSON header of a safetensors file.
///
/// The only header that includes nlohmann-json.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/io/tensor_view.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::io {

/// Maximum header length, in bytes, for writing and reading; the limit of the format's own library.
inline constexpr std::uint64_t max_safetensors_header = 100'000'000;

/// A tensor as the header of a safetensors file describes it.
struct SafetensorsEntry {
    TensorSpec tensor;                 ///< name, scalar type, sizes
    std::uint64_t begin = 0, end = 0;  ///< its bytes, counted from the end of the header
};

/// Contents of the header of a safetensors file.
struct SafetensorsHeader {
    std::map<std::string, std::string> metadata;  ///< the strings of "__metadata__"
    std::vector<SafetensorsEntry> entries;  ///< in the order of their bytes: contiguous from 0 to the end
};

/// A string as JSON, in quotes. Throws DataError if it is not UTF-8, which JSON requires.
///
/// Only strings are written with the JSON library: its value trees allocate in a destructor, which would
/// terminate the program if memory runs out.
inline std::string json_string(std::string_view characters) {
    try {
        return nlohmann::json(characters).dump();
    } catch (const nlohmann::json::exception&) {
        throw DataError("safetensors: the name or metadata ", in_quotes(characters),
                        " is not UTF-8; convert it to UTF-8 first");
    }
}

/// Reads the JSON of a header event by event: only the allowed forms are accepted, and the first
/// violation stops the reading, so that no tree is ever built from a malicious header.
class SafetensorsHeaderReader : public nlohmann::json_sax<nlohmann::json> {
public:
    SafetensorsHeader header;  ///< what was read
    std::string problem;       ///< why reading stopped early; empty if it did not

    // Events called by the parser; each returns whether to continue.

    bool start_object(std::size_t) override {
        if (place_ == Place::before) return go(Place::top);
        if (place_ != Place::top) return wrong("an object");
        if (key_ == "__metadata__") {
            if (has_metadata_) return stop("the key '__metadata__' appears twice");
            has_metadata_ = true;
            return go(Place::metadata);
        }
        header.entries.push_back({{key_, DType::f32, {}}, 0, 0});
        seen_ = {};
        return go(Place::tensor);
    }
    bool end_object() override {
        if (place_ == Place::tensor) {
            for (const auto& [field, seen] :
                 {std::pair{"dtype", seen_.dtype}, std::pair{"shape", seen_.shape},
                  std::pair{"data_offsets", seen_.offsets}})
                if (!seen) return stop_at_tensor(" has no ", field);
            return go(Place::top);
        }
        return go(place_ == Place::metadata ? Place::top : Place::after);
    }
    bool key(std::string& name) override {
        key_ = std::move(name);
        if (place_ == Place::tensor) {
            bool* const seen = key_ == "dtype"          ? &seen_.dtype
                               : key_ == "shape"        ? &seen_.shape
                               : key_ == "data_offsets" ? &seen_.offsets
                                                        : nullptr;
            if (!seen || *seen)
                return stop_at_tensor(": the key ", in_quotes(key_),
                                      seen ? " appears twice" : " is none of dtype, shape, data_offsets");
            *seen = true;
        }
        return true;
    }
    bool string(std::string& value) override {
        if (place_ == Place::metadata) {
            if (header.metadata.emplace(key_, std::move(value)).second) return true;
            return stop("the metadata ", in_quotes(key_), " appears twice");
        }
        if (place_ != Place::tensor || key_ != "dtype") return wrong("a string");
        const auto dtype = dtype_named(value);
        if (!dtype) return stop_at_tensor(": unknown scalar type ", in_quotes(value));
        entry().tensor.dtype = *dtype;
        return true;
    }
    bool start_array(std::size_t) override {
        numbers_ = 0;
        if (place_ == Place::tensor && key_ == "shape") return go(Place::shape);
        if (place_ == Place::tensor && key_ == "data_offsets") return go(Place::offsets);
        return wrong("a list");
    }
    bool end_array() override {
        if (place_ == Place::offsets && numbers_ != 2)
            return stop_at_tensor(": data_offsets holds ", numbers_, " numbers instead of 2");
        return go(Place::tensor);
    }
    bool number_unsigned(std::uint64_t value) override {
        if (place_ == Place::shape) {
            if (value > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()) ||
                numbers_ == max_dimensions)
                return stop_at_tensor(": more than ", max_dimensions, " sizes, or a size too large to count");
            entry().tensor.shape.push_back(static_cast<Index>(value));
        } else if (place_ == Place::offsets && numbers_ < 2) {
            (numbers_ == 0 ? entry().begin : entry().end) = value;
        } else {
            return wrong("a number");
        }
        ++numbers_;
        return true;
    }
    bool number_integer(std::int64_t) override { return wrong("a negative number"); }
    bool number_float(double, const std::string&) override { return wrong("a number that is not whole"); }
    bool null() override { return wrong("null"); }
    bool boolean(bool) override { return wrong("a boolean"); }
    bool binary(nlohmann::json::binary_t&) override { return wrong("binary data"); }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
        return stop("invalid JSON at byte ", position, " of the header");
    }

private:
    enum class Place { before, top, metadata, tensor, shape, offsets, after };

    SafetensorsEntry& entry() { return header.entries.back(); }
    bool go(Place place) {
        place_ = place;
        return true;
    }
    template <class... Parts> bool stop(const Parts&... what) {
        problem = message(what...);
        return false;
    }
    template <class... Parts> bool stop_at_tensor(const Parts&... what) {
        return stop("tensor ", in_quotes(entry().tensor.name), what...);
    }
    bool wrong(const char* found) {
        return stop(found, " where none is allowed, at the key ", in_quotes(key_));
    }

    Place place_ = Place::before;
    std::string key_;
    std::size_t numbers_ = 0;
    bool has_metadata_ = false;
    struct {
        bool dtype = false, shape = false, offsets = false;
    } seen_;
};

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
    SafetensorsHeaderReader reader;
    if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) refuse(reader.problem);

    auto& entries = reader.header.entries;
    std::vector<std::string_view> names;
    names.reserve(entries.size());
    for (const auto& e : entries) names.push_back(e.tensor.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) refuse(message("the tensor ", in_quotes(*twice), " appears twice"));

    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::uint64_t end = 0;
    for (const auto& e : entries) {
        const auto needed = bytes_of(e.tensor.dtype, e.tensor.shape);
        const auto what = [&e] {
            return message("tensor ", in_quotes(e.tensor.name), ", ", info(e.tensor.dtype).name, " ",
                           dimensions_text(e.tensor.shape), ", data_offsets [", e.begin, ", ", e.end, "]: ");
        };
        if (!needed) refuse(what() + "the number of bytes is not whole, or too large to count");
        if (e.begin > e.end || e.end - e.begin != static_cast<std::uint64_t>(*needed))
            refuse(what() + message("the shape needs ", *needed, " bytes"));
        if (e.begin != end)
            refuse(what() +
                   message(e.begin < end ? "overlaps the tensor before it" : "leaves a hole before it",
                           ", which ends at ", end));
        end = e.end;
    }
    if (end != bytes_after)
        refuse(message("the tensors take ", end, " bytes, but ", bytes_after,
                       " follow the header; the file is ",
                       end > bytes_after ? "truncated" : "longer than it should be"));
    return std::move(reader.header);
}

/// The JSON of the tensors, to follow the metadata: `,"name":{…}` for each, at consecutive offsets.
/// Throws DataError for a name that is duplicate, reserved or not UTF-8, and for sizes that give no
/// whole number of bytes.
inline std::string safetensors_entries(std::span<const TensorSpec> tensors) {
    std::string json;
    std::set<std::string_view> names;
    Index offset = 0;
    for (const TensorSpec& t : tensors) {
        if (!names.insert(t.name).second || t.name == "__metadata__")
            throw DataError("safetensors: the tensor name ", in_quotes(t.name),
                            t.name == "__metadata__" ? " is reserved by the format"
                                                     : " appears twice; names must differ");
        const auto needed = bytes_of(t.dtype, t.shape);
        if (!needed || *needed > std::numeric_limits<Index>::max() - offset)
            throw DataError("safetensors: tensor ", in_quotes(t.name), " is ", info(t.dtype).name, " ",
                            dimensions_text(t.shape),
                            "; the number of bytes is not whole, or too large to count");
        json +=
            "," + json_string(t.name) + R"(:{"dtype":")" + std::string(info(t.dtype).name) + R"(","shape":[)";
        for (std::size_t i = 0; i < t.shape.size(); ++i) json += (i ? "," : "") + std::to_string(t.shape[i]);
        json +=
            R"(],"data_offsets":[)" + std::to_string(offset) + "," + std::to_string(offset + *needed) + "]}";
        offset += *needed;
    }
    return json;
}

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::io
