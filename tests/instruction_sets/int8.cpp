// Products in int8 of fixed numbers, in hexadecimal: the same on every instruction set, which int8.sh compares.
#include <cstdio>
#include <isogloss/kernel/int8_gemm.hpp>
#include <isogloss/random.hpp>
#include <vector>

using namespace isogloss;
using kernel::Int8Gemm;

int main() {
    const Random random(1, 2);
    const auto numbers = [&](Index n, std::uint64_t from) {
        std::vector<float> x(static_cast<std::size_t>(n));
        for (Index i = 0; i < n; ++i)
            x[static_cast<std::size_t>(i)] =
                static_cast<float>(random.normal(from + static_cast<std::uint64_t>(i)));
        return x;
    };
    for (const auto& [m, k, n] : {std::array<Index, 3>{1, 3, 5}, {2, 64, 31}, {15, 130, 33}, {40, 777, 70}}) {
        const auto a = numbers(m * k, 0), b = numbers(k * n, 100000), start = numbers(n, 200000);
        std::vector<std::uint8_t> packed(static_cast<std::size_t>(Int8Gemm::size(k, n)));
        std::vector<float> scale(static_cast<std::size_t>(Int8Gemm::padded(n))),
            c(static_cast<std::size_t>(m * n));
        Int8Gemm::pack({b.data(), k, n}, packed.data(), scale.data());
        std::vector<std::byte> memory(static_cast<std::size_t>(Int8Gemm::workspace(m, k)));
        Int8Gemm::product({a.data(), m, k}, packed.data(), scale.data(), start.data(), 0, {c.data(), m, n},
                          memory.data());
        for (const float x : c) std::printf("%a\n", static_cast<double>(x));
    }
}
