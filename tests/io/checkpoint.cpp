#include <algorithm>
#include <isogloss/hmm/hmm.hpp>
#include <isogloss/io.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/update/dynamic.hpp>
#include <isogloss/update/muon.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"
#include "io/files.hpp"

using namespace isogloss;
using namespace isogloss::io;

namespace {

/// A small tied model under an update, with what a training program keeps beside it.
template <class T, template <class> class Update> struct Training {
    Graph<T> g;
    Tokens x, y;
    Loss<T> l;
    Update<T> update;
    double best = 1e9;
    std::uint64_t epoch = 0;
    std::vector<double> history;
    std::string note = "before";
    bool done = false;

    explicit Training(typename Update<T>::Options options, Index units = 4, std::uint64_t seed = 1)
        : g({.time = 3, .batch = 2, .seed = seed}),
          x(g.tokens("x", 5)),
          y(g.tokens("y", 5)),
          l(build(g, x, y, units)),
          update(g.parameters(std::is_same_v<Update<T>, Muon<T>> ? "lstm.W, lstm.U" : "*"), options) {}

    static Loss<T> build(Graph<T>& g, Tokens x, Tokens y, Index units) {
        const auto E = g.weight("E", 5, units, uniform(0.5));
        const auto e = g.template add<Embedding>("embed", {.keep = 0.8}, x, E);
        const auto h = g.template add<Lstm>("lstm", {.units = units, .keep = 0.8}, e);
        return g.template add<CrossEntropy>("loss", {}, g.template add<TiedSoftmax>("softmax", {}, h, E), y);
    }
    Checkpoint checkpoint() {
        Checkpoint c;
        c.model(g).state("update", update).number("best", best).counter("epoch", epoch);
        return c.list("history", history).text("note", note).flag("done", done);
    }
    void train(int steps) {
        for (int k = 0; k < steps; ++k) {
            std::vector<Token> t;
            for (int i = 0; i < 12; ++i)
                t.push_back(static_cast<Token>((i * i + static_cast<int>(g.training_step())) % 5));
            history.push_back(
                g.forward(l, {x, TokenBlock{t.data(), 3, 2}}, {y, TokenBlock{t.data() + 6, 3, 2}}));
            g.backward(l);
            update.step();
        }
    }
    std::vector<T> parameters() {
        std::vector<T> all;
        for (const auto* p : g.parameters()) all.insert(all.end(), p->value, p->value + p->size());
        return all;
    }
};

template <class T, template <class> class Update> void resumes(typename Update<T>::Options options) {
    const TemporaryDirectory folder;
    const auto path = folder / "training.safetensors";
    Training<T, Update> whole(options), first(options), second(options, 4, 77);
    for (auto* t : {&whole, &first})
        t->update.rate(0.5 * t->update.rate());  // the second has it from the file
    whole.train(9);
    first.train(4);
    first.note = "stopped at four";
    first.done = true;
    first.best = 3.25;
    first.epoch = 12345678901234567ULL;
    first.checkpoint().save(path);
    second.train(2);  // whatever it did before is forgotten
    second.checkpoint().load(Safetensors::open(path));
    CHECK(second.note == "stopped at four");
    CHECK(second.done);
    CHECK(second.best == 3.25);
    CHECK(second.epoch == 12345678901234567ULL);
    CHECK(second.history.size() == 4);
    second.train(5);  // the seed of the masks came with the file
    CHECK(second.parameters() == whole.parameters());
    CHECK(second.history == whole.history);
}

}  // namespace

TEMPLATE_TEST_CASE("Training that goes on from a checkpoint has the bits of training that was not stopped",
                   "[io][checkpoint]", float, double) {
    resumes<TestType, Sgd>({.rate = 0.5, .clip = 1});
    resumes<TestType, Adam>({.rate = 0.05});
    resumes<TestType, Muon>({.rate = 0.05, .gates = 4});
    resumes<TestType, Sgd>({.rate = 0.1, .momentum = 0.9});
    resumes<TestType, AveragedSgd>({.sgd = {.rate = 0.5}});
}

TEST_CASE("Averages and the trigger survive a stop", "[io][checkpoint]") {
    const TemporaryDirectory folder;
    const auto path = folder / "averaged.safetensors";
    const auto run = [&](bool stop) {
        Training<double, AveragedSgd> a({.sgd = {.rate = 0.5}, .window = 1});
        for (const double v : {1.0, 2.0, 3.0}) a.update.observe(v);
        a.train(3);
        if (stop) {
            a.checkpoint().save(path);
            Training<double, AveragedSgd> b({.sgd = {.rate = 0.5}, .window = 1});
            b.checkpoint().load(Safetensors::open(path));
            b.train(3);
            b.update.swap();
            return b.parameters();
        }
        a.train(3);
        a.update.swap();
        return a.parameters();
    };
    CHECK(run(true) == run(false));
}

TEST_CASE("A shared table is stored once, parameters alone can be taken", "[io][checkpoint]") {
    const TemporaryDirectory folder;
    const auto path = folder / "model.safetensors";
    Training<float, Adam> a({}), b({}, 4, 9);
    a.train(3);
    a.checkpoint().save(path, {{"made", "by a test"}});
    const auto file = Safetensors::open(path);
    CHECK(file.metadata().at("made") == "by a test");
    const auto names = file.names();
    CHECK(std::count(names.begin(), names.end(), "E") == 1);
    CHECK(std::count(names.begin(), names.end(), "lstm.W") == 1);
    CHECK(std::count(names.begin(), names.end(), "state/update/mean/E") == 1);
    CHECK(file.at("E").shape == std::vector<Index>{5, 4});

    Checkpoint only;
    b.g.gradient(b.g.weight("E"))(0, 0) = 1;  // of the weights that the file replaces
    only.model(b.g).load(file, Restore::parameters);
    CHECK(a.parameters() == b.parameters());
    CHECK_FALSE(b.g.parameter("E").counts());
    CHECK(b.g.training_step() == 0);
    Training<float, Adam> c({}, 4, 8);
    c.checkpoint().load(file, Restore::parameters);
    CHECK(a.parameters() == c.parameters());
    CHECK((c.history.empty() && c.note == "before" && c.epoch == 0));
    REQUIRE_THROWS_MATCHES(only.load(file), FileError, says("extra", "state/update/mean/E", "state/note"));
}

TEST_CASE("What was assigned to since it was added is saved and loaded where it is now", "[io][checkpoint]") {
    const TemporaryDirectory folder;
    const auto path = folder / "hmm.safetensors";
    hmm::Hmm m({.states = 4, .symbols = 3}), other({.states = 4, .symbols = 3, .seed = 2});
    Checkpoint c;
    c.state("hmm", m);
    const Numbers expected = other.emission();
    m = std::move(other);
    c.save(path);
    CHECK(Safetensors::open(path).values<double>("state/hmm/emission") == expected);
    m = hmm::Hmm({.states = 4, .symbols = 3, .seed = 3});
    c.load(Safetensors::open(path));
    CHECK(m.emission() == expected);
    m = hmm::Hmm({.states = 5, .symbols = 3});
    REQUIRE_THROWS_MATCHES(c.load(Safetensors::open(path)), FileError,
                           says("'state/hmm/emission' is F64 [4, 3], expected F64 [5, 3]"));
    c.save(path);
    CHECK(Safetensors::open(path).at("state/hmm/emission").shape == std::vector<Index>{5, 3});
}

TEMPLATE_TEST_CASE("Rows held at norm 1 are not loaded with another", "[io][checkpoint][errors]", float,
                   double) {
    using T = TestType;
    const TemporaryDirectory folder;
    const auto path = folder / "rows.safetensors";
    Graph<T> free({}), held({});
    const auto E = free.weight("E", 300, 200, normal(1)),
               F = held.weight("E", 300, 200, normal(1), {.unit_rows = true});
    const auto load = [&](const Safetensors& file) {
        Checkpoint().model(held).load(file, Restore::parameters);
    };
    Checkpoint().model(held).save(path);
    load(Safetensors::open(path));
    std::copy_n(held.value(F).data(), 300 * 200, free.value(E).data());
    free.value(E)(7, 0) += T(3);
    const auto before = held.value(F)(7, 0);
    const auto refused = [&](Index row, const char* norm) {
        Checkpoint().model(free).save(path);
        REQUIRE_THROWS_MATCHES(
            load(Safetensors::open(path)), FileError,
            says(message("rows.safetensors: found the norm of row ", row, " of 'E'"), norm));
        CHECK(held.value(F)(7, 0) == before);
    };
    refused(7, "3.");
    free.value(E)(7, 0) = std::numeric_limits<T>::quiet_NaN();
    refused(7, "nan");
    free.value(E)(7, 0) = before;
    free.value(E)(299, 199) += T(3);
    refused(299, "3.");
    if constexpr (std::is_same_v<T, float>)
        for (const Compact type : {Compact::bf16, Compact::int8}) {  // rounded, but near enough
            Checkpoint().model(held).save(path);
            write_compact(folder / "small", Safetensors::open(path), type);
            load(widened(Safetensors::open(folder / "small")));
        }
}

TEMPLATE_TEST_CASE("Weights that others will replace are neither saved nor loaded",
                   "[io][checkpoint][errors]", float, double) {
    using T = TestType;
    const TemporaryDirectory folder;
    const auto path = folder / "model.safetensors";
    Training<T, Sgd> a({.rate = 0.5});
    a.train(1);
    a.checkpoint().save(path);
    const auto file = Safetensors::open(path);
    const auto trained = a.parameters();
    const auto refused = [&](const char* who) {
        const auto now = a.parameters();
        REQUIRE_THROWS_MATCHES(a.checkpoint().save(folder / "temporary"), UsageError,
                               says("checkpoint", who));
        CHECK_FALSE(std::filesystem::exists(folder / "temporary"));
        for (const Restore what : {Restore::everything, Restore::parameters})
            REQUIRE_THROWS_MATCHES(a.checkpoint().load(file, what), UsageError, says("checkpoint", who));
        CHECK(a.parameters() == now);
    };
    {
        WeightDrop<T> drop(a.g.parameters("lstm.U"), {.keep = 0.5});
        const typename WeightDrop<T>::Dropped dropped(drop);
        refused("'lstm.U' is lent to the weight drop");
    }
    a.checkpoint().save(path);
    {
        DynamicUpdate<T> update(a.g.parameters(), {.rule = DynamicRule::sgd, .rate = 0.5, .decay = 0});
        a.checkpoint().save(path);  // nothing has moved yet
        const std::vector<Token> t = {0, 1, 2, 3, 4, 0};
        a.g.forward(a.l, {a.x, TokenBlock{t.data(), 3, 2}}, {a.y, TokenBlock{t.data(), 3, 2}});
        a.g.backward(a.l);
        update.step();
        REQUIRE(a.parameters() != trained);
        refused("lent to the dynamic update");
        update.restore();
        a.checkpoint().save(path);
        a.train(1);  // what is trained or loaded while nothing has moved stays
        REQUIRE(a.parameters() != trained);
        a.checkpoint().load(file);
    }
    CHECK(a.parameters() == trained);
    a.checkpoint().load(file);
}

TEST_CASE("While averages are swapped in, parameters are not loaded", "[io][checkpoint][errors]") {
    const TemporaryDirectory folder;
    const auto path = folder / "averages.safetensors";
    Training<float, AveragedSgd> a({.sgd = {.rate = 0.5}, .window = 1});
    a.checkpoint().save(path);
    for (const double v : {3., 2., 1., 5.}) a.update.observe(v);
    a.train(2);
    a.update.swap();
    const auto file = Safetensors::open(path);
    const auto averages = a.parameters();
    REQUIRE_THROWS_MATCHES(a.checkpoint().load(file, Restore::parameters), UsageError,
                           says("checkpoint", "averaged sgd"));
    CHECK(a.parameters() == averages);
    a.update.swap();
    a.checkpoint().load(file, Restore::parameters);
    a.update.swap();
    a.checkpoint().load(file);  // everything: with whether they are swapped
    const auto loaded = a.parameters();
    a.update.swap();
    CHECK(a.parameters() == loaded);
}

TEST_CASE("A graph on the weights of another is saved as that one, and loads nothing", "[io][checkpoint]") {
    Graph<float> owner({.time = 2, .batch = 1});
    const auto E = owner.weight("E", 3, 2, uniform(1));
    Graph<float> other({.time = 2, .batch = 1}, owner.shared_weights());
    other.weight("E", 3, 2, uniform(1));
    const TemporaryDirectory folder;
    Checkpoint().model(other).save(folder / "shared.safetensors");
    const float before = owner.value(E)(0, 0);
    owner.value(E)(0, 0) = 7;
    const auto file = Safetensors::open(folder / "shared.safetensors");
    REQUIRE_THROWS_MATCHES(Checkpoint().model(other).load(file), UsageError,
                           says("checkpoint", "the weights of another", "load into that one"));
    CHECK(owner.value(E)(0, 0) == 7);
    Checkpoint().model(owner).load(file);
    CHECK(other.value(other.weight("E"))(0, 0) == before);
}

TEST_CASE("A file that does not fit is refused whole, with everything that is wrong",
          "[io][checkpoint][errors]") {
    const TemporaryDirectory folder;
    const auto path = folder / "model.safetensors";
    Training<float, Sgd> a({}), wider({}, 6);
    a.train(1);
    a.checkpoint().save(path);
    const auto before = wider.parameters();
    REQUIRE_THROWS_MATCHES(wider.checkpoint().load(Safetensors::open(path)), FileError,
                           says("nothing was loaded", "misshapen", "'E'", "'lstm.W'", "[4, 16]", "[6, 24]",
                                "state/graph/carried/lstm.h"));
    CHECK(wider.parameters() == before);
    Training<float, Adam> other({});
    REQUIRE_THROWS_MATCHES(other.checkpoint().load(Safetensors::open(path)), FileError,
                           says("missing", "state/update/mean/E", "state/update/steps/E"));
    Training<double, Sgd> exact({});
    REQUIRE_THROWS_MATCHES(exact.checkpoint().load(Safetensors::open(path)), FileError,
                           says("F32", "F64", "load io::widened<double>(file)"));

    Checkpoint twice;
    twice.number("best", a.best);
    REQUIRE_THROWS_MATCHES(twice.counter("best", a.epoch), UsageError,
                           says("'state/best'", "names must differ"));
}
