#include <isogloss/distributed/data_parallel.hpp>
#include <isogloss/distributed/thread_group.hpp>
#include <isogloss/io/checkpoint.hpp>
#include <isogloss/isogloss.hpp>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"
#include "language_model.hpp"

using namespace isogloss;
using namespace isogloss::data_parallel_test;

TEMPLATE_TEST_CASE("Shards sum to the gradient of the whole batch, masks and samples included",
                   "[distributed][data_parallel]", float, double) {
    using T = TestType;
    const bool tied = GENERATE(false, true);
    const double epsilon = GENERATE(0., 0.05);
    const Index columns = GENERATE(6, 7);
    const auto text = text_of(200);
    LanguageModel<T> whole(columns, tied, epsilon);
    Sgd<T> step(whole.g.parameters(), {.rate = 0.5, .clip = 1, .divisor = Divisor::tokens});
    Alone ranks;
    const DataParallelOptions cut{.columns = columns, .shards = 3};
    LanguageModel<T> parts(distributed::widest_shard(cut), tied, epsilon);
    DataParallel parallel(parts.g, parts.g.parameters(), ranks, cut);
    Sgd<T> parts_step(parts.g.parameters(), {.rate = 0.5, .clip = 1, .divisor = Divisor::tokens});

    const double allowed = std::is_same_v<T, float> ? 3e-5 : 1e-13;
    auto one = batches_of(text, columns), other = batches_of(text, columns);
    auto at = other.begin();
    Index steps_done = 0;
    for (const auto& batch : one) {
        if (batch.first) whole.g.reset();
        whole.pass(batch);
        const auto [nats, tokens] = parallel.gradients(*at, [&](const text::Batch& part) {
            parts.pass(part);
            REQUIRE(part.predicted == part.input.size());
            return std::array{parts.g.result(parts.l).cross_entropy(),
                              double(parts.g.result(parts.l).predicted())};
        });
        ++at;
        REQUIRE(tokens == double(whole.g.result(whole.l).predicted()));
        REQUIRE(nats == Approx(whole.g.result(whole.l).cross_entropy()).epsilon(allowed));
        // A soft target that several positions share is drawn with one number for all of them, so the sums of the
        // augmented loss with sampling agree in the mean alone; the loss itself is exact.
        if (epsilon == 0 || !tied) {
            REQUIRE(parts.g.training_step() == whole.g.training_step());
            REQUIRE(apart(parts.gradients(), whole.gradients()) < allowed * 10);
            REQUIRE(parts_step.step() == Approx(step.step()).epsilon(allowed * 10));
            REQUIRE(apart(parts.values(), whole.values()) < allowed * 10);
        } else {
            parts.g.parameters().clear_gradients(), whole.g.parameters().clear_gradients();
        }
        ++steps_done;
    }
    REQUIRE(steps_done >= 4);
}

TEMPLATE_TEST_CASE("1, 2, 3 and 4 ranks train the same model, to the bit", "[distributed][data_parallel]",
                   float, double) {
    using T = TestType;
    const bool tied = GENERATE(false, true);
    const Index shards = GENERATE(4, 6);
    const auto text = text_of(400);
    struct Found {
        Numbers values;
        std::vector<double> nats;
        double perplexity;
        bool operator==(const Found&) const = default;
    };
    const auto train = [&](auto& ranks) {
        const DataParallelOptions cut{.columns = 7, .shards = shards};
        LanguageModel<T> m(distributed::widest_shard(cut), tied, 0.02);
        if (ranks.rank() > 0)  // rank 0 says what a training begins with
            for (auto* p : m.g.parameters()) std::fill_n(p->value, p->size(), T(1));
        DataParallel parallel(m.g, m.g.parameters(), ranks, cut);
        Adam<T> update(m.g.parameters(), {.rate = 0.05});
        Found found;
        for (const auto& batch : batches_of(text, 7)) {
            const auto [nats] = parallel.gradients(batch, [&](const text::Batch& part) {
                m.pass(part);
                return std::array{m.g.result(m.l).nats()};
            });
            found.nats.push_back(nats);
            update.step();
        }
        found.perplexity =
            evaluate(parallel, m.l, m.x, m.y, text::Batches(text, V, {steps, 7}, {.tail = text::Tail::pad}))
                .value();
        found.values = m.values();
        return found;
    };
    Alone alone;
    const Found expected = train(alone);
    REQUIRE(expected.nats.size() >= 5);
    for (const Index size : {2, 3, 4}) {
        std::vector<Found> found(static_cast<std::size_t>(size));
        ThreadGroup::run(size,
                         [&](auto& ranks) { found[static_cast<std::size_t>(ranks.rank())] = train(ranks); });
        for (const auto& f : found) REQUIRE(f == expected);
    }
}

TEST_CASE("One shard is the graph as it is alone, to the bit", "[distributed][data_parallel]") {
    const auto text = text_of(200);
    LanguageModel<float> a(4, true), b(4, true);
    Alone ranks;
    DataParallel parallel(b.g, b.g.parameters(), ranks, {.columns = 4, .shards = 1});
    Sgd<float> update_a(a.g.parameters(), {}), update_b(b.g.parameters(), {});
    for (int epoch = 0; epoch < 2; ++epoch)  // the second begins without the states of the first
        for (const auto& batch : batches_of(text, 4)) {
            if (batch.first) a.g.reset();
            a.pass(batch);
            update_a.step();
            parallel.gradients(batch, [&](const text::Batch& part) { b.pass(part); });
            update_b.step();
        }
    REQUIRE(a.values() == b.values());
    REQUIRE(a.g.states().saved() == b.g.states().saved());
}

TEST_CASE("A perplexity is that of one graph, and training goes on as before",
          "[distributed][data_parallel]") {
    const auto text = text_of(203);
    Alone ranks;
    const DataParallelOptions cut{.columns = 5, .shards = 2};
    LanguageModel<double> m(3, false), whole(5, false);
    DataParallel parallel(m.g, m.g.parameters(), ranks, cut);
    const auto padded = [&] { return text::Batches(text, V, {steps, 5}, {.tail = text::Tail::pad}); };
    const Perplexity expected = evaluate(whole.g, whole.l, whole.x, whole.y, padded());
    auto batches = batches_of(text, 5);
    auto at = batches.begin();
    const auto nats = [&] {
        return parallel.each(*at, [&](const text::Batch& part) {
            return std::array{m.g.forward(m.l, {m.x, part.input}, {m.y, part.target})};
        })[0];
    };
    m.g.training(false);
    nats();
    const auto first = *at;
    ++at;
    const double second = nats();
    REQUIRE(first.index == 0);
    for (bool with_evaluation : {false, true}) {
        at = batches.begin();
        nats();
        if (with_evaluation) {
            const Perplexity found = evaluate(parallel, m.l, m.x, m.y, padded());
            REQUIRE(found.tokens() == expected.tokens());
            REQUIRE(found.tokens() == 202);
            REQUIRE(found.nats() == Approx(expected.nats()).epsilon(1e-13));
        }
        ++at;
        REQUIRE(nats() == second);
    }
    Index asked = 0;
    evaluate(parallel, m.l, m.x, m.y, padded(), [&](Index, Index) { return ++asked < 2; });
    REQUIRE(asked == 2);
}

TEST_CASE("A training goes on with another number of ranks, to the bit",
          "[distributed][data_parallel][checkpoint]") {
    const auto text = text_of(400);
    const DataParallelOptions cut{.columns = 6, .shards = 4};
    const std::string file = std::string(ISOGLOSS_BUILD_DIR) + "/data_parallel.safetensors";
    // Batches [first, last) with so many ranks, from the file, if there is a first part, and into it.
    const auto train = [&](Index size, Index first, Index last) {
        std::vector<Numbers> values(static_cast<std::size_t>(size));
        ThreadGroup::run(size, [&](auto& ranks) {
            LanguageModel<float> m(2, false);
            DataParallel parallel(m.g, m.g.parameters(), ranks, cut);
            Adam<float> update(m.g.parameters(), {.rate = 0.05});
            io::Checkpoint checkpoint;
            checkpoint.model(m.g).state("adam", update).state("parallel", parallel);
            if (first > 0) checkpoint.load(io::Safetensors::open(file));
            for (const auto& batch : batches_of(text, 6)) {
                if (batch.index < first || batch.index >= last) continue;
                parallel.gradients(batch, [&](const text::Batch& part) { m.pass(part); });
                update.step();
            }
            evaluate(parallel, m.l, m.x, m.y, batches_of(text, 6));  // leaves what the checkpoint refers to
            parallel.gather_states();
            ranks.barrier();
            if (ranks.rank() == 0) checkpoint.save(file);
            values[static_cast<std::size_t>(ranks.rank())] = m.values();
        });
        return values;
    };
    const auto expected = train(1, 0, 9);
    train(2, 0, 4);
    const auto found = train(3, 4, 9);
    for (const auto& v : found) REQUIRE(v == expected[0]);
}

TEST_CASE("What cannot be shared out is refused, and a pass that fails leaves a graph that works",
          "[distributed][data_parallel]") {
    Alone ranks;
    LanguageModel<double> m(3, false);
    const auto make = [&](DataParallelOptions o) { DataParallel(m.g, m.g.parameters(), ranks, o); };
    REQUIRE_THROWS_MATCHES(make({.columns = 0}), UsageError, says("data parallel", "columns", "0"));
    REQUIRE_THROWS_MATCHES(make({.columns = 3, .shards = 4}), UsageError, says("shards", "4"));
    REQUIRE_THROWS_MATCHES(make({.columns = 7, .shards = 2}), UsageError,
                           says("columns of the graph = 3", "at least 4"));
    REQUIRE_THROWS_MATCHES(ThreadGroup::run(3,
                                            [&](auto& three) {
                                                LanguageModel<double> own(3, false);
                                                DataParallel(own.g, own.g.parameters(), three,
                                                             {.columns = 6, .shards = 2});
                                            }),
                           UsageError, says("shards = 2", "3 to"));

    const auto text = text_of(100);
    DataParallel parallel(m.g, m.g.parameters(), ranks, {.columns = 6, .shards = 2});
    for (const auto& batch : batches_of(text, 5))
        REQUIRE_THROWS_MATCHES(parallel.gradients(batch, [](auto&) {}), UsageError,
                               says("columns of a batch = 5"));
    auto batches = batches_of(text, 6);
    const auto batch = *batches.begin();
    int calls = 0;
    REQUIRE_THROWS_AS(parallel.gradients(batch,
                                         [&](const text::Batch& part) {
                                             m.pass(part);
                                             if (++calls == 2) throw DataError("in the middle");
                                         }),
                      DataError);
    REQUIRE(m.g.training_step() == 0);  // and the gradients are cleared
    parallel.gradients(batch, [&](const text::Batch& part) { m.pass(part); });
    const Numbers after = m.gradients();
    LanguageModel<double> other(3, false);
    DataParallel anew(other.g, other.g.parameters(), ranks, {.columns = 6, .shards = 2});
    anew.gradients(batch, [&](const text::Batch& part) { other.pass(part); });
    REQUIRE(after == other.gradients());
}

TEMPLATE_TEST_CASE("Weights can be frozen and trained again between batches", "[distributed][data_parallel]",
                   float, double) {
    using T = TestType;
    const bool tied = GENERATE(false, true);
    const auto text = text_of(300);
    const char* const frozen[] = {"", "E, lstm.W, gru.b", "softmax.*", ""};
    const DataParallelOptions cut{.columns = 6, .shards = 3};
    const auto train = [&](auto& m, auto&& gradients) {
        for (const auto& batch : batches_of(text, 6)) {
            if (batch.index == 4) break;
            m.g.parameters().trained(true);
            const std::string_view some = frozen[batch.index];
            if (!some.empty()) m.g.parameters(some).trained(false);
            Sgd<T> sgd(m.g.parameters(), {.rate = 0.5, .clip = 1});
            gradients(batch);
            for (const auto* p : m.g.parameters())
                if (!p->trained && p->counts())  // thrown, as assertions are for one thread at a time
                    throw NumericError("found a gradient of '", p->name, "', which is frozen");
            sgd.step();
        }
        return m.values();
    };
    const auto in_parts = [&](auto& ranks) {
        LanguageModel<T> m(2, tied);
        DataParallel parallel(m.g, m.g.parameters(), ranks, cut);
        return train(m, [&](const text::Batch& batch) {
            parallel.gradients(batch, [&](const text::Batch& part) { m.pass(part); });
        });
    };
    LanguageModel<T> whole(6, tied);
    const Numbers expected = train(whole, [&](const text::Batch& batch) {
        if (batch.first) whole.g.reset();
        whole.pass(batch);
    });
    Alone alone;
    const Numbers found = in_parts(alone);
    REQUIRE(apart(found, expected) < (std::is_same_v<T, float> ? 3e-4 : 1e-12));
    std::vector<Numbers> of_ranks(2);
    ThreadGroup::run(2, [&](auto& two) { of_ranks[std::size_t(two.rank())] = in_parts(two); });
    for (const Numbers& values : of_ranks) REQUIRE(values == found);
}

TEST_CASE("Ranks that would not train one model are refused", "[distributed][data_parallel]") {
    struct Case {
        std::string says;
        GraphOptions graph = {.time = 2, .batch = 2, .seed = 7};
        std::uint64_t step = 0;
        std::string name = "w";
        Index rows = 2;
        bool trained = true, another = false;
        DataParallelOptions options = {.columns = 4, .shards = 2};
    };
    const auto make = [](const Case& of_1) {
        ThreadGroup::run(2, [&](auto& ranks) {
            const Case c = ranks.rank() == 1 ? of_1 : Case{};
            Graph<float> g(c.graph);
            g.weight("E", 5, 2, uniform(1));
            g.weight(c.name, c.rows, 2, uniform(1), {.trained = c.trained});
            if (c.another) g.weight("another", 2, 2, uniform(1));
            g.training_step(c.step);
            DataParallel(g, g.parameters(), ranks, c.options);
        });
    };
    make({});
    std::vector<Case> cases(10);
    cases[0].says = "seed = 8 on rank 1 and 7 on rank 0", cases[0].graph.seed = 8;
    cases[1].says = "training step = 3 on rank 1 and 0", cases[1].step = 3;
    cases[2].says = "precision = ", cases[2].graph.precision = Precision::bf16;
    cases[3].says = "columns = 3 on rank 1 and 4", cases[3].options.columns = 3;
    cases[4].says = "shards = 4 on rank 1 and 2", cases[4].options.shards = 4;
    for (std::size_t i = 5; i < cases.size(); ++i) cases[i].says = "checksum of epsilon and the weights";
    cases[5].graph.epsilon = 0.25, cases[6].rows = 3, cases[7].name = "v", cases[8].trained = false,
    cases[9].another = true;
    for (const Case& c : cases)
        REQUIRE_THROWS_MATCHES(make(c), UsageError,
                               says("data parallel: found ", c.says, "expected the same on every rank"));
}
