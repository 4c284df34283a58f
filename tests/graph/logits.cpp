#include <isogloss/graph/logits.hpp>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;

TEMPLATE_TEST_CASE("Logits are H Eᵀ + b, packed or not, the last rows without b", "[graph][logits]", float,
                   double) {
    using T = TestType;
    using Skinny = kernel::SkinnyGemm<T>;
    const Index rows = GENERATE(1, 2, 7, 33, 257), V = GENERATE(1, 19, 300), n = GENERATE(1, 13);
    const bool bias = GENERATE(false, true), packs = GENERATE(false, true);
    const Index without_bias = GENERATE_COPY(Index{0}, rows / 2);
    CAPTURE(rows, V, n, bias, packs, without_bias);
    const auto some = [](Index size, std::uint64_t seed) {
        const Numbers v = numbers(size, seed);
        return std::vector<T>(v.begin(), v.end());
    };
    const auto h = some(rows * n, 1), e = some(V * n, 2), b = some(V, 3);
    std::vector<T> z(static_cast<std::size_t>(rows * V), std::numeric_limits<T>::quiet_NaN()),
        packed(static_cast<std::size_t>(Skinny::size(std::min(rows, Skinny::most_transposed(n)), n)));
    graph::logits<T>({h.data(), rows, n}, {e.data(), V, n}, bias ? b.data() : nullptr, {z.data(), rows, V},
                     packs ? packed.data() : nullptr, without_bias);
    Numbers expected;
    for (Index r = 0; r < rows; ++r)
        for (Index v = 0; v < V; ++v) {
            double sum = bias && r < rows - without_bias ? double(b[std::size_t(v)]) : 0;
            for (Index i = 0; i < n; ++i)
                sum += double(h[std::size_t(r * n + i)]) * double(e[std::size_t(v * n + i)]);
            expected.push_back(sum);
        }
    REQUIRE(apart(z, expected) < (sizeof(T) == 4 ? 2e-6 : 1e-14));
}
