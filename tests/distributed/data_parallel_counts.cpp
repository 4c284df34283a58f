// What the gradients of DataParallel are sums over, and whose they are.
#include <isogloss/distributed/data_parallel.hpp>
#include <isogloss/distributed/thread_group.hpp>
#include <isogloss/isogloss.hpp>
#include <vector>

#include "catch.hpp"
#include "language_model.hpp"

using namespace isogloss;
using namespace isogloss::data_parallel_test;

TEST_CASE("Several backward passes in a part count like those of one graph", "[distributed][data_parallel]") {
    const Index shards = GENERATE(1, 2);
    const auto text = text_of(200);
    Alone ranks;
    LanguageModel<double> m(4, false);
    DataParallel parallel(m.g, m.g.parameters(), ranks, {.columns = 4, .shards = shards});
    parallel.gradients(*batches_of(text, 4).begin(),
                       [&](const text::Batch& part) { m.pass(part), m.pass(part); });
    REQUIRE(m.g.parameters().divisor(Divisor::batch) == 8);
    REQUIRE(m.g.parameters().divisor(Divisor::tokens) == 2 * 4 * steps);
}

TEST_CASE("Weights of several losses are divided by what each was summed over",
          "[distributed][data_parallel]") {
    const auto text = text_of(120);
    struct Heads {
        Graph<double> g;
        Tokens x, y, few;
        Loss<double> of_all, of_few;
        explicit Heads(Index columns) : g({.time = steps, .batch = columns, .seed = 5}) {
            x = g.tokens("x", V), y = g.tokens("y", V), few = g.tokens("few", V);
            const auto E = g.weight("E", V, 4, uniform(0.5));
            const auto h = g.add<Linear>("map", {.units = 4}, g.add<Embedding>("embed", {}, x, E));
            of_all = g.add<CrossEntropy>("all", {}, g.add<TiedSoftmax>("tied", {}, h, E), y);
            of_few = g.add<CrossEntropy>(
                "of.few", {}, g.add<Softmax>("head", {.vocabulary = V, .init = uniform(0.5)}, h), few);
        }
        // Two passes, of which the second predicts only some positions of some columns.
        void pass(const text::Batch& part) {
            std::vector<Token> some(part.target.data,
                                    part.target.data + part.target.time * part.target.batch);
            for (std::size_t i = 0; i < some.size(); ++i)
                if (some[i] % 3 > 0) some[i] = not_predicted;
            g.forward(of_all, {x, part.input}, {y, part.target});
            g.backward(of_all);
            g.forward(of_few, {x, part.input},
                      {few, TokenBlock{some.data(), part.target.time, part.target.batch}});
            g.backward(of_few);
        }
    };
    for (const Divisor divisor : {Divisor::batch, Divisor::tokens}) {
        const auto divisors = [&](Heads& m) {
            std::vector<double> found;
            for (const char* group : {"E", "map.*", "head.*", "*"})
                found.push_back(m.g.parameters(group).divisor(divisor));
            return found;
        };
        Heads whole(6);
        text::Batches batches(text, V, {steps, 6});
        whole.pass(*batches.begin());
        const auto expected = divisors(whole);
        REQUIRE(expected[2] < expected[0]);
        for (const Index ranks : {1, 2, 3})
            ThreadGroup::run(ranks, [&](auto& rank) {
                const DataParallelOptions cut{.columns = 6, .shards = 3};
                Heads parts(distributed::widest_shard(cut));
                DataParallel parallel(parts.g, parts.g.parameters(), rank, cut);
                parallel.gradients(*text::Batches(text, V, {steps, 6}).begin(),
                                   [&](const text::Batch& part) { parts.pass(part); });
                if (divisors(parts) != expected) throw DataError("other divisors");
            });
    }
}

TEST_CASE("A gradient that is not sent to the other ranks is refused",
          "[distributed][data_parallel][errors]") {
    const auto text = text_of(200);
    Alone ranks;
    LanguageModel<double> m(4, false);
    m.g.parameters("E").trained(false);
    DataParallel parallel(m.g, m.g.parameters(), ranks, {.columns = 4, .shards = 2});
    const auto pass = [&](const text::Batch& part) { m.pass(part); };
    parallel.gradients(*batches_of(text, 4).begin(), pass);
    m.g.parameters("E").trained(true);
    m.g.parameters().clear_gradients();
    REQUIRE_THROWS_MATCHES(parallel.gradients(*batches_of(text, 4).begin(), pass), UsageError,
                           says("a gradient of 'E'", "not in the group"));
    DataParallel(m.g, m.g.parameters(), ranks, {.columns = 4, .shards = 2})
        .gradients(*batches_of(text, 4).begin(), pass);
    m.g.parameters().clear_gradients();
    m.g.parameters("E").trained(false);
    parallel.gradients(*batches_of(text, 4).begin(), pass);
}
