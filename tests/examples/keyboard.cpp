// The engine of examples/browser: a model that trains, predicts and learns where it runs.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <isogloss/file/input_file.hpp>
#include <isogloss/io/safetensors.hpp>
#include <string>
#include <vector>

#include "../../examples/browser/training.hpp"
#include "allocations.hpp"
#include "catch.hpp"

using namespace keyboard;

namespace {

std::string play() {
    const std::string all =
        ig::file::InputFile(ISOGLOSS_SOURCE_DIR "/examples/data/tinyshakespeare.txt").read_all();
    return all.substr(0, 60000);
}

struct Model {
    std::filesystem::path place = std::filesystem::path(ISOGLOSS_BUILD_DIR) / "keyboard_test.safetensors";
    double unigram, trained;

    Model() {
        Training training(play(), {.units = 24, .spare = 50, .batch = 4}, {.epochs = 2});
        while (training.step()) {
        }
        unigram = training.unigram_perplexity(), trained = training.validation();
        training.keyboard().save(place);
    }
};
// Trained once; each test has its own copy.
const Model& model() {
    static const Model one;
    return one;
}
std::unique_ptr<Keyboard> copy() { return Keyboard::load(model().place); }

std::vector<std::string> units_of(std::string_view text) {
    std::vector<std::string> all;
    Units units(text);
    for (auto unit = units.next(); !unit.empty(); unit = units.next()) all.emplace_back(unit);
    return all;
}

}  // namespace

TEST_CASE("A keyboard reads words, marks and ends of paragraphs, and writes them again", "[keyboard]") {
    using Strings = std::vector<std::string>;
    CHECK(units_of("\n\nIt's well-known --\nno?\n\n\n“Yes’ l’été…”\n") ==
          Strings{"It's", "well-known", "--", "no", "?", "\n", "“", "Yes", "’", "l’été", "…", "”"});
    CHECK(units_of("3.5 -x- a\xFF"
                   "b") == Strings{"3", ".", "5", "-", "x", "-",
                                   "a\xFF"
                                   "b"});
    CHECK(units_of("").empty());
    CHECK(units_of(std::string(90, 'a')) ==
          Strings{std::string(40, 'a'), std::string(40, 'a'), std::string(10, 'a')});
    Writer writer;
    for (const auto& unit : units_of("He said, \"No (I\n think)!\" Well.\n\nEnd")) writer.add(unit);
    CHECK(writer.text() == "He said, \"No (I think)!\" Well.\n\nEnd");
}

TEST_CASE("A keyboard is better than word frequencies after two passes over a text", "[keyboard]") {
    CHECK(model().trained < 0.8 * model().unigram);
}

TEST_CASE("A keyboard predicts better what it has learned", "[keyboard]") {
    const auto keyboard = copy();
    const std::string sentence = "We shall know the people of the city well.";
    const double first = keyboard->learn(sentence).perplexity();
    double last = first;
    for (int i = 0; i < 4; ++i) last = keyboard->learn(sentence).perplexity();
    CHECK(last < 0.7 * first);
}

TEST_CASE("A word typed twice has a row, and is predicted and completed then", "[keyboard]") {
    const auto keyboard = copy();
    const Index before = keyboard->words();
    const std::string sentence = "I will go to Vlissingen.";
    const double spelled = keyboard->learn(sentence).perplexity();
    CHECK_FALSE(keyboard->knows("Vlissingen"));
    keyboard->learn(sentence);
    CHECK(keyboard->knows("Vlissingen"));
    CHECK(keyboard->words() == before + 1);
    CHECK(keyboard->learn(sentence).perplexity() < spelled);
    for (int i = 0; i < 8; ++i) keyboard->learn(sentence);
    const auto next = keyboard->predict("I will go to ", 5);
    CHECK(std::ranges::any_of(next, [](const Prediction& p) { return p.word == "Vlissingen"; }));
    const auto completed = keyboard->predict("I will go to Vlis", 3);
    REQUIRE(completed.size() == 1);
    CHECK(completed[0].word == "Vlissingen");
    CHECK(completed[0].probability == 1);
}

TEST_CASE("A word that is typed twice in one sentence has a row, and words without a row left are spelled",
          "[keyboard]") {
    const auto keyboard = copy();
    keyboard->learn("Xyzzy and Xyzzy.");
    CHECK(keyboard->knows("Xyzzy"));
    std::string words;
    for (int i = 0; i < 60; ++i) words += "qq" + std::to_string(i) + " ";
    for (int i = 0; i < 3; ++i) keyboard->learn(words + ".");
    CHECK(keyboard->words() == keyboard->rows() - Keyboard::first_word);
    CHECK(std::isfinite(keyboard->learn("Abracadabra, abracadabra, and qq1.").nats));
    CHECK_FALSE(keyboard->knows("abracadabra"));
}

TEST_CASE("A saved keyboard goes on where it was", "[keyboard]") {
    const auto keyboard = copy();
    keyboard->learn("The Gobblywock speaks. What is it?");
    const auto place = std::filesystem::path(ISOGLOSS_BUILD_DIR) / "keyboard_learned.safetensors";
    keyboard->save(place);
    const auto other = Keyboard::load(place);
    const auto predictions = [](Keyboard& of) {
        std::vector<std::pair<std::string, double>> all;
        for (const auto& p : of.predict("And the ", 9)) all.emplace_back(p.word, p.probability);
        return all;
    };
    CHECK(predictions(*keyboard) == predictions(*other));
    CHECK(keyboard->learn("Gobblywock!").nats == other->learn("Gobblywock!").nats);
    CHECK(other->knows("Gobblywock"));
    CHECK(predictions(*keyboard) == predictions(*other));
    CHECK(keyboard->evaluate(play().substr(0, 5000)).nats == other->evaluate(play().substr(0, 5000)).nats);
    CHECK(keyboard->sample(40, 1, 3) == other->sample(40, 1, 3));
}

TEST_CASE("Predictions in 8 bits are those of a graph that has just been packed", "[keyboard]") {
    const auto keyboard = copy(), other = copy();
    keyboard->predict("First ", 3);  // packs the weights before they change
    keyboard->learn("Before we proceed any further.");
    other->learn("Before we proceed any further.");
    const auto one = keyboard->predict("you ", 9), two = other->predict("you ", 9);
    REQUIRE(one.size() == two.size());
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].probability == two[i].probability);
}

TEST_CASE("A deleted word is no part of what is predicted from", "[keyboard]") {
    const auto keyboard = copy(), other = copy();
    keyboard->predict("I am not ", 3);
    const auto one = keyboard->predict("I will ", 9), two = other->predict("I will ", 9);
    for (std::size_t i = 0; i < 9; ++i) CHECK(one[i].word == two[i].word);
}

TEST_CASE("A keyboard allocates nothing when it predicts and learns", "[keyboard]") {
    const auto keyboard = copy();
    keyboard->predict("I ", 5);  // the first pass in 8 bits takes memory
    const std::vector<std::string> sentences = {"I am.", "Snark and boojum, a snark.", "A boojum it was!"};
    const auto before = allocations();
    for (const auto& sentence : sentences) {
        keyboard->predict(sentence.substr(0, 5), 5);
        keyboard->learn(sentence);
        keyboard->predict("You ", 5);
    }
    CHECK(allocations() == before);
    CHECK(keyboard->knows("boojum"));
}

TEST_CASE("A keyboard says what it cannot read", "[keyboard]") {
    CHECK_THROWS_MATCHES(Training("A short text.", {}, {}), ig::DataError, says("of the text", "360"));
    const auto place = (std::filesystem::path(ISOGLOSS_BUILD_DIR) / "keyboard_other.safetensors").string();
    ig::io::write_safetensors(place, {});
    CHECK_THROWS_MATCHES(Keyboard::load(place), ig::FileError, says("found a model of another program"));
    std::ofstream(place) << "no model";
    CHECK_THROWS_AS(Keyboard::load(place), ig::FileError);
    CHECK_THROWS_AS(copy()->predict("I", 17), ig::UsageError);
}
