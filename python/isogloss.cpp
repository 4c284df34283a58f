// The Python module isogloss: the library's functions over NumPy arrays, which are read and handed out without copies, and
// the language model of examples/language_model. There is no logic here: names, types, and who owns what.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <csignal>
#include <isogloss/hmm/hmm.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/metric/embedding_dimension.hpp>
#include <isogloss/metric/principal_angles.hpp>
#include <isogloss/metric/rank_correlation.hpp>
#include <isogloss/metric/subspace_distance.hpp>
#include <memory>

#include "../examples/language_model/measure.hpp"
#include "../examples/language_model/sampling.hpp"
#include "../examples/language_model/scoring.hpp"
#include "../examples/shared/interrupt.hpp"

namespace nb = nanobind;
namespace ig = isogloss;
using namespace nb::literals;

namespace {

using Text = nb::ndarray<const ig::Token, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Numbers = nb::ndarray<nb::numpy, T>;

auto span_of(const auto& array) { return std::span(array.data(), array.shape(0)); }
ig::MatrixRef<const double> matrix_of(const Matrix& x) {
    return {x.data(), static_cast<ig::Index>(x.shape(0)), static_cast<ig::Index>(x.shape(1))};
}

// An array over memory that a Python object owns.
template <class T> Numbers<T> view(T* data, ig::Index rows, ig::Index cols, nb::handle owner) {
    return Numbers<T>(data, {static_cast<std::size_t>(rows), static_cast<std::size_t>(cols)}, owner);
}
// An array that owns what it shows.
template <class M> auto owned(M matrix) {
    using T = std::remove_reference_t<decltype(*matrix.data())>;
    auto* const kept = new M(std::move(matrix));
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<M*>(p); });
    return Numbers<T>(kept->data(), {kept->shape(0), kept->shape(1)}, owner);
}

// A training catches signals, to save what it has; Python's own handlers come back after it.
class Signals {
public:
    Signals() {
        interrupt::wanted = 0;
        for (std::size_t i = 0; i < 4; ++i) sigaction(caught[i], nullptr, &before_[i]);
    }
    ~Signals() {
        for (std::size_t i = 0; i < 4; ++i) sigaction(caught[i], &before_[i], nullptr);
    }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

private:
    static constexpr int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction before_[4] = {};
};

template <class V> V value_of(nb::handle given, const std::string& name) {
    V value{};
    if constexpr (lm::is_optional<V>) return value_of<typename V::value_type>(given, name);
    else {
        bool fits = nb::try_cast(given, value);
        if constexpr (std::is_same_v<V, std::vector<ig::Index>>) {  // a number, or one for each layer
            if (ig::Index one = 0; !fits && nb::try_cast(given, one)) return {one};
            fits = fits && !value.empty();
        }
        const auto type = nb::cast<std::string>(nb::str(given.type().attr("__name__")));
        const auto error = "train: " + name + " is a " + type + ", which is not a valid value";
        return fits ? value : throw nb::type_error(error.c_str());
    }
}

void train(const std::string& model, const nb::kwargs& given) {
    lm::Options o;
    o.model = model;
    std::set<std::string> named = {"model"}, known;
    lm::each_option(o, [&]<class V>(std::string name, V& value, auto&&...) {
        const std::string option = name;
        std::replace(name.begin(), name.end(), '-', '_');
        known.insert(name);
        if (!given.contains(name.c_str())) return;
        value = value_of<V>(given[name.c_str()], name);
        named.insert(option);
    });
    for (const auto& [key, value] : given)
        if (!known.contains(nb::cast<std::string>(key)))
            throw nb::type_error(
                ("train: '" + nb::cast<std::string>(key) +
                 "' is not an option; `language_model train --help` lists them, with _ in place of -")
                    .c_str());
    int status = 0;
    {
        const Signals signals;
        const nb::gil_scoped_release released;
        status = lm::train(o, named);
    }
    if (status == 3) throw ig::NumericError("the training diverged; the best model is in '", model, "'");
    if (status > 128) throw(PyErr_SetNone(PyExc_KeyboardInterrupt), nb::python_error());
}

// A trained model with room for so many columns.
struct LanguageModel {
    lm::LoadedModel it;
    ig::Index columns;

    LanguageModel(const std::string& path, ig::Index n) : it(lm::load_model(path, n)), columns(n) {}
    double perplexity(const std::string& path) {
        const nb::gil_scoped_release released;
        const auto corpus = ig::text::Corpus::read(path, it.vocabulary);
        return lm::measure(*it.g, it.model, corpus, it.vocabulary, columns, it.g->capacity().time,
                           [](auto...) { return true; })
            ->value();
    }
    std::vector<std::tuple<double, ig::Index, ig::Index>> score(const std::vector<std::string>& texts) {
        const nb::gil_scoped_release released;
        std::vector<lm::Line> lines;
        for (const auto& text : texts) {
            lm::Line& line = lines.emplace_back();
            line.text = text;
            line.unknowns = it.vocabulary.encode_checked(text, line.tokens, {"line", std::ssize(lines)});
        }
        lm::score_all(it, lines);
        std::vector<std::tuple<double, ig::Index, ig::Index>> scores;
        for (const auto& line : lines)
            scores.emplace_back(line.log_probability, std::ssize(line.tokens), line.unknowns);
        return scores;
    }
    std::string sample(ig::Index words, std::uint64_t seed, double temperature, const std::string& prompt) {
        const nb::gil_scoped_release released;
        return lm::sample_text(it,
                               {.prompt = prompt, .length = words, .seed = seed, .temperature = temperature});
    }
};

struct Lds {
    ig::lds::Lds<float> system;
    ig::lds::SmallMatrix xx;  // covariances of its states

    Lds(const Text& text, ig::Index types, ig::Index states, ig::Index iterations,
        std::optional<double> pseudo_counts, ig::Index lags) {
        const nb::gil_scoped_release released;
        ig::lds::LagCounts counts(types, {.lags = lags});
        counts.add(span_of(text));
        const ig::lds::LagMoments<float> moments(counts, {.pseudo_counts = pseudo_counts});
        system = ig::lds::subspace_identification(moments, {.states = states, .lags = (lags + 1) / 2}).system;
        for (ig::Index i = 0;; ++i) {
            auto averages = ig::lds::asos_statistics(system, ig::lds::steady_state(system), moments, lags);
            xx = averages.xx;
            if (i == iterations) return;
            ig::lds::maximise(std::move(averages), system);
        }
    }
    auto embed(const Text& text, bool future) const {
        const ig::lds::TokenEmbedding<float> embedding(
            system, ig::lds::steady_state(system), xx,
            future ? ig::lds::TokenStates::smoother : ig::lds::TokenStates::filter);
        return owned(embedding(span_of(text)));
    }
};

// Errors without the name of the library, which Python gives.
void translate(const std::exception_ptr& p, void*) {
    const auto set = [](PyObject* kind, const char* what) {
        const std::string_view text = what;
        PyErr_SetString(kind, text.starts_with("isogloss: ") ? what + 10 : what);
    };
    try {
        std::rethrow_exception(p);
    } catch (const ig::FileError& error) {
        set(PyExc_OSError, error.what());
    } catch (const ig::NumericError& error) {
        set(PyExc_ArithmeticError, error.what());
    } catch (const ig::Error& error) {
        set(PyExc_ValueError, error.what());
    }
}

}  // namespace

NB_MODULE(isogloss, m) {
    m.doc() =
        "Sequence and word-vector models with a geometry. Texts are int32 arrays; errors are ValueError, "
        "OSError and ArithmeticError.";
    m.attr("__version__") = ISOGLOSS_VERSION;
    nb::register_exception_translator(translate);
    m.def(
        "threads", [](int n) { ig::threads(n); }, "n"_a,
        "Number of threads of all later calls, 1 by default.");

    m.def("train", &train, "model"_a, "options"_a,
          "Trains a language model, with the options of `language_model train`, _ in place of -. Prints its "
          "progress. Writes the best model to `model` and the state needed to resume to model.train. Raises "
          "KeyboardInterrupt when interrupted: train(model, resume=True) continues; ArithmeticError when "
          "training diverges.");
    nb::class_<LanguageModel>(m, "LanguageModel",
                              "A model written by train(), with capacity for `columns` parallel columns.")
        .def(nb::init<const std::string&, ig::Index>(), "path"_a, "columns"_a = 16)
        .def("perplexity", &LanguageModel::perplexity, "path"_a,
             "Perplexity of a text file, every token predicted once.")
        .def("score", &LanguageModel::score, "lines"_a,
             "For each line (log probability in nats, number of tokens, number of unknown tokens), line end "
             "included.")
        .def("sample", &LanguageModel::sample, "words"_a = 100, "seed"_a = 1, "temperature"_a = 1.0,
             "prompt"_a = "",
             "A text sampled from the model; temperature 0: the most probable word each time.")
        .def_prop_ro(
            "words", [](const LanguageModel& self) { return self.it.vocabulary.words(); }, "The vocabulary.")
        .def_prop_ro(
            "vectors",
            [](nb::handle self) {
                auto& it = nb::cast<LanguageModel&>(self).it;
                const auto E = it.g->parameter("E").values();
                return view(E.data, E.rows, E.cols, self);
            },
            "The word vectors [words, width], the model's own memory.");

    nb::class_<Lds>(m, "Lds",
                    "A linear dynamical system fitted to a text of tokens 0 … types - 1: subspace "
                    "identification, then EM.")
        .def(nb::init<const Text&, ig::Index, ig::Index, ig::Index, std::optional<double>, ig::Index>(),
             "text"_a, "types"_a, "states"_a = 50, "iterations"_a = 10, "pseudo_counts"_a = nb::none(),
             "lags"_a = 7)
        .def(
            "word_vectors",
            [](const Lds& self) { return owned(ig::lds::type_embedding(self.system, self.xx)); },
            "Word vectors [types, states], rows of norm 1.")
        .def("embed", &Lds::embed, "text"_a, "future"_a = true,
             "Vectors of tokens in context [tokens, states]; future: also uses the words after a token.");

    using Hmm = ig::hmm::Hmm;
    nb::class_<Hmm>(m, "Hmm", "A hidden Markov model.")
        .def(
            "__init__",
            [](Hmm* self, ig::Index states, ig::Index symbols, double prior, std::uint64_t seed) {
                new (self) Hmm({.states = states, .symbols = symbols, .prior = prior, .seed = seed});
            },
            "states"_a, "symbols"_a, "prior"_a = 0.0, "seed"_a = 1)
        .def(
            "step",
            [](Hmm& self, const std::vector<Text>& texts) {
                std::vector<std::vector<ig::Token>> all;
                for (const auto& x : texts) all.emplace_back(x.data(), x.data() + x.shape(0));
                const nb::gil_scoped_release released;
                return self.step(all);
            },
            "texts"_a, "One Baum-Welch step; returns the log-likelihood before it, in nats.")
        .def(
            "log_likelihood", [](Hmm& self, const Text& x) { return self.log_likelihood(span_of(x)); },
            "text"_a, "Log-likelihood in nats.")
        .def(
            "sample",
            [](const Hmm& self, ig::Index n, std::uint64_t seed) {
                return self.sample(n, ig::Random(seed, ig::stream_of("sample")));
            },
            "length"_a, "seed"_a = 1)
        .def_prop_ro(
            "transition",
            [](nb::handle self) {
                auto& h = nb::cast<Hmm&>(self);
                return view(h.transition.data(), h.states(), h.states(), self);
            },
            "Transition matrix [states, states], the model's own memory.")
        .def_prop_ro(
            "emission",
            [](nb::handle self) {
                auto& h = nb::cast<Hmm&>(self);
                return view(h.emission.data(), h.states(), h.symbols(), self);
            },
            "Emission matrix [states, symbols], the model's own memory.");

    m.def(
        "subspace_distance",
        [](const Matrix& x, const Matrix& y) {
            return ig::subspace_distance<double>(matrix_of(x), matrix_of(y));
        },
        "x"_a, "y"_a,
        "Distance between the column spaces of two matrices with the same number of rows, 0 to 1.");
    m.def(
        "principal_angles",
        [](const Matrix& x, const Matrix& y) {
            return ig::principal_angles<double>(matrix_of(x), matrix_of(y));
        },
        "x"_a, "y"_a, "Principal angles in radians, ascending.");
    m.def(
        "embedding_dimension", [](double words) { return ig::embedding_dimension(words).exact; }, "words"_a,
        "The smallest dimension at which the entropy of skip-grams is below 0.");
    m.def(
        "spearman", [](const Vector& x, const Vector& y) { return ig::spearman(span_of(x), span_of(y)); },
        "x"_a, "y"_a, "Spearman's rank correlation.");
}
