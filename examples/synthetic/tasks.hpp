// The four synthetic sources. Each writes a text of any length from a seed and knows its entropy rate: the
// bits per predicted symbol that no model can go below.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/random.hpp>
#include <isogloss/types.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tasks {

using isogloss::Index;
using isogloss::Token;

// What makes a source; each task reads its own part.
struct Options {
    double insert_digits = 0.1;    // alphabet: probability p1 of 0…9 after a letter, [0, 1]
    double insert_capitals = 0.1;  // alphabet: probability p2 of nine capitals after a digit 0…8, [0, 1]
    Index bits = 10;               // xor: L ≥ 2 random bits in a line
    Index fewest_bits = 0;         // xor: 0, or L is drawn for every line from this ≥ 2 to bits
    bool answer_only = false;      // xor: only the answer is predicted
    Index shortest = 1, longest = 1000;  // anbn: 1 ≤ shortest ≤ n ≤ longest
};

// A text over symbols 0 … size-1, each shown as one character.
struct Text {
    std::string_view symbols;
    std::vector<Token> x;
    std::vector<std::uint8_t> predicted;  // χ: whether the symbol has to be predicted
    std::vector<std::uint8_t>
        telling;  // symbols that show whether the task is solved; the last of a group: 2

    Index size() const { return std::ssize(x); }
    Index vocabulary() const { return static_cast<Index>(symbols.size()); }
    char shown(Token v) const { return symbols[static_cast<std::size_t>(v)]; }
    void add(char c, bool is_predicted = true, int is_telling = 0) {
        x.push_back(static_cast<Token>(symbols.find(c)));
        predicted.push_back(is_predicted);
        telling.push_back(static_cast<std::uint8_t>(is_telling));
    }
    void cut(Index n) {
        const auto length = static_cast<std::size_t>(n);
        x.resize(length), predicted.resize(length), telling.resize(length);
    }
};

// Random numbers one after the other.
class Dice {
public:
    explicit Dice(std::uint64_t seed) : random_(seed, isogloss::stream_of("synthetic")) {}
    bool happens(double p) { return random_.uniform(place_++) < p; }
    Index below(Index n) { return random_.below(place_++, n); }

private:
    isogloss::Random random_;
    Index place_ = 0;
};

// H(p) of a coin in nats.
inline double coin(double p) {
    const auto part = [](double q) { return q > 0 ? -q * std::log(q) : 0.0; };
    return part(p) + part(1 - p);
}

inline constexpr std::array<std::string_view, 6> rhythms = {"2.", "2 4", "4 2", "4 4 4", "4. 8 4", "4 4 8 8"};
inline constexpr std::array<std::string_view, 3> chords = {"ceg", "fac", "gbd"};  // I, IV, V
inline constexpr std::array<int, 8> harmony = {0, 1, 0, 2, 0, 1, 2, 0};

enum class Name { alphabet, distant_xor, music, anbn };

inline Name named(std::string_view name) {
    if (name == "alphabet") return Name::alphabet;
    if (name == "xor") return Name::distant_xor;
    if (name == "music") return Name::music;
    if (name == "anbn") return Name::anbn;
    throw isogloss::DataError(isogloss::message("task '", name, "': expected alphabet, xor, music or anbn"));
}

inline std::string_view symbols_of(Name task) {
    switch (task) {
        case Name::alphabet:
            return "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        case Name::distant_xor:
            return "01X=\n";
        case Name::music:
            return "cdefgab248. |";
        default:
            return "ab\n";
    }
}

inline void check(Name task, const Options& o) {
    using isogloss::DataError;
    using isogloss::message;
    if (task == Name::alphabet)
        for (const double p : {o.insert_digits, o.insert_capitals})
            isogloss::require<DataError>("alphabet", "insertion probability", p, 0, 1);
    if (task == Name::distant_xor) isogloss::require<DataError>("xor", "bits", o.bits, 2);
    if (task == Name::distant_xor && o.fewest_bits != 0 && (o.fewest_bits < 2 || o.fewest_bits > o.bits))
        throw DataError(message("xor: found lines of ", o.fewest_bits, " to ", o.bits,
                                " bits, expected 0 (all alike) or at least 2, and no more than the longest"));
    if (task == Name::anbn && !(o.shortest >= 1 && o.longest >= o.shortest))
        throw DataError(message("anbn: found n from ", o.shortest, " to ", o.longest,
                                ", expected 1 ≤ shortest ≤ longest"));
}

// Adds one round of the source: the alphabet once, a line, eight bars, a line.
inline void add_round(Name task, const Options& o, Dice& dice, Text& out) {
    switch (task) {
        case Name::alphabet: {
            bool after_insertion = false;
            for (char letter = 'a'; letter <= 'z'; ++letter) {
                out.add(letter, true, after_insertion ? 2 : 0);
                after_insertion = dice.happens(o.insert_digits);
                if (!after_insertion) continue;
                bool after_capitals = false;
                for (char digit = '0'; digit <= '9'; ++digit) {
                    out.add(digit, true, after_capitals ? 2 : 0);
                    after_capitals = digit < '9' && dice.happens(o.insert_capitals);
                    if (!after_capitals) continue;
                    for (int k = 0; k < 9; ++k) out.add(static_cast<char>('A' + dice.below(26)));
                }
            }
            return;
        }
        case Name::distant_xor: {
            const Index bits =
                o.fewest_bits > 0 ? o.fewest_bits + dice.below(o.bits - o.fewest_bits + 1) : o.bits;
            Index p = dice.below(bits), q = dice.below(bits - 1);
            if (q >= p) ++q;
            int answer = 0;
            for (Index i = 0; i < bits; ++i) {
                const int bit = dice.happens(0.5);
                if (i == p || i == q) {
                    out.add('X', !o.answer_only);
                    answer ^= bit;
                }
                out.add(bit ? '1' : '0', !o.answer_only);
            }
            out.add('=', !o.answer_only);
            out.add(answer ? '1' : '0', true, 2);
            out.add('\n', !o.answer_only);
            return;
        }
        case Name::music:
            for (const int chord : harmony) {
                for (const char c : rhythms[static_cast<std::size_t>(dice.below(6))]) {
                    // a blank of the rhythm ends a note; the pitch stands before the first digit of one
                    if (c >= '2' && c <= '8')
                        out.add(
                            chords[static_cast<std::size_t>(chord)][static_cast<std::size_t>(dice.below(3))],
                            true, 1);
                    out.add(c, true, 1);
                }
                for (const char c : std::string_view(" | ")) out.add(c, true, c == '|' ? 2 : 1);
            }
            return;
        case Name::anbn: {
            const Index n = o.shortest + dice.below(o.longest - o.shortest + 1);
            for (Index i = 0; i < n; ++i) out.add('a');
            for (Index i = 0; i < n; ++i) out.add('b', true, i > 0);
            out.add('\n', true, 2);
            return;
        }
    }
}

// A text of exactly `length` symbols, or of `rounds` rounds where that is above 0.
inline Text generate(Name task, const Options& o, std::uint64_t seed, Index length, Index rounds = 0) {
    check(task, o);
    if (rounds < 1) isogloss::require<isogloss::DataError>("text", "symbols", length, 2);
    Dice dice(seed);
    Text out;
    out.symbols = symbols_of(task);
    for (Index r = 0; rounds > 0 ? r < rounds : out.size() < length; ++r) add_round(task, o, dice, out);
    if (rounds < 1) out.cut(length);
    return out;
}

// The source's entropy rate in bits per predicted symbol, exact for an endless text.
inline double entropy_rate(Name task, const Options& o) {
    check(task, o);
    const double bit = std::log(2.0);
    double nats = 0;
    switch (task) {
        case Name::alphabet: {
            const double p1 = o.insert_digits, p2 = o.insert_capitals;
            nats = (coin(p1) + p1 * (9 * coin(p2) + 81 * p2 * std::log(26.0))) / (1 + p1 * (10 + 81 * p2));
            break;
        }
        case Name::distant_xor: {  // a line tells its length, its bits and its places
            if (o.answer_only) break;
            const Index fewest = o.fewest_bits > 0 ? o.fewest_bits : o.bits;
            double characters = 0;
            for (Index n = fewest; n <= o.bits; ++n) {
                const auto length = static_cast<double>(n);
                nats += length * bit + std::log(length * (length - 1) / 2);
                characters += length + 5;
            }
            const auto lengths = static_cast<double>(o.bits - fewest + 1);
            nats = (nats + lengths * std::log(lengths)) / characters;
            break;
        }
        case Name::music: {
            double notes = 0, characters = 0;
            for (const auto rhythm : rhythms) {
                double in_bar = 1;
                for (const char c : rhythm) in_bar += c == ' ';
                notes += in_bar / 6;
                characters += (static_cast<double>(rhythm.size()) + in_bar + 3) / 6;
            }
            nats = (std::log(6.0) + notes * std::log(3.0)) / characters;
            break;
        }
        case Name::anbn: {
            const double lo = static_cast<double>(o.shortest), hi = static_cast<double>(o.longest);
            nats = std::log(hi - lo + 1) / (lo + hi + 1);
            break;
        }
    }
    return nats / bit;
}

// The share of groups of telling symbols that a model gets right, best[t] being what it holds most likely at
// position t ≥ 1 after all symbols before it:
//     alphabet  the letter or digit at which the outer sequence resumes after an insertion
//     xor       the answer
//     music     a bar: every pitch within the harmony, the bar line where it stands and nowhere before
//     anbn      a line: every b but the first, and the end of the line
inline double success(Name task, const Text& text, const std::vector<Token>& best) {
    Index groups = 0, right = 0, bar = 0;
    bool all_right = true;
    for (std::size_t t = 0; t < text.x.size(); ++t) {
        if (text.telling[t] == 0) continue;
        const char shown = text.shown(text.x[t]), guess = text.shown(best[t]);
        if (task == Name::music) {
            const auto in_harmony =
                chords[static_cast<std::size_t>(harmony[static_cast<std::size_t>(bar % 8)])];
            const bool pitch = shown >= 'a' && shown <= 'g';
            if (t > 0 &&
                (pitch ? in_harmony.find(guess) == std::string_view::npos : (guess == '|') != (shown == '|')))
                all_right = false;
        } else if (guess != shown) {
            all_right = false;
        }
        if (text.telling[t] < 2) continue;
        ++groups, ++bar;
        right += all_right;
        all_right = true;
    }
    return groups ? static_cast<double>(right) / static_cast<double>(groups) : 0;
}

}  // namespace tasks
