#include <isogloss/dense.hpp>
#include <limits>

#include "catch.hpp"

using namespace isogloss;
using dense::Matrix;

namespace {

const Matrix a = {{1, 2, 3}, {4, 5, 6}}, b = {{1, 0}, {2, 1}, {0, -1}};

}  // namespace

TEST_CASE("Products of dense matrices are those worked out by hand", "[core][dense]") {
    CHECK((dense::product(a, b) == Matrix{{5, -1}, {14, -1}}));
    CHECK((dense::product(b, a) == Matrix{{1, 2, 3}, {6, 9, 12}, {-4, -5, -6}}));
    CHECK((dense::product(a, b, a) == Matrix{{1, 5, 9}, {10, 23, 36}}));
    CHECK((dense::product_t(a, a) == Matrix{{14, 32}, {32, 77}}));
    CHECK((dense::product(t(dense::ref(a)), dense::ref(a)) ==
           Matrix{{17, 22, 27}, {22, 29, 36}, {27, 36, 45}}));
    REQUIRE_THROWS_AS(dense::product(a, a), UsageError);
    CHECK((a == Matrix{{1, 2, 3}, {4, 5, 6}}));
}

TEST_CASE("Shapes, zeros, identity and transpose of dense matrices", "[core][dense]") {
    CHECK(dense::rows(a) == 2);
    CHECK(dense::cols(a) == 3);
    CHECK((dense::identity(2) == Matrix{{1, 0}, {0, 1}}));
    CHECK((dense::zeros<double>(2, 3) == Matrix{{0, 0, 0}, {0, 0, 0}}));
    CHECK((dense::transposed(b) == Matrix{{1, 2, 0}, {0, 1, -1}}));
    const Matrix none = dense::zeros<double>(0, 3);
    CHECK(dense::rows(none) == 0);
    CHECK(dense::cols(none) == 3);
    Matrix written = a;
    dense::ref(written).row(1)[2] = 7;
    CHECK(written(1, 2) == 7);
}

TEST_CASE("A dense matrix beyond the memory is refused", "[core][dense][errors]") {
    const Index large = Index{1} << 31;
    REQUIRE_THROWS_MATCHES(dense::zeros<double>(large, large), UsageError, says("a matrix"));
    REQUIRE_THROWS_MATCHES(dense::identity(std::numeric_limits<Index>::max()), UsageError, says("a matrix"));
}
