#include "../../programs/shared/progress.hpp"

#include "catch.hpp"

using program::bar;
using program::fitted;

TEST_CASE("A bar fits a narrow terminal, and the time left is the last to go", "[progress]") {
    const std::string note = "train 2212.13, 3,331 tokens/s, 0:10 left";
    const auto at = [&](std::size_t columns) { return bar("epoch 1/3", 0.5, "50 %, ", note, columns); };
    CHECK(at(199) == "epoch 1/3 [==========          ] 50 %, " + note);
    CHECK(at(79) == at(199));
    CHECK(at(64) == "epoch 1/3 [==   ] 50 %, " + note);
    CHECK(at(59) == "epoch 1/3 50 %, " + note);
    CHECK(at(45) == "epoch 1/3 50 %, train 2212.13, 0:10 left");
    CHECK(at(30) == "epoch 1/3 50 %, 0:10 left");
    for (std::size_t columns = 0; columns < 100; ++columns) CHECK(at(columns).size() <= columns);
}

TEST_CASE("Lines are broken between words, and go on below the first word after the label", "[progress]") {
    const std::string line = "vocabulary  9,984 types (words, min-count 2), checksum bd5d49d3900247c3";
    CHECK(fitted(line, 80) == line);
    CHECK(fitted(line, 60) ==
          "vocabulary  9,984 types (words, min-count 2), checksum\n            bd5d49d3900247c3");
}
