// Writes a text of any length to standard output, with Zipf-Mandelbrot frequencies, for counting programs.
//
//     zipf_text TOKENS [TYPES]     TYPES: default 100,000; 0 tokens: each word once, for a vocabulary
//
// Words are drawn independently, that of rank r = 0, 1, … with probability proportional to 1 / (r + 2.7), so
// that far more different pairs are adjacent than in a real text of that length. A line has 1000 words; the
// text is not kept in memory.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <isogloss/random.hpp>
#include <string>
#include <system_error>
#include <vector>

namespace {

using isogloss::Index;

// Draws in constant time: cell i of a table of V has word i with probability keep[i], and word other[i] otherwise
// (Walker 1977, An efficient method for generating discrete random variables with general distributions).
class Words {
public:
    explicit Words(Index types) : keep_(std::size_t(types)), other_(std::size_t(types)) {
        const auto V = static_cast<std::size_t>(types);
        double sum = 0;
        for (std::size_t r = 0; r < V; ++r) sum += keep_[r] = 1 / (double(r) + 2.7);
        std::vector<std::size_t> small, large;
        for (std::size_t r = 0; r < V; ++r) {
            keep_[r] *= double(V) / sum;
            (keep_[r] < 1 ? small : large).push_back(r);
        }
        while (!small.empty() && !large.empty()) {
            const std::size_t s = small.back(), l = large.back();
            small.pop_back();
            other_[s] = l;
            keep_[l] -= 1 - keep_[s];
            if (keep_[l] >= 1) continue;
            large.pop_back();
            small.push_back(l);
        }
        for (const auto& rest : {small, large})
            for (const std::size_t r : rest) keep_[r] = 1, other_[r] = r;
    }
    std::size_t draw(double u) const {
        const double at = u * double(keep_.size());
        const auto cell = std::min(static_cast<std::size_t>(at), keep_.size() - 1);
        return at - double(cell) < keep_[cell] ? cell : other_[cell];
    }

private:
    std::vector<double> keep_;
    std::vector<std::size_t> other_;
};

}  // namespace

int main(int argc, char** argv) {
    const auto number = [&](int i, Index otherwise) {
        if (i >= argc) return otherwise;
        Index n = -1;
        const char* const end = argv[i] + std::strlen(argv[i]);
        const auto read = std::from_chars(argv[i], end, n);
        return read.ec == std::errc() && read.ptr == end ? n : Index{-1};
    };
    const Index tokens = number(1, -1), types = number(2, 100000);
    if (tokens < 0 || types < 1 || argc > 3) {
        std::fprintf(stderr, "usage: zipf_text TOKENS [TYPES]\n");
        return 1;
    }
    std::vector<std::string> names;
    for (Index r = 0; r < types; ++r) names.push_back(isogloss::message("w", r));
    const Words words(types);
    const isogloss::Random random(1, 1);
    std::string line;
    const Index all = tokens > 0 ? tokens : types;
    for (Index t = 0; t < all; ++t) {
        line += names[tokens > 0 ? words.draw(random.uniform(t)) : std::size_t(t)];
        line += (t + 1) % 1000 == 0 || t + 1 == all ? '\n' : ' ';
        if (line.size() < 60000 && t + 1 < all) continue;
        if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) return 1;
        line.clear();
    }
    return std::fflush(stdout) == 0 ? 0 : 1;
}
