// The model of the page on the desktop:
//
//     keyboard train TEXT MODEL [OPTION VALUE]...   trains on a text and saves the model
//     keyboard evaluate MODEL TEXT                  its perplexity on a text
//     keyboard learn MODEL TEXT NEW [portable 1]    the same, learning from each sentence, and saves what it has learned
//     keyboard sample MODEL WORDS [SEED]            a text of its own
//     keyboard type MODEL                           for each line typed: likely next words; then learns it
//
// Options of train, with their defaults: units 64, spare 1000, batch 8, time 32, keep 0.8, seed 1, epochs 4, words 8000,
// rate 1, portable 0 (1: the same bytes on every processor, and as in a browser).
#include <cstdio>
#include <iostream>
#include <isogloss/file/input_file.hpp>
#include <isogloss/threads.hpp>

#include "training.hpp"

using namespace keyboard;

namespace {

double number(const std::string& name, const std::string& digits) {
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size())
        throw ig::UsageError("keyboard: found ", name, " = ", ig::in_quotes(digits), ", expected a number");
    return value;
}

void train(const std::vector<std::string>& arguments) {
    Options options;
    TrainingOptions how;
    if (arguments.size() % 2 == 1) throw ig::UsageError("keyboard: the last option has no value");
    for (std::size_t i = 2; i < arguments.size(); i += 2) {
        const std::string& name = arguments[i];
        const double value = number(name, arguments[i + 1]);
        if (name == "units") options.units = Index(value);
        else if (name == "spare") options.spare = Index(value);
        else if (name == "batch") options.batch = Index(value);
        else if (name == "time") options.time = Index(value);
        else if (name == "keep") options.keep = value;
        else if (name == "seed") options.seed = static_cast<std::uint64_t>(value);
        else if (name == "epochs") how.epochs = Index(value);
        else if (name == "words") how.most_words = Index(value);
        else if (name == "rate") how.rate = value;
        else if (name == "portable") ig::portable(value != 0);
        else throw ig::UsageError("keyboard: there is no option ", ig::in_quotes(name));
    }
    const std::string text = ig::file::InputFile(arguments[0]).read_all();
    Training training(text, options, how);
    std::printf("%td words and marks, %td weights, %td tokens; unigram perplexity %.2f\n",
                training.keyboard().words(), training.keyboard().weights(), training.tokens(),
                training.unigram_perplexity());
    double shown = 0;
    for (bool more = true; more;) {
        more = training.step();
        if (training.validation() != shown || !more) {
            shown = training.validation();
            std::printf("step %td of %td: perplexity %.2f in training, %.2f in validation\n", training.done(),
                        training.steps(), training.training(), shown);
            std::fflush(stdout);
        }
    }
    training.keyboard().save(arguments[1]);
}

void type(Keyboard& keyboard) {
    for (std::string line; std::getline(std::cin, line);) {
        for (const auto& next : keyboard.predict(line, 5))
            std::printf("%.*s %.3f  ", int(next.word.size()), next.word.data(), next.probability);
        const Index before = keyboard.words();
        const Score score = keyboard.learn(line);
        std::printf("\nperplexity %.2f, %td new words\n", score.perplexity(), keyboard.words() - before);
    }
}

}  // namespace

int main(int argc, char** argv) try {
    const std::string command = argc > 1 ? argv[1] : "";
    const std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
    const auto text = [&](std::size_t i) { return ig::file::InputFile(arguments[i]).read_all(); };
    if (command == "train" && arguments.size() >= 2) {
        train(arguments);
    } else if (command == "evaluate" && arguments.size() == 2) {
        std::printf("perplexity %.4f\n", Keyboard::load(arguments[0])->evaluate(text(1)).perplexity());
    } else if (command == "learn" &&
               (arguments.size() == 3 || (arguments.size() == 5 && arguments[3] == "portable"))) {
        if (arguments.size() == 5) ig::portable(number("portable", arguments[4]) != 0);
        const auto keyboard = Keyboard::load(arguments[0]);
        const Index before = keyboard->words();
        const Score score = keyboard->learn(text(1));
        std::printf("perplexity %.4f, %td new words\n", score.perplexity(), keyboard->words() - before);
        keyboard->save(arguments[2]);
    } else if (command == "sample" && (arguments.size() == 2 || arguments.size() == 3)) {
        const auto seed = arguments.size() == 3 ? number("SEED", arguments[2]) : 1;
        const auto keyboard = Keyboard::load(arguments[0]);
        std::printf(
            "%s\n",
            keyboard->sample(Index(number("WORDS", arguments[1])), 1, static_cast<std::uint64_t>(seed))
                .c_str());
    } else if (command == "type" && arguments.size() == 1) {
        type(*Keyboard::load(arguments[0]));
    } else {
        throw ig::UsageError("usage: keyboard train TEXT MODEL [OPTION VALUE]... | evaluate MODEL TEXT | ",
                             "learn MODEL TEXT NEW [portable 1] | sample MODEL WORDS [SEED] | type MODEL");
    }
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
