// What goes together: every cell, head, loss, update, precision and number of ranks, trained for a few steps, and the page
// that says so.
#include <algorithm>
#include <fstream>
#include <functional>
#include <isogloss/check.hpp>
#include <isogloss/distributed/data_parallel.hpp>
#include <isogloss/distributed/thread_group.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/gnn.hpp>
#include <isogloss/node/leaky_rnn.hpp>
#include <isogloss/node/sparse_rnn.hpp>
#include <isogloss/text/batches.hpp>
#include <isogloss/update/muon.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"

using namespace isogloss;

namespace {

constexpr Index V = 11, n = 6, steps = 5, columns = 4;
constexpr int passes = 24;

// --- models -----------------------------------------------------------------------------------------

template <class T> struct Inputs {
    Tokens x, y;
    Weight<T> E;
    Seq<T> e;  // looked up
};

// A cell over the looked-up words, or over the words themselves.
template <class T> struct Cell {
    std::string name;
    std::function<Seq<T>(Graph<T>&, const Inputs<T>&)> add;
};

template <class T> std::vector<Cell<T>> cells() {
    using G = Graph<T>;
    using In = const Inputs<T>;
    return {
        {"Rnn", [](G& g, In& in) { return g.template add<Rnn>("cell", {.units = n, .keep = 0.9}, in.e); }},
        {"Lstm", [](G& g, In& in) { return g.template add<Lstm>("cell", {.units = n, .keep = 0.9}, in.e); }},
        {"Gru", [](G& g, In& in) { return g.template add<Gru>("cell", {.units = n, .keep = 0.9}, in.e); }},
        {"Gru, reset after",
         [](G& g, In& in) {
             return g.template add<Gru>("cell", {.units = n, .keep = 0.9, .reset_after = true}, in.e);
         }},
        {"Lstm, five rounds",
         [](G& g, In& in) {
             return g.template add<Lstm>("cell", {.units = n, .keep = 0.9, .rounds = 5, .rank = 2}, in.e);
         }},
        {"Gru, two rounds",
         [](G& g, In& in) {
             return g.template add<Gru>("cell", {.units = n, .keep = 0.9, .rounds = 2}, in.e);
         }},
        {"Rhn", [](G& g, In& in) { return g.template add<Rhn>("cell", {.units = n, .depth = 2}, in.e); }},
        {"Qrnn", [](G& g, In& in) { return g.template add<Qrnn>("cell", {.units = n, .keep = 0.9}, in.e); }},
        {"Glnn", [](G& g, In& in) { return g.template add<Glnn>("cell", {.units = n, .edges = 2}, in.e); }},
        {"Gnn", [](G& g, In& in) { return g.template add<Gnn>("cell", {.units = n, .edges = 2}, in.e); }},
        {"LeakyRnn",
         [](G& g, In& in) { return g.template add<LeakyRnn>("cell", {.units = n, .edges = 2}, in.e); }},
        {"SparseRnn",
         [](G& g, In& in) { return g.template add<SparseRnn>("cell", {.units = n, .edges = 2}, in.e); }},
        {"Glnn of symbols",
         [](G& g, In& in) { return g.template add<Glnn>("cell", {.units = n, .edges = 2}, in.x); }},
        {"Gnn of symbols",
         [](G& g, In& in) { return g.template add<Gnn>("cell", {.units = n, .edges = 2}, in.x); }},
        {"LeakyRnn of symbols",
         [](G& g, In& in) { return g.template add<LeakyRnn>("cell", {.units = n, .edges = 2}, in.x); }},
        {"SparseRnn of symbols",
         [](G& g, In& in) { return g.template add<SparseRnn>("cell", {.units = n, .edges = 2}, in.x); }},
    };
}

const std::vector<std::string> heads = {"free", "tied", "tied, bias", "tied, projection"},
                               losses = {"cross-entropy", "augmented"},
                               updates = {"Sgd", "AveragedSgd", "Adam", "Muon", "RUOP", "RBPM"};

template <class T> Loss<T> build(Graph<T>& g, Inputs<T>& in, const Cell<T>& cell, const std::string& head,
                                 const std::string& loss) {
    in.x = g.tokens("x", V), in.y = g.tokens("y", V);
    in.E = g.weight("E", V, n, uniform(0.5));
    in.e = g.template add<Embedding>("embed", {.keep = 0.9}, in.x, in.E);
    const Seq<T> h = g.template add<Dropout>("dropout", {.keep = 0.9}, cell.add(g, in));
    const auto o =
        head == "free"
            ? g.template add<Softmax>("out", {.vocabulary = V}, h)
            : g.template add<TiedSoftmax>(
                  "out", {.bias = head == "tied, bias", .projection = head == "tied, projection"}, h, in.E);
    if (loss == "cross-entropy") return g.template add<CrossEntropy>("loss", {}, o, in.y);
    return head == "free" ? g.template add<AugmentedLoss>("loss", {.temperature = 5}, o, in.y, in.E)
                          : g.template add<AugmentedLoss>("loss", {.temperature = 5}, o, in.y);
}

// --- training ---------------------------------------------------------------------------------------

struct Composition {
    const Cell<float>& cell;
    std::string head, loss, update;
    Precision precision = Precision::full;
    double epsilon = 0;
};

struct Outcome {
    std::string refused = {};  // the reason
    double before = 0, after = 0;
    std::vector<float> weights = {};
};

template <class Ranks> Outcome train(const Composition& c, Ranks& ranks) {
    std::vector<Token> in, next;
    for (Index r = 0; r < steps * columns; ++r) {
        in.push_back(static_cast<Token>(r * r % V));
        next.push_back(r == 7 ? not_predicted : static_cast<Token>((r * r + 3 * r + 1) % V));
    }
    const text::Batch batch{
        .input = {in.data(), steps, columns}, .target = {next.data(), steps, columns}, .first = true};
    Graph<float> g({.time = steps, .batch = 2, .seed = 3, .precision = c.precision, .epsilon = c.epsilon});
    Inputs<float> inputs;
    const auto l = build(g, inputs, c.cell, c.head, c.loss);
    distributed::DataParallel parallel(g, g.parameters(), ranks, {.columns = columns, .shards = 2});
    const auto forward = [&](const text::Batch& part) {
        return g.forward(l, {inputs.x, part.input}, {inputs.y, part.target});
    };
    const auto loss = [&] {
        const typename decltype(parallel)::Evaluation evaluation(parallel);
        return parallel.each(batch, [&](const text::Batch& part) { return std::array{forward(part)}; })[0];
    };
    Outcome outcome{.before = loss()};
    const auto group = g.parameters();
    const auto run = [&](auto update, auto&... metrics) {
        const auto pass = [&](const text::Batch& part) {
            forward(part);
            g.backward(l);
            if ((metrics.wants_modulus() || ...)) g.template backward<Modulus>(l);
        };
        for (int k = 0; k < passes; ++k) {
            parallel.gradients(batch, pass, metrics...);
            update();
        }
    };
    const auto by_rule = [&](auto update) { run([&] { update.step(); }); };
    const auto by_metric = [&](UnitModulus modulus) {
        Riemannian<float> update(
            g, group,
            {.modulus = modulus, .rate = 0.1, .damping = 0.1, .floor = 1e-2, .every = 1, .clip = 1});
        run([&] { update.step(); }, update);
    };
    if (c.update == "Sgd") by_rule(Sgd<float>(group, {.rate = 0.3, .clip = 5}));
    if (c.update == "AveragedSgd") by_rule(AveragedSgd<float>(group, {.sgd = {.rate = 0.3, .clip = 5}}));
    if (c.update == "Adam") by_rule(Adam<float>(group, {.rate = 0.02}));
    if (c.update == "Muon") {  // for the matrices of the cell; Adam for the rest
        std::string matrices, rest;
        for (const auto* p : group) {
            const bool matrix = p->name.starts_with("cell.") && p->rows > 1 && p->lookups == 0;
            (matrix ? matrices : rest) += (matrix ? matrices : rest).empty() ? p->name : "," + p->name;
        }
        Adam<float> adam(g.parameters(rest), {.rate = 0.02});
        Muon<float> muon(g.parameters(matrices.empty() ? "cell.*" : matrices), {.rate = 0.02});
        run([&] { adam.step(), muon.step(); });
    }
    if (c.update == "RUOP") by_metric(UnitModulus::ruop);
    if (c.update == "RBPM") by_metric(UnitModulus::rbpm);
    outcome.after = loss();
    for (const auto* p : group) outcome.weights.insert(outcome.weights.end(), p->value, p->value + p->size());
    return outcome;
}

// On one rank and on two; what is refused is so on both.
Outcome train(const Composition& c) {
    Outcome alone, one_of_two;
    try {
        distributed::Alone rank;
        alone = train(c, rank);
    } catch (const UsageError& error) {
        alone.refused = std::string(error.text());
        return alone;
    }
    distributed::ThreadGroup::run(2, [&](auto& ranks) {
        Outcome found = train(c, ranks);
        if (ranks.rank() == 1) one_of_two = std::move(found);
    });
    CHECK(one_of_two.weights == alone.weights);
    CHECK(alone.after < 0.97 * alone.before);
    return alone;
}

}  // namespace

TEST_CASE("Every cell under every head with every loss keeps the laws of a node", "[compositions]") {
    for (const auto& head : heads)
        for (const auto& loss : losses)
            for (std::size_t k = 0; k < cells<double>().size(); ++k) {
                INFO(cells<double>()[k].name << ", " << head << ", " << loss);
                CHECK(laws([&]<class T>(Graph<T>& g) {
                          Inputs<T> inputs;
                          return build(g, inputs, cells<T>()[k], head, loss);
                      }) == "");
            }
}

TEST_CASE("Cells, heads, losses, updates, precisions and ranks compose, as the page says", "[compositions]") {
    struct Kind {
        std::string name;
        Precision precision;
        double epsilon;
    };
    const std::vector<Kind> kinds = {
        {"full", Precision::full, 0}, {"bf16", Precision::bf16, 0}, {"sampled", Precision::full, 0.05}};
    std::vector<std::string> reasons;
    std::string page = "| |";
    for (const auto& update : updates) page += " " + update + " |";
    page += "\n|---|";
    for (std::size_t k = 0; k < updates.size(); ++k) page += "---|";
    const auto all = cells<float>();
    for (const auto& cell : all) {
        page += "\n| " + cell.name + " |";
        for (const auto& update : updates) {
            Index count = 0;
            std::string marks;
            for (const auto& head : heads)
                for (const auto& loss : losses)
                    for (const auto& kind : kinds) {
                        INFO(cell.name << ", " << head << ", " << loss << ", " << update << ", "
                                       << kind.name);
                        const Outcome o = train({cell, head, loss, update, kind.precision, kind.epsilon});
                        if (o.refused.empty()) {
                            ++count;
                            continue;
                        }
                        auto found = std::find(reasons.begin(), reasons.end(), o.refused);
                        if (found == reasons.end()) found = reasons.insert(reasons.end(), o.refused);
                        const std::string mark = " (" + std::to_string(found - reasons.begin() + 1) + ")";
                        if (marks.find(mark) == std::string::npos) marks += mark;
                    }
            page += " " + std::to_string(count) + marks + " |";
        }
    }
    page += "\n";
    for (std::size_t k = 0; k < reasons.size(); ++k) page += "\n" + std::to_string(k + 1) + ". " + reasons[k];
    const std::string path = ISOGLOSS_SOURCE_DIR "/docs/compositions.md",
                      made = ISOGLOSS_BUILD_DIR "/compositions.md";
    std::ofstream(made) << page << '\n';
    INFO("the table of " << path << " is not that of " << made);
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK(text.find(page) != std::string::npos);
}
