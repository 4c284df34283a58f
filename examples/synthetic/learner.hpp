// What the program asks of anything that learns a text.
#pragma once

#include <string>
#include <vector>

#include "tasks.hpp"

// How well a text was foreseen.
struct Foreseen {
    double bits = 0;  // per predicted symbol, the first of the text left out
    double success = 0;
};

// Sums up predictions position by position.
class Judge {
public:
    explicit Judge(const tasks::Text& text) : text_(text), best_(text.x.size(), 0) {}
    // p: probabilities of the symbol at position t ≥ 1
    template <class T> void position(tasks::Index t, const T* p) {
        const auto at = static_cast<std::size_t>(t);
        best_[at] = static_cast<tasks::Token>(std::max_element(p, p + text_.vocabulary()) - p);
        if (!text_.predicted[at]) return;
        nats_ -= std::log(std::max(static_cast<double>(p[text_.x[at]]), 1e-300));
        ++count_;
    }
    Foreseen verdict() const {
        return {nats_ / std::log(2.0) / static_cast<double>(std::max<tasks::Index>(count_, 1)),
                tasks::success(text_, best_)};
    }

private:
    const tasks::Text& text_;
    std::vector<tasks::Token> best_;
    double nats_ = 0;
    tasks::Index count_ = 0;
};

// A model in training.
struct Learner {
    virtual ~Learner() = default;
    virtual void prepare(double) {}                         // before a round: share of the time used up
    virtual void round() = 0;                               // some training
    virtual Foreseen foresee(const tasks::Text& text) = 0;  // every symbol from those before it
    virtual std::string sample(tasks::Index length, std::uint64_t seed) = 0;
    virtual void keep() = 0;                          // remembers the model as it is
    virtual void restore() = 0;                       // and puts it back
    virtual std::string state() const { return {}; }  // learning rates and the like
};
