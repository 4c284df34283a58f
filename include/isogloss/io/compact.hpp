/// @file io/compact.hpp  Other number types in files: reading them as float, and writing compact tables.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <isogloss/error.hpp>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/io/tensor_view.hpp>
#include <isogloss/kernel/bf16.hpp>
#include <isogloss/sizes.hpp>
#include <isogloss/utf8.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace io {

namespace detail {

/// An F16 number (IEEE 754 binary16), given by its bits, as a float, exactly.
inline float half_to_float(std::uint16_t bits) {
    const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31, exponent = (bits >> 10) & 31u,
                        fraction = bits & 1023u;
    if (exponent == 0) return std::copysign(static_cast<float>(fraction) * 0x1p-24f, sign ? -1.f : 1.f);
    return std::bit_cast<float>(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

/// Calls f(i, number) for the elements of the stored type S, of any alignment.
template <class S, class F> void each_number(const TensorView& t, F&& f) {
    const Index n = std::ssize(t.bytes) / Index{sizeof(S)};
    for (Index i = 0; i < n; ++i) {
        S number;
        std::memcpy(&number, t.bytes.data() + i * Index{sizeof(S)}, sizeof(S));
        f(i, number);
    }
}

/// Name of the tensor of scales of an int8 table.
inline std::string scale_name(std::string_view table) { return std::string(table) + ".scale"; }

/// The scales of an int8 table, I8 [rows, …] with F32 [rows] as `name.scale`; null if it is not one.
inline const TensorView* scales(const Safetensors& file, const TensorView& t) {
    if (t.dtype != DType::i8 || t.shape.empty()) return nullptr;
    const TensorView* const s = file.find(scale_name(t.name));
    return s && s->dtype == DType::f32 && s->shape == std::vector<Index>{t.shape[0]} ? s : nullptr;
}

/// Whether the elements of a tensor can be widened to floating-point numbers.
inline bool is_numeric(const Safetensors& file, const TensorView& t) {
    return t.dtype == DType::f16 || t.dtype == DType::bf16 || t.dtype == DType::f32 ||
           t.dtype == DType::f64 || scales(file, t);
}

/// Writes the elements of a tensor that is_numeric() to `out`.
template <std::floating_point T> void widen(const Safetensors& file, const TensorView& t, T* out) {
    if (t.dtype == DType::f16)
        each_number<std::uint16_t>(t, [&](Index i, auto bits) { out[i] = T(half_to_float(bits)); });
    else if (t.dtype == DType::bf16)
        each_number<kernel::Bf16>(t, [&](Index i, auto x) { out[i] = T(kernel::to_float(x)); });
    else if (t.dtype == DType::f32) each_number<float>(t, [&](Index i, float x) { out[i] = T(x); });
    else if (t.dtype == DType::f64)
        each_number<double>(t, [&](Index i, double x) { out[i] = static_cast<T>(x); });
    else {
        const auto scale = file.values<float>(scale_name(t.name));
        const Index width = std::ssize(t.bytes) / std::max<Index>(t.shape[0], 1);
        each_number<std::int8_t>(t, [&](Index i, std::int8_t q) {
            out[i] = T(q) * T(scale[static_cast<std::size_t>(i / width)]);
        });
    }
}

}  // namespace detail

/// The elements of the tensor `name`, of any shape, row-major, as T, from any of the types F16, BF16, F32 and
/// F64, rounded if T is narrower, or from a table that write_compact has stored as int8.
///
///     const auto W = numbers<float>(file, "lstm.weight_ih_l0");     // of a file that numpy or PyTorch wrote
///
/// Use Safetensors::values to require exactly one type. Throws FileError for a tensor that is missing or of
/// another type, and for a finite number that T cannot hold, as 1e300 in float.
template <std::floating_point T> std::vector<T> numbers(const Safetensors& file, std::string_view name) {
    const TensorView& t = file.at(name);
    if (!detail::is_numeric(file, t))  // before memory for its elements is taken
        throw FileError(file.name(), ": tensor ", in_quotes(name), " is ", info(t.dtype).name,
                        ", expected F16, BF16, F32, F64, or I8 with F32 scales of its rows");
    std::vector<T> out(static_cast<std::size_t>(std::ssize(t.bytes) / info(t.dtype).bytes));
    detail::widen(file, t, out.data());
    if (t.dtype == DType::f64)
        detail::each_number<double>(t, [&](Index i, double x) {
            if (std::isfinite(x) && !std::isfinite(out[static_cast<std::size_t>(i)]))
                throw FileError(file.name(), ": tensor ", in_quotes(name), " holds ", x,
                                "; read it as double");
        });
    return out;
}

/// The file with its tables as T: those in F16 and BF16, those in I8 with scales, which are removed, and, with
/// T = double, those in F32. Other types are unchanged, and a file without such tables is returned as it is.
///
///     checkpoint.load(widened(Safetensors::open("small.safetensors")), Restore::parameters);
///     in_double.load(widened<double>(Safetensors::open("model.safetensors")));  // a model saved from a Graph<float>
///
/// Every number keeps its value; of a model saved with its training state, the state too continues in T.
/// Throws FileError if there is not enough memory.
template <std::floating_point T = float> Safetensors widened(Safetensors file) {
    const auto narrow = [&file](const TensorView& t) {
        return t.dtype != dtype_of<T>() && t.dtype != DType::f64 && detail::is_numeric(file, t);
    };
    // The data read is kept too: tensors that are not widened refer to it.
    const auto owner =
        std::make_shared<std::pair<std::shared_ptr<const void>, std::vector<std::vector<T>>>>();
    owner->first = file.owner();
    std::vector<TensorView> tensors;
    for (const TensorView& t : file.tensors()) {
        constexpr std::string_view end = ".scale";
        const TensorView* const table =
            t.name.ends_with(end) ? file.find(std::string_view(t.name).substr(0, t.name.size() - end.size()))
                                  : nullptr;
        if (table && detail::scales(file, *table) == &t) continue;
        tensors.push_back(t);
        if (!narrow(t)) continue;
        const auto n = t.bytes.size() / static_cast<std::size_t>(info(t.dtype).bytes);
        auto& wide =
            within_memory<FileError>(file.name(), static_cast<Index>(n * sizeof(T)),
                                     [&]() -> std::vector<T>& { return owner->second.emplace_back(n); });
        detail::widen(file, t, wide.data());
        tensors.back().dtype = dtype_of<T>();
        tensors.back().bytes = std::as_bytes(std::span(wide));
    }
    if (owner->second.empty()) return file;
    return file.with(std::move(tensors), owner);
}

/// How write_compact stores tables.
enum class Compact {
    none,  ///< F32
    bf16,  ///< BF16, rounded to nearest: half the bytes, 8 bits of precision
    int8  ///< I8 with an F32 scale per row: a quarter of the bytes. w ≈ s q, s = max |w| / 127 over the row
};

/// Writes `file` with its tables in fewer bytes: the two-dimensional F32 tensors with at least two rows whose name
/// does not begin with "state/". Everything else is unchanged, including the metadata. `widened` reads it back.
/// Tables that were already compact are widened first.
///
/// Throws DataError for a number that the type cannot hold: one that is not finite, with int8; a finite one that rounds to
/// infinity, with bf16 (beyond 3.39e38); and as write_safetensors, also where a table's scales have the name of a tensor.
inline void write_compact(const std::filesystem::path& path, Safetensors file, Compact type) {
    file = widened(std::move(file));
    std::vector<TensorView> tensors;
    std::vector<std::vector<kernel::Bf16>> halves;
    std::vector<std::vector<std::int8_t>> quarters;
    std::vector<std::vector<float>> scales;
    for (const TensorView& t : file.tensors()) {
        tensors.push_back(t);
        if (type == Compact::none || t.dtype != DType::f32 || t.shape.size() != 2 || t.shape[0] < 2 ||
            t.name.starts_with("state/"))
            continue;
        const Index width = t.shape[1];
        const auto x = file.values<float>(t.name);
        const auto check = [&](std::size_t i, bool fits) {
            if (!fits)
                throw DataError(file.name(), ": tensor ", in_quotes(t.name), ": row ", Index(i) / width,
                                " holds ", x[i], ", expected finite numbers of at most 3.38e38");
        };
        if (type == Compact::bf16) {
            auto& rounded = halves.emplace_back(x.size());
            for (std::size_t i = 0; i < x.size(); ++i) {
                rounded[i] = kernel::to_bf16(x[i]);
                check(i, !std::isfinite(x[i]) || std::isfinite(kernel::to_float(rounded[i])));
            }
            tensors.back().dtype = DType::bf16;
            tensors.back().bytes = std::as_bytes(std::span(rounded));
            continue;
        }
        auto& scale = scales.emplace_back(t.shape[0], 0.f);
        auto& rounded = quarters.emplace_back(x.size(), std::int8_t{0});
        for (std::size_t i = 0; i < x.size(); ++i) {
            check(i, std::isfinite(x[i]));
            float& s = scale[i / std::size_t(width)];
            s = std::max(s, std::abs(x[i]) / 127);
        }
        for (std::size_t i = 0; i < x.size(); ++i)
            if (const float s = scale[i / std::size_t(width)]; s > 0)
                rounded[i] = static_cast<std::int8_t>(std::clamp(std::nearbyint(x[i] / s), -127.f, 127.f));
        tensors.back().dtype = DType::i8;
        tensors.back().bytes = std::as_bytes(std::span(rounded));
        tensors.push_back(tensor_view<float>(detail::scale_name(t.name), {t.shape[0]}, scale));
    }
    write_safetensors(path, tensors, file.metadata());
}

}}}  // namespace isogloss::io
