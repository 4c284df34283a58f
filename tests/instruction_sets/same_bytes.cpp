// Trains small models with portable(true) and writes their weights and losses as bytes: the same on every target.
#include <cstdio>
#include <cstdlib>
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <optional>
#include <vector>

namespace ig = isogloss;
using ig::Index;

namespace {

struct Size {
    Index words = 500, steps = 12, length = 10, columns = 8;
};

void write(const void* from, std::size_t size, std::size_t count) {
    if (std::fwrite(from, size, count, stdout) != count) std::exit(1);
}

// Words drawn so that small numbers are frequent: x at a step, then y.
std::vector<ig::Token> text(Size s) {
    const ig::Random random(7, 1);
    std::vector<ig::Token> tokens(std::size_t(s.columns * (s.steps * s.length + 1)));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const double u = random.uniform(Index(i));
        tokens[i] = static_cast<ig::Token>(double(s.words) * u * u * u);
    }
    return tokens;
}

struct Batch {
    std::vector<ig::Token> input, target;
};
Batch batch(const std::vector<ig::Token>& text, Size s, Index step) {
    Batch b;
    for (Index t = 0; t < s.length; ++t)
        for (Index c = 0; c < s.columns; ++c) {
            const auto at = std::size_t(c * (s.steps * s.length + 1) + step * s.length + t);
            b.input.push_back(text[at]), b.target.push_back(text[at + 1]);
        }
    return b;
}

enum class Update { sgd, adam, ruop };

// A tied model of one layer.
template <class T, template <class> class Cell, template <class> class LossNode>
void train(Index units, double epsilon, Update update, Size s = {}) {
    const auto tokens = text(s);
    ig::Graph<T> g({.time = s.length, .batch = s.columns, .epsilon = epsilon});
    auto x = g.tokens("x", s.words), y = g.tokens("y", s.words);
    auto E = g.weight("E", s.words, units, ig::normal(0.1));
    auto h = g.template add<ig::Embedding>("embed", {.keep_words = 0.9}, x, E);
    h = g.template add<Cell>("cell", {.units = units}, h);
    h = g.template add<ig::Dropout>("dropout", {.keep = 0.8}, h);
    auto l =
        g.template add<LossNode>("loss", {}, g.template add<ig::TiedSoftmax>("out", {.bias = true}, h, E), y);
    ig::Sgd<T> sgd(g.parameters(), {.rate = 1, .clip = 5});
    ig::Adam<T> adam(g.parameters(), {.rate = 0.01});
    std::optional<ig::Riemannian<T>> ruop;
    if (update == Update::ruop)
        ruop.emplace(g, g.parameters(),
                     ig::RiemannianOptions{.modulus = ig::UnitModulus::ruop, .rate = 0.01, .clip = 5});
    for (Index step = 0; step < s.steps; ++step) {
        const Batch b = batch(tokens, s, step);
        const double loss = g.forward(l, {x, {b.input.data(), s.length, s.columns}},
                                      {y, {b.target.data(), s.length, s.columns}});
        write(&loss, sizeof loss, 1);
        g.backward(l);
        if (update == Update::adam) adam.step();
        else if (ruop) ruop->step();
        else sgd.step();
    }
    for (const auto* p : g.parameters()) write(p->value, sizeof(T), std::size_t(p->size()));
}

}  // namespace

int main(int argc, char** argv) {
    ig::threads(argc > 1 ? std::atoi(argv[1]) : 1);
    ig::portable(true);
    train<float, ig::Lstm, ig::AugmentedLoss>(40, 0, Update::sgd);
    train<float, ig::Lstm, ig::CrossEntropy>(100, 0.01, Update::adam);
    train<float, ig::Gru, ig::AugmentedLoss>(48, 0, Update::adam);
    train<float, ig::Rhn, ig::CrossEntropy>(24, 0, Update::sgd);
    train<double, ig::Lstm, ig::AugmentedLoss>(24, 0, Update::sgd);
    train<float, ig::Glnn, ig::CrossEntropy>(30, 0, Update::ruop);
    // Logits in several blocks, products cut among threads.
    const Size large{.words = 6000, .steps = 2, .length = 35, .columns = 20};
    train<float, ig::Lstm, ig::AugmentedLoss>(64, 0.004, Update::sgd, large);
    train<float, ig::Lstm, ig::CrossEntropy>(64, 0, Update::sgd, large);
}
