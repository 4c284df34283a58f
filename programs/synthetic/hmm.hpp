// A hidden Markov model as a learner: a round is one step of Baum-Welch on the whole text, in columns.
#pragma once

#include <isogloss/hmm/hmm.hpp>
#include <optional>

#include "columns.hpp"
#include "learner.hpp"
#include "options.hpp"

class Markov final : public Learner {
public:
    Markov(const Options& o, const tasks::Text& text)
        : model_({.states = o.units, .symbols = text.vocabulary(), .prior = 0.01, .seed = o.network_seed()}),
          text_(cut(text, wanted_columns(o, text))) {}

    void round() override { model_.step(text_); }
    Foreseen foresee(const tasks::Text& text) override {
        Judge judge(text);
        model_.predict(text.x, [&](tasks::Index t, std::span<const double> p) {
            if (t > 0) judge.position(t, p.data());
        });
        return judge.verdict();
    }
    std::vector<tasks::Token> sample(tasks::Index length, std::uint64_t seed) override {
        return model_.sample(length, isogloss::Random(seed, isogloss::stream_of("sample"))).symbols;
    }
    void keep() override { kept_ = model_; }
    void stop() override {
        last_ = model_;
        if (kept_) model_ = *kept_;
    }
    void go_on() override {
        keep();
        if (last_) model_ = *last_;
    }
    void parts(isogloss::io::Checkpoint& c) override {
        if (!last_) last_ = model_;
        c.state("best", model_).state("last", *last_);
    }

private:
    static std::vector<std::vector<tasks::Token>> cut(const tasks::Text& text, tasks::Index columns) {
        std::vector<std::vector<tasks::Token>> parts;
        auto first = places(text, columns, text.size());
        first.push_back(text.size());
        for (std::size_t b = 0; b + 1 < first.size(); ++b)
            parts.emplace_back(text.x.begin() + first[b], text.x.begin() + first[b + 1]);
        return parts;
    }

    isogloss::hmm::Hmm model_;
    std::optional<isogloss::hmm::Hmm> kept_, last_;
    std::vector<std::vector<tasks::Token>> text_;
};
