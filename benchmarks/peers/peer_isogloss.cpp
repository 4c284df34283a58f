// isogloss's side of the comparison: reads names of rows, answers each with the seconds of one round.
//
//     peer_isogloss THREADS full|automatic|sampled        rows as compare.py names them
//
// The Precision of the graph; sampled: automatic, and entries of dl/dz below 1/256 sampled.
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <isogloss/isogloss.hpp>
#include <map>
#include <memory>
#include <sstream>

#include "../machine.hpp"

namespace ig = isogloss;
using ig::Index;

namespace {

/// The same numbers in every peer.
float number(Index i, int seed) { return 0.1f * static_cast<float>(std::sin(double(i) + seed)); }

std::vector<ig::Token> words(Index count, Index vocabulary, Index step) {
    std::vector<ig::Token> w;
    for (Index i = 0; i < count; ++i) w.push_back(static_cast<ig::Token>((i * 7919 + step) % vocabulary));
    return w;
}

struct Setting {
    ig::Precision precision;
    double epsilon;
};

struct Row {
    ig::Graph<float> g;
    std::function<double()> round;
    std::size_t extra_bytes = 0;
    Row(Index T, Index B, const Setting& setting)
        : g({.time = T, .batch = B, .precision = setting.precision, .epsilon = setting.epsilon}) {}
};

/// ce, al (with the gradient through the soft target), or al_held (without).
ig::Loss<float> add_loss(ig::Graph<float>& g, const std::string& loss, ig::Logits<float> o, ig::Tokens y) {
    if (loss == "ce") return g.add<ig::CrossEntropy>("loss", {}, o, y);
    return g.add<ig::AugmentedLoss>(
        "loss", {.gamma = 0.65, .temperature = 20, .differentiate_target = loss == "al"}, o, y);
}

/// loss/width/V/T/B: the tied two-layer model, forward, backward, clipping and step; returns the loss.
std::unique_ptr<Row> step(const std::string& loss, Index n, Index V, Index T, Index B,
                          const Setting& setting) {
    auto row = std::make_unique<Row>(T, B, setting);
    auto& g = row->g;
    const auto x = g.tokens("x", V), y = g.tokens("y", V);
    const auto E = g.weight("E", V, n, ig::uniform(0.1));
    auto h = g.add<ig::Embedding>("embed", {}, x, E);
    h = g.add<ig::Lstm>("lstm1", {.units = n}, h);
    h = g.add<ig::Lstm>("lstm2", {.units = n}, h);
    const auto o = g.add<ig::TiedSoftmax>("softmax", {}, h, E);
    const auto l = add_loss(g, loss, o, y);
    const auto fill = [&](const std::string& name, int seed, bool transposed) {
        auto& p = g.parameter(name);
        for (Index i = 0; i < p.rows; ++i)
            for (Index j = 0; j < p.cols; ++j)
                p.value[i * p.cols + j] = number(transposed ? j * p.rows + i : i * p.cols + j, seed);
    };
    fill("E", 1, false);
    for (int layer = 1; layer <= 2; ++layer) {
        const std::string name = "lstm" + std::to_string(layer);
        fill(name + ".W", 10 * layer, true), fill(name + ".U", 10 * layer + 1, true);
    }
    const auto sgd = std::make_shared<ig::Sgd<float>>(g.parameters(), ig::SgdOptions{.rate = 0.1, .clip = 5});
    const auto in = words(T * B, V, 1), out = words(T * B, V, 2);
    row->round = [&g, l, x, y, in, out, sgd, T, B] {
        const double value =
            g.forward(l, {x, ig::TokenBlock{in.data(), T, B}}, {y, ig::TokenBlock{out.data(), T, B}});
        g.backward(l);
        sgd->step();
        return value;
    };
    return row;
}

/// The head alone over given hidden states, forward and both gradients.
std::unique_ptr<Row> head(const std::string& loss, Index n, Index V, Index N, const Setting& setting) {
    auto row = std::make_unique<Row>(N, 1, setting);
    auto& g = row->g;
    const auto x = g.tokens("x", V), y = g.tokens("y", V);
    const auto E = g.weight("E", V, n, ig::uniform(0.1));
    const auto h = g.input("h", n);
    g.add<ig::Embedding>("embed", {}, x, E);  // makes E an embedding table; never run
    const auto o = g.add<ig::TiedSoftmax>("softmax", {}, h, E);
    const std::size_t before = g.memory();
    const auto l = add_loss(g, loss, o, y);
    row->extra_bytes = g.memory() - before;
    auto& table = g.parameter("E");
    for (Index i = 0; i < table.size(); ++i) table.value[i] = number(i, 1);
    std::vector<float> states;
    for (Index i = 0; i < N * n; ++i) states.push_back(10 * number(i, 3));
    const auto out = words(N, V, 2);
    const auto all = std::make_shared<ig::Parameters<float>>(g.parameters());
    row->round = [&g, l, h, y, states, out, all, N] {
        const double value = g.forward(l, {h, states.data(), N, 1}, {y, ig::TokenBlock{out.data(), N, 1}});
        g.backward(l);
        all->clear_gradients();
        return value;
    };
    return row;
}

/// Σ y: a loss that costs one pass over the output.
template <class S> struct Total {
    struct Options {};
    Options options;
    ig::Seq<S> y;
    ig::Loss<S> l;
    ig::Loss<S> setup(ig::Setup<S>& s, ig::Seq<S> in) {
        y = in;
        return l = s.loss(false);
    }
    void forward(ig::Forward<S>& p) { p.set(l, 0, p.rows()); }
    template <class Quantity> void backward(ig::Backward<S, Quantity>& p) {
        std::fill_n(p.adjoint_data(y), p.rows() * y.width, S(1));
    }
};

/// One LSTM layer, forward and all gradients, including that of the input.
std::unique_ptr<Row> lstm(Index n, Index T, Index B, const Setting& setting) {
    auto row = std::make_unique<Row>(T, B, setting);
    auto& g = row->g;
    const auto x = g.input("x", n);
    const auto h = g.add<ig::Lstm>("lstm", {.units = n}, x);
    const auto l = g.add<Total>("total", {}, h);
    std::vector<float> in;
    for (Index i = 0; i < T * B * n; ++i) in.push_back(number(i, 5));
    const auto all = std::make_shared<ig::Parameters<float>>(g.parameters());
    row->round = [&g, l, x, in, all, T, B] {
        g.forward(l, {x, in.data(), T, B});
        g.backward(l);
        all->clear_gradients();
        return 0.0;
    };
    return row;
}

/// One product [T B, n] · [n, V], the right factor packed before, as a pass packs what it multiplies by often.
std::unique_ptr<Row> product(Index n, Index V, Index T, Index B, const Setting& setting) {
    auto row = std::make_unique<Row>(T, B, setting);
    const auto precision =
        setting.precision == ig::Precision::automatic ? ig::fastest_precision<float>() : setting.precision;
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    struct Factors {
        std::vector<float> a, b, c;
        std::vector<Line> memory;
        ig::graph::PackedMatrix<float> packed;
    };
    const auto f = std::make_shared<Factors>();
    for (Index i = 0; i < T * B * n; ++i) f->a.push_back(number(i, 7));
    for (Index i = 0; i < n * V; ++i) f->b.push_back(number(i, 8));
    f->c.resize(static_cast<std::size_t>(T * B * V));
    f->memory.resize(std::size_t(ig::graph::PackedMatrix<float>::bytes(precision, n, V)) / 64 + 1);
    f->packed.pack({f->b.data(), n, V}, precision, f->memory.front().bytes);
    row->round = [f, n, V, rows = T * B] {
        f->packed.product({f->a.data(), rows, n}, nullptr, {f->c.data(), rows, V});
        return 0.0;
    };
    return row;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string asked = argc == 3 ? argv[2] : "";
    const std::map<std::string, Setting> settings = {{"full", {ig::Precision::full, 0}},
                                                     {"automatic", {ig::Precision::automatic, 0}},
                                                     {"sampled", {ig::Precision::automatic, 1.0 / 256}}};
    if (!settings.contains(asked)) {
        std::cerr
            << "usage: peer_isogloss THREADS full|automatic|sampled, then names of rows on standard input\n";
        return 2;
    }
    const Setting setting = settings.at(asked);
    ig::threads(std::atoi(argv[1]));
    for (const auto& [name, value] : machine::context())
        std::cerr << "# " << name << ": " << value << std::endl;
    std::map<std::string, std::unique_ptr<Row>> rows;
    for (std::string name; std::getline(std::cin, name);) {
        std::istringstream parts(name);
        std::string kind, loss;
        Index n = 0, V = 0, T = 0, B = 0;
        std::getline(parts, kind, '/'), std::getline(parts, loss, '/');
        char slash = 0;
        parts >> n >> slash >> V >> slash >> T >> slash >> B;
        auto& row = rows[name];
        if (!row) {
            rows.clear();  // one at a time
            auto& made = rows[name];
            made = kind == "head"      ? head(loss, n, V, T * B, setting)
                   : kind == "lstm"    ? lstm(n, T, B, setting)
                   : kind == "product" ? product(n, V, T, B, setting)
                                       : step(loss, n, V, T, B, setting);
            std::cerr << name << " " << made->round() << " " << made->extra_bytes << std::endl;
            made->round();
        }
        std::vector<double> seconds;
        const auto begin = std::chrono::steady_clock::now();
        const auto since = [](auto from) {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
        };
        do {
            const auto start = std::chrono::steady_clock::now();
            rows[name]->round();
            seconds.push_back(since(start));
        } while (since(begin) < 0.3);
        std::nth_element(seconds.begin(), seconds.begin() + std::ssize(seconds) / 2, seconds.end());
        std::cout << seconds[seconds.size() / 2] << std::endl;
    }
}
