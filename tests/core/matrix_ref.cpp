#include <isogloss/matrix_ref.hpp>
#include <type_traits>

#include "catch.hpp"

using namespace isogloss;

namespace {
double numbers[] = {11, 12, 13, 0, 21, 22, 23, 0};  // [2, 3], rows 4 apart
const MatrixRef<double> m(numbers, 2, 3, 4);
}  // namespace

TEST_CASE("A matrix is read by rows that are a stride apart, and its transpose the other way round",
          "[core][matrix_ref]") {
    REQUIRE(MatrixRef<double>(numbers, 2, 3).stride == 3);
    REQUIRE(m.row(1) == numbers + 4);
    const auto transposed = t(m);
    REQUIRE((m.height() == 2 && m.width() == 3 && transposed.height() == 3 && transposed.width() == 2));
    REQUIRE((transposed.data == m.data && transposed.rows == 2 && transposed.cols == 3));  // nothing moves
    for (Index i = 0; i < 2; ++i)
        for (Index j = 0; j < 3; ++j) {
            REQUIRE(m(i, j) == double(10 * (i + 1) + j + 1));
            REQUIRE(&transposed(j, i) == &m(i, j));
            REQUIRE(&t(transposed)(i, j) == &m(i, j));
        }
}

TEST_CASE("Some rows or columns of a matrix are a matrix in the same memory", "[core][matrix_ref]") {
    const auto columns = m.columns(1, 2), rows = m.rows_from(1, 1);
    REQUIRE((columns.rows == 2 && columns.cols == 2 && columns.stride == 4));
    REQUIRE((rows.rows == 1 && rows.cols == 3 && rows.stride == 4));
    REQUIRE(&columns(1, 0) == &m(1, 1));
    REQUIRE(&rows(0, 2) == &m(1, 2));
}

TEST_CASE("A matrix that may be written serves as one that is read, not the other way",
          "[core][matrix_ref]") {
    const MatrixRef<const double> reader = t(m);
    REQUIRE((reader.data == numbers && reader.stride == 4 && reader.transposed));
    STATIC_REQUIRE(!std::is_convertible_v<MatrixRef<const double>, MatrixRef<double>>);
    STATIC_REQUIRE(std::is_same_v<decltype(reader(0, 0)), const double&>);
}

TEST_CASE("A matrix is valid when its sizes are possible and its elements have memory",
          "[core][matrix_ref]") {
    REQUIRE(m.is_valid());
    REQUIRE(MatrixRef<double>().is_valid());
    REQUIRE(MatrixRef<double>(nullptr, 0, 5).is_valid());
    REQUIRE(MatrixRef<double>(nullptr, 5, 0).is_valid());
    REQUIRE(!MatrixRef<double>(nullptr, 1, 1).is_valid());
    REQUIRE(!MatrixRef<double>(numbers, -1, 3).is_valid());
    REQUIRE(!MatrixRef<double>(numbers, 2, -1).is_valid());
    REQUIRE(!MatrixRef<double>(numbers, 2, 3, 2).is_valid());  // rows that overlap
    REQUIRE(!MatrixRef<double>(numbers, 2, 3, -4).is_valid());
}
