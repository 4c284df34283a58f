// Trains small models with portable(true) and writes their weights and losses as bytes: the same on every target, for
// any number of threads, its first argument, and of ranks, its second.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <isogloss/distributed/data_parallel.hpp>
#include <isogloss/evaluation.hpp>
#include <isogloss/hmm/hmm.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <optional>
#include <vector>
#ifndef __EMSCRIPTEN__  // has no threads
#include <isogloss/distributed/thread_group.hpp>
#endif

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

// The same for batches cut into four shards, on ranks; then what is done with a model: its perplexity, also with a
// cache and under dynamic evaluation, and scores of texts.
template <class Ranks> void train_on(Ranks& ranks) {
    const Size s{.words = 300, .columns = 6};
    const auto tokens = text(s);
    const ig::distributed::DataParallelOptions cut{.columns = s.columns, .shards = 4};
    ig::Graph<float> g({.time = s.length, .batch = ig::distributed::widest_shard(cut), .epsilon = 0.01});
    auto x = g.tokens("x", s.words), y = g.tokens("y", s.words);
    auto E = g.weight("E", s.words, 40, ig::normal(0.1));
    auto h = g.add<ig::Embedding>("embed", {.keep = 0.8}, x, E);
    h = g.add<ig::Lstm>("lstm", {.units = 40, .keep = 0.8}, h);
    auto o = g.add<ig::TiedSoftmax>("out", {.bias = true}, h, E);
    auto l = g.add<ig::CrossEntropy>("loss", {}, o, y);
    ig::distributed::DataParallel parallel(g, g.parameters(), ranks, cut);
    ig::Adam<float> adam(g.parameters(), {.rate = 0.01});
    std::vector<double> numbers;
    for (const auto& batch : ig::text::Batches(tokens, s.words, {s.length, s.columns})) {
        numbers.push_back(parallel.gradients(batch, [&](const ig::text::Batch& part) {
            g.forward(l, {x, part.input}, {y, part.target});
            g.backward(l);
            return std::array{g.result(l).nats()};
        })[0]);
        adam.step();
    }
    if (ranks.rank() > 0) return;
    const std::vector<ig::Token> some(tokens.begin(), tokens.begin() + 100);
    const auto read = [&] { return ig::text::Batches(some, s.words, {5, 1}); };
    numbers.push_back(ig::evaluate(g, l, x, y, read()).value());
    numbers.push_back(ig::evaluate_neural_cache(g, l, g.head(o).hidden(), x, y, read(),
                                                {.window = 50, .flatness = 0.3, .weight = 0.2})
                          .value());
    ig::DynamicUpdate<float> update(g.parameters(),
                                    {.rule = ig::DynamicRule::sgd, .rate = 0.1, .decay = 0.001});
    numbers.push_back(ig::evaluate_dynamically(g, l, x, y, read(), update).value());
    const std::vector<std::vector<ig::Token>> texts = {{1, 2, 3, 4}, {1, 2, 5}, {7, 9, 11}};
    for (const double score : ig::score_hypotheses(g, x, o, texts).log_probability) numbers.push_back(score);
    write(numbers.data(), sizeof(double), numbers.size());
    for (const auto* p : g.parameters()) write(p->value, sizeof(float), std::size_t(p->size()));
}

void train_hidden_markov() {
    const Size s{.words = 20};
    const auto tokens = text(s);
    std::vector<std::vector<ig::Token>> lines;
    for (std::size_t i = 0; i + 60 <= tokens.size(); i += 60)
        lines.emplace_back(tokens.begin() + std::ptrdiff_t(i), tokens.begin() + std::ptrdiff_t(i + 60));
    ig::hmm::Hmm model({.states = 12, .symbols = s.words, .prior = 0.1, .seed = 3});
    for (int step = 0; step < 4; ++step) {
        const double nats = model.step(lines);
        write(&nats, sizeof nats, 1);
    }
    write(model.emission().data(), sizeof(double), std::size_t(model.emission().size()));
}

}  // namespace

int main(int argc, char** argv) {
    ig::threads(argc > 1 ? std::atoi(argv[1]) : 1);
    const Index ranks = argc > 2 ? std::atoi(argv[2]) : 1;
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
    train_hidden_markov();
    ig::distributed::Alone alone;
    if (ranks == 1) train_on(alone);
#ifndef __EMSCRIPTEN__
    else ig::distributed::ThreadGroup::run(ranks, [](auto& member) { train_on(member); });
#endif
}
