/// @file io/mismatch.hpp  Comparing the tensors of a file with those a model needs, all errors in one message.
#pragma once

#include <algorithm>
#include <isogloss/error.hpp>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/io/tensor_view.hpp>
#include <isogloss/utf8.hpp>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace io {

/// The differences between the expected tensors and those of a file. Each string is a line for a message:
/// the name, and for `misshapen` both types and shapes.
struct Mismatch {
    std::vector<std::string> missing;    ///< expected but not in the file, in the expected order
    std::vector<std::string> extra;      ///< in the file but not expected, in file order
    std::vector<std::string> misshapen;  ///< in both, with another scalar type or shape

    /// True if there is no difference.
    bool empty() const { return missing.empty() && extra.empty() && misshapen.empty(); }
};

namespace detail {

/// What io::widened can do about a tensor of narrower numbers than expected, or "".
inline std::string how_to_widen(const Safetensors& file, const TensorView& found,
                                const TensorSpec& expected) {
    const bool is_table =
        found.dtype == DType::f16 || found.dtype == DType::bf16 || scales(file, found) != nullptr;
    const bool to_double = expected.dtype == DType::f64 && (is_table || found.dtype == DType::f32);
    if (found.shape != expected.shape || !(to_double || (expected.dtype == DType::f32 && is_table)))
        return "";
    return std::string("; load io::widened<") + (to_double ? "double" : "float") + ">(file)";
}

}  // namespace detail

/// Compares all names, scalar types and shapes.
///
/// @param expected  the expected tensors; names must differ (DataError)
/// @param file      the file to compare
/// @param ignored   unexpected tensors of the file whose name begins with one of these are not
///                  counted as extra: "update/" for a program that only evaluates
inline Mismatch compare(std::span<const TensorSpec> expected, const Safetensors& file,
                        const std::vector<std::string_view>& ignored = {}) {
    Mismatch m;
    std::map<std::string_view, const TensorSpec*> wanted;
    for (const TensorSpec& e : expected) {
        if (!wanted.emplace(e.name, &e).second)
            throw DataError("the tensor ", in_quotes(e.name), " is expected twice; names must differ");
        const TensorView* const found = file.find(e.name);
        const auto described = [](const auto& t) {
            return std::string(info(t.dtype).name) + " " + dimensions_text(t.shape);
        };
        if (!found) m.missing.push_back(in_quotes(e.name) + " " + described(e));
        else if (found->dtype != e.dtype || found->shape != e.shape)
            m.misshapen.push_back(in_quotes(e.name) + " is " + described(*found) + ", expected " +
                                  described(e) + detail::how_to_widen(file, *found, e));
    }
    for (const TensorView& t : file.tensors()) {
        const bool is_ignored = std::any_of(ignored.begin(), ignored.end(), [&t](std::string_view prefix) {
            return t.name.starts_with(prefix);
        });
        if (!is_ignored && !wanted.contains(t.name)) m.extra.push_back(in_quotes(t.name));
    }
    return m;
}

/// Throws one FileError listing every missing, extra and misshapen tensor; returns if there is none.
/// Call before the first value is copied, so that a file is loaded completely or not at all.
///
///     const std::vector<TensorSpec> expected{{"E", DType::f32, {V, n}},
///                                            {"lstm1.W", DType::f32, {n, 4 * units}}};
///     require_match(expected, file, {"update/"});
inline void require_match(std::span<const TensorSpec> expected, const Safetensors& file,
                          const std::vector<std::string_view>& ignored = {}) {
    const Mismatch m = compare(expected, file, ignored);
    if (m.empty()) return;
    std::string list;
    const auto add = [&list](const char* title, const std::vector<std::string>& lines) {
        if (lines.empty()) return;
        list += message("\n  ", title, " (", lines.size(), "):");
        for (const std::string& line : lines) list += "\n    " + line;
    };
    add("missing", m.missing);
    add("extra", m.extra);
    add("misshapen", m.misshapen);
    throw FileError(file.name(),
                    ": the file does not fit the model; nothing was loaded. Build the model with the options "
                    "it was saved with, or choose another file.",
                    list);
}

}}}  // namespace isogloss::io
