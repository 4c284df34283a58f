/// @file inspect.cpp  What a system has learnt: its sizes, its spectrum, which words lead to which.
#include <algorithm>
#include <iostream>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <isogloss/utf8.hpp>
#include <string>
#include <vector>

#include "../shared/json.hpp"
#include "common.hpp"

namespace lt {

int inspect(const InspectCommand& o) {
    ig::require("inspect", "--min-count", o.min_count, 0);
    ig::require("inspect", "--pairs", o.pairs, 1);
    ig::require("inspect", "--words", o.words, 1);
    auto it = lds::load_lds<float>(o.model);
    const auto& s = it.system;
    auto moduli = lds::schur<double>(s.A, "inspect").moduli();
    std::sort(moduli.rbegin(), moduli.rend());
    const auto known = frequent(it.vocabulary, o.min_count);
    const bool any = std::ranges::find(known, true) != known.end();
    for (std::size_t i = 0; i < known.size(); ++i)
        if (!known[i]) it.system.whitening.mu[ig::Index(i)] = 0;  // which dynamics leaves out
    auto dynamics = lds::dynamics(s, it.xx, std::min(o.pairs, s.states()), o.words);
    if (!any) dynamics.clear();
    const auto iterations = it.log_likelihoods.empty() ? 0 : it.log_likelihoods.size() - 1;
    const auto words = [&](const std::vector<ig::Token>& of) {
        std::vector<std::string> list;
        for (const auto t : of) list.push_back(it.vocabulary.word(t));
        return list;
    };
    if (o.json) {
        program::Json all = {{"states", s.states()}, {"types", s.vocabulary()}, {"iterations", iterations}};
        if (!it.log_likelihoods.empty()) {
            all["log_likelihood"] = it.log_likelihoods.back();
            if (it.notes.contains("lds_text.pseudo_counts"))
                all["pseudo_counts"] = noted<double>(it, o.model, "lds_text.pseudo_counts", 0, 1e12, 0);
            all["static_log_likelihood"] = lds::static_log_likelihood(s.whitening.words);
        }
        all["moduli"] = std::vector<double>(moduli.begin(), moduli.end());
        all["dynamics"] = program::Json::array();
        for (const auto& d : dynamics)
            all["dynamics"].push_back(
                {{"strength", d.strength}, {"from", words(d.from)}, {"to", words(d.to)}});
        std::cout << program::dump(all) << std::endl;
        return 0;
    }
    say("%td states, %td types, %zu iterations of EM\n", s.states(), s.vocabulary(), iterations);
    if (!it.log_likelihoods.empty())
        say("log-likelihood of the counts with pseudo-counts %.5f per token, %+.5f above none\n",
            it.log_likelihoods.back(),
            it.log_likelihoods.back() - lds::static_log_likelihood(s.whitening.words));
    say("moduli of the eigenvalues of A:");
    for (std::size_t i = 0; i < moduli.size(); i += std::max<std::size_t>(1, moduli.size() / 10))
        say(" %.3f", moduli[i]);
    say("\nwhat leads to what (singular value: words of the right vector -> words of the left)\n");
    const auto line = [&](const std::vector<ig::Token>& of) {
        std::string joined;
        for (const auto& word : words(of)) joined += (joined.empty() ? "" : " ") + ig::shown(word);
        return joined;
    };
    if (!any) say("no word occurs %g times; give a smaller --min-count\n", o.min_count);
    for (const auto& d : dynamics)
        say("%.3f  %s  ->  %s\n", d.strength, line(d.from).c_str(), line(d.to).c_str());
    return 0;
}

}  // namespace lt
