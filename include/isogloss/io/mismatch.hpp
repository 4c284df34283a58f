/// @file io/mismatch.hpp  Comparing the tensors of a file with those a model needs, all errors in one message.
#pragma once

#include <algorithm>
#include <isogloss/error.hpp>
#include <isogloss/io/compact.hpp>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/io/tensor_view.hpp>
#include <isogloss/utf8.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace io {

/// Throws one FileError listing every tensor that is missing, not expected, or of another scalar type or shape; returns if
/// there is none. Call before the first value is copied, so that a file is loaded completely or not at all.
///
///     const std::vector<TensorSpec> expected{{"E", DType::f32, {V, n}},
///                                            {"lstm1.W", DType::f32, {n, 4 * units}}};
///     require_match(expected, file, {"update/"});
///
/// @param expected  the expected tensors, of different names
/// @param file      the file to compare
/// @param ignored   unexpected tensors of the file whose name begins with one of these are not
///                  counted as extra: "update/" for a program that only evaluates
inline void require_match(std::span<const TensorSpec> expected, const Safetensors& file,
                          const std::vector<std::string_view>& ignored = {}) {
    const auto described = [](const auto& t) {
        return std::string(info(t.dtype).name) + " " + dimensions_text(t.shape);
    };
    std::string missing, extra, misshapen;
    std::set<std::string_view> wanted;
    for (const TensorSpec& e : expected) {
        wanted.insert(e.name);
        const TensorView* const found = file.find(e.name);
        if (!found) missing += "\n    " + in_quotes(e.name) + " " + described(e);
        else if (found->dtype != e.dtype || found->shape != e.shape) {
            misshapen +=
                "\n    " + in_quotes(e.name) + " is " + described(*found) + ", expected " + described(e);
            if (found->shape == e.shape && detail::is_numeric(file, *found) &&
                info(found->dtype).bits < info(e.dtype).bits)
                misshapen +=
                    message("; load io::widened<", e.dtype == DType::f64 ? "double" : "float", ">(file)");
        }
    }
    for (const TensorView& t : file.tensors())
        if (!wanted.contains(t.name) &&
            std::ranges::none_of(ignored, [&t](auto prefix) { return t.name.starts_with(prefix); }))
            extra += "\n    " + in_quotes(t.name);
    const auto list = [](const char* title, const std::string& lines) {
        return lines.empty() ? "" : std::string("\n  ") + title + ":" + lines;
    };
    if (const std::string all =
            list("missing", missing) + list("extra", extra) + list("misshapen", misshapen);
        !all.empty())
        throw FileError(
            file.name(),
            ": the file does not fit the model; nothing was loaded. Build the model with the options "
            "it was saved with, or choose another file.",
            all);
}

}}}  // namespace isogloss::io
