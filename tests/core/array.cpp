#include <isogloss/array.hpp>
#include <numeric>
#include <string>

#include "catch.hpp"

namespace ig = isogloss;

TEST_CASE("An Array takes signed and unsigned sizes and positions", "[array]") {
    const ig::Index n = 3;
    ig::Array<double> x(n, 1.5);
    CHECK(x == std::vector<double>{1.5, 1.5, 1.5});
    x[n - 1] = 7;
    x[std::size_t{0}] = 5;
    x[ig::Token{1}] = 6;
    CHECK(x == std::vector<double>{5, 6, 7});
    x.resize(n + 1);
    CHECK(x == std::vector<double>{5, 6, 7, 0});
    x.assign(n - 1, 2);
    CHECK(x == std::vector<double>{2, 2});
    x.reserve(ig::Index{10});
    CHECK(x.capacity() >= 10);
    CHECK(ig::Array<int>(3, 0) == std::vector<int>{0, 0, 0});
    CHECK(ig::Array<int>{3, 0} == std::vector<int>{3, 0});
    CHECK(ig::Array<std::string>(2).size() == 2);
    ig::Array<bool> bits(2, false);
    bits[ig::Index{1}] = true;
    CHECK((!bits[0] && bits[1]));
}

TEST_CASE("An Array is a vector: taken over without a copy, and seen as a span", "[array]") {
    std::vector<double> v{1, 2, 3};
    const double* const data = v.data();
    ig::Array<double> x = std::move(v);
    CHECK(x.data() == data);
    std::span<const double> s = x;
    CHECK(s.data() == data);
    std::vector<double> back = std::move(x);
    CHECK(back.data() == data);

    const ig::ArrayView<const double> view = back;
    CHECK(view[ig::Index{2}] == 3);
    CHECK(view[ig::Token{0}] == 1);
    CHECK(ig::ArrayView<const double>(s.first(2)).size() == 2);
    CHECK(std::accumulate(view.begin(), view.end(), 0.0) == 6);
    ig::ArrayView<double>{back}[ig::Index{0}] = 4;
    CHECK(view[0] == 4);
}
