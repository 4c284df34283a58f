// Networks on minibatches: several readers take the text in segments, carrying states from one to the next.
// An LSTM, or a network on a sparse graph.
#pragma once

#include <cmath>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <isogloss/update/weight_average.hpp>
#include <optional>

#include "graph_model.hpp"
#include "options.hpp"
#include "readers.hpp"

class Minibatches final : public GraphModel<float> {
public:
    Minibatches(const Options& options, const Text& text)
        : Minibatches(options, text,
                      Readers(text, wanted_columns(options, text), options.lasting, options.network_seed())) {
    }

    // Rates decay to 0 over the last part of the training.
    void prepare(double share) override {
        const double part = (share <= anneal_ ? 1 : std::max(0.0, (1 - share) / (1 - anneal_))) *
                            std::pow(0.5, static_cast<double>(halvings_));
        training_ = true;
        if (network_) network_->rate(rate_ * part), head_->rate(head_rate_ * part);
        if (adam_) adam_->rate(adam_rate_ * part);
        if (sgd_) sgd_->rate(sgd_rate_ * part);
    }
    // Trains on one segment.
    void round() override {
        const Index T = readers_.together(at_, g.capacity().time), B = readers_.count();
        readers_.segment(at_, T, x_.data(), y_.data());
        for (Index b = 0; b < B; ++b)
            if (readers_.begins(at_, b)) g.states().reset(b);
        at_ += static_cast<std::uint64_t>(T);
        g.forward(l, {x, {x_.data(), T, B}}, {y, {y_.data(), T, B}});
        if (std::all_of(y_.begin(), y_.begin() + T * B, [](Token v) { return v < 0; })) return;
        g.backward(l);
        if (network_) {
            if (network_->wants_modulus()) g.template backward<ig::Modulus>(l);
            network_->step();
            head_->step();
        }
        if (adam_) adam_->step();
        if (sgd_) sgd_->step();
        if (average_) average_->add();
    }
    // From the best model on, at half the rates; not once they have been halved as often as they may be.
    std::string go_back() override {
        if (halvings_ == most_halvings) return {};
        restore();
        if (average_) average_->restart();
        ++halvings_;
        return "at half the rates";
    }
    Index cut() const override { return halvings_; }

    Foreseen foresee(const Text& text) override {
        const Averages in_use(*this);
        return GraphModel<float>::foresee(text);
    }
    void keep() override {
        const Averages in_use(*this);
        GraphModel<float>::keep();
    }
    void stop() override {
        GraphModel<float>::stop();
        training_ = false;
    }
    void go_on() override {
        GraphModel<float>::go_on();
        training_ = true;
    }

    void parts(ig::io::Checkpoint& c) override {
        GraphModel<float>::parts(c);
        c.counter("place", at_);
        if (network_) c.state("network", *network_).state("head", *head_);
        if (adam_) c.state("adam", *adam_);
        if (sgd_) c.state("sgd", *sgd_);
        if (average_) c.state("average", *average_);
    }

private:
    // The averages in place of the weights, while it exists and the model is in training; a model that is not
    // holds its best weights, which were averages when they were kept.
    class Averages {
    public:
        explicit Averages(Minibatches& of) : of_(of.training_ && of.average_ ? &*of.average_ : nullptr) {
            if (of_) of_->swap();
        }
        ~Averages() {
            if (of_) of_->swap();
        }
        Averages(const Averages&) = delete;
        Averages& operator=(const Averages&) = delete;

    private:
        ig::WeightAverage<float>* of_;
    };

    Minibatches(const Options& options, const Text& text, Readers readers)
        : GraphModel<float>(text, {.time = std::min(options.steps, readers.circle()),
                                   .batch = readers.count(),
                                   .seed = options.network_seed()}),
          readers_(std::move(readers)),
          anneal_(options.anneal),
          adam_rate_(options.adam_rate),
          sgd_rate_(options.sgd_rate),
          rate_(options.named_rate()),
          head_rate_(options.head_rate > 0 ? options.head_rate : (options.sparse() ? 3 : 1) * rate_),
          halvings_(options.cut),
          x_(static_cast<std::size_t>(g.capacity().time * g.capacity().batch)),
          y_(x_.size()) {
        const bool cell = options.network == "lstm", gradient = options.metric == "gradient";
        if (cell) {
            const auto E = g.weight("E", text.vocabulary(), std::min<Index>(text.vocabulary(), options.units),
                                    ig::normal(0.5));
            const auto e = g.add<ig::Embedding>("embed", {}, x, E);
            finish(g.add<ig::Lstm>("lstm", {.units = options.units, .forget_bias = 1}, e));
        } else {
            add_sparse(options, text);
        }
        if (options.average > 0)
            average_.emplace(g.parameters(), ig::WeightAverageOptions{.decay = options.average});
        if (gradient && sgd_rate_ > 0)
            sgd_.emplace(g.parameters(),
                         ig::SgdOptions{.rate = sgd_rate_, .clip = 1, .divisor = ig::Divisor::tokens});
        else if (gradient || cell)
            adam_.emplace(g.parameters(gradient ? "*" : "E"),
                          ig::AdamOptions{.rate = adam_rate_, .clip = 1, .divisor = ig::Divisor::tokens});
        if (gradient) return;
        const double damping = options.natural_damping;
        const ig::RiemannianOptions natural{.modulus = options.named_modulus(),
                                            .form = options.named_form(),
                                            .rate = rate_,
                                            .damping = damping > 0 ? damping
                                                       : cell      ? 0.01
                                                                   : 0.001,
                                            .floor = options.named_floor(),
                                            .decay = cell ? 0.95 : options.decay,
                                            .every = cell ? 4 : 1,
                                            .clip = 1};
        auto head = natural;
        head.rate = head_rate_;
        network_.emplace(g, cell ? "lstm.*" : "net.*", natural);
        head_.emplace(g, "out.*", head);
    }

    Readers readers_;
    double anneal_, adam_rate_, sgd_rate_, rate_,
        head_rate_;          // the share of time at full rates, and the rates
    Index halvings_;         // of all rates: how often training went back
    bool training_ = false;  // and not stopped in its best state
    std::uint64_t at_ = 0;   // the next step of the readers
    std::vector<Token> x_, y_;
    std::optional<ig::Adam<float>> adam_;
    std::optional<ig::Sgd<float>> sgd_;
    std::optional<ig::Riemannian<float>> network_, head_;
    std::optional<ig::WeightAverage<float>> average_;
};
