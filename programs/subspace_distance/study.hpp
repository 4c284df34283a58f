/// @file study.hpp  What the program measures: one training per point, and its readings.
#pragma once

#include <algorithm>
#include <cmath>
#include <isogloss/geometry/subspace_monitor.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace study {

namespace ig = isogloss;

/// The command line.
struct Options {
    std::string text, sweep = "both", update = "split", csv = "subspace_distance.csv",
                      svg = "subspace_distance.svg";
    std::vector<double> betas = {0, 0.1, 0.25, 0.5, 0.75, 1}, taus = {1, 2, 5, 10, 50};
    double tau = 10, beta = 1;  ///< held fixed while the other one is swept
    ig::Index tokens = 20000, layers = 2, units = 300, batch = 4, bptt = 35, epochs = 5, runs = 1;
    double rate = 0.003, head_rate = 10, table_rate = 0.01, rest = 0.5, clip = 0, init = 0.1,
           head_init = 1e-4;
    std::uint64_t seed = 1;
    int threads = 1;
    bool hold_target = false, resume = false, plot_only = false;
};

/// One training of the sweep over β or over τ.
struct Point {
    std::string sweep;  ///< "beta" or "tau": which of the two varies
    double beta = 0, tau = 0;
    ig::Index run = 0;
    bool operator==(const Point&) const = default;
    /// Whether it is the same training, in whichever sweep.
    bool same_training(const Point& p) const { return beta == p.beta && tau == p.tau && run == p.run; }
};

/// A row of the table: a point after some epochs.
struct Row {
    Point point;
    ig::Index epoch = 0;    ///< epochs done; 0: the start values
    double loss = 0;        ///< of the last epoch, per token; 0 at the start
    double perplexity = 0;  ///< of the last epoch during training, from the plain cross-entropy
    double distance = 0;    ///< averaged distance between the columns of E and of W
    double smallest = 0, median = 0, largest = 0;  ///< principal angles, degrees
    double turn = 0;  ///< angle between a word's vector and its start, degrees; mean over the stretch's words
    std::string study = {};  ///< the field of a files::Study
};

inline double in_degrees(double radians) { return radians * 180 / std::numbers::pi; }

/// The rules that train a model, and their schedule: all rates fall linearly to 0, that of the table earlier,
/// so that the softmax matrix can approach it.
class Updates {
public:
    Updates(ig::Graph<float>& g, const Options& o) {
        if (o.update == "sgd") sgd_.push_back({{g.parameters(), {.rate = o.rate, .clip = o.clip}}, o.rate});
        if (o.update == "adam")
            adam_.push_back({{g.parameters(), {.rate = o.rate, .clip = o.clip}}, o.rate, 0});
        if (o.update != "split") return;
        adam_.push_back(
            {{g.parameters("lstm*"), {.rate = o.rate, .clip = o.clip, .divisor = ig::Divisor::tokens}},
             o.rate,
             0});
        descent(g.parameters("softmax*"), o.head_rate, 0);
        descent(g.parameters("E"), o.table_rate, o.rest);
    }
    /// Sets all rates for a training of which a share `left`, 0 to 1, remains.
    void left(double left) {
        for (auto& it : adam_) it.rule.rate(it.rate * std::max(0.0, (left - it.rest) / (1 - it.rest)));
        for (auto& [rule, rate] : sgd_) rule.rate(rate * left);
    }
    void step() {
        for (auto& it : adam_) it.rule.step();
        for (auto& [rule, rate] : sgd_) rule.step();
    }

private:
    struct Scheduled {
        ig::Adam<float> rule;
        double rate, rest;  // initial; final share of the training in which it is 0
    };

    /// Gradient descent with momentum 0.9 on the mean over tokens. It is Adam with an ε far above any
    /// gradient, so that the second moments have no effect and a step stays in the span of the gradients.
    void descent(ig::Parameters<float> group, double rate, double rest) {
        constexpr double far = 1e4;
        adam_.push_back(
            {{std::move(group), {.rate = rate * far, .epsilon = far, .divisor = ig::Divisor::tokens}},
             rate * far,
             rest});
    }

    std::vector<Scheduled> adam_;
    std::vector<std::pair<ig::Sgd<float>, double>> sgd_;
};

/// All points, the sweep over β first.
std::vector<Point> points(const Options& o);

/// Trains a model for one point, and calls report(row) after each epoch. `corpus` is the whole text; each run
/// takes a stretch of it that starts at random.
template <class Report>
void train(const Options& o, const Point& point, const ig::text::Corpus& corpus, Report&& report) {
    const ig::Index V = corpus.vocabulary_size();
    const std::uint64_t seed = o.seed + static_cast<std::uint64_t>(point.run);
    const ig::Index start = ig::Random(seed, ig::stream_of("stretch")).below(0, corpus.size() - o.tokens + 1);
    const auto stretch = corpus.tokens().subspan(std::size_t(start), std::size_t(o.tokens));
    const auto text = ig::text::Corpus::from_tokens({stretch.begin(), stretch.end()}, V, "the stretch");

    ig::Graph<float> g({.time = o.bptt, .batch = o.batch, .seed = seed});
    const auto x = g.tokens("x", V), y = g.tokens("y", V);
    const auto E = g.weight("E", V, o.units, ig::uniform(o.init), {.unit_rows = true});
    auto h = g.add<ig::Embedding>("embed", {}, x, E);
    for (ig::Index l = 1; l <= o.layers; ++l)
        h = g.add<ig::Lstm>(ig::message("lstm", l), {.units = o.units, .init = ig::uniform(o.init)}, h);
    const auto logits =
        g.add<ig::Softmax>("softmax", {.vocabulary = V, .bias = false, .init = ig::uniform(o.head_init)}, h);
    const auto loss = g.add<ig::AugmentedLoss>(
        "loss", {.beta = point.beta, .temperature = point.tau, .differentiate_target = !o.hold_target},
        logits, y, E);
    Updates updates(g, o);
    ig::SubspaceMonitor<float> monitor(g.parameter("E"), g.parameter("softmax.W"));

    std::vector<ig::Token> words(stretch.begin(), stretch.end());
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    const auto table = g.parameter("E").values();
    const std::vector<float> at_first(table.data, table.data + table.rows * table.cols);
    const auto turn = [&] {
        double sum = 0;
        for (const ig::Token v : words) {
            double squares = 0;  // of the chord: a cosine would suffer from rounding
            for (ig::Index i = 0; i < o.units; ++i) {
                const double d = double(table.row(v)[i]) - double(at_first[std::size_t(v * o.units + i)]);
                squares += d * d;
            }
            sum += in_degrees(2 * std::asin(std::min(1.0, std::sqrt(squares) / 2)));
        }
        return sum / static_cast<double>(words.size());
    };
    const auto row = [&](ig::Index epoch, double nats, double perplexity) {
        const auto& now = monitor.readings().back();
        report(Row{point, epoch, nats, perplexity, now.distance, in_degrees(now.angles.front()),
                   in_degrees(now.angles[now.angles.size() / 2]), in_degrees(now.angles.back()), turn()});
    };
    row(0, 0, 0);
    for (ig::Index epoch = 1; epoch <= o.epochs; ++epoch) {
        updates.left(double(o.epochs + 1 - epoch) / double(o.epochs));
        double total = 0;
        ig::Perplexity perplexity;
        for (const auto& batch : text.batches(g.capacity())) {
            if (batch.first) g.reset();
            total += g.forward(loss, {x, batch.input}, {y, batch.target});
            perplexity.add(g.result(loss).cross_entropy(), g.result(loss).predicted());
            g.backward(loss);
            updates.step();
        }
        if (!std::isfinite(perplexity.value()))
            throw ig::NumericError(ig::message(
                "beta = ", point.beta, ", tau = ", point.tau, ": the training diverged in epoch ", epoch,
                "; lower ", o.update == "split" ? "--head-rate, --rate or --table-rate" : "--rate"));
        monitor.step();
        row(epoch, total / static_cast<double>(perplexity.tokens()), perplexity.value());
    }
}

}  // namespace study
