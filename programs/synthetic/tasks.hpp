// The synthetic sources. Each writes a text of any length from a seed and knows its entropy rate: the least
// bits per predicted symbol that any model can reach. A source is one record, a Task, listed in `all`.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/random.hpp>
#include <isogloss/types.hpp>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tasks {

using isogloss::DataError;
using isogloss::Index;
using isogloss::message;
using isogloss::Token;

// The most symbols of a text, and the greatest bits and n of a line: a line is drawn as a whole.
inline constexpr Index longest_text = 100'000'000, longest_line = 1'000'000;

// Options of a source; each task reads its own part.
struct Options {
    double insert_digits = 0.1;    // alphabet: probability p1 of 0…9 after a letter, [0, 1]
    double insert_capitals = 0.1;  // alphabet: probability p2 of nine capitals after a digit 0…8, [0, 1]
    Index bits = 10;               // xor: L random bits in a line, 2 … longest_line
    Index fewest_bits = 0;         // xor: 0, or L is drawn for each line from this (≥ 2) to bits
    bool answer_only = false;      // xor: only the answer is predicted
    Index shortest = 1, longest = 1000;  // anbn: 1 ≤ shortest ≤ n ≤ longest ≤ longest_line
    Index depth = 10;                    // dyck: D open brackets at most, 2 … longest_line
    Index lag = 2;                       // copy: k ≥ 1 symbols back
    double noise = 0.1;                  // copy: probability of a random symbol instead, [0, 1]
};

struct Task;

// A text over symbols 0 … size-1, each shown as one character; or a given text, which has no task and whose
// symbols have names.
struct Text {
    const Task* task = nullptr;
    std::string_view symbols;
    std::vector<std::string> names;
    std::vector<Index> begins;  // where the source begins a round; empty if unknown
    bool whole = false;         // whether the last of these is complete
    std::vector<Token> x;
    std::vector<std::uint8_t> predicted;  // χ: whether the symbol is to be predicted
    std::vector<std::uint8_t>
        telling;               // symbols that show whether the task is solved; the last of a group: 2
    std::vector<double> nats;  // of a source: -ln of the probability of each symbol given those before
    double drawn = 0;          // nats of draws since the last symbol, added to the next one

    Index size() const { return std::ssize(x); }
    Index vocabulary() const { return names.empty() ? std::ssize(symbols) : std::ssize(names); }
    char shown(Token v) const { return symbols[static_cast<std::size_t>(v)]; }
    std::string spelled(Token v) const {
        return names.empty() ? std::string(1, shown(v)) : names[static_cast<std::size_t>(v)];
    }
    void add(char c, bool is_predicted = true, int is_telling = 0) {
        x.push_back(static_cast<Token>(symbols.find(c)));
        predicted.push_back(is_predicted);
        telling.push_back(static_cast<std::uint8_t>(is_telling));
        nats.push_back(std::exchange(drawn, 0.0));
    }
    // Records a draw of the source and its probability; the next symbol reveals it.
    bool draw(bool happened, double p) {
        drawn -= std::log(happened ? p : 1 - p);
        return happened;
    }
    Index draw_one(Index one, Index of) {
        drawn += std::log(static_cast<double>(of));
        return one;
    }
    void cut(Index n) {
        const auto length = static_cast<std::size_t>(n);
        x.resize(length), predicted.resize(length), telling.resize(length), nats.resize(length);
        while (!begins.empty() && begins.back() >= n) begins.pop_back();
    }
    // Positions `from` to `to`, without the latter.
    Text part(Index from, Index to) const {
        Text out = *this;
        const auto keep = [&](auto& row) {
            row.erase(row.begin() + to, row.end());
            row.erase(row.begin(), row.begin() + from);
        };
        keep(out.x), keep(out.predicted), keep(out.telling), keep(out.nats);
        out.begins.clear();
        for (const Index b : begins)
            if (b >= from && b < to) out.begins.push_back(b - from);
        return out;
    }
    // Cut into `count` parts of as many lines each, give or take one; one part if a part would have less than two.
    std::vector<Text> in_parts(Index count) const {
        const Index lines = std::ssize(begins);
        if (count < 2 || lines < 2 * count) return {*this};
        const auto begin = [&](Index k) {
            return k < count ? begins[static_cast<std::size_t>(k * lines / count)] : size();
        };
        std::vector<Text> out;
        for (Index k = 0; k < count; ++k) out.push_back(part(begin(k), begin(k + 1)));
        return out;
    }
    // The whole lines of the text for training, line `first` first and those before it last; for 0 the text
    // itself.
    Text turned(Index first) const {
        Text out = *this;
        if (first == 0) return out;
        if (!whole) out.cut(begins.back());  // the last line is incomplete
        out.whole = true;
        const Index n = out.size(), from = begins[static_cast<std::size_t>(first)];
        const auto turn = [from](auto& row) { std::rotate(row.begin(), row.begin() + from, row.end()); };
        turn(out.x), turn(out.predicted), turn(out.telling), turn(out.nats);
        for (Index& b : out.begins) b = (b - from + n) % n;
        std::sort(out.begins.begin(), out.begins.end());
        return out;
    }
};

// A sequence of random numbers.
class Dice {
public:
    explicit Dice(std::uint64_t seed) : random_(seed, isogloss::stream_of("synthetic")) {}
    bool happens(double p) { return random_.uniform(place_++) < p; }
    Index below(Index n) { return random_.below(place_++, n); }

private:
    isogloss::Random random_;
    Index place_ = 0;
};

// A source.
struct Task {
    std::string_view name, symbols;
    void (*check)(const Options&);  // throws DataError for invalid options
    void (*round)(const Options&, Dice&,
                  Text&);            // adds one round: the alphabet once, a line, eight bars, a word
    double (*nats)(const Options&);  // entropy rate per predicted symbol, exact for an endless text
    bool (*right)(char guess, char shown, Index group);  // for a telling symbol in this group
};

// Entropy H(p) of a coin in nats.
inline double coin(double p) {
    const auto part = [](double q) { return q > 0 ? -q * std::log(q) : 0.0; };
    return part(p) + part(1 - p);
}

inline bool same(char guess, char shown, Index) { return guess == shown; }

// Telling symbols: the letter or digit at which the outer sequence resumes after an insertion.
inline constexpr Task alphabet = {
    "alphabet",
    "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    [](const Options& o) {
        for (const double p : {o.insert_digits, o.insert_capitals})
            isogloss::require<DataError>("alphabet", "insertion probability", p, 0, 1);
    },
    [](const Options& o, Dice& dice, Text& out) {
        bool after_insertion = false;
        for (char letter = 'a'; letter <= 'z'; ++letter) {
            out.add(letter, true, after_insertion ? 2 : 0);
            after_insertion = out.draw(dice.happens(o.insert_digits), o.insert_digits);
            if (!after_insertion) continue;
            bool after_capitals = false;
            for (char digit = '0'; digit <= '9'; ++digit) {
                out.add(digit, true, after_capitals ? 2 : 0);
                after_capitals = digit < '9' && out.draw(dice.happens(o.insert_capitals), o.insert_capitals);
                if (!after_capitals) continue;
                for (int k = 0; k < 9; ++k)
                    out.add(static_cast<char>('A' + out.draw_one(dice.below(26), 26)));
            }
        }
    },
    [](const Options& o) {
        const double p1 = o.insert_digits, p2 = o.insert_capitals;
        return (coin(p1) + p1 * (9 * coin(p2) + 81 * p2 * std::log(26.0))) / (1 + p1 * (10 + 81 * p2));
    },
    same};

// Telling symbols: the answer.
inline constexpr Task distant_xor = {
    "xor",
    "01X=\n",
    [](const Options& o) {
        isogloss::require<DataError>("xor", "bits", o.bits, 2, longest_line);
        if (o.fewest_bits != 0 && (o.fewest_bits < 2 || o.fewest_bits > o.bits))
            throw DataError(
                message("xor: found lines of ", o.fewest_bits, " to ", o.bits,
                        " bits, expected 0 (all alike) or at least 2, and no more than the longest"));
    },
    [](const Options& o, Dice& dice, Text& out) {
        const Index bits =
            o.fewest_bits > 0 ? o.fewest_bits + dice.below(o.bits - o.fewest_bits + 1) : o.bits;
        Index p = dice.below(bits), q = dice.below(bits - 1);
        if (q >= p) ++q;
        int answer = 0, marks = 2;
        const bool known = o.fewest_bits == 0 || o.fewest_bits == o.bits;  // the length of the line
        for (Index i = 0; i < bits; ++i) {
            const bool bit = dice.happens(0.5), marked = i == p || i == q;
            if (known) out.draw(marked, marks / static_cast<double>(bits - i));
            if (marked) {
                out.add('X', !o.answer_only);
                answer ^= bit;
                --marks;
            }
            out.draw(bit, 0.5);
            out.add(bit ? '1' : '0', !o.answer_only);
        }
        if (!known) {  // length and places count at the end, whatever is known before
            out.draw_one(bits, o.bits - o.fewest_bits + 1);
            out.draw_one(p, bits * (bits - 1) / 2);
        }
        out.add('=', !o.answer_only);
        out.add(answer ? '1' : '0', true, 2);
        out.add('\n', !o.answer_only);
    },
    [](const Options& o) {  // a line reveals its length, its bits and its places
        if (o.answer_only) return 0.0;
        const Index fewest = o.fewest_bits > 0 ? o.fewest_bits : o.bits;
        double nats = 0, characters = 0;
        for (Index n = fewest; n <= o.bits; ++n) {
            const auto length = static_cast<double>(n);
            nats += length * std::log(2.0) + std::log(length * (length - 1) / 2);
            characters += length + 5;
        }
        const auto lengths = static_cast<double>(o.bits - fewest + 1);
        return (nats + lengths * std::log(lengths)) / characters;
    },
    same};

inline constexpr std::array<std::string_view, 6> rhythms = {"2.", "2 4", "4 2", "4 4 4", "4. 8 4", "4 4 8 8"};
inline constexpr std::array<std::string_view, 3> chords = {"ceg", "fac", "gbd"};  // I, IV, V
inline constexpr std::array<int, 8> harmony = {0, 1, 0, 2, 0, 1, 2, 0};
inline std::string_view chord_of(Index bar) {
    return chords[static_cast<std::size_t>(harmony[static_cast<std::size_t>(bar % 8)])];
}

// Telling symbols, a bar at a time: every pitch within the harmony, the bar line in its place and not before.
inline constexpr Task music = {
    "music",
    "cdefgab248. |",
    [](const Options&) {},
    [](const Options&, Dice& dice, Text& out) {
        for (Index bar = 0; bar < 8; ++bar) {
            for (const char c : rhythms[static_cast<std::size_t>(out.draw_one(dice.below(6), 6))]) {
                // a blank in the rhythm ends a note; the pitch precedes the first digit of a note
                if (c >= '2' && c <= '8')
                    out.add(chord_of(bar)[static_cast<std::size_t>(out.draw_one(dice.below(3), 3))], true, 1);
                out.add(c, true, 1);
            }
            for (const char c : std::string_view(" | ")) out.add(c, true, c == '|' ? 2 : 1);
        }
    },
    [](const Options&) {
        double notes = 0, characters = 0;
        for (const auto rhythm : rhythms) {
            double in_bar = 1;
            for (const char c : rhythm) in_bar += c == ' ';
            notes += in_bar / 6;
            characters += (static_cast<double>(rhythm.size()) + in_bar + 3) / 6;
        }
        return (std::log(6.0) + notes * std::log(3.0)) / characters;
    },
    [](char guess, char shown, Index bar) {
        const bool pitch = shown >= 'a' && shown <= 'g';
        return pitch ? chord_of(bar).find(guess) != std::string_view::npos : (guess == '|') == (shown == '|');
    }};

// Telling symbols, a line at a time: every b but the first, and the line end.
inline constexpr Task anbn = {
    "anbn",
    "ab\n",
    [](const Options& o) {
        if (!(o.shortest >= 1 && o.longest >= o.shortest && o.longest <= longest_line))
            throw DataError(message("anbn: found n from ", o.shortest, " to ", o.longest,
                                    ", expected 1 ≤ shortest ≤ longest ≤ ", longest_line));
    },
    [](const Options& o, Dice& dice, Text& out) {
        const Index n = o.shortest + dice.below(o.longest - o.shortest + 1);
        const auto ends = [&](Index i) {  // after i times a; the remaining n are equally likely
            if (i >= o.shortest) out.draw(i == n, 1.0 / static_cast<double>(o.longest - i + 1));
        };
        for (Index i = 0; i < n; ++i) ends(i), out.add('a');
        ends(n);
        for (Index i = 0; i < n; ++i) out.add('b', true, i > 0);
        out.add('\n', true, 2);
    },
    [](const Options& o) {
        const double lo = static_cast<double>(o.shortest), hi = static_cast<double>(o.longest);
        return std::log(hi - lo + 1) / (lo + hi + 1);
    },
    same};

// The embedded Reber grammar (Hochreiter, Schmidhuber 1997): T or P, a word of the Reber grammar, the same
// letter again. Each fork is a fair coin; a word has 12 symbols and 7 forks on average. Telling: that letter.
inline constexpr Task reber = {"reber",
                               "BTSXPVE",
                               [](const Options&) {},
                               [](const Options&, Dice& dice, Text& out) {
                                   struct Arc {
                                       char symbol;
                                       int to;
                                   };
                                   static constexpr Arc arcs[5][2] = {{{'T', 1}, {'P', 2}},
                                                                      {{'S', 1}, {'X', 3}},
                                                                      {{'T', 2}, {'V', 4}},
                                                                      {{'X', 2}, {'S', 5}},
                                                                      {{'P', 3}, {'V', 5}}};
                                   const char kept = dice.happens(0.5) ? 'T' : 'P';
                                   out.add('B'), out.draw(kept == 'T', 0.5), out.add(kept), out.add('B');
                                   for (int at = 0; at < 5;) {
                                       const Arc& arc = arcs[at][out.draw_one(dice.below(2), 2)];
                                       out.add(arc.symbol);
                                       at = arc.to;
                                   }
                                   out.add('E'), out.add(kept, true, 2), out.add('E');
                               },
                               [](const Options&) { return 7 * std::log(2.0) / 12; },
                               same};

// Balanced brackets, at most D open, a line at a time. A fair coin decides to open or close and, if none is
// open, to end the line or continue; the first bracket opens, and the D-th is closed at once. No symbol
// is telling: only the bracket that closes the D-th is certain, and guessing one after every opening bracket
// is right there.
inline constexpr Task dyck = {
    "dyck",
    "()\n",
    [](const Options& o) { isogloss::require<DataError>("dyck", "depth", o.depth, 2, longest_line); },
    [](const Options& o, Dice& dice, Text& out) {
        Index open = 0;
        do {
            const bool opens = open == 0 || (open < o.depth && out.draw(dice.happens(0.5), 0.5));
            out.add(opens ? '(' : ')');
            open += opens ? 1 : -1;
        } while (open > 0 || out.draw(dice.happens(0.5), 0.5));
        out.add('\n');
    },
    [](const Options& o) {  // a line returns to 0 twice on average, each after 2 D symbols and 2 D - 2 coins
        const auto D = static_cast<double>(o.depth);
        return std::log(2.0) * (4 * D - 2) / (4 * D + 1);
    },
    same};

// A symbol copies the one k before it or, with probability `noise`, is random. Telling symbols: the copies.
inline constexpr Task copy = {
    "copy",
    "abcdefgh",
    [](const Options& o) {
        isogloss::require<DataError>("copy", "lag", o.lag, 1);
        isogloss::require<DataError>("copy", "noise", o.noise, 0, 1);
    },
    [](const Options& o, Dice& dice, Text& out) {
        const Index any = dice.below(8);
        const bool first = out.size() < o.lag;
        const Token before = first ? 0 : out.x[static_cast<std::size_t>(out.size() - o.lag)];
        const bool copied = !first && !dice.happens(o.noise);
        if (first) out.draw_one(any, 8);
        else if (copied || any == before) out.draw(true, 1 - o.noise * 7 / 8);
        else out.draw(true, o.noise / 8);
        out.add(out.symbols[static_cast<std::size_t>(copied ? before : any)], true, copied ? 2 : 0);
    },
    [](const Options& o) { return coin(o.noise * 7 / 8) + o.noise * 7 / 8 * std::log(7.0); },
    same};

inline constexpr std::array<const Task*, 7> all = {&alphabet, &distant_xor, &music, &anbn,
                                                   &reber,    &dyck,        &copy};

// The task with a name.
inline const Task& named(std::string_view name) {
    std::string names;
    for (const Task* task : all) {
        if (task->name == name) return *task;
        names += (names.empty() ? "" : ", ") + std::string(task->name);
    }
    throw DataError(message("task '", name, "': expected one of ", names));
}

// A text of exactly `length` symbols, or of `rounds` rounds if that is above 0, or, if these exceed `enough` symbols, of
// the first that do. Throws DataError for invalid options, and for rounds that take more than longest_text symbols.
inline Text generate(const Task& task, const Options& o, std::uint64_t seed, Index length, Index rounds = 0,
                     Index enough = longest_text) {
    task.check(o);
    if (rounds < 1) isogloss::require<DataError>("text", "symbols", length, 2);
    Dice dice(seed);
    Text out;
    out.task = &task;
    out.symbols = task.symbols;
    for (Index r = 0; rounds > 0 ? r < rounds && out.size() <= enough : out.size() < length; ++r) {
        out.begins.push_back(out.size());
        task.round(o, dice, out);
        if (rounds > 0 && out.size() > longest_text)
            throw DataError(message("text: found ", out.size(), " symbols in the first ", r + 1, " of ",
                                    rounds, " lines, expected at most ", longest_text,
                                    "; draw fewer or shorter lines"));
    }
    out.whole = rounds > 0 || out.size() == length;
    if (rounds < 1) out.cut(length);
    return out;
}

// The entropy rate of the source in bits per predicted symbol.
inline double entropy_rate(const Task& task, const Options& o) {
    task.check(o);
    return task.nats(o) / std::log(2.0);
}

// Bits per predicted symbol, except the first, of a text under the source that drew it. For an endless text
// this is the entropy rate; for 50 000 symbols it may be a hundredth off. A truncated round may count too
// early or too late.
inline double source_bits(const Text& text) {
    double nats = 0;
    Index predicted = 0;
    for (std::size_t t = 1; t < text.x.size(); ++t)
        if (text.predicted[t]) nats += text.nats[t], ++predicted;
    return nats / std::log(2.0) / static_cast<double>(predicted);
}

// The share of groups of telling symbols that a model gets right, best[t] being its most probable symbol at
// position t ≥ 1 given all before it; not a number without telling symbols.
inline double success(const Text& text, const std::vector<Token>& best) {
    Index groups = 0, right = 0;
    bool all_right = true;
    for (std::size_t t = 0; t < text.x.size(); ++t) {
        if (text.telling[t] == 0) continue;
        if (t > 0 && !text.task->right(text.shown(best[t]), text.shown(text.x[t]), groups)) all_right = false;
        if (text.telling[t] < 2) continue;
        ++groups;
        right += all_right;
        all_right = true;
    }
    return groups ? static_cast<double>(right) / static_cast<double>(groups)
                  : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tasks
