/// @file inspect.cpp  What a system has learnt: its sizes, its spectrum, what leads to what.
#include <algorithm>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>

#include "common.hpp"

namespace lt {

int inspect(const InspectCommand& o) {
    ig::require("inspect", "--min-count", o.min_count, 0);
    ig::require("inspect", "--pairs", o.pairs, 1);
    ig::require("inspect", "--words", o.words, 1);
    const auto it = lds::load_lds<float>(o.model);
    const auto& s = it.system;
    say("%td states, %td types, %zu iterations of EM\n", s.states(), s.vocabulary(),
        it.log_likelihoods.empty() ? 0 : it.log_likelihoods.size() - 1);
    if (!it.log_likelihoods.empty())
        say("log-likelihood %.5f per token, %+.5f above none\n", it.log_likelihoods.back(),
            it.log_likelihoods.back() - lds::static_log_likelihood(s.whitening.words));
    auto moduli = lds::schur<double>(s.A, "inspect").moduli();
    std::sort(moduli.rbegin(), moduli.rend());
    say("moduli of the eigenvalues of A:");
    for (std::size_t i = 0; i < moduli.size(); i += std::max<std::size_t>(1, moduli.size() / 10))
        say(" %.3f", moduli[i]);
    say("\nwhat leads to what (singular value: words of the right vector -> words of the left)\n");
    const auto words = [&](const std::vector<ig::Token>& tokens) {
        std::string line;
        for (const auto t : tokens) line += (line.empty() ? "" : " ") + it.vocabulary.word(t);
        return line;
    };
    const double tokens = static_cast<double>(it.vocabulary.total());
    for (const auto& d : lds::dynamics(s, it.xx, std::min(o.pairs, s.states()), o.words,
                                       tokens > 0 ? o.min_count / tokens : 0))
        say("%.3f  %s  ->  %s\n", d.strength, words(d.from).c_str(), words(d.to).c_str());
    return 0;
}

}  // namespace lt
