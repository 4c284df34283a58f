// bindings.cpp  The functions that the page's worker calls in WebAssembly. Each returns text: fields between tabs, or an
// error behind '!'. Strings are UTF-8 and valid until the next call.
#include <emscripten/emscripten.h>

#include <chrono>
#include <isogloss/threads.hpp>
#include <memory>
#include <optional>
#include <string>

#include "training.hpp"

using namespace keyboard;

namespace {

constexpr const char* file = "/model.safetensors";
std::optional<Training> training;
std::unique_ptr<Keyboard> trained;
std::string answer;

Keyboard& model() {
    if (training) return training->keyboard();
    if (!trained) throw ig::UsageError("There is no model yet: train one, or open one.");
    return *trained;
}

template <class F> const char* answered(F&& f) {
    try {
        f();
    } catch (const std::exception& error) {
        answer = std::string("!") + error.what();
    }
    return answer.c_str();
}

}  // namespace

extern "C" {

/// Begins a training. → steps, unigram perplexity, validation perplexity, words, weights
EMSCRIPTEN_KEEPALIVE const char* begin_training(const char* text, double units, double batch, double epochs,
                                                double seed, int portable) {
    return answered([&] {
        training.reset();
        ig::portable(portable != 0);
        Options options;
        options.units = Index(units), options.batch = Index(batch), options.seed = std::uint64_t(seed);
        TrainingOptions how;
        how.epochs = Index(epochs);
        training.emplace(text, options, how);
        trained.reset();
        answer =
            ig::message(training->steps(), "\t", training->unigram_perplexity(), "\t", training->validation(),
                        "\t", training->keyboard().words(), "\t", training->keyboard().weights());
    });
}

/// Trains for some milliseconds, or up to the next validation. → steps done, training perplexity, validation perplexity,
/// whether that is new, whether there is more to do
EMSCRIPTEN_KEEPALIVE const char* train(double milliseconds) {
    return answered([&] {
        const auto start = std::chrono::steady_clock::now();
        const double before = training->validation();
        bool more = true;
        while (more && training->validation() == before &&
               std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() <
                   milliseconds)
            more = training->step();
        answer = ig::message(training->done(), "\t", training->training(), "\t", training->validation(), "\t",
                             int(training->validation() != before || !more), "\t", int(more));
    });
}

/// Ends the training, wherever it is; its model stays.
EMSCRIPTEN_KEEPALIVE const char* end_training() {
    return answered([&] {
        if (training) trained = training->take();
        training.reset();
        answer.clear();
    });
}

/// → word, probability, word, probability …
EMSCRIPTEN_KEEPALIVE const char* predict(const char* sentence, int k) {
    return answered([&] {
        answer.clear();
        for (const auto& p : model().predict(sentence, k))
            answer += ig::message(answer.empty() ? "" : "\t", p.word, "\t", p.probability);
    });
}

/// → perplexity before the step, units, and the words that have a row of their own from now on
EMSCRIPTEN_KEEPALIVE const char* learn(const char* text) {
    return answered([&] {
        const Index before = model().words();
        const Score score = model().learn(text);
        answer = ig::message(score.perplexity(), "\t", score.units);
        for (Index i = before; i < model().words(); ++i) answer += "\t" + model().word(i);
    });
}

/// → perplexity, units
EMSCRIPTEN_KEEPALIVE const char* evaluate(const char* text) {
    return answered([&] {
        const Score score = model().evaluate(text);
        answer = ig::message(score.perplexity(), "\t", score.units);
    });
}

EMSCRIPTEN_KEEPALIVE const char* sample(int units, double temperature, double seed) {
    return answered([&] { answer = model().sample(units, temperature, std::uint64_t(seed)); });
}

/// Writes /model.safetensors of the file system in memory.
EMSCRIPTEN_KEEPALIVE const char* save() {
    return answered([&] {
        model().save(file);
        answer.clear();
    });
}

/// Reads it. → words, weights
EMSCRIPTEN_KEEPALIVE const char* load(int portable) {
    return answered([&] {
        ig::portable(portable != 0);
        auto loaded = Keyboard::load(file);
        training.reset();
        trained = std::move(loaded);
        answer = ig::message(trained->words(), "\t", trained->weights());
    });
}
}
