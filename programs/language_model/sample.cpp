/// @file sample.cpp  Texts, sampled token by token from a model and printed as they are drawn.
#include <algorithm>
#include <iostream>
#include <isogloss/utf8.hpp>
#include <string_view>

#include "print.hpp"
#include "sampling.hpp"

namespace lm {

namespace {

/// A text for a terminal, with its line ends and tabs.
std::string shown(std::string_view text) {
    std::string out;
    for (std::size_t first = 0; first <= text.size();) {
        const std::size_t last = std::min(text.find_first_of("\n\t", first), text.size());
        out += ig::shown(text.substr(first, last - first));
        out += text.substr(last, 1);
        first = last + 1;
    }
    return out;
}

}  // namespace

int sample(const SampleOptions& o) {
    require_sampling(o);
    auto it = load_model(o.model, 1);
    std::vector<ig::Token> prompt;
    if (const ig::Index unknowns = it.vocabulary.encode_prefix(o.prompt, prompt))
        std::cerr << ig::message("isogloss: ", unknowns, " of the ", counted(std::ssize(prompt), "token"),
                                 " of --prompt ", unknowns == 1 ? "is" : "are", " <unk> to the model\n");
    for (ig::Index i = 0; i < o.samples; ++i) {
        if (i > 0) std::cout << '\n';
        std::vector<ig::Token> before;  // the last token, if any
        std::string last;
        const ig::Index drawn = draw_text(it, o, i, [&](ig::Token token) {
            // The text that the token adds depends on the token before it.
            const auto begun = it.vocabulary.decode(before).size();
            before.push_back(token);
            last = it.vocabulary.decode(before).substr(begun);
            std::cout << shown(last) << std::flush;
            before = {token};
        });
        if (!last.ends_with('\n')) std::cout << '\n' << std::flush;
        if (drawn < o.length)
            std::cerr << ig::message(
                "isogloss: found ", drawn, " of the ",
                counted(o.length, it.vocabulary.level() == ig::text::Level::word ? "word" : "character"),
                ": the model draws little but line ends; try a higher --temperature\n");
    }
    return 0;
}

}  // namespace lm
