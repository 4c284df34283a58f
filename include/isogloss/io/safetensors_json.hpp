/// @file io/safetensors_json.hpp  The JSON of a safetensors header, read and written.
///
/// The only header that includes nlohmann-json. With ISOGLOSS_COMPILED_IO, which the target isogloss::compiled defines,
/// it declares two functions that this library contains, and includes nothing of it.
#pragma once

#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/io/tensor_view.hpp>
#include <isogloss/types.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#ifdef ISOGLOSS_COMPILED_IO
#define ISOGLOSS_IO_INLINE
#else
#define ISOGLOSS_IO_INLINE inline
#endif
// src/io.cpp alone defines the second.
#if !defined ISOGLOSS_COMPILED_IO || defined ISOGLOSS_DEFINE_IO
#include <cstddef>
#include <isogloss/utf8.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#endif

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace io { namespace detail {

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
ISOGLOSS_IO_INLINE std::string json_string(std::string_view characters);

/// Reads the JSON of a header into `header` and returns the first violation of the allowed forms: those of the
/// format's object, with known keys, each once, and known scalar types. Empty if there is none. What was read until then is
/// in `header`; offsets and sizes are not compared with each other.
ISOGLOSS_IO_INLINE std::string read_json(std::string_view json, SafetensorsHeader& header);

#if !defined ISOGLOSS_COMPILED_IO || defined ISOGLOSS_DEFINE_IO

// Only strings are written with the JSON library: its value trees allocate in a destructor, which would
// terminate the program if memory runs out.
ISOGLOSS_IO_INLINE std::string json_string(std::string_view characters) {
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
    explicit SafetensorsHeaderReader(SafetensorsHeader& into) : header(into) {}

    SafetensorsHeader& header;  ///< what was read
    std::string problem;        ///< why reading stopped early; empty if it did not

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
        keys_.clear();
        return go(Place::tensor);
    }
    bool end_object() override {
        if (place_ == Place::tensor)
            return keys_.size() == 3 ? go(Place::top)
                                     : stop_at_tensor(" lacks one of dtype, shape and data_offsets");
        return go(place_ == Place::metadata ? Place::top : Place::after);
    }
    bool key(std::string& name) override {
        key_ = std::move(name);
        const bool known = key_ == "dtype" || key_ == "shape" || key_ == "data_offsets";
        if (place_ == Place::tensor && (!known || !keys_.insert(key_).second))
            return stop_at_tensor(": the key ", in_quotes(key_), " appears twice or is unknown");
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
    template <class... Parts> bool stop(Parts... what) {
        problem = message(what...);
        return false;
    }
    template <class... Parts> bool stop_at_tensor(Parts... what) {
        return stop("tensor ", in_quotes(entry().tensor.name), what...);
    }
    bool wrong(const char* found) {
        return stop(found, " where none is allowed, at the key ", in_quotes(key_));
    }

    Place place_ = Place::before;
    std::string key_;
    std::size_t numbers_ = 0;
    bool has_metadata_ = false;
    std::set<std::string> keys_;  // of the tensor
};

ISOGLOSS_IO_INLINE std::string read_json(std::string_view json, SafetensorsHeader& header) {
    SafetensorsHeaderReader reader(header);
    if (nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) return {};
    return std::move(reader.problem);
}

#endif

}}}}  // namespace isogloss::io::detail
