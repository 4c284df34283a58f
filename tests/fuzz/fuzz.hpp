// What the fuzz targets share. A target defines the three functions at the end; fuzz.cpp does the rest.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <isogloss/error.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

// The mutator's own random numbers.
class Dice {
public:
    explicit Dice(unsigned seed) : bits_(seed) {}
    // 0 … n-1; 0 for n = 0.
    std::size_t below(std::size_t n) { return n > 0 ? bits_() % n : 0; }
    bool chance(double p) { return static_cast<double>(bits_()) < p * 4294967296.0; }
    template <class List> auto& pick(List& list) { return list[below(std::size(list))]; }

private:
    std::mt19937 bits_;
};

// libFuzzer's own changes of bytes, which know nothing of their meaning.
std::string blind(std::string bytes, std::size_t most = 64);
// A number that programs trip over, in decimal.
std::string number(Dice& dice);
// Changes a text of lines and fields: lines and fields lost, doubled, exchanged, replaced.
std::string mutate_lines(std::string text, Dice& dice, char separator = ' ');

// The input as a file, and another file to write to, both in memory where the system has that.
std::string as_file(std::string_view bytes);
std::string other_file();
std::string contents(const std::string& path);

// Ends the program, which libFuzzer reports with the input that led there.
#define FUZZ_REQUIRE(condition)                                           \
    do                                                                    \
        if (!(condition)) ::fuzz::failed(#condition, __FILE__, __LINE__); \
    while (false)
[[noreturn]] void failed(const char* condition, const char* file, int line);
// That it can be shown as it is: not empty, no control bytes, of bounded length.
void check_message(std::string_view message);

// Whether a reader takes its input. Anything that comes out of it but an isogloss::Error ends the program.
template <class Read> bool accepted(Read&& read) {
    try {
        read();
        return true;
    } catch (const isogloss::Error& error) {
        check_message(error.what());
        return false;
    }
}

// Each target:

// An input that is taken.
std::string fresh(Dice& dice);
// A changed input, with whatever sums and counts stand in it repaired as a rule. "" where it is beyond
// repair.
std::string mutate(const std::string& input, Dice& dice);
// Reads it, and checks what was read. True where it was taken.
bool take(std::string_view input);

}  // namespace fuzz
