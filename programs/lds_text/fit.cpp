/// @file fit.cpp  A system from a text: counts, subspace identification, EM, with a checkpoint per iteration.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <isogloss/distributed/lds.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "../shared/csv_log.hpp"
#include "../shared/interrupt.hpp"
#include "../shared/lock.hpp"
#include "../shared/threads.hpp"
#include "fit_begin.hpp"

namespace lt {

namespace {

/// How well a system predicts a text that it has not seen.
struct HeldOut {
    HeldOut(const lds::TextFilter<float>& filter, const lds::Whitening& whitening,
            std::span<const ig::Token> tokens, ig::Token boundary)
        : found(likelihood(filter, whitening, tokens, boundary)),
          perplexity(std::exp(filter.cross_entropy(tokens, {.boundary = boundary}))) {
        double nats = 0;
        for (const auto token : tokens) nats -= std::log(whitening.mu[token]);
        unigram = std::exp(nats / static_cast<double>(tokens.size()));
    }
    explicit HeldOut(const std::array<double, 4>& of)
        : found{of[0], of[1]}, perplexity(of[2]), unigram(of[3]) {}
    std::array<double, 4> numbers() const { return {found.value, found.above_static, perplexity, unigram}; }
    Likelihood found;
    double perplexity, unigram;  ///< of the next word, and by word frequencies alone
};

/// Fits systems, reports every iteration, and leaves the best system in the file. Several ranks all do the
/// same, following the decisions of the first, which alone writes.
class Fit {
public:
    Fit(const FitCommand& o, const CoOccurrences& counted, program::Ranks& ranks)
        : o_(o), counted_(counted), ranks_(ranks) {
        if (o.dev.empty() || !ranks.first()) return;
        dev_ = corpus_of(o.dev, counted.vocabulary());
        if (std::ranges::find(o.pseudo_counts, 0.0) == o.pseudo_counts.end()) return;
        for (const auto token : dev_->tokens())
            if (counted.occurrences()[token] == 0)
                throw ig::DataError(ig::message("fit: ", ig::in_quotes(counted.vocabulary().word(token)),
                                                " occurs in --dev but not in the training text, and has "
                                                "frequency 0 with --pseudo-counts 0; "
                                                "give a number above 0, or leave --dev out"));
    }

    /// Subspace identification, or the file of --resume, then EM to convergence. Returns the last iteration.
    ig::Index run(const Candidate& c) {
        const lds::LagMoments<float> moments = counted_.moments({.pseudo_counts = c.pseudo_counts});
        System it = o_.resume ? resumed(o_, c, moments, counted_) : start(o_, c, moments, counted_, ranks_);
        if (o_.shards > 0) it.notes["lds_text.shards"] = ig::message(o_.shards);
        const auto& whitening = it.system.whitening;
        const double baseline = lds::static_log_likelihood(whitening.words);
        say("%td words, %td states, %g pseudo-counts a word, which are %.0f %% of what is counted\n",
            it.system.vocabulary(), it.system.states(), c.pseudo_counts,
            100 * c.pseudo_counts * static_cast<double>(whitening.mu.size()) / whitening.mass);
        auto iteration = static_cast<ig::Index>(it.log_likelihoods.size()), best_iteration = iteration;
        if (!log_ && ranks_.first()) open_log(iteration);
        constexpr double none = -std::numeric_limits<double>::infinity();
        double factor = noted<double>(it, o_.model, "lds_text.noise_factor", 0, 1, 1);
        double best = none;  // of this call, which saves its first iteration
        // for --stop: a fit that goes on compares with the iterations before, as one in one go does
        double before = it.log_likelihoods.empty() ? none : std::ranges::max(it.log_likelihoods);
        Stopwatch clock;
        for (;; ++iteration) {
            const auto steady = lds::steady_state(it.system);
            auto statistics = o_.shards > 0 ? distributed::asos_statistics(it.system, steady, moments,
                                                                           horizon(), ranks_, o_.shards)
                                            : lds::asos_statistics(it.system, steady, moments, horizon());
            const std::optional<HeldOut> held_out = predicted(it.system, steady);
            it.log_likelihoods.push_back(statistics.log_likelihood);
            it.xx = statistics.xx;
            it.xx_filtered = statistics.xx_filtered;
            it.notes["lds_text.iteration"] = ig::message(iteration);
            it.notes["lds_text.noise_factor"] = digits(factor, 17);
            tell(c, it, iteration, statistics.log_likelihood, baseline, held_out, factor, clock.lap());

            const double value = o_.select ? -held_out->perplexity : statistics.log_likelihood;
            interrupted_ = ranks_.any(interrupt::wanted != 0);
            if (interrupted_ && !interrupt::wanted)
                interrupt::wanted = SIGTERM;  // another rank received a signal
            if (!std::isfinite(value))
                throw ig::NumericError("fit: the likelihood of iteration ", iteration,
                                       " is not finite; use fewer --states or more --pseudo-counts");
            const double gain = value - before;
            before = std::max(before, value);
            if (value > best) {
                best = value;
                best_iteration = iteration;
                begun_ = true;
                // here and not after the M-step, so that the file always holds a system with its own
                // covariances
                if (ranks_.first()) {
                    if (!o_.select || value > selected_) lds::save_lds(o_.model, it);
                    std::error_code ignored;
                    std::filesystem::remove(identification_file(o_.model),
                                            ignored);  // resume from the model now
                }
                if (o_.select && value > selected_) selected_ = value, of_selected_ = {c, iteration};
            }
            const bool settled = o_.select ? iteration >= best_iteration + patience : gain < o_.stop;
            if (iteration >= o_.iterations || settled || interrupted_) break;
            factor = lds::maximise(std::move(statistics), it.system, {.scaled = !o_.fixed_noise});
        }
        if (!o_.select && best_iteration < iteration)
            say("EM has not improved since iteration %td, whose system is kept\n", best_iteration);
        tell_of_slow(lds::spectral_radius(it.system.A, "fit"));
        return iteration;
    }

    ig::Index horizon() const { return o_.em_lags.value_or(default_em_lags); }
    /// The system in the file, after runs of several candidates.
    const std::pair<Candidate, ig::Index>& selected() const { return of_selected_; }
    /// Whether there is a system in the file.
    bool begun() const { return begun_; }
    /// Whether a rank received a signal to end; the same on all ranks.
    bool interrupted() const { return interrupted_; }
    double best_perplexity() const { return -selected_; }

private:
    static constexpr ig::Index patience = 3;  // iterations without a better prediction, for each candidate

    /// How well the system predicts --dev, if given: computed by the first rank, broadcast to all.
    std::optional<HeldOut> predicted(const lds::Lds<float>& system, const lds::SteadyState& steady) {
        if (o_.dev.empty()) return std::nullopt;
        std::array<double, 4> numbers = {};
        try {
            if (dev_)
                numbers = HeldOut(lds::TextFilter<float>(system, steady), system.whitening, dev_->tokens(),
                                  counted_.boundary())
                              .numbers();
        } catch (const ig::NumericError&) {
            if (!o_.select) throw;
            numbers.fill(std::numeric_limits<double>::quiet_NaN());  // which ends the candidate on all ranks
        }
        ig::distributed::broadcast(ranks_, std::span<double>(numbers));
        return HeldOut(numbers);
    }

    /// Keeps the rows before the iteration at which a fit resumes.
    void open_log(ig::Index iteration) {
        log_.emplace(o_.log, fit_header, [&](std::string_view row) {
            std::istringstream in{std::string(row)};
            ig::Index of = 0;
            return o_.resume && in >> of && of < iteration;
        });
    }
    void tell(const Candidate& c, const System& it, ig::Index iteration, double value, double baseline,
              const std::optional<HeldOut>& held_out, double factor, double seconds) {
        const double radius = lds::spectral_radius(it.system.A, "fit");
        say("EM %3td  log-likelihood of the counts with pseudo-counts %.5f per token, %+.5f above none; "
            "radius %.4f; "
            "%.2f s\n",
            iteration, value, value - baseline, radius, seconds);
        std::string of_dev = ",,";
        if (held_out) {
            const auto& [found, perplexity, unigram] = *held_out;
            say("        --dev: %.5f per token, %+.5f above none; perplexity of the next word %.2f, unigram "
                "%.2f\n",
                found.value, found.above_static, perplexity, unigram);
            of_dev =
                ig::message(digits(found.value), ',', digits(found.above_static), ',', digits(perplexity));
        }
        if (log_)
            log_->append(ig::message(iteration, ',', digits(value), ',', digits(value - baseline), ',',
                                     digits(radius), ',', digits(factor), ',', digits(seconds), ',',
                                     digits(c.pseudo_counts), ',', c.states, ',', c.ssid_lags, ',', of_dev));
    }

    /// Warns if the dynamics outlast the horizon. On a text with largest eigenvalue 0.994, EM with 3, 7, 20
    /// and 60 lags found 0.896, 0.965, 0.986 and 0.989, of which 0.72, 0.78, 0.75 and 0.51 remain there.
    void tell_of_slow(double radius) const {
        const double left = std::pow(radius, static_cast<double>(horizon()));
        if (left <= 0.6) return;
        const double half = std::ceil(std::log(0.5) / std::log(std::min(radius, 0.9999)));
        say("after --em-lags %td the slowest dynamics have %.0f %% of their size left, and EM, whose "
            "statistics "
            "end there, underestimates their duration: half would be left after %.0f%s\n",
            horizon(), 100 * left, half,
            half > static_cast<double>(most_lags) ? ", more lags than can be counted" : "");
    }

    const FitCommand& o_;
    const CoOccurrences& counted_;
    program::Ranks& ranks_;
    std::optional<ig::text::Corpus> dev_;  // on the first rank
    std::optional<files::CsvLog> log_;
    bool interrupted_ = false, begun_ = false;
    double selected_ = -std::numeric_limits<double>::infinity();  // minus the perplexity
    std::pair<Candidate, ig::Index> of_selected_ = {};
};

/// Fits all candidates; those of --select that cannot be fitted are left out. `last`: the last iteration.
void fit_all(Fit& fit, const FitCommand& o, const std::vector<Candidate>& all, ig::Index& last) {
    for (const Candidate& c : all) {
        const auto left_out = [&](const ig::Error& error) {
            if (!o.select) throw;
            say("%g pseudo-counts, %td states, %td blocks: left out: %s\n", c.pseudo_counts, c.states,
                c.ssid_lags, std::string(error.text()).c_str());
        };
        try {
            last = fit.run(c);
        } catch (const ig::UsageError& error) {
            left_out(error);
        } catch (const ig::NumericError& error) {
            left_out(error);
        }
        if (fit.interrupted()) break;
    }
    if (!fit.begun())
        throw ig::NumericError("fit: none of the ", all.size(), " candidates of --select could be fitted");
}

/// Says where the choice of --select is the least or the greatest that was tried, beyond which a better one may be.
void tell_of_edges(const FitCommand& o, const std::vector<Candidate>& all, const Candidate& chosen,
                   ig::Index iteration) {
    const auto tell = [&](const char* option, auto Candidate::*value) {
        const auto [least, greatest] = std::ranges::minmax(all, {}, value);
        if (least.*value == greatest.*value) return;
        for (const auto& [end, name] :
             {std::pair(least.*value, "least"), std::pair(greatest.*value, "greatest")})
            if (chosen.*value == end)
                say("%s is the %s %s that was tried: a better one may lie beyond\n", ig::message(end).c_str(),
                    name, option);
    };
    tell("--pseudo-counts", &Candidate::pseudo_counts);
    tell("--states", &Candidate::states);
    tell("--ssid-lags", &Candidate::ssid_lags);
    if (iteration > 0 && iteration == o.iterations)
        say("iteration %td is the last that was tried: more --iterations may be better\n", iteration);
}

/// The command on one of its ranks. The first alone checks files, before any rank continues: the others would
/// find files that it has begun to write.
int fit_on(program::Ranks& ranks, const FitCommand& given) {
    program::use_threads("fit", given.threads);
    const ig::BlasOnOneThread blas;
    check(given);
    std::optional<files::Lock> lock;
    if (ranks.first()) {
        files::Outputs().write_unmarked("--model", given.model, true).check();  // its folder, for the lock
        lock.emplace("--model", given.model);
        require_outputs(given);
    }
    ranks.barrier();
    FitCommand o = given;
    o.go_on = given.resume;
    const bool identified = given.resume && in_identification(given.model);
    o.resume = given.resume && !identified && files::has_content(given.model);
    if (o.resume) o = with_stored(o);
    else if (identified) require_identification(o);
    else if (given.resume) say("'%s' holds no fit yet: the fit starts from the beginning\n", o.model.c_str());
    if (o.shards == 0 && program::Ranks::launched()) o.shards = std::max<ig::Index>(ranks.size(), 4);
    if (o.shards > 0 && o.shards < ranks.size())
        throw ig::UsageError(ig::message("--shards is ", o.shards, ", expected at least the ", ranks.size(),
                                         " ranks that mpirun has started: each takes one or more of them"));
    if (o.states.empty()) o.states = {default_states};
    if (o.ssid_lags.empty()) o.ssid_lags = {default_ssid_lags};
    interrupt::catch_signals();
    const ig::Index of_identification =
        o.random_start ? 0 : 2 * *std::max_element(o.ssid_lags.begin(), o.ssid_lags.end()) - 1;
    const CoOccurrences counted(o, std::max(of_identification, o.em_lags.value_or(default_em_lags)), ranks);
    counted.require_horizon(o.em_lags.value_or(default_em_lags));
    Fit fit(o, counted, ranks);
    const std::vector<Candidate> all = candidates(o, counted);
    ig::Index last = 0;
    try {
        fit_all(fit, o, all, last);
    } catch (const IdentificationInterrupted& end) {
        if (!fit.begun()) {
            interrupt::out() << "Interrupted in subspace identification"
                             << (end.kept ? "; its state is in '" + identification_file(o.model) +
                                                "'. To continue: the same call with --resume"
                                          : ", before its first state was written")
                             << std::endl;
            return interrupt::status();
        }
    }
    if (o.select) {
        const auto& [c, iteration] = fit.selected();
        say("selected: %g pseudo-counts, %td states, %td blocks, iteration %td; perplexity of --dev %.2f\n",
            c.pseudo_counts, c.states, c.ssid_lags, iteration, fit.best_perplexity());
        if (!interrupt::wanted) tell_of_edges(o, all, c, iteration);
    }
    say("%s, peak memory %.0f MiB\n", o.model.c_str(), peak_memory());
    if (!interrupt::wanted) return 0;
    interrupt::out() << "Interrupted after iteration " << last << "; the best system is in '" << o.model
                     << "'. "
                     << (o.select ? "To select among all, start over"
                                  : "To continue: the same call with --resume")
                     << std::endl;
    return interrupt::status();
}

}  // namespace

int fit(const FitCommand& given) {
    program::Ranks ranks;
    return ranks.guard([&] { return fit_on(ranks, given); });
}

}  // namespace lt
