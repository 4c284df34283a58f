// Every allocation fails once, and from it on, over building, training, saving and loading: nothing leaks,
// nothing is half changed, and what is tried again gives the bits of an undisturbed run.
#include <functional>
#include <isogloss/io.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/node/glnn.hpp>
#include <isogloss/text.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;
using namespace isogloss::io;

namespace {

/// What may reach the caller.
enum class Allowed {
    error,  ///< isogloss::Error alone, where a single allocation fails; with none left at all, bad_alloc too
    bad_alloc  ///< std::bad_alloc too
};

/// Calls f with its k-th allocation failing, for k = 0, 1 … until none is left to fail, and after(true) after
/// each failure; then the same with all allocations from the k-th on. Returns how often it failed.
template <class F, class After> int fail_everywhere(Allowed allowed, F&& f, After&& after) {
    int failures = 0;
    for (const bool for_good : {false, true})
        for (std::size_t k = 0;; ++k) {
            bool error = false, bad_alloc = false, happened = true;
            std::string foreign;
            try {
                const FailingAllocation fail(k, for_good);
                f();
                happened = fail.happened();
            } catch (const Error&) {
                error = true;
            } catch (const std::bad_alloc&) {
                bad_alloc = true;
            } catch (const std::exception& other) {
                foreign = other.what();
            }
            CAPTURE(k, for_good, foreign);
            REQUIRE(foreign.empty());
            REQUIRE(k < 100'000);  // f never succeeds
            if (bad_alloc && !for_good) REQUIRE(allowed == Allowed::bad_alloc);
            if (error || bad_alloc) {
                ++failures;
                after();
            }
            if (!happened) break;
        }
    return failures;
}

const std::vector<Token> words = {0, 1, 2, 3, 4, 5, 6, 0}, next = {2, 3, 4, -1, 6, 0, 1, 2};

/// A graph with nodes of all kinds, put together step by step. Names are short enough for a string to hold
/// them itself, so that all allocations are the library's.
struct Model {
    Graph<float> g{{.time = 4, .batch = 2}};
    Tokens x, y;
    Weight<float> E, unit;
    Seq<float> e, h, s;
    Logits<float> o;
    Loss<float> l, augmented, total;

    std::vector<std::function<void()>> steps() {
        return {[this] { x = g.tokens("words_going_in", 7); },
                [this] { y = g.tokens("words_to_come", 7); },
                [this] { E = g.weight("table_of_words", 7, 5, uniform(0.5)); },
                [this] { unit = g.weight("rows_of_norm_1", 7, 5, uniform(0.5), {.unit_rows = true}); },
                [this] { g.input("vectors", 30'000); },
                [this] { e = g.add<Embedding>("word_embedding", {.keep = 0.8}, x, E); },
                [this] { h = g.add<Lstm>("lstm_of_5_units", {.units = 5, .keep = 0.8}, e); },
                [this] { h = g.add<Rhn>("highway_of_5", {.units = 5, .depth = 3, .keep = 0.8}, h); },
                [this] { s = g.add<Glnn>("graph_of_5", {.units = 5, .edges = 2}, x); },
                [this] { h = g.add<Sum>("sum_of_layers", {}, h, s); },
                [this] { o = g.add<TiedSoftmax>("output_softmax", {.bias = true}, h, E); },
                [this] { l = g.add<CrossEntropy>("cross_entropy", {}, o, y); },
                [this] {
                    augmented =
                        g.add<AugmentedLoss>("augmented_loss", {.gamma = 0.5, .temperature = 2}, o, y);
                },
                [this] { total = g.add<TotalLoss>("sum_of_losses", {}, l, augmented); }};
    }
    double pass() {
        const double nats =
            g.forward(total, {x, TokenBlock{words.data(), 4, 2}}, {y, TokenBlock{next.data(), 4, 2}});
        g.backward(total);
        return nats;
    }
    std::vector<float> parameters() {
        std::vector<float> all;
        for (const auto& p : graph::Inspect::store(g).parameters)
            all.insert(all.end(), p.value, p.value + p.size());
        return all;
    }
    /// What a step that fails must leave alone.
    std::vector<std::size_t> extent() {
        const auto& store = graph::Inspect::store(g);
        std::vector<std::size_t> all = {g.memory(),          store.tokens.size(),  store.parameters.size(),
                                        store.seqs.size(),   store.units.size(),   store.masks.size(),
                                        store.logits.size(), store.losses.size(),  store.published.size(),
                                        store.names.size(),  store.claimed.size(), store.node_names.size()};
        for (const auto& p : store.parameters) all.push_back(std::size_t(p.lookups * 1000 + p.uses()));
        for (const auto& t : store.tokens) all.push_back(t.read_by_node);
        return all;
    }
};

/// Three steps of training; the losses and the weights that come out.
template <template <class> class Update> std::vector<float> train(Model& m, Update<float>& update) {
    std::vector<float> all;
    for (int k = 0; k < 3; ++k) {
        all.push_back(static_cast<float>(m.pass()));
        update.step();
    }
    const auto p = m.parameters();
    all.insert(all.end(), p.begin(), p.end());
    return all;
}

const std::string article =
    "a vocabulary of several words that are longer than fifteen characters\n"
    "internationalisation counterrevolutionaries a a several words\nof the long incomprehensibilities\n";

}  // namespace

TEST_CASE("A step of building that gets no memory leaves the graph as it was, and can be tried again",
          "[io][out_of_memory]") {
    Model undisturbed, m;
    for (const auto& step : undisturbed.steps()) step();
    int failures = 0;
    for (const auto& step : m.steps()) {
        auto before = m.extent();
        // The last call of the first round gets through, so the second one meets a name that is taken.
        bool done = false;
        const auto once = [&] {
            if (!done) step(), done = true;
        };
        failures += fail_everywhere(Allowed::error, once, [&] { REQUIRE(m.extent() == before); });
    }
    CHECK(failures > 200);
    CHECK(m.extent() == undisturbed.extent());
    CHECK(graph::Inspect::store(m.g).arena.guards_intact());
    Sgd<float> a(undisturbed.g.parameters(), {.rate = 0.1}), b(m.g.parameters(), {.rate = 0.1});
    const auto expected = train<Sgd>(undisturbed, a);
    CHECK(train<Sgd>(m, b) == expected);
}

TEST_CASE("Nothing of a graph and its updates leaks where memory fails while they are made",
          "[io][out_of_memory]") {
    const auto build = [] {
        Model m;
        for (const auto& step : m.steps()) step();
        const auto group = m.g.parameters();
        Sgd<float> sgd(group, {});
        Adam<float> adam(group, {});
        AveragedSgd<float> averaged(m.g.parameters("!rows_of_norm_1"), {});
        m.pass();
        sgd.step();
    };
    build();  // what is made once stays
    const auto held = blocks_held();
    std::ptrdiff_t most = 0;
    const int failures =
        fail_everywhere(Allowed::bad_alloc, build, [&] { most = std::max(most, blocks_held() - held); });
    CHECK(failures > 300);
    CHECK(most < 10);  // what the test itself keeps of an assertion
}

TEST_CASE("A checkpoint that gets no memory while it is saved leaves the file as it was",
          "[io][out_of_memory]") {
    const TemporaryDirectory place;
    Model m;
    for (const auto& step : m.steps()) step();
    Adam<float> adam(m.g.parameters(), {});
    std::vector<double> history = {1, 2, 3};
    std::string note = "a note that is longer than fifteen characters";
    const auto save = [&](const std::string& name) {
        Checkpoint c;
        c.model(m.g).state("update", adam).list("history", history).text("note", note);
        c.save(place / name, {{"program.version", "one that is longer than fifteen characters"}});
    };
    const auto weights = m.parameters();
    save("reference");
    const std::string whole = contents(place / "reference");
    put(place / "model", "what was there before");
    const int failures = fail_everywhere(
        Allowed::bad_alloc, [&] { save("model"); },
        [&] {
            const std::string found = contents(place / "model");
            REQUIRE((found == "what was there before" || found == whole));
            REQUIRE(place.entries() == 2);
            REQUIRE(m.parameters() == weights);
        });
    CHECK(failures > 100);
    CHECK(contents(place / "model") == whole);
}

TEST_CASE("A checkpoint that gets no memory while it is loaded changes nothing", "[io][out_of_memory]") {
    const TemporaryDirectory place;
    Model from, to;
    for (Model* m : {&from, &to})
        for (const auto& step : m->steps()) step();
    Adam<float> adam_from(from.g.parameters(), {}), adam_to(to.g.parameters(), {});
    train<Adam>(from, adam_from);
    std::vector<double> history(100, 0.5);
    std::string note(1000, 'n');
    const auto parts = [&](Checkpoint& c, Model& m, Adam<float>& adam) {
        c.model(m.g).state("update", adam).list("history", history).text("note", note);
    };
    Checkpoint written;
    parts(written, from, adam_from);
    written.save(place / "model");

    const auto before = to.parameters();
    const auto start_anew = [&] {  // without an allocation
        auto from_here = before.begin();
        for (auto& p : graph::Inspect::store(to.g).parameters) {
            std::copy_n(from_here, p.size(), p.value);
            from_here += p.size();
        }
        std::vector<double>().swap(history);
        std::string().swap(note);
        to.g.training_step(0);
    };
    const int failures = fail_everywhere(
        Allowed::bad_alloc,
        [&] {
            start_anew();
            Checkpoint c;
            parts(c, to, adam_to);
            c.load(Safetensors::open(place / "model"));
        },
        [&] {
            REQUIRE(to.parameters() == before);
            REQUIRE(history.empty());
            REQUIRE(note.empty());
            REQUIRE(to.g.training_step() == 0);
        });
    CHECK(failures > 100);
    CHECK(history.size() == 100);
    CHECK(to.parameters() == from.parameters());
    CHECK(to.g.training_step() == 3);
    CHECK(train<Adam>(to, adam_to) == train<Adam>(from, adam_from));
}
