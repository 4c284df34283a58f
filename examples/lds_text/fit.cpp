/// @file fit.cpp  A system from a text: counts, subspace identification, EM, with a checkpoint per iteration.
#include <cmath>
#include <iomanip>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>
#include <limits>
#include <locale>
#include <sstream>

#include "../shared/csv_log.hpp"
#include "../shared/interrupt.hpp"
#include "../shared/lock.hpp"
#include "common.hpp"

namespace lt {

namespace {

using System = lds::LdsFile<float>;

lds::CountsFile counts_of(const FitCommand& o) {
    const ig::Index lags = std::max(2 * o.ssid_lags - 1, o.em_lags);
    if (!o.counts.empty()) {
        auto counted = lds::load_counts(o.counts);
        if (o.sentences && counted.counts.options().boundary < 0)
            throw ig::DataError(ig::message("--sentences is given, but '", o.counts,
                                            "' was counted across sentences; count with --sentences"));
        return counted;
    }
    if (o.train.empty())
        throw ig::DataError("fit: give --train, a text, or --counts, a file of `lds_text count`");
    Stopwatch clock;
    auto vocabulary = read_vocabulary(o.train, o.vocabulary, 1);
    const auto corpus = ig::text::Corpus::read(o.train, vocabulary);
    const double reading = clock.lap();
    lds::LagCounts counts(vocabulary.size(), {.lags = lags, .boundary = boundary(o.sentences, vocabulary)});
    counts.add(corpus.tokens());
    say("counts: %td tokens, %td types, %td lags; reading %.2f s, counting %.2f s\n", corpus.size(),
        vocabulary.size(), lags, reading, clock.lap());
    return {std::move(counts), std::move(vocabulary)};
}

/// Small random parameters: the flat start that subspace identification is compared with.
lds::Lds<float> random_system(const lds::Whitening& whitening, const FitCommand& o) {
    const auto V = static_cast<ig::Index>(whitening.mu.size());
    const ig::Random random(o.seed, ig::stream_of("random start"));
    lds::Lds<float> s;
    s.A = lds::zeros<double>(o.states, o.states);
    for (std::size_t i = 0; i < s.A.size(); ++i) s.A.data()[i] = random.normal(ig::Index(i));
    s.A *= 0.5 / lds::spectral_radius(s.A, "random start");
    s.C = lds::zeros<float>(V, o.states);
    const double scale = 0.5 / std::sqrt(static_cast<double>(V));
    for (std::size_t i = 0; i < s.C.size(); ++i)
        s.C.data()[i] = static_cast<float>(scale * random.normal(ig::Index(i + s.A.size())));
    s.whitening = whitening;
    lds::project_out<float>(whitening.m, lds::ref(s.C));
    s.M = lds::lyapunov(s.A, lds::identity(o.states));
    lds::repair_noise(lds::inner_products(s.C, s.C), s.M);
    return s;
}

System start(const FitCommand& o, const lds::LagMoments<float>& moments,
             const ig::text::Vocabulary& vocabulary) {
    Stopwatch clock;
    System it;
    it.vocabulary = vocabulary;
    if (o.random_start) {
        it.system = random_system(moments.whitening(), o);
        say("random start\n");
    } else {
        auto found = lds::subspace_identification(
            moments, {.states = o.states, .lags = o.ssid_lags, .scaled = o.scaled, .svd = {.seed = o.seed}});
        it.system = std::move(found.system);
        it.singular_values = std::move(found.singular_values);
        say("subspace identification: singular values %.4f … %.4f, error below %.4f, radius %.4f, noise "
            "factor %.4f; "
            "%.2f s\n",
            it.singular_values.front(), it.singular_values.back(), found.error_bound, found.radius,
            found.noise_factor, clock.lap());
    }
    it.notes = {{"lds_text.iteration", "0"},
                {"lds_text.sentences", moments.counts().options().boundary >= 0 ? "1" : "0"}};
    return it;
}

System resumed(const FitCommand& o, const lds::LagMoments<float>& moments) {
    System it = lds::load_lds<float>(o.model);
    if (it.system.whitening.mu != moments.whitening().mu)
        throw ig::DataError(
            ig::message("'", o.model, "' has other word frequencies than these counts with ", o.pseudo_counts,
                        " pseudo-counts; resume with the text and options it was begun with"));
    std::istringstream note(it.notes["lds_text.iteration"]);
    std::size_t iteration = 0;
    if (!(note >> iteration))
        throw ig::FileError(ig::message("'", o.model, "' was not written by `lds_text fit`"));
    if (it.notes["lds_text.sentences"] != (moments.counts().options().boundary >= 0 ? "1" : "0"))
        throw ig::DataError(ig::message(
            "'", o.model, "' was begun ", it.notes["lds_text.sentences"] == "1" ? "with" : "without",
            " --sentences, but these counts are of the other kind; resume as it was begun"));
    it.log_likelihoods.resize(std::min(it.log_likelihoods.size(), iteration));
    return it;
}

/// The log of a fit that goes on with `iteration`: rows before it are kept where the fit is resumed.
files::CsvLog open_log(const FitCommand& o, ig::Index iteration) {
    return files::CsvLog(o.log, fit_header, [&](std::string_view row) {
        std::istringstream in{std::string(row)};
        ig::Index of = 0;
        return o.resume && in >> of && of < iteration;
    });
}

/// Twelve digits of a number: those that a log holds.
std::string digits(double x) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << std::setprecision(12) << x;
    return out.str();
}

}  // namespace

int fit(const FitCommand& o) {
    ig::threads(o.threads);
    const ig::BlasOnOneThread blas;
    ig::require("fit", "--iterations", o.iterations, 0);
    ig::require("fit", "--stop", o.stop, std::numeric_limits<double>::lowest());
    if (o.pseudo_counts != 0 && !(o.pseudo_counts >= 1e-6 && o.pseudo_counts <= 1e12))
        throw ig::UsageError(ig::message("fit: found --pseudo-counts = ", o.pseudo_counts,
                                         ", expected 0, or a number from 1e-6 to 1e12"));
    files::Outputs().write_unmarked("--model", o.model, true).check();  // its folder, for the lock
    const files::Lock lock("--model", o.model);
    files::Outputs()
        .read("--train", o.train)
        .read("--counts", o.counts)
        .write("--model", o.model, model_kind())
        .write_unmarked("--model", o.model + ".lock", false)
        .write("--log", o.log, files::table("log of `lds_text fit`", fit_header))
        .check();
    interrupt::catch_signals();
    Stopwatch clock;
    const auto counted = counts_of(o);
    const lds::LagMoments<float> moments(counted.counts, {.pseudo_counts = o.pseudo_counts});
    System it = o.resume ? resumed(o, moments) : start(o, moments, counted.vocabulary);
    const double baseline = lds::static_log_likelihood(it.system.whitening.words);
    auto iteration = static_cast<ig::Index>(it.log_likelihoods.size());

    const auto log = open_log(o, iteration);
    const auto note = [&](const lds::Statistics<float>& s, double factor) {
        const double radius = lds::spectral_radius(it.system.A, "fit"), seconds = clock.lap();
        it.log_likelihoods.push_back(s.log_likelihood);
        say("EM %3td  log-likelihood %.5f per token, %+.5f above none; radius %.4f; %.2f s\n", iteration,
            s.log_likelihood, s.log_likelihood - baseline, radius, seconds);
        log.append(ig::message(iteration, ',', digits(s.log_likelihood), ',',
                               digits(s.log_likelihood - baseline), ',', digits(radius), ',', digits(factor),
                               ',', digits(seconds)));
    };
    clock.lap();
    double factor = 1;
    for (;; ++iteration) {
        auto statistics = lds::asos_statistics(it.system, lds::steady_state(it.system), moments, o.em_lags);
        note(statistics, factor);
        it.xx = statistics.xx;
        it.xx_filtered = statistics.xx_filtered;
        it.notes["lds_text.iteration"] = ig::message(iteration);
        // here and not after the M-step: the file holds a system with its own covariances, whenever the
        // program ends
        lds::save_lds(o.model, it);
        const std::size_t n = it.log_likelihoods.size();
        const bool settled = n > 1 && it.log_likelihoods[n - 1] - it.log_likelihoods[n - 2] < o.stop;
        if (iteration >= o.iterations || settled || interrupt::wanted) break;
        factor = lds::maximise(std::move(statistics), it.system);
    }
    say("%s, peak memory %.0f MiB\n", o.model.c_str(), peak_memory());
    if (!interrupt::wanted) return 0;
    interrupt::out() << "Interrupted after iteration " << iteration << "; the system is in '" << o.model
                     << "'. To go on: the same call with --resume" << std::endl;
    return interrupt::status();
}

}  // namespace lt
