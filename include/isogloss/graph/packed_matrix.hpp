/// @file graph/packed_matrix.hpp  A matrix in many products, packed once in the precision of these products.
#pragma once

#include <algorithm>
#include <isogloss/graph/arena.hpp>
#include <isogloss/kernel/bf16_gemm.hpp>
#include <isogloss/kernel/int8_gemm.hpp>
#include <isogloss/kernel/packed.hpp>
#include <isogloss/linalg.hpp>
#include <type_traits>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

/// B [k, n] for products C = S + A B with A of few rows, where packing B anew would read and write all of it each
/// time. Precision::full keeps T; bf16 and int8 (kernel::Bf16Gemm, kernel::Int8Gemm) are for float only.
template <class T> class PackedMatrix {
public:
    /// Whether there is a product of this precision with k terms.
    static bool serves(Precision precision, Index k) {
        if (precision == Precision::full) return true;
        if (!std::is_same_v<T, float>) return false;
        using Tiles = kernel::Bf16Tiles;
        return precision == Precision::int8
                   ? k <= kernel::Int8Gemm::most_terms
                   : Tiles::tiles(k) * Tiles::depth * Tiles::most_rows <= kernel::Bf16Gemm::part_a;
    }

    /// Packs b, which may be transposed, into memory of the arena. `precision` must satisfy serves(), and b be
    /// finite. `who` is named if there is no memory.
    PackedMatrix(MatrixRef<const T> b, Precision precision, Arena& arena, std::string_view who)
        : precision_(precision), k_(b.height()), n_(b.width()) {
        if constexpr (std::is_same_v<T, float>) {
            using Int8 = kernel::Int8Gemm;
            using Tiles = kernel::Bf16Tiles;
            if (precision == Precision::int8) {
                bytes_ = arena.template take<std::uint8_t>(Int8::size(k_, n_), who);
                numbers_ = arena.template take<T>(Int8::padded(n_), who);
                Int8::pack(b, bytes_, numbers_);
                return;
            }
            if (precision == Precision::bf16) {
                halves_ = arena.template take<kernel::Bf16>(Tiles::size_b(k_, n_), who);
                Tiles::pack_b(b, halves_);
                return;
            }
        }
        numbers_ = arena.template take<T>(kernel::Packed<T>::size(k_, n_), who);
        kernel::Packed<T>::pack(b, numbers_);
    }

    /// C = S + A B for A [m, k] and C [m, n]; S is `start`, one row [n] added to all rows, or 0 if null.
    void product(MatrixRef<const T> a, const T* start, MatrixRef<T> c) const {
        if constexpr (std::is_same_v<T, float>) {
            if (precision_ == Precision::int8)
                return kernel::Int8Gemm::product(a, bytes_, numbers_, start, 0, c, memory());
            if (precision_ == Precision::bf16)
                return kernel::Bf16Gemm::product(a, halves_, start, c, detail::bf16_memory(1));
        }
        kernel::Packed<T>::product(a, numbers_, start, 0, c);
    }

    /// C += A B.
    void add_product(MatrixRef<const T> a, MatrixRef<T> c) const {
        if constexpr (std::is_same_v<T, float>) {
            if (precision_ == Precision::int8)
                return kernel::Int8Gemm::product(a, bytes_, numbers_, c.data, c.stride, c, memory());
            if (precision_ == Precision::bf16) {
                using Tiles = kernel::Bf16Tiles;
                const Index some = kernel::Bf16Gemm::part_a / (Tiles::tiles(k_) * Tiles::depth) /
                                   Tiles::most_rows * Tiles::most_rows;
                for (Index i = 0, rows; i < c.rows; i += rows) {
                    rows = std::min(some, c.rows - i);
                    kernel::Bf16Gemm::add_product(a.rows_from(i, rows), halves_, c.rows_from(i, rows),
                                                  detail::bf16_memory(1));
                }
                return;
            }
        }
        kernel::Packed<T>::add_product(a, numbers_, c);
    }

private:
    // Shared with products in bfloat16.
    static std::byte* memory() {
        using Int8 = kernel::Int8Gemm;
        static_assert(Int8::part_a + Int8::most_terms + 4 <=
                      kernel::Bf16Gemm::workspace * Index{sizeof(kernel::Bf16)});
        return reinterpret_cast<std::byte*>(detail::bf16_memory(1));
    }

    Precision precision_;
    Index k_, n_;
    T* numbers_ = nullptr;            // the matrix, or the scales of its columns
    kernel::Bf16* halves_ = nullptr;  // the matrix in bfloat16
    std::uint8_t* bytes_ = nullptr;   // the matrix in int8
};

}}}  // namespace isogloss::graph
