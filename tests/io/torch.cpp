#include <algorithm>
#include <cmath>
#include <isogloss/io/torch.hpp>
#include <isogloss/isogloss.hpp>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "files.hpp"
#include "reference/torch_values.hpp"
#include "tolerance.hpp"

using namespace isogloss;
using namespace isogloss::io;
namespace theirs = reference::torch;

namespace {

// The model of reference/record_torch.py.
template <class T> struct Model {
    Graph<T> g{{.time = 4, .batch = 2}};
    Tokens x = g.tokens("x", 7), y = g.tokens("y", 7);
    Logits<T> o;

    Seq<T> both(const std::string& name, const Seq<T>& in) {
        auto right = g.template add<Lstm>(name + ".right", {.units = 2}, in);
        auto turned = g.template add<Reverse>(name + ".turned", {}, in, y);
        auto left = g.template add<Lstm>(name + ".left", {.units = 2}, turned);
        return g.template add<Concatenate>(name, {}, right,
                                           g.template add<Reverse>(name + ".back", {}, left, y));
    }
    Model() {
        auto e = g.template add<Embedding>("embed", {}, x, g.weight("E", 7, 3, uniform(0.1)));
        auto h = g.template add<Rnn>("up", {.units = 3}, both("two", both("one", e)));
        o = g.template add<Softmax>("softmax", {.vocabulary = 7},
                                    g.template add<Linear>("map", {.units = 2}, h));
    }
    std::vector<T> logits() {
        g.reset();
        g.forward(o, {x, {theirs::tokens.data(), 4, 2}}, {y, {theirs::tokens.data(), 4, 2}});
        const auto z = g.head(o).logits();
        return {z.begin(), z.end()};
    }
};

const std::vector<TorchLayer> layers = {{Torch::embedding, "encoder", "E"},
                                        {Torch::lstm, "both", "one.right"},
                                        {Torch::lstm, "both", "one.left", 0, true},
                                        {Torch::lstm, "both", "two.right", 1},
                                        {Torch::lstm, "both", "two.left", 1, true},
                                        {Torch::rnn, "up", "up"},
                                        {Torch::linear, "map", "map"},
                                        {Torch::head, "decoder", "softmax"}};

std::vector<theirs::Stored> dict() { return theirs::state_dict; }
theirs::Stored& at(std::vector<theirs::Stored>& all, const std::string& name) {
    return *std::ranges::find(all, name, &theirs::Stored::name);
}
void drop(std::vector<theirs::Stored>& all, const std::string& name) {
    std::erase_if(all, [&](const auto& t) { return t.name == name; });
}
Safetensors file_of(const TemporaryDirectory& dir, const std::vector<theirs::Stored>& tensors) {
    std::vector<TensorView> views;
    for (const auto& t : tensors) views.push_back(tensor_view<double>(t.name, t.shape, t.values));
    write_safetensors(dir / "theirs", views);
    return Safetensors::open(dir / "theirs");
}

}  // namespace

TEMPLATE_TEST_CASE("A model of PyTorch computes here what it computes there", "[io][torch]", float, double) {
    TemporaryDirectory dir;
    Model<TestType> m;
    m.g.gradient(m.g.weight("E"))(0, 0) = 1;
    CHECK(read_torch(file_of(dir, dict()), m.g, layers).empty());
    CHECK(m.g.gradient(m.g.weight("E"))(0, 0) == 0);
    const auto z = m.logits();
    REQUIRE(z.size() == theirs::logits.size());
    double apart = 0;
    for (std::size_t i = 0; i < z.size(); ++i)
        apart = worse(apart, std::abs(double(z[i]) - theirs::logits[i]));
    CHECK(apart < (std::is_same_v<TestType, double> ? 1e-14 : 1e-6));
}

TEST_CASE("What is written is the state dict that was read, with one bias in place of two", "[io][torch]") {
    TemporaryDirectory dir;
    Model<double> m, again;
    CHECK(read_torch(file_of(dir, dict()), m.g, layers).empty());
    write_torch(dir / "ours", m.g, layers);
    const auto file = Safetensors::open(dir / "ours");
    CHECK(file.tensors().size() == theirs::state_dict.size());
    for (const auto& t : theirs::state_dict) {
        INFO(t.name);
        REQUIRE(file.at(t.name).shape == t.shape);
        const auto values = file.values<double>(t.name);
        if (t.name.find("bias_hh") != t.name.npos)
            CHECK(std::ranges::count(values, 0.0) == std::ssize(values));
        else if (t.name.find("bias_ih") == t.name.npos) CHECK(values == t.values);
    }
    CHECK(read_torch(file, again.g, layers).empty());
    CHECK(again.logits() == m.logits());
}

TEST_CASE("Biases may be missing there, and what nobody asked for is named", "[io][torch]") {
    TemporaryDirectory dir;
    auto all = dict();
    drop(all, "map.bias"), drop(all, "up.bias_ih_l0"), drop(all, "up.bias_hh_l0");
    all.push_back({"extra", {1}, {1}});
    Model<double> m;
    m.g.value(m.g.weight("map.b"))(0, 0) = m.g.value(m.g.weight("up.b"))(0, 0) = 7;
    CHECK(read_torch(file_of(dir, all), m.g, layers) == std::vector<std::string>{"extra"});
    CHECK((m.g.value(m.g.weight("map.b"))(0, 0) == 0 && m.g.value(m.g.weight("up.b"))(0, 0) == 0));

    Graph<double> g({});  // a layer's own state dict, and a node without a bias
    g.add<Linear>("map", {.units = 2, .bias = false}, g.input("x", 3));
    const theirs::Stored weight{"weight", {2, 3}, {1, 2, 3, 4, 5, 6}}, bias{"bias", {2}, {1, 2}};
    CHECK(read_torch(file_of(dir, {weight}), g, {{Torch::linear, "", "map"}}).empty());
    CHECK(g.value(g.weight("map.W"))(2, 0) == 3);
    write_torch(dir / "ours", g, {{Torch::linear, "", "map"}});
    CHECK(Safetensors::open(dir / "ours").names() == std::vector<std::string>{"weight"});
    const std::vector<TorchLayer> plain = {{Torch::linear, "", "map"}};
    const auto with_bias = file_of(dir, {weight, bias});
    CHECK_THROWS_MATCHES(read_torch(with_bias, g, plain), FileError,
                         says("'bias' has no counterpart: node 'map' has no bias"));
}

TEST_CASE("A tied head is read once, and must be tied there too", "[io][torch]") {
    TemporaryDirectory dir;
    Graph<double> g({});
    auto E = g.weight("E", 3, 2, uniform(0.1));
    g.add<TiedSoftmax>("softmax", {.bias = true}, g.add<Embedding>("embed", {}, g.tokens("x", 3), E), E);
    const std::vector<TorchLayer> tied = {
        {Torch::embedding, "encoder", "E"},
        {.type = Torch::head, .theirs = "decoder", .ours = "softmax", .table = "E"}};
    std::vector<theirs::Stored> all = {{"encoder.weight", {3, 2}, {1, 2, 3, 4, 5, 6}},
                                       {"decoder.weight", {3, 2}, {1, 2, 3, 4, 5, 6}},
                                       {"decoder.bias", {3}, {7, 8, 9}}};
    CHECK(read_torch(file_of(dir, all), g, tied).empty());
    CHECK((g.value(E)(1, 0) == 3 && g.value(g.weight("softmax.b"))(0, 2) == 9));
    write_torch(dir / "ours", g, tied);
    CHECK(Safetensors::open(dir / "ours").values<double>("decoder.weight") == all[1].values);
    all[1].values[5] = 6.5;
    const auto untied = file_of(dir, all);
    CHECK_THROWS_MATCHES(read_torch(untied, g, tied), FileError,
                         says("'decoder.weight' and 'encoder.weight' differ, but both map to 'E'"));

    // A name without a node would lose the bias, a head with a projection the projection.
    const TorchLayer unknown{.type = Torch::head, .theirs = "decoder", .ours = "sofmax", .table = "E"};
    CHECK_THROWS_MATCHES(write_torch(dir / "none", g, {unknown}), UsageError,
                         says("there is no node 'sofmax'", "embed, softmax"));
    CHECK_THROWS_MATCHES(read_torch(untied, g, {unknown}), UsageError, says("there is no node 'sofmax'"));
    g.add<TiedSoftmax>("wide", {.projection = true}, g.input("h", 5), E);
    CHECK_THROWS_MATCHES(
        write_torch(dir / "none", g,
                    {{.type = Torch::head, .theirs = "decoder", .ours = "wide", .table = "E"}}),
        UsageError, says("the head 'wide' has a projection 'wide.P'"));
    CHECK(!std::filesystem::exists(dir / "none"));
}

TEMPLATE_TEST_CASE("Two layers for one node must agree, in either order, to the bit", "[io][torch]", float,
                   double) {
    using T = TestType;
    TemporaryDirectory dir;
    Graph<T> g({});
    g.template add<Linear>("map", {.units = 2}, g.input("x", 3));
    const theirs::Stored a{"a.weight", {2, 3}, {1, 2, 3, 4, 5, 6}}, b{"b.weight", {2, 3}, a.values},
        bias{"a.bias", {2}, {7, 8}};
    const TorchLayer with{Torch::linear, "a", "map"}, without{Torch::linear, "b", "map"};
    const auto file = file_of(dir, {a, b, bias});
    g.value(g.weight("map.b"))(0, 1) = 5;
    for (const auto& order : {std::vector{with, without}, {without, with}}) {
        CHECK_THROWS_MATCHES(read_torch(file, g, order), FileError,
                             says("'b.bias', which is missing and counts as 0,", "'a.bias'",
                                  "differ, but both map to 'map.b'"));
        CHECK(g.value(g.weight("map.b"))(0, 1) == 5);
    }
    const auto zero = file_of(dir, {a, b, {"a.bias", {2}, {0, 0}}});
    for (const auto& order : {std::vector{with, without}, {without, with}}) {
        g.value(g.weight("map.b"))(0, 1) = 5;
        CHECK(read_torch(zero, g, order).empty());
        CHECK(g.value(g.weight("map.b"))(0, 1) == 0);
    }
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), 1e39}) {
        if (std::isfinite(static_cast<T>(bad))) continue;
        theirs::Stored wrong = a;
        wrong.values[3] = bad;
        CHECK_THROWS_MATCHES(read_torch(file_of(dir, {wrong, bias}), g, {with}), FileError,
                             says("'a.weight' holds ", " at 3, expected finite numbers"));
        CHECK(std::isfinite(g.value(g.weight("map.W"))(0, 1)));
    }
    const auto missing = file_of(dir, {a, bias});  // one fault, not a difference from zeros too
    try {
        static_cast<void>(read_torch(missing, g, {with, without}));
        FAIL("read");
    } catch (const FileError& e) {
        CHECK_THAT(e, says("'b.weight' [2, 3] is missing"));
        CHECK(std::string(e.what()).find("'b.weight' and") == std::string::npos);
    }
}

TEST_CASE("Two biases whose sum exceeds the type of the graph are refused by name", "[io][torch][errors]") {
    TemporaryDirectory dir;
    Model<float> m;
    const auto before = m.logits();
    auto all = dict();
    at(all, "up.bias_ih_l0").values[1] = at(all, "up.bias_hh_l0").values[1] = 3e38;  // each a float
    CHECK_THROWS_MATCHES(read_torch(file_of(dir, all), m.g, layers), FileError,
                         says("nothing was read.", "'up.bias_ih_l0' and 'up.bias_hh_l0' sum to inf at 1,",
                              "expected finite numbers in the range of the graph's type"));
    CHECK(m.logits() == before);
    Model<double> wide;
    CHECK(read_torch(file_of(dir, all), wide.g, layers).empty());
}

TEST_CASE("Weights that are temporary are neither read nor written", "[io][torch][errors]") {
    TemporaryDirectory dir;
    Model<double> m;
    const auto file = file_of(dir, dict());
    WeightDrop<double> drop(m.g.parameters("up.U"), {.keep = 0.5});
    const typename WeightDrop<double>::Dropped dropped(drop);
    CHECK_THROWS_MATCHES(read_torch(file, m.g, layers), UsageError,
                         says("read_torch", "'up.U'", "the weight drop"));
    CHECK_THROWS_MATCHES(write_torch(dir / "ours", m.g, layers), UsageError,
                         says("write_torch", "'up.U'", "the weight drop"));
    CHECK_FALSE(std::filesystem::exists(std::string(dir / "ours")));
}

TEST_CASE("All that does not fit is said at once, and nothing is read", "[io][torch][errors]") {
    TemporaryDirectory dir;
    Model<double> m;
    const auto before = m.logits();
    auto all = dict();
    drop(all, "map.weight"), drop(all, "both.bias_hh_l1");
    at(all, "decoder.weight") = {"decoder.weight", {2, 7}, at(all, "decoder.weight").values};
    at(all, "up.weight_hh_l0") = {"up.weight_hh_l0", {9, 3}, std::vector<double>(27)};
    all.push_back({"both.weight_hr_l0", {1}, {1}});
    const auto wrong = file_of(dir, all);
    CHECK_THROWS_MATCHES(
        read_torch(wrong, m.g, layers), FileError,
        says("theirs: the file does not fit the layers; nothing was read.",
             "\n    'map.weight' [2, 3] is missing", "\n    'both.bias_hh_l1' [8] is missing",
             "\n    'decoder.weight' is [2, 7], expected [7, 2]",
             "\n    'up.weight_hh_l0' is [9, 3], expected [3, 3]; three blocks are those of an nn.GRU",
             "\n    'both' projects its states (proj_size), which Lstm does not"));
    CHECK(m.logits() == before);

    const auto whole = file_of(dir, dict());
    const auto read = [&](auto& g, const TorchLayer& layer) { return read_torch(whole, g, {layer}); };
    const TorchLayer unknown{Torch::linear, "map", "mop"}, other{Torch::rnn, "both", "one.right"},
        below{Torch::lstm, "both", "one.right", -1};
    CHECK_THROWS_MATCHES(read(m.g, unknown), UsageError, says("'mop.W'"));
    CHECK_THROWS_MATCHES(read(m.g, below), UsageError, says("layer = -1, expected at least 0"));
    const auto no_rnn =
        says("'one.right.U' has shape [2, 8], expected [2, 2]; is 'one.right' the node for an nn.RNN?");
    CHECK_THROWS_MATCHES(read(m.g, other), UsageError, no_rnn);
    CHECK_THROWS_MATCHES(write_torch(dir / "ours", m.g, {other}), UsageError, no_rnn);

    const std::vector<std::int64_t> counts(21);
    write_safetensors(dir / "counts",
                      std::vector{tensor_view<std::int64_t>("encoder.weight", {7, 3}, counts)});
    const auto integers = Safetensors::open(dir / "counts");
    CHECK_THROWS_MATCHES(read_torch(integers, m.g, {layers.begin(), layers.begin() + 2}), FileError,
                         says("the file does not fit the layers; nothing was read.",
                              "\n    'encoder.weight' has type I64, expected F16, BF16, F32 or F64",
                              "\n    'both.weight_ih_l0' [8, 3] is missing"));
    CHECK(m.logits() == before);

    Graph<double> held({}), owner({});
    held.weight("E", 7, 3, uniform(0.1), {.unit_rows = true});
    CHECK_THROWS_MATCHES(read(held, layers[0]), UsageError, says("rows of 'E' are held at norm 1"));
    owner.weight("E", 7, 3, uniform(0.1));
    Graph<double> guest({}, owner.shared_weights());
    guest.weight("E", 7, 3, uniform(0.1));
    CHECK_THROWS_MATCHES(read(guest, layers[0]), UsageError, says("shared weights"));
}
