// The Python module isogloss: the library's functions over NumPy arrays, which are read and handed out without copies, and
// the language model of programs/language_model. There is no logic here: names, types, and who owns what.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <isogloss/geometry/embedding_dimension.hpp>
#include <isogloss/geometry/neighbours.hpp>
#include <isogloss/geometry/principal_angles.hpp>
#include <isogloss/geometry/rank_correlation.hpp>
#include <isogloss/geometry/subspace_distance.hpp>
#include <isogloss/hmm/hmm.hpp>
#include <isogloss/lds.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include "../programs/language_model/log.hpp"
#include "../programs/language_model/measure.hpp"
#include "../programs/language_model/sampling.hpp"
#include "../programs/language_model/scoring.hpp"
#include "../programs/shared/interrupt.hpp"
#include "../programs/shared/outputs.hpp"

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
// An array that owns what it shows, of a shape that is that of `array` if it has one.
template <class A> auto owned(A array) {
    using T = std::remove_reference_t<decltype(*array.data())>;
    auto* const kept = new A(std::move(array));
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<A*>(p); });
    if constexpr (requires { kept->shape(1); })
        return Numbers<T>(kept->data(), {kept->shape(0), kept->shape(1)}, owner);
    else return Numbers<T>(kept->data(), {kept->size()}, owner);
}

// Errors as Python names them, with a message of any parts.
template <class... Parts> nb::builtin_exception type_error(Parts... parts) {
    return nb::type_error(ig::message(parts...).c_str());
}
template <class... Parts> nb::builtin_exception value_error(Parts... parts) {
    return nb::value_error(ig::message(parts...).c_str());
}

std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

// A text, given as an array or a list of whole numbers. They are checked before they are converted: NumPy's
// conversion cuts off fractions and wraps large numbers around.
Text tokens_of(const std::string& who, nb::handle given) {
    const auto numpy = nb::module_::import_("numpy");
    const nb::object array = numpy.attr("asarray")(given), type = array.attr("dtype");
    const auto dimensions = nb::cast<ig::Index>(array.attr("ndim"));
    if (dimensions != 1)
        throw type_error(
            who, ": found ", text_of(given.type().attr("__name__")), " of ", dimensions,
            " dimensions, expected a text: one-dimensional, an array or a list of whole numbers");
    const auto kind = text_of(type.attr("kind"));
    const auto bytes = nb::cast<ig::Index>(type.attr("itemsize"));
    const bool empty = nb::cast<ig::Index>(array.attr("size")) == 0;  // an empty list is an array of floats
    if (!empty && kind != "i" && kind != "u")
        throw type_error(who, ": found numbers of type ", text_of(type),
                         ", expected whole numbers, such as int32",
                         kind == "f" ? "; convert them if they are, by .astype('int32')" : "");
    if (!empty && (bytes > 4 || (bytes == 4 && kind == "u")))
        for (const char* extreme : {"argmin", "argmax"}) {
            const nb::object at = array.attr(extreme)(), number = array.attr("item")(at);
            if (ig::Token token = 0; !nb::try_cast(number, token))
                throw value_error(who, ": found ", text_of(number), " at position ", text_of(at),
                                  ", expected numbers of 32 bits, -2147483648 to 2147483647");
        }
    return nb::cast<Text>(numpy.attr("require")(array, "int32", "CA"));
}

// Numbers of so many dimensions, given as an array or as lists.
template <class Array> Array numbers_of(const std::string& who, nb::handle given, ig::Index dimensions) {
    const auto numpy = nb::module_::import_("numpy");
    const nb::object array = numpy.attr("asarray")(given), type = array.attr("dtype");
    const auto kind = text_of(type.attr("kind"));
    if (kind != "f" && kind != "i" && kind != "u" && kind != "b")
        throw type_error(who, ": found ", text_of(given.type().attr("__name__")), " of type ", text_of(type),
                         ", expected real numbers");
    if (const auto found = nb::cast<ig::Index>(array.attr("ndim")); found != dimensions)
        throw type_error(who, ": found ", text_of(given.type().attr("__name__")), " of ", found,
                         " dimensions, expected ", dimensions == 2 ? "a matrix" : "a vector", ": ",
                         dimensions, dimensions == 2 ? " dimensions" : " dimension");
    return nb::cast<Array>(numpy.attr("require")(array, "float64", "CA"));
}

// Lets Python's signal handlers run, ten times a second at most; what they throw, such as KeyboardInterrupt, ends
// the call. For threads that have released the GIL.
class SignalCheck {
public:
    void operator()() {
        if (Clock::now() - last_ < std::chrono::milliseconds(100)) return;
        last_ = Clock::now();
        const nb::gil_scoped_acquire acquired;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point last_ = Clock::now();
};

// Of a model: which thread is in the midst of a call.
struct Guard {
    std::timed_mutex mutex;
    std::atomic<std::thread::id> owner{};
};

// A call on a model that may change it, or uses its memory: others, of other threads, wait until it has ended, or until
// a signal handler ends them.
// The GIL is released first: a waiting thread would otherwise keep it from the one that is to end. A signal handler of
// the same thread would wait for ever: throws UsageError.
class Turn {
public:
    explicit Turn(Guard& guard) : owner_(guard.owner) {
        if (owner_ == std::this_thread::get_id())
            throw ig::UsageError(
                "the model is in the midst of another call of this thread, which a signal handler has ",
                "interrupted; call it when that has ended");
        released_.emplace();
        lock_ = std::unique_lock(guard.mutex, std::defer_lock);
        for (SignalCheck check; !lock_.try_lock_for(std::chrono::milliseconds(100));) check();
        owner_ = std::this_thread::get_id();
    }
    ~Turn() { owner_ = std::thread::id(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

private:
    std::atomic<std::thread::id>& owner_;
    std::optional<nb::gil_scoped_release> released_;
    std::unique_lock<std::timed_mutex> lock_;
};

// A training catches signals, to save what it has; Python's own handlers come back after it. One training at a
// time: the handlers, and the signal that arrived, are those of the process.
class Signals {
public:
    Signals() : lock_(of_others()) {
        trainer = std::this_thread::get_id();
        interrupt::wanted = 0;
        for (std::size_t i = 0; i < 4; ++i) sigaction(caught[i], nullptr, &before_[i]);
        interrupt::catch_signals();  // now: Python's handlers would wait until the training has ended
    }
    ~Signals() {
        trainer = std::thread::id();
        for (std::size_t i = 0; i < 4; ++i) sigaction(caught[i], &before_[i], nullptr);
    }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

private:
    static std::mutex& of_others() {
        if (trainer == std::this_thread::get_id())
            throw ig::UsageError(
                "train: called within a training of the same thread, as by its on_epoch; call it when that ",
                "has ended");
        return one_at_a_time;
    }

    static constexpr int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    static inline std::mutex one_at_a_time;
    static inline std::atomic<std::thread::id> trainer{};
    std::lock_guard<std::mutex> lock_;
    struct sigaction before_[4] = {};
};

// What a training prints goes where print() writes, sys.stdout: a notebook shows it.
class Output : public std::stringbuf {
public:
    Output() : before_(std::cout.rdbuf(this)) {}
    ~Output() override {
        write();
        std::cout.rdbuf(before_);
    }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

protected:
    int sync() override { return write() ? 0 : -1; }

private:
    bool write() noexcept {
        if (view().empty()) return true;
        const nb::gil_scoped_acquire acquired;
        try {
            // Names of files need not be UTF-8.
            const auto text = nb::steal(PyUnicode_DecodeUTF8(view().data(), std::ssize(view()), "replace"));
            str("");
            const nb::object out = nb::module_::import_("sys").attr("stdout");
            out.attr("write")(text);
            out.attr("flush")();
        } catch (const nb::python_error& error) {  // nobody reads it; a Ctrl-C from before the training
            if (error.matches(PyExc_KeyboardInterrupt)) interrupt::wanted = SIGINT;
            return false;
        }
        return true;
    }

    std::streambuf* const before_;
};

// The results of an epoch, named as in the file that the option `log` gives.
nb::dict dict_of(const lm::Row& r) {
    nb::dict d;
    d["epoch"] = r.epoch;
    d["rate"] = r.rate;
    d["train_tokens"] = r.train_tokens;
    d["train_perplexity"] = r.train_perplexity;
    d["valid_tokens"] = r.valid_tokens;
    d["valid_perplexity"] = r.valid_perplexity;
    d["seconds"] = r.seconds;
    d["tokens_per_second"] = static_cast<double>(r.train_tokens) / r.seconds;
    d["soft_term"] = r.soft_term;
    d["gradient_norm"] = r.gradient_norm;
    d["largest_gradient_norm"] = r.largest_gradient_norm;
    d["clipped_share"] = r.clipped_share;
    d["largest_row"] = r.largest_row;
    d["largest_row_word"] = ig::shown(r.largest_row_word);
    d["tau_log_v"] = r.tau_log_v;
    d["cpu_seconds"] = r.cpu_seconds;
    d["subspace_distance"] = r.subspace;
    return d;
}

template <class V> V value_of(nb::handle given, const std::string& name) {
    V value{};
    if constexpr (lm::is_optional<V>) return value_of<typename V::value_type>(given, name);
    else {
        bool fits = nb::try_cast(given, value);
        if constexpr (std::is_same_v<V, std::vector<ig::Index>>) {  // a number, or one for each layer
            if (ig::Index one = 0; !fits && nb::try_cast(given, one)) return {one};
            fits = fits && !value.empty();
        }
        if constexpr (std::is_same_v<V, std::string>)
            if (std::filesystem::path path;
                !fits && (nb::hasattr(given, "__fspath__") || nb::isinstance<nb::str>(given)) &&
                nb::try_cast(given, path))
                return path.string();
        if (!fits)
            throw type_error("train: ", name, " is a ", text_of(given.type().attr("__name__")),
                             ", which is not a valid value: found ", text_of(nb::repr(given)), ", expected ",
                             std::is_same_v<V, bool>          ? "True or False"
                             : std::is_unsigned_v<V>          ? "a whole number of at least 0 and below 2**64"
                             : std::is_same_v<V, int>         ? "a whole number of 32 bits"
                             : std::is_integral_v<V>          ? "a whole number of 64 bits"
                             : std::is_floating_point_v<V>    ? "a number"
                             : std::is_same_v<V, std::string> ? "a str or a path"
                                                              : "a whole number, or a list of them");
        return value;
    }
}

nb::list train(const std::filesystem::path& model, const nb::object& on_epoch, const nb::kwargs& given) {
    if (!on_epoch.is_none() && !nb::isinstance<nb::callable>(on_epoch))
        throw type_error("train: on_epoch is a ", text_of(on_epoch.type().attr("__name__")),
                         ", expected a function of one argument, the results of an epoch");
    lm::Options o;
    o.model = model.string();
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
            throw type_error(
                "train: '", nb::cast<std::string>(key),
                "' is not an option; `language_model train --help-all` lists them, with _ in place of -");
    if (o.train.empty() && o.valid.empty() && o.corpus.empty()) {
        if (!o.resume)
            throw value_error("train: found no texts, expected train and valid, or corpus; give them");
        if (!files::has_content(o.model + ".train"))
            throw ig::UsageError(
                "train: resume: found no training '", o.model,
                ".train', expected one that was interrupted; give train and valid, or corpus, to begin");
    }
    int status = 0;
    nb::list rows;
    {
        const nb::gil_scoped_release released;  // before another training is waited for
        const Signals signals;
        const Output output;
        status = lm::train(o, named, [&](const lm::Row& row) {
            const nb::gil_scoped_acquire acquired;
            rows.append(dict_of(row));
            if (!on_epoch.is_none()) on_epoch(dict_of(row));
        });
    }
    if (status == 3)
        throw ig::NumericError("the training diverged; what it printed says whether a model was written to '",
                               o.model, "'");
    if (status > 128) throw(PyErr_SetNone(PyExc_KeyboardInterrupt), nb::python_error());
    return rows;
}

// A trained model with room for so many columns.
struct LanguageModel {
    lm::LoadedModel it;
    ig::Index columns;
    Guard guard;  // of the graph, which carries states from pass to pass

    LanguageModel(const std::filesystem::path& path, ig::Index n)
        : it((ig::require("LanguageModel", "columns", n, 1), lm::load_model(path.string(), n))), columns(n) {}
    double perplexity(const std::filesystem::path& path) {
        const Turn turn(guard);
        const auto corpus = ig::text::Corpus::read(path.string(), it.vocabulary);
        SignalCheck check;
        return lm::measure(*it.g, it.model, corpus, it.vocabulary, columns, it.g->capacity().time,
                           [&](auto...) { return check(), true; })
            ->value();
    }
    std::vector<std::tuple<double, ig::Index, ig::Index>> score(const std::vector<std::string>& texts) {
        const Turn turn(guard);
        std::vector<lm::Line> lines;
        for (const auto& text : texts) {
            lm::Line& line = lines.emplace_back();
            line.text = text;
            try {
                line.unknowns = it.vocabulary.encode(text, line.tokens);
            } catch (const ig::DataError& error) {
                throw ig::DataError("line ", lines.size(), ": ", error.text());
            }
        }
        lm::score_all(it, lines);
        std::vector<std::tuple<double, ig::Index, ig::Index>> scores;
        for (const auto& line : lines)
            scores.emplace_back(line.log_probability, std::ssize(line.tokens), line.unknowns);
        return scores;
    }
    std::string sample(ig::Index words, std::uint64_t seed, double temperature, const std::string& prompt) {
        const Turn turn(guard);
        lm::SampleOptions o;
        o.length = words, o.seed = seed, o.temperature = temperature, o.prompt = prompt;
        return lm::sample_text(it, o, SignalCheck());
    }
};

// Does not change once it is made, so that threads can share it.
struct Lds {
    ig::lds::Lds<float> system;
    ig::lds::SmallMatrix xx, xx_filtered;  // of ig::lds::Statistics

    Lds(const Text& text, ig::Index types, ig::Index states, ig::Index iterations,
        std::optional<double> pseudo_counts, ig::Index lags) {
        const nb::gil_scoped_release released;
        ig::require("Lds", "states", states, 1);
        ig::require("Lds", "iterations", iterations, 0);
        ig::require("Lds", "lags", lags, 3, 1000);
        if (pseudo_counts) ig::require("Lds", "pseudo_counts", *pseudo_counts, 0);
        SignalCheck check;
        ig::counts::LagCounts counts(types, {.lags = lags});
        const auto tokens = span_of(text);
        for (ig::Index first = 0, last = 0; first < std::ssize(tokens); first = last, check()) {
            last = std::min(std::ssize(tokens), first + counts.options().block);
            counts.add(tokens, first, last);
        }
        const ig::lds::LagMoments<float> moments(counts, {.pseudo_counts = pseudo_counts});
        ig::lds::SubspaceWatch<float> watch;
        watch.progress = [&](double) { check(); };
        system = ig::lds::subspace_identification(moments, {.states = states, .lags = (lags + 1) / 2}, watch)
                     .system;
        for (ig::Index i = 0;; ++i) {
            check();
            auto averages = ig::lds::asos_statistics(system, ig::lds::steady_state(system), moments, lags);
            xx = averages.xx;
            xx_filtered = averages.xx_filtered;
            if (i == iterations) return;
            ig::lds::maximise(std::move(averages), system);
        }
    }
    ig::lds::TextFilter<float> text_filter() const { return {system, ig::lds::steady_state(system)}; }
    auto states(const Text& text, bool future) const {
        const nb::gil_scoped_release released;
        return future ? text_filter().smooth(span_of(text)) : text_filter().filter(span_of(text));
    }
    double cross_entropy(const Text& text) const {
        const nb::gil_scoped_release released;
        return text_filter().cross_entropy(span_of(text));
    }
    auto word_vectors() const {
        const nb::gil_scoped_release released;
        return ig::lds::type_embedding(system, xx);
    }
    auto embed(const Text& text, bool future) const {
        const nb::gil_scoped_release released;
        const ig::lds::TokenEmbedding<float> embedding(
            system, ig::lds::steady_state(system), *this,
            future ? ig::lds::TokenStates::smoother : ig::lds::TokenStates::filter);
        return embedding(span_of(text));
    }
};

struct Hmm {
    ig::hmm::Hmm it;
    Guard guard;

    explicit Hmm(const ig::hmm::Options& options) : it(options) {}
    double step(const std::vector<std::span<const ig::Token>>& texts) {
        const Turn turn(guard);
        return it.step(texts);
    }
    double log_likelihood(const Text& text) {
        const Turn turn(guard);
        return it.log_likelihood(span_of(text));
    }
    auto posteriors(const Text& text) {
        const Turn turn(guard);
        return it.posteriors(span_of(text));
    }
    auto most_probable_path(const Text& text) {
        const Turn turn(guard);
        return it.most_probable_path(span_of(text));
    }
    std::vector<ig::Token> sample(ig::Index length, std::uint64_t seed) {
        const Turn turn(guard);
        return it.sample(length, ig::Random(seed, ig::stream_of("sample"))).symbols;
    }
};

// Errors without the name of the library, which Python gives.
void translate(const std::exception_ptr& p, void*) {
    const auto set = [](PyObject* kind, std::string_view what) {
        // Names of files need not be UTF-8: as os.fsdecode has them.
        PyObject* const text = PyUnicode_DecodeUTF8(what.data(), std::ssize(what), "surrogateescape");
        if (!text) return;
        PyErr_SetObject(kind, text);
        Py_DECREF(text);
    };
    try {
        std::rethrow_exception(p);
    } catch (const ig::FileError& error) {
        set(PyExc_OSError, error.text());
    } catch (const ig::NumericError& error) {
        set(PyExc_ArithmeticError, error.text());
    } catch (const ig::Error& error) {
        set(PyExc_ValueError, error.text());
    }
}

}  // namespace

NB_MODULE(isogloss, m) {
    m.doc() =
        "Sequence and word-vector models with a geometry.\n\nA text of tokens is an int32 array, or any "
        "array or "
        "list of whole numbers of 32 bits; -1 is a missing symbol for an Hmm and an error elsewhere. A path "
        "is a "
        "str or a pathlib.Path. Errors are ValueError (options, contents), TypeError, OSError (files) and "
        "ArithmeticError (numbers that are not finite). Calls let other threads run meanwhile; those on the "
        "same "
        "model take turns.";
    m.attr("__version__") = ISOGLOSS_VERSION;
    m.attr("configuration") = ig::configuration();
    nb::register_exception_translator(translate);
    m.def(
        "threads", [](int n) { ig::threads(n); }, "n"_a,
        "Number of threads of all later calls, 1 to 1024; 1 at first, and in a forked process, where it must "
        "stay 1.");
    m.def(
        "portable", [](bool wanted) { ig::portable(wanted); }, "wanted"_a,
        "With True, later trainings and other calls have the same bits on every processor and for any number "
        "of threads; for what is not covered see docs/core/threads.md. Call it before a model is read or "
        "trained.");
    pthread_atfork(nullptr, nullptr, [] { ig::threads(1); });  // a child has none of OpenMP's threads

    m.def("train", &train, "model"_a, "on_epoch"_a = nb::none(), "options"_a,
          "Trains a language model, with the options of `language_model train`, _ in place of -. Prints its "
          "progress to sys.stdout. Writes the best model to `model` and the state needed to resume to "
          "model.train. Returns the results of every epoch, a list of dicts with the names of the columns of "
          "the log; on_epoch is called with each of them once the epoch is saved, and what it raises ends "
          "the training. Raises KeyboardInterrupt when interrupted: train(model, resume=True) continues; "
          "ArithmeticError when training diverges. One training at a time: a second one waits.",
          nb::sig("def train(model: str | os.PathLike, on_epoch: collections.abc.Callable[[dict], object] | "
                  "None = None, **options) -> list[dict]"));
    nb::class_<LanguageModel>(m, "LanguageModel",
                              "A language model written by train() or by the program language_model.")
        .def(nb::init<const std::filesystem::path&, ig::Index>(), "path"_a, "columns"_a = 16,
             nb::call_guard<nb::gil_scoped_release>(),
             "Reads a model. `columns`, at least 1: parts of a text, or lines, that are processed in "
             "parallel.")
        .def("perplexity", &LanguageModel::perplexity, "path"_a,
             "Perplexity of a text file, every token predicted once. The text is cut into `columns` pieces, "
             "each "
             "from a fresh state: `language_model evaluate` has 1 unless told otherwise. Ctrl-C ends it.")
        .def(
            "score",
            [](LanguageModel& self, nb::handle lines) {
                if (nb::isinstance<nb::str>(lines))  // a sequence of lines of one character, too
                    throw type_error("LanguageModel.score: found one str, expected a list of lines");
                std::vector<std::string> texts;
                if (!nb::try_cast(lines, texts))
                    throw type_error("LanguageModel.score: found ", text_of(lines.type().attr("__name__")),
                                     ", expected a list of str");
                return self.score(texts);
            },
            "lines"_a,
            nb::sig("def score(self, lines: collections.abc.Sequence[str]) -> list[tuple[float, int, int]]"),
            "For each line, given without its end, (log probability in nats, number of tokens, number of "
            "unknown tokens), the line end included. ValueError for a line that holds a line feed or NUL.")
        .def(
            "sample", &LanguageModel::sample, "words"_a = 100, "seed"_a = 1, "temperature"_a = 1.0,
            "prompt"_a = "",
            "A text sampled from the model: the prompt, the beginning of a line, and so many words, 1 to "
            "10**9 "
            "(characters, if the model is one of characters; line ends are not counted). temperature: 0, the "
            "most probable word each time, or 0.01 to 100; below 1 more probable words, above 1 less "
            "probable "
            "ones. The same arguments give the same text. It has fewer words if the model draws little but "
            "line ends: at most 20 tokens are drawn for each word. Ctrl-C ends it.")
        .def_prop_ro(
            "words", [](const LanguageModel& self) { return self.it.vocabulary.words(); }, "The vocabulary.")
        .def_prop_ro(
            "vectors",
            [](nb::handle self) {
                auto& it = nb::cast<LanguageModel&>(self).it;
                const auto E = it.g->parameter("E").values();
                return view(E.data, E.rows, E.cols, self);
            },
            "The word vectors [words, width], the model's own memory: do not write to it while another "
            "thread "
            "uses the model.")
        .def_prop_ro(
            "weights",
            [](nb::handle self) {
                nb::dict all;
                for (const auto* p : nb::cast<LanguageModel&>(self).it.g->parameters()) {
                    const auto values = p->values();
                    all[p->name.c_str()] = view(values.data, values.rows, values.cols, self);
                }
                return all;
            },
            "All weights by name, matrices in the model's own memory as `vectors` is: a dict. 'E' has the "
            "word vectors, 'softmax.W' the rows of a free head.");

    const auto states = [](const char* who, bool future) {
        return [=](const Lds& self, nb::handle text) {
            return owned(self.states(tokens_of(who, text), future));
        };
    };
    nb::class_<Lds>(m, "Lds",
                    "A linear dynamical system fitted to a text of tokens 0 to types - 1: subspace "
                    "identification, then EM.")
        .def(
            "__init__",
            [](Lds* self, nb::handle text, ig::Index types, ig::Index states, ig::Index iterations,
               std::optional<double> pseudo_counts, ig::Index lags) {
                new (self) Lds(tokens_of("Lds", text), types, states, iterations, pseudo_counts, lags);
            },
            "text"_a, "types"_a, "states"_a = 50, "iterations"_a = 10, "pseudo_counts"_a = nb::none(),
            "lags"_a = 7,
            "Fits a system to a text.\n\n"
            "types          number of words, at least 2; the tokens of the text are 0 to types - 1\n"
            "states         1 to (types - 1) * ((lags - 1) // 2)\n"
            "iterations     of EM after subspace identification, at least 0\n"
            "pseudo_counts  added to the count of every word, at least 0; None: those of half of the "
            "tokens,\n"
            "               shared by the words\n"
            "lags           3 to 1000: pairs of words up to so many positions apart are counted; EM uses "
            "all,\n"
            "               subspace identification the first 2 * ((lags + 1) // 2) - 1\n\n"
            "Ctrl-C ends it.",
            nb::sig("def __init__(self, text: collections.abc.Sequence[int], types: int, states: int = 50, "
                    "iterations: int = 10, pseudo_counts: float | None = None, lags: int = 7) -> None"))
        .def(
            "word_vectors", [](const Lds& self) { return owned(self.word_vectors()); },
            "Word vectors [types, states], float32, rows of norm 1.")
        .def(
            "embed",
            [](const Lds& self, nb::handle text, bool future) {
                return owned(self.embed(tokens_of("Lds.embed", text), future));
            },
            "text"_a, "future"_a = true,
            "Vectors of tokens in context [tokens, states], float32, rows of norm 1; future: also uses the "
            "words "
            "after a token.",
            nb::sig("def embed(self, text: collections.abc.Sequence[int], future: bool = True)"))
        .def("filter", states("Lds.filter", false), "text"_a,
             "Mean states given the words up to each token [tokens, states], float32.",
             nb::sig("def filter(self, text: collections.abc.Sequence[int])"))
        .def("smooth", states("Lds.smooth", true), "text"_a,
             "Mean states given the whole text [tokens, states], float32.",
             nb::sig("def smooth(self, text: collections.abc.Sequence[int])"))
        .def(
            "cross_entropy",
            [](const Lds& self, nb::handle text) {
                return self.cross_entropy(tokens_of("Lds.cross_entropy", text));
            },
            "text"_a,
            "How well the filter predicts the next word: the mean of -log p over the tokens, in nats.",
            nb::sig("def cross_entropy(self, text: collections.abc.Sequence[int]) -> float"))
        .def_prop_ro(
            "transition",
            [](nb::handle self) {
                auto& A = nb::cast<Lds&>(self).system.A;
                return view(std::as_const(A).data(), ig::lds::rows(A), ig::lds::cols(A), self);
            },
            "The matrix [states, states] by which the mean state moves from a token to the next, float64, "
            "the "
            "system's own memory, read-only.");

    nb::class_<Hmm>(m, "Hmm",
                    "A hidden Markov model of symbols 0 to symbols - 1; -1 in a text is a missing symbol.")
        .def(
            "__init__",
            [](Hmm* self, ig::Index states, ig::Index symbols, double prior, std::uint64_t seed,
               double stay) {
                const nb::gil_scoped_release released;
                new (self)
                    Hmm({.states = states, .symbols = symbols, .prior = prior, .stay = stay, .seed = seed});
            },
            "states"_a, "symbols"_a, "prior"_a = 0.0, "seed"_a = 1, "stay"_a = 0.0,
            "A model with random probabilities.\n\n"
            "states   at least 1\n"
            "symbols  at least 1\n"
            "prior    count, 0 to 1e100, that each step adds to every emission: above 0, a symbol that does "
            "not\n"
            "         occur in the texts keeps a probability above 0\n"
            "seed     of the random start, at least 0\n"
            "stay     probability 0 to 1 with which a state of the start stays as it is: 0.95 where states "
            "last")
        .def(
            "step",
            [](Hmm& self, nb::iterable texts) {
                std::vector<Text> all;
                std::vector<std::span<const ig::Token>> spans;
                for (const nb::handle given : texts) {
                    all.push_back(tokens_of(ig::message("Hmm.step: texts[", all.size(), "]"), given));
                    spans.push_back(span_of(all.back()));
                }
                return self.step(spans);
            },
            "texts"_a,
            "One Baum-Welch step on a list of texts; returns the log-likelihood before it, in nats.",
            nb::sig(
                "def step(self, texts: collections.abc.Iterable[collections.abc.Sequence[int]]) -> float"))
        .def(
            "log_likelihood",
            [](Hmm& self, nb::handle text) {
                return self.log_likelihood(tokens_of("Hmm.log_likelihood", text));
            },
            "text"_a, "Log-likelihood of a text in nats.",
            nb::sig("def log_likelihood(self, text: collections.abc.Sequence[int]) -> float"))
        .def(
            "posteriors",
            [](Hmm& self, nb::handle text) {
                return nb::cast(owned(self.posteriors(tokens_of("Hmm.posteriors", text))))
                    .attr("reshape")(-1, self.it.states());
            },
            "text"_a,
            "Probabilities of the states at every symbol, given the whole text: [symbols of the text, "
            "states], "
            "float64, rows of sum 1.",
            nb::sig("def posteriors(self, text: collections.abc.Sequence[int])"))
        .def(
            "most_probable_path",
            [](Hmm& self, nb::handle text) {
                auto path = self.most_probable_path(tokens_of("Hmm.most_probable_path", text));
                return nb::make_tuple(owned(std::move(path.states)), path.log_probability);
            },
            "text"_a,
            "The most probable sequence of states of a text (Viterbi), an int64 array, and the "
            "log-probability "
            "in nats of states and text together.",
            nb::sig("def most_probable_path(self, text: collections.abc.Sequence[int])"))
        .def(
            "sample",
            [](Hmm& self, ig::Index length, std::uint64_t seed) { return owned(self.sample(length, seed)); },
            "length"_a, "seed"_a = 1,
            "A text of so many symbols, at least 0, drawn from the model: an int32 array.")
        .def_prop_ro(
            "transition",
            [](nb::handle self) {
                auto& h = nb::cast<Hmm&>(self).it;
                return view(h.transition().data(), h.states(), h.states(), self);
            },
            "Transition matrix [states, states], rows of sum 1, the model's own memory, read-only.")
        .def_prop_ro(
            "emission",
            [](nb::handle self) {
                auto& h = nb::cast<Hmm&>(self).it;
                return view(h.emission().data(), h.states(), h.symbols(), self);
            },
            "Emission matrix [states, symbols], rows of sum 1, the model's own memory, read-only.");

    m.def(
        "subspace_distance",
        [](nb::handle x, nb::handle y) {
            const auto X = numbers_of<Matrix>("subspace_distance: x", x, 2);
            const auto Y = numbers_of<Matrix>("subspace_distance: y", y, 2);
            const nb::gil_scoped_release released;
            return ig::subspace_distance<double>(matrix_of(X), matrix_of(Y));
        },
        "x"_a, "y"_a,
        "Distance between the column spaces of two matrices, 0 to 1. They have the same number of rows, and "
        "no more "
        "columns than rows.",
        nb::sig("def subspace_distance(x: numpy.typing.ArrayLike, y: numpy.typing.ArrayLike) -> float"));
    m.def(
        "principal_angles",
        [](nb::handle x, nb::handle y) {
            const auto X = numbers_of<Matrix>("principal_angles: x", x, 2);
            const auto Y = numbers_of<Matrix>("principal_angles: y", y, 2);
            const nb::gil_scoped_release released;
            return ig::principal_angles<double>(matrix_of(X), matrix_of(Y));
        },
        "x"_a, "y"_a,
        "Principal angles between the column spaces of two matrices, as of subspace_distance: in radians, "
        "ascending.",
        nb::sig("def principal_angles(x: numpy.typing.ArrayLike, y: numpy.typing.ArrayLike) -> list[float]"));
    m.def(
        "nearest",
        [](nb::handle table, nb::handle query, ig::Index k) {
            const auto T = numbers_of<Matrix>("nearest: table", table, 2);
            const auto rows = static_cast<ig::Index>(T.shape(0)), cols = static_cast<ig::Index>(T.shape(1));
            const std::span all(T.data(), T.size());
            std::vector<ig::Neighbour> found;
            if (ig::Index row = 0; nb::try_cast(query, row)) {
                const nb::gil_scoped_release released;
                found = ig::nearest(all, rows, cols, row, k);
            } else {
                const auto q = numbers_of<Vector>("nearest: query", query, 1);
                const nb::gil_scoped_release released;
                found = ig::nearest(all, rows, cols, span_of(q), k);
            }
            std::vector<std::pair<ig::Index, double>> pairs;
            for (const auto& one : found) pairs.emplace_back(one.row, one.similarity);
            return pairs;
        },
        "table"_a, "query"_a, "k"_a = 10,
        "The k rows of a table nearest by angle to a vector, or to one of its rows, given by its number and "
        "left "
        "out: pairs (row, cosine), the nearest first. Rows of zeros are never among them.",
        nb::sig(
            "def nearest(table: numpy.typing.ArrayLike, query: int | numpy.typing.ArrayLike, k: int = 10) "
            "-> list[tuple[int, float]]"));
    m.def(
        "embedding_dimension", [](double words) { return ig::embedding_dimension(words).exact; }, "words"_a,
        "The smallest dimension at which the entropy of skip-grams is below 0, for a vocabulary of so many "
        "words, "
        "at least 1.");
    m.def(
        "spearman",
        [](nb::handle x, nb::handle y) {
            const auto a = numbers_of<Vector>("spearman: x", x, 1),
                       b = numbers_of<Vector>("spearman: y", y, 1);
            const nb::gil_scoped_release released;
            return ig::spearman(span_of(a), span_of(b));
        },
        "x"_a, "y"_a, "Spearman's rank correlation of two vectors of the same length, at least 2; -1 to 1.",
        nb::sig("def spearman(x: numpy.typing.ArrayLike, y: numpy.typing.ArrayLike) -> float"));
}
