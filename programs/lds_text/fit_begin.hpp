/// @file fit_begin.hpp  The start of a fit: checks, candidates, start values, or the file to resume from.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <limits>
#include <locale>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../shared/ranks.hpp"
#include "co_occurrences.hpp"
#include "identification.hpp"

namespace lt {

using System = lds::LdsFile<float>;

/// A combination to try: one value of each list.
struct Candidate {
    double pseudo_counts;
    ig::Index states, ssid_lags;
};

inline constexpr ig::Index default_em_lags = 7, default_ssid_lags = 4, default_states = 200, most_lags = 1000;

/// Throws UsageError for options out of range.
inline void check(const FitCommand& o) {
    ig::require("fit", "--iterations", o.iterations, 0);
    ig::require("fit", "--checkpoint-seconds", o.checkpoint_seconds, 0);
    ig::require("fit", "--shards", o.shards, 0, ig::Index{1} << 20);
    ig::require("fit", "--stop", o.stop, std::numeric_limits<double>::lowest());
    for (const ig::Index states : o.states) ig::require("fit", "--states", states, 1);
    for (const ig::Index lags : o.ssid_lags) ig::require("fit", "--ssid-lags", lags, 2, 500);
    ig::require("fit", "--em-lags", o.em_lags.value_or(default_em_lags), 1, most_lags);
    for (const double kappa : o.pseudo_counts)
        if (kappa != 0 && !(kappa >= 1e-6 && kappa <= 1e12))
            throw ig::UsageError(ig::message("fit: found --pseudo-counts = ", kappa,
                                             ", expected 0, or a number from 1e-6 to 1e12"));
    for (const auto& [name, count] :
         {std::pair("--pseudo-counts", o.pseudo_counts.size()), std::pair("--states", o.states.size()),
          std::pair("--ssid-lags", o.ssid_lags.size())})
        if (!o.select && count > 1)
            throw ig::UsageError(ig::message("fit: found ", count, " values of ", name,
                                             ", expected one; --select chooses among several"));
    if (o.select && o.dev.empty())
        throw ig::UsageError("fit: --select chooses by the prediction of a held-out text; give --dev too");
}

/// Throws unless the files of a fit may be written, and --dev may be read.
inline void require_outputs(const FitCommand& given) {
    files::Outputs()
        .read("--train", given.train)
        .read("--vocabulary-from", given.vocabulary_from)
        .read("--counts", given.counts)
        .read("--dev", given.dev)
        .write("--model", given.model, model_kind())
        .write("--model", identification_file(given.model), identification_kind())
        .lock("--model", given.model)
        .write("--log", given.log, files::table("log of `lds_text fit`", fit_header))
        .check();
    require_texts(given.dev);
    for (const std::string& dev : given.dev)
        for (const std::string& train : given.train)
            if (std::error_code ignored; std::filesystem::equivalent(dev, train, ignored))
                throw ig::DataError(ig::message("fit: '", dev,
                                                "' is both --train and --dev; hold out a text that is not "
                                                "trained on"));
}

/// The values of a list, each once.
template <class T> std::vector<T> distinct(const std::vector<T>& list) {
    std::vector<T> out;
    for (const T& value : list)
        if (std::ranges::find(out, value) == out.end()) out.push_back(value);
    return out;
}

/// Every combination of the lists, once. Default pseudo-counts are shares of the tokens, divided among the types.
inline std::vector<Candidate> candidates(const FitCommand& o, const CoOccurrences& counted) {
    auto kappas = o.pseudo_counts;
    if (kappas.empty()) {
        const auto& n = counted.occurrences();
        const auto tokens = static_cast<double>(std::accumulate(n.begin(), n.end(), std::int64_t{0}));
        for (const double share : o.select ? std::vector{0.05, 0.15, 0.5, 1.5} : std::vector{0.5})
            kappas.push_back(share * tokens / static_cast<double>(n.size()));
    }
    std::vector<Candidate> all;
    for (const double kappa : distinct(kappas))
        for (const ig::Index states : distinct(o.states))
            for (const ig::Index lags : distinct(o.ssid_lags)) all.push_back({kappa, states, lags});
    return all;
}

/// Small random parameters, whose noise is not repaired yet: the baseline for subspace identification.
inline lds::Lds<float> random_system(const lds::Whitening& whitening, ig::Index states, std::uint64_t seed) {
    const auto V = static_cast<ig::Index>(whitening.mu.size());
    const ig::Random random(seed, ig::stream_of("random start"));
    lds::Lds<float> s;
    s.A = lds::zeros<double>(states, states);
    for (std::size_t i = 0; i < s.A.size(); ++i) s.A.data()[i] = random.normal(ig::Index(i));
    s.A *= 0.5 / lds::spectral_radius(s.A, "random start");
    s.C = lds::zeros<float>(V, states);
    const double scale = 0.5 / std::sqrt(static_cast<double>(V));
    for (std::size_t i = 0; i < s.C.size(); ++i)
        s.C.data()[i] = static_cast<float>(scale * random.normal(ig::Index(i + s.A.size())));
    s.whitening = whitening;
    lds::project_out<float>(whitening.m, lds::ref(s.C));
    // No text says anything of a word that never occurs.
    for (std::size_t i = 0; i < whitening.mu.size(); ++i)
        if (!(whitening.mu[i] > 0)) std::fill_n(s.C.data() + ig::Index(i) * states, states, 0.f);
    s.M = lds::lyapunov(s.A, lds::identity(states));
    return s;
}

/// A number in decimal: 12 digits for a log; 17 digits are exact.
inline std::string digits(double x, int count = 12) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << std::setprecision(count) << x;
    return out.str();
}

/// The system that EM begins with for a candidate: that of subspace identification, or a random one.
inline System start(const FitCommand& o, const Candidate& c, const lds::LagMoments<float>& moments,
                    const CoOccurrences& counted, program::Ranks& ranks) {
    Stopwatch clock;
    System it;
    it.vocabulary = counted.vocabulary();
    const std::uint64_t seed = o.seed.value_or(1);
    double noise_factor = 1;
    if (o.random_start) {
        it.system = random_system(moments.whitening(), c.states, seed);
        noise_factor = lds::repair_noise(lds::inner_products(it.system.C, it.system.C), it.system.M);
        say("random start\n");
    } else {
        counted.require_blocks(c.ssid_lags);
        // the candidates of --select run in turn, and would find each other's file
        auto found = identify(
            moments, {.states = c.states, .lags = c.ssid_lags, .scaled = o.scaled, .svd = {.seed = seed}},
            o.select ? "" : identification_file(o.model), o.checkpoint_seconds, o.go_on,
            counted.checksum(2 * c.ssid_lags - 1), ranks, o.shards > 0);
        it.system = std::move(found.system);
        it.singular_values = std::move(found.singular_values);
        noise_factor = found.noise_factor;
        say("subspace identification: singular values %.4f … %.4f, error at most %.4f, radius %.4f, noise "
            "factor %.4f; "
            "%.2f s\n",
            it.singular_values.front(), it.singular_values.back(), found.error_bound, found.radius,
            noise_factor, clock.lap());
    }
    it.notes = {{"lds_text.iteration", "0"},
                {"lds_text.noise_factor", digits(noise_factor, 17)},
                {"lds_text.sentences", moments.made_with().boundary >= 0 ? "1" : "0"},
                {"lds_text.pseudo_counts", digits(c.pseudo_counts, 17)},
                {"lds_text.em_lags", ig::message(o.em_lags.value_or(default_em_lags))},
                {"lds_text.ssid_lags", ig::message(c.ssid_lags)},
                {"lds_text.start", o.random_start ? "--random-start"
                                   : o.scaled     ? "--scaled"
                                                  : ""},
                {"lds_text.fixed_noise", o.fixed_noise ? "1" : "0"},
                {"lds_text.seed", ig::message(seed)},
                {"lds_text.pairs", counted.checksum(o.em_lags.value_or(default_em_lags))}};
    if (o.shards > 0) it.notes["lds_text.shards"] = ig::message(o.shards);
    if (o.select) it.notes["lds_text.selected"] = "1";
    return it;
}

/// Whether --resume goes on with subspace identification, whose state is in its file: there is no model, or an earlier
/// one, over which a fit was begun. A state older than the model was left behind when the model was written.
inline bool in_identification(const std::string& model) {
    const std::string state = identification_file(model);
    if (!files::has_content(state)) return false;
    if (!files::has_content(model)) return true;
    std::error_code ignored;
    return std::filesystem::last_write_time(state, ignored) >
           std::filesystem::last_write_time(model, ignored);
}

/// Throws UsageError for options by which a fit would not continue from the state of a subspace identification that
/// was interrupted, and would remove it.
inline void require_identification(const FitCommand& o) {
    const std::string state = identification_file(o.model);
    if (o.select)
        throw ig::UsageError(ig::message("--select starts over, but --resume continues, from '", state,
                                         "'; leave one of them out"));
    if (o.random_start)
        throw ig::UsageError(ig::message("--resume: '", state, "' is of subspace identification, not of ",
                                         "--random-start; leave one of the two options out, or remove the ",
                                         "file"));
}

/// The options, completed by those of the file to resume from. Throws if a given one differs.
inline FitCommand with_stored(FitCommand o) {
    const System it = lds::load_lds<float>(o.model);
    if (o.select) throw ig::UsageError("--select starts over, but --resume continues; leave one of them out");
    if (it.notes.contains("lds_text.selected"))
        throw ig::UsageError(ig::message("--resume: '", o.model,
                                         "' was chosen by --select, for a text that further iterations ",
                                         "do not see; give another --model, or leave --resume out"));
    const auto take = [&](const char* option, std::optional<ig::Index> given, ig::Index stored) {
        if (given && *given != stored)
            throw ig::UsageError(ig::message("--resume: '", o.model, "' was begun with ", option, " ", stored,
                                             ", and --resume is given ", *given, "; leave the option out"));
        return stored;
    };
    const auto only = [](const std::vector<ig::Index>& list) {
        return list.empty() ? std::nullopt : std::optional(list.front());
    };
    const auto lags = [&](const char* name, std::optional<ig::Index> given, ig::Index otherwise) {
        return noted<ig::Index>(it, o.model, name, 1, most_lags, given.value_or(otherwise));
    };
    o.em_lags = take("--em-lags", o.em_lags, lags("lds_text.em_lags", o.em_lags, default_em_lags));
    o.ssid_lags = {take("--ssid-lags", only(o.ssid_lags),
                        lags("lds_text.ssid_lags", only(o.ssid_lags), default_ssid_lags))};
    o.states = {take("--states", only(o.states), it.system.states())};
    if (it.notes.contains("lds_text.shards"))
        o.shards = take("--shards", o.shards > 0 ? std::optional(o.shards) : std::nullopt,
                        noted<ig::Index>(it, o.model, "lds_text.shards", 1, 1 << 20, 0));
    const auto begun_without = [&](const std::string& option, const std::string& stored) {
        throw ig::UsageError(ig::message("--resume: '", o.model, "' was begun with ", stored, ", not with ",
                                         option, "; leave the option out"));
    };
    if (const auto at = it.notes.find("lds_text.start"); at != it.notes.end())
        for (const auto& [option, given] :
             {std::pair("--random-start", o.random_start), std::pair("--scaled", o.scaled)})
            if (given && at->second != option)
                begun_without(option, at->second.empty() ? "subspace identification" : at->second);
    if (const auto at = it.notes.find("lds_text.fixed_noise"); at != it.notes.end()) {
        if (o.fixed_noise && at->second != "1") begun_without("--fixed-noise", "EM that estimates it");
        o.fixed_noise = at->second == "1";
    }
    if (const auto at = it.notes.find("lds_text.seed"); at != it.notes.end() && o.seed)
        if (const auto given = ig::message(*o.seed); given != at->second)
            begun_without("--seed " + given, "--seed " + at->second);
    if (o.pseudo_counts.empty() && it.notes.contains("lds_text.pseudo_counts"))
        o.pseudo_counts = {noted<double>(it, o.model, "lds_text.pseudo_counts", 0, 1e12, 0)};
    if (o.counts.empty() && o.vocabulary_from.empty() && !o.vocabulary) o.vocabulary_from = o.model;
    return o;
}

/// The system that a fit resumes with: that of the file, if it was begun with these counts.
inline System resumed(const FitCommand& o, const Candidate& c, const lds::LagMoments<float>& moments,
                      const CoOccurrences& counted) {
    System it = lds::load_lds<float>(o.model);
    if (it.vocabulary.checksum() != counted.vocabulary().checksum())
        throw ig::DataError(ig::message("'", o.model,
                                        "' has other words than these counts; resume with the text and "
                                        "options it was begun with"));
    if (it.system.whitening.mu != moments.whitening().mu)
        throw ig::DataError(
            ig::message("'", o.model, "' has other word frequencies than these counts with ", c.pseudo_counts,
                        " pseudo-counts; resume with the text and options it was begun with"));
    std::istringstream note(it.notes["lds_text.iteration"]);
    std::size_t iteration = 0;
    if (!(note >> iteration))
        throw ig::FileError(ig::message("'", o.model, "' was not written by `lds_text fit`"));
    if (it.notes["lds_text.sentences"] != (moments.made_with().boundary >= 0 ? "1" : "0"))
        throw ig::DataError(ig::message(
            "'", o.model, "' was begun ", it.notes["lds_text.sentences"] == "1" ? "with" : "without",
            " --sentences, but these counts are of the other kind; resume with the same options"));
    // One of counts and one of a text (--matrix-free) cannot be compared.
    const std::string pairs = counted.checksum(o.em_lags.value_or(default_em_lags));
    const std::string& begun = it.notes["lds_text.pairs"];
    if (begun != pairs && begun.substr(0, 1) == pairs.substr(0, 1))
        throw ig::DataError(
            ig::message("'", o.model, "' was begun with ", begun, ", but this call reads ", pairs,
                        " with the same word frequencies; resume with the text it was ", "begun with"));
    it.notes["lds_text.pairs"] = pairs;
    it.log_likelihoods.resize(std::min(it.log_likelihoods.size(), iteration));
    return it;
}

}  // namespace lt
