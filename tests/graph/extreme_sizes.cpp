// Every size that a caller gives, near and beyond the ends of 32 and 64 bits: an error of the library, or it
// works.
#include <functional>
#include <isogloss/closed_form/concatenated_softmax.hpp>
#include <isogloss/geometry/neighbours.hpp>
#include <isogloss/geometry/principal_components.hpp>
#include <isogloss/hmm/hmm.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/node/gnn.hpp>
#include <isogloss/node/leaky_rnn.hpp>
#include <isogloss/node/sparse_rnn.hpp>
#include <isogloss/text.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"

using namespace isogloss;

namespace {

struct Case {
    std::string name;
    std::function<void(Index)> use;
};

/// A graph of usual size with an input sequence and tokens.
struct Small {
    Graph<float> g{{.time = 4, .batch = 2}};
    Tokens x = g.tokens("x", 5), y = g.tokens("y", 5);
    Weight<float> E = g.weight("E", 5, 3, uniform(0.1));
    Seq<float> e = g.add<Embedding>("e", {}, x, E);
    Logits<float> o = g.add<TiedSoftmax>("o", {}, e, E);
    Loss<float> l = g.add<CrossEntropy>("l", {}, o, y);
    std::vector<Token> words = {0, 1, 2, 3, 4, 0, 1, 2};
};

/// Builds a model on a graph of such capacities and runs a small pass.
void use_graph(GraphOptions options) {
    Graph<float> g(options);
    const auto x = g.tokens("x", 5);
    const auto u = g.input("u", 3);
    const auto h = g.add<Lstm>("h", {.units = 3, .keep = 0.5}, u);
    const auto d = g.add<Dropout>("d", {.keep = 0.5, .variational = false}, h);
    const auto l = g.add<AugmentedLoss>("l", {.gamma = 1, .temperature = 2},
                                        g.add<TiedSoftmax>("o", {}, d, g.weight("E", 5, 3, uniform(0.1))), x);
    const std::vector<float> values(6, 0.5f);
    const std::vector<Token> words = {0, 1};
    g.forward(l, {u, values.data(), 2, 1}, {x, TokenBlock{words.data(), 2, 1}});
    g.backward(l);
    g.backward<Modulus>(l);
}

template <template <class> class Node> Case node(const std::string& name, auto&& options) {
    return {name, [options](Index n) {
                Small s;
                const auto h = s.g.add<Node>("h", options(n), s.e);
                s.g.forward(h, {s.x, TokenBlock{s.words.data(), 4, 2}});
            }};
}
template <template <class> class Node> Case edge_node(const std::string& name) {
    return {name, [](Index n) {
                Small s;
                const auto h = s.g.add<Node>("h", {.units = n, .edges = 2}, s.x);
                s.g.forward(h, {s.x, TokenBlock{s.words.data(), 4, 2}});
            }};
}

std::vector<Case> graph_cases() {
    return {
        {"time", [](Index n) { use_graph({.time = n}); }},
        {"batch", [](Index n) { use_graph({.time = 2, .batch = n}); }},
        {"time and batch", [](Index n) { use_graph({.time = n, .batch = n}); }},
        {"budget", [](Index n) { use_graph({.time = 2, .budget = n}); }},
        {"tokens", [](Index n) { Small().g.tokens("z", n); }},
        {"tokens and a table",
         [](Index n) {
             Graph<float> g({});
             const auto z = g.tokens("z", n);
             g.add<Embedding>("f", {}, z, g.weight("F", n, 1, constant(1)));
         }},
        {"input", [](Index n) { Small().g.input("z", n); }},
        {"rows", [](Index n) { Small().g.weight("W", n, 1, constant(1)); }},
        {"cols", [](Index n) { Small().g.weight("W", 3, n, constant(1)); }},
        {"rows and cols", [](Index n) { Small().g.weight("W", n, n, constant(1), {.unit_rows = true}); }},
        node<Linear>("Linear", [](Index n) { return Linear<float>::Options{.units = n}; }),
        node<Rnn>("Rnn", [](Index n) { return Rnn<float>::Options{.units = n, .keep = 0.5}; }),
        node<Lstm>("Lstm", [](Index n) { return Lstm<float>::Options{.units = n}; }),
        node<Lstm>("Lstm, dropped",
                   [](Index n) {
                       return Lstm<float>::Options{.units = n, .keep = 0.5, .scheme = DropoutScheme::gal};
                   }),
        node<Gru>("Gru", [](Index n) { return Gru<float>::Options{.units = n}; }),
        node<Rhn>("Rhn", [](Index n) { return Rhn<float>::Options{.units = n}; }),
        node<Rhn>("Rhn, deep", [](Index n) { return Rhn<float>::Options{.units = n, .depth = 3}; }),
        node<Rhn>("depth", [](Index n) { return Rhn<float>::Options{.units = 2, .depth = n}; }),
        node<Qrnn>("Qrnn", [](Index n) { return Qrnn<float>::Options{.units = n}; }),
        edge_node<Glnn>("Glnn"),
        edge_node<Gnn>("Gnn"),
        edge_node<LeakyRnn>("LeakyRnn"),
        edge_node<SparseRnn>("SparseRnn"),
        {"edges", [](Index n) { random_edges(4, n, 1); }},
        {"units and edges", [](Index n) { random_edges(n, n, 1); }},
        {"Softmax",
         [](Index n) {
             Small s;
             s.g.add<Softmax>("s", {.vocabulary = n}, s.e);
         }},
        {"a feed's time",
         [](Index n) {
             Small s;
             s.g.forward(s.o, {s.x, TokenBlock{s.words.data(), n, 1}});
         }},
        {"a feed's batch",
         [](Index n) {
             Small s;
             s.g.forward(s.o, {s.x, TokenBlock{s.words.data(), 1, n}});
         }},
        {"window",
         [](Index n) {
             Small s;
             AveragedSgd<float> update(s.g.parameters(), {.window = n});
             update.observe(1), update.observe(2);
         }},
        {"every",
         [](Index n) {
             Small s;
             s.g.add<Linear>("a", {.units = 2}, s.e);
             Riemannian<float> update(s.g, "a.*", {.every = n});
         }},
    };
}

std::vector<Case> other_cases() {
    static const std::vector<Token> text = {0, 1, 2, 3, 4, 0, 1, 2, 3};
    static const std::vector<float> table = {1, 2, 3, 4, 5, 6};
    const auto batches = [](Capacity capacity, text::BatchOptions options) {
        text::Batches b(text, 5, capacity, options);
        Index predicted = 0;
        for (const auto& batch : b) predicted += batch.predicted;
        if (predicted != b.predictions()) throw std::logic_error("predictions");
    };
    const auto gemm_of = [](Index m, Index n, Index k) {
        static std::vector<float> a(16), b(16), c(16);
        gemm<float>(1.f, {a.data(), m, k}, {b.data(), k, n}, 0.f, {c.data(), m, n});
    };
    const auto closed_form = [](ConcatenatedSoftmaxOptions o) {
        ConcatenatedSoftmax<float> model(std::move(o));
    };
    std::vector<Case> all = {
        {"time of batches", [=](Index n) { batches({.time = n, .batch = 2}, {}); }},
        {"batch of batches", [=](Index n) { batches({.time = 2, .batch = n}, {}); }},
        {"batch of padded batches",
         [=](Index n) { batches({.time = 2, .batch = n}, {.tail = text::Tail::pad}); }},
        {"both of padded batches",
         [=](Index n) { batches({.time = n, .batch = n}, {.tail = text::Tail::pad}); }},
        {"random lengths",
         [=](Index n) {
             batches({.time = n, .batch = 1}, {.random_length = true, .predict_first = Token{1}});
         }},
        {"time of segments", [=](Index n) { batches({.time = 2, .batch = 1}, {.time = n}); }},
        {"start", [=](Index n) { batches({.time = 2, .batch = 1}, {.start = n}); }},
        {"vocabulary of batches", [](Index n) { text::Batches(text, n, {.time = 2, .batch = 1}); }},
        {"vocabulary of a corpus", [](Index n) { text::Corpus::from_tokens(text, n); }},
        {"longest line",
         [](Index n) {
             std::istringstream in("a line\n");
             text::Vocabulary::from_stream(in, "text", {.max_line_bytes = n});
         }},
        {"largest vocabulary",
         [](Index n) {
             std::istringstream in("a line\n");
             text::Vocabulary::from_stream(in, "text", {.max_size = n});
         }},
        {"least count",
         [](Index n) {
             std::istringstream in("a line\n");
             text::Vocabulary::from_stream(in, "text", {.min_count = n});
         }},
        {"rows of nearest", [](Index n) { nearest(table, n, 2, std::span(table).first(2), 1); }},
        {"columns of nearest", [](Index n) { nearest(table, 3, n, std::span(table).first(2), 1); }},
        {"both of nearest", [](Index n) { nearest(table, n, n, std::span(table).first(2), 1); }},
        {"k of nearest", [](Index n) { nearest(table, 3, 2, std::span(table).first(2), n); }},
        {"row of nearest", [](Index n) { nearest(table, 3, 2, n, 1); }},
        {"components",
         [](Index n) {
             principal_components<float>({table.data(), 3, 2}, n);
         }},
        {"columns of components",
         [](Index n) {
             principal_components<float>({table.data(), 3, n}, 1);
         }},
        {"m of gemm", [=](Index n) { gemm_of(n, 1, 1); }},
        {"n of gemm", [=](Index n) { gemm_of(1, n, 1); }},
        {"k of gemm", [=](Index n) { gemm_of(1, 1, n); }},
        {"all of gemm", [=](Index n) { gemm_of(n, n, n); }},
        {"stride of gemm",
         [](Index n) {
             static std::vector<float> a(16), c(16);
             gemm<float>(1.f, {a.data(), 1, 2, n}, {a.data(), 2, 1}, 0.f, {c.data(), 1, 1});
         }},
        {"states", [](Index n) { hmm::Hmm({.states = n, .symbols = 2}); }},
        {"symbols", [](Index n) { hmm::Hmm({.states = 2, .symbols = n}); }},
        {"states and symbols", [](Index n) { hmm::Hmm({.states = n, .symbols = n}); }},
        {"edges of an hmm", [](Index n) { hmm::Hmm({.states = 2, .symbols = 2, .edges = n}); }},
        {"a text of an hmm", [](Index n) { hmm::Hmm({.states = 2, .symbols = 2}).sample(n, Random(1, 2)); }},
    };
    for (auto [name, member] : {std::pair{"vocabulary", &ConcatenatedSoftmaxOptions::vocabulary},
                                std::pair{"width", &ConcatenatedSoftmaxOptions::width},
                                std::pair{"words", &ConcatenatedSoftmaxOptions::words},
                                std::pair{"classes", &ConcatenatedSoftmaxOptions::classes},
                                std::pair{"batch", &ConcatenatedSoftmaxOptions::batch},
                                std::pair{"budget", &ConcatenatedSoftmaxOptions::budget}})
        all.push_back({std::string("closed form, ") + name, [=, member = member](Index n) {
                           ConcatenatedSoftmaxOptions o{
                               .vocabulary = 4, .width = 2, .words = 2, .classes = 4, .batch = 3};
                           o.*member = n;
                           closed_form(o);
                       }});
    return all;
}

}  // namespace

TEST_CASE("Any size is refused with an error of the library, or works", "[graph][sizes][errors]") {
    constexpr Index sizes[] = {Index{1} << 31,
                               (Index{1} << 32) + 1,
                               Index{1} << 61,
                               Index{1} << 62,
                               std::numeric_limits<Index>::max(),
                               0,
                               -1,
                               std::numeric_limits<Index>::min()};
    for (const auto& cases : {graph_cases(), other_cases()})
        for (const Case& c : cases)
            for (const Index n : sizes) {
                CAPTURE(c.name, n);
                std::string foreign;
                bool refused = false;
                try {
                    const LargestAllocation small_machine(std::size_t{64} << 20);
                    c.use(n);
                } catch (const Error& error) {
                    refused = true;
                    if (std::string(error.what()).size() > 600) foreign = error.what();
                } catch (const std::exception& other) {
                    foreign = other.what();
                }
                CHECK(foreign.empty());
                if (n < 0) CHECK(refused);
            }
}
