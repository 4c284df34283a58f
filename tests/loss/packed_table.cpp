#include <isogloss/loss/packed_table.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "tolerance.hpp"

using namespace isogloss;

namespace {

// A node that has its table packed in the way of a loss, and its logits.
template <class T> struct Head {
    struct Options {
        std::vector<T>* logits = nullptr;
        Index without_bias = 0;
    };
    Options options;
    PackedTable<T> table;
    Weight<T> E;
    Seq<T> h, out;

    Seq<T> setup(Setup<T>& s, Seq<T> sequence, Weight<T> weight) {
        h = sequence, E = weight;
        table.setup(s, PackedTable<T>::bytes(s.precision(), E.rows, E.cols, Index{1} << 30));
        return out = s.sequence("out", 1);
    }
    void forward(Forward<T>& p) {
        const Index n = h.width, rows = p.rows();
        table.pack(p.values(E), p.precision(), rows);
        REQUIRE(table.is_packed() == (rows >= 128 || p.precision() == Precision::bf16));
        options.logits->assign(static_cast<std::size_t>(rows * E.rows), T(77));
        std::vector<T> bias;
        for (Index v = 0; v < E.rows; ++v) bias.push_back(static_cast<T>(v) / 100);
        if (table.is_packed())
            table.logits({p.data(h), rows, n}, bias.data(), {options.logits->data(), rows, E.rows},
                         options.without_bias);
    }
    void backward(Backward<T>&) {}
};

template <class T> Numbers logits(Precision precision, Index rows, Index without_bias) {
    constexpr Index V = 300, n = 20;
    std::vector<T> z;
    Graph<T> g({.time = 200, .batch = 1, .precision = precision});
    const auto h = g.input("h", n);
    const auto E = g.weight("E", V, n, uniform(1));
    const auto out = g.template add<Head>("head", {.logits = &z, .without_bias = without_bias}, h, E);
    std::vector<T> in;
    for (const double x : numbers(rows * n, 5)) in.push_back(static_cast<T>(x));
    g.forward(out, {h, in.data(), rows, 1});
    if (z.front() == T(77)) return {};
    const auto e = flat(g.value(E));
    Numbers wrong;  // differences from the definition
    for (Index r = 0; r < rows; ++r)
        for (Index v = 0; v < V; ++v) {
            double sum = r < rows - without_bias ? double(v) / 100 : 0;
            for (Index i = 0; i < n; ++i)
                sum += double(in[std::size_t(r * n + i)]) * e[std::size_t(v * n + i)];
            wrong.push_back(double(z[std::size_t(r * V + v)]) - sum);
        }
    return wrong;
}

double largest(const Numbers& v) {
    double most = 0;
    for (const double x : v) most = worse(most, std::abs(x));
    return most;
}

}  // namespace

TEST_CASE("A packed table gives the logits of many positions, and is not packed for few",
          "[loss][packed_table]") {
    for (const Index without : {0, 70}) {
        const auto in_float = logits<float>(Precision::full, 150, without),
                   in_double = logits<double>(Precision::full, 150, without),
                   in_halves = logits<float>(Precision::bf16, 150, without);
        REQUIRE((in_float.size() == 45000 && in_double.size() == 45000 && in_halves.size() == 45000));
        REQUIRE(largest(in_float) < 1e-5);
        REQUIRE(largest(in_double) < 1e-13);
        REQUIRE((largest(in_halves) > 1e-4 && largest(in_halves) < 0.1));
    }
    REQUIRE(logits<float>(Precision::full, 40, 0).empty());
}

TEST_CASE("A table is packed where that pays", "[loss][packed_table]") {
    using Table = PackedTable<float>;
    const bool avx2 = sizeof(kernel::Lanes<float>) == 32;
    REQUIRE(Table::pays(Precision::full, 140, 280, 700) == avx2);
    REQUIRE_FALSE(Table::pays(Precision::full, 470, 470, 700));  // BLAS is as fast
    REQUIRE_FALSE(Table::pays(Precision::full, 60, 60, 60));     // packing takes longer than it saves
    REQUIRE_FALSE(Table::pays(Precision::full, 31, 62, 700));    // blocks are thin already
    REQUIRE(Table::pays(Precision::bf16, 470, 470, 700));
    REQUIRE_FALSE(Table::pays(Precision::bf16, 7, 7, 700));
    // Within five eighths of the budget, padding included.
    REQUIRE(Table::bytes(Precision::full, 10000, 200, Index{32} << 20) >= 8'000'000);
    REQUIRE(Table::bytes(Precision::full, 33278, 200, Index{32} << 20) == 0);
    REQUIRE(Table::bytes(Precision::bf16, 33278, 200, Index{32} << 20) >= 13'311'200);
}
