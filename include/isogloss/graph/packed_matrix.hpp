/// @file graph/packed_matrix.hpp  A matrix in many products, packed once in the precision of these products.
#pragma once

#include <algorithm>
#include <cstddef>
#include <isogloss/kernel/int8_gemm.hpp>
#include <isogloss/kernel/packed.hpp>
#include <isogloss/linalg.hpp>
#include <type_traits>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

/// B [k, n] for products C = S + A B, where packing B anew would read and write all of it each time. It lies in
/// memory that belongs to somebody else: an arena, scratch of a node, shared weights. Precision::full keeps T; bf16
/// and int8 (kernel::Bf16Gemm, kernel::Int8Gemm) are for float only. Empty until packed.
template <class T> class PackedMatrix {
public:
    /// Whether there is a product of this precision with k terms.
    static bool serves(Precision precision, Index k) {
        if (precision == Precision::full) return true;
        if (!std::is_same_v<T, float>) return false;
        return precision == Precision::int8
                   ? k <= Int8::most_terms
                   : Tiles::tiles(k) * Tiles::depth * Tiles::most_rows <= kernel::Bf16Gemm::part_a;
    }
    /// Bytes of memory for a matrix [k, n].
    static Index bytes(Precision precision, Index k, Index n) {
        if (precision == Precision::int8) return scales(n) + Int8::size(k, n);
        if (precision == Precision::bf16) return Tiles::size_b(k, n) * Index{sizeof(kernel::Bf16)};
        return kernel::Packed<T>::size(k, n) * Index{sizeof(T)};
    }

    /// Packs b, which may be transposed, into `memory` of bytes(), 64-byte aligned. `precision` must satisfy
    /// serves(); in int8 b must be finite.
    void pack(MatrixRef<const T> b, Precision precision, std::byte* memory) {
        precision_ = precision, memory_ = memory, n_ = b.width();
        if (precision == Precision::full) return kernel::Packed<T>::pack(b, numbers());
        if constexpr (std::is_same_v<T, float>) {
            const Index k = b.height();
            if (precision == Precision::int8) return Int8::pack(b, rounded<std::uint8_t>(), numbers());
            parallel(n_, 2 * Tiles::columns, n_, [&](Index first, Index last, Index) {
                Tiles::pack_b(b.part(0, k, first, last - first),
                              rounded<kernel::Bf16>() + Tiles::size_b(k, first));
            });
        }
    }
    /// Packs another matrix of these sizes in its place.
    void repack(MatrixRef<const T> b) { pack(b, precision_, memory_); }
    explicit operator bool() const { return memory_ != nullptr; }

    /// C = S + A B for A [m, k] and C [m, n]; rows of S are `start` [n], or 0 if it is null, and 0 in the last
    /// `without_start` rows.
    void product(MatrixRef<const T> a, const T* start, MatrixRef<T> c, Index without_start = 0) const {
        if (precision_ == Precision::full)
            return kernel::Packed<T>::product(a, numbers(), start, without_start, c);
        const Index rows = c.rows - without_start;
        multiply_rounded(a.rows_from(0, rows), start, 0, c.rows_from(0, rows));
        multiply_rounded(a.rows_from(rows, without_start), nullptr, 0, c.rows_from(rows, without_start));
    }
    /// C += A B.
    void add_product(MatrixRef<const T> a, MatrixRef<T> c) const {
        if (precision_ == Precision::full) return kernel::Packed<T>::add_product(a, numbers(), c);
        multiply_rounded(a, c.data, c.stride, c);
    }

private:
    using Int8 = kernel::Int8Gemm;
    using Tiles = kernel::Bf16Tiles;

    // C = S + A B; the rows of S are `stride` apart.
    void multiply_rounded(MatrixRef<const T> a, const T* start, Index stride, MatrixRef<T> c) const {
        if constexpr (std::is_same_v<T, float>) {
            static_assert(Int8::part_a + Int8::most_terms + 4 <=
                          kernel::Bf16Gemm::workspace * Index{sizeof(kernel::Bf16)});
            kernel::Bf16* const memory = isogloss::detail::bf16_memory(1);
            if (precision_ == Precision::bf16)
                return kernel::Bf16Gemm::product(a, rounded<kernel::Bf16>(), start, stride, c, memory);
            Int8::product(a, rounded<std::uint8_t>(), numbers(), start, stride, c,
                          reinterpret_cast<std::byte*>(memory));
        }
    }

    static Index scales(Index n) { return Int8::padded(n) * Index{sizeof(float)}; }
    // The matrix in T or, in int8, the scales of its columns, behind which it lies.
    T* numbers() const { return reinterpret_cast<T*>(memory_); }
    template <class R> R* rounded() const {
        return reinterpret_cast<R*>(memory_ + (precision_ == Precision::int8 ? scales(n_) : 0));
    }

    Precision precision_ = Precision::full;
    Index n_ = 0;
    std::byte* memory_ = nullptr;
};

}}}  // namespace isogloss::graph
