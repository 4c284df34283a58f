/// @file io/checkpoint.hpp  A model and its complete training state in one file.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <isogloss/graph/graph.hpp>
#include <isogloss/io/compact.hpp>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/kernel/rows.hpp>
#include <isogloss/sizes.hpp>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace io {

/// What Checkpoint::load takes from a file.
enum class Restore {
    everything,  ///< the file must hold exactly what was added
    parameters,  ///< parameters only; everything under "state/" is ignored
};

/// Names the parts of a training program that are saved and restored together.
///
///     Checkpoint c;
///     c.model(g).state("sgd", sgd).counter("epoch", epoch).number("best", best).text("vocabulary", words);
///     c.save("model.safetensors");                       // at any time
///     c.load(Safetensors::open("model.safetensors"));    // all or nothing
///
/// Parameters are stored under their own names, once each, however many nodes share them; the rest under
/// "state/". Scalars are F64, U64 or U8 tensors of shape [], lists F64 [n], texts U8 [n]. Objects are added by
/// reference, not copied, and must outlive the checkpoint; they are visited again by every save and load, and may
/// have been assigned to in between. A run resumed from a checkpoint is bit-identical
/// to an uninterrupted one: the graph's seed and step counter (on which dropout
/// masks depend) and its carried states are part of the saved state.
///
/// Errors   UsageError for two parts with one name; for a save or load while weights are lent (Lease) to a
///          WeightDrop::Dropped or DynamicUpdate, which restore others, and for a load of parameters alone while averages
///          are in their place. save: as write_safetensors. load, with nothing changed:
///          FileError listing every missing, extra and misshapen name; FileError for a row that the graph holds
///          at norm 1 and whose norm in the file is more than 5 % from it (that of a table stored as int8 is
///          about 1 % off); UsageError for a graph on shared weights.
class Checkpoint {
public:
    /// A graph: its parameters, and under "state/" its seed, step counter and carried states. At most one per
    /// checkpoint.
    template <class T> Checkpoint& model(Graph<T>& g) {
        auto& store = graph::Inspect::store(g);
        add("", [&store](Parts& parts) {
            for (auto& p : store.parameters) {
                parts.array(p.name, p.value, p.rows, p.cols);
                if (p.unit_rows)
                    parts.all.back().check = [&p](auto bytes, auto& file) { check_rows(p, bytes, file); };
            }
            parts.prefix = "state/graph/";
            parts.counter("seed", store.seed);
            parts.counter("step", store.step);
            for (auto& s : store.seqs)
                if (s.carried) parts.array("carried/" + s.name, s.carried, store.capacity.batch, s.width);
        });
        borrowed_ = store.shared.has_value();
        require_unlent_.push_back(
            [&store](bool writes) { graph::require_unlent(store.parameters, "checkpoint", writes); });
        after_load_.push_back([&store] {
            for (auto& p : store.parameters) p.clear_gradient();
        });
        return *this;
    }

    /// An object with `visit`, such as an update or a schedule, under "state/name/". Its function `after_load()`,
    /// if any, is called after a load, including one of parameters only.
    template <class Visitable> Checkpoint& state(const std::string& name, Visitable& object) {
        if constexpr (
            requires {
                typename Visitable::RuleOfUpdate;
                &Visitable::template visit<Parts>;
            } &&
            !requires { Visitable::stateless; })
            static_assert(
                !std::is_same_v<decltype(&Visitable::template visit<Parts>),
                                void (Visitable::RuleOfUpdate::*)(Parts&)>,
                "isogloss: this update has only the visit() of Rule, and a checkpoint would lose what it "
                "accumulates; give it one that begins with Rule's, or, if there is nothing to keep, "
                "`static constexpr bool stateless = true;`");
        add("state/" + name + "/", [&object](Parts& parts) { object.visit(parts); });
        if constexpr (requires { object.after_load(); })
            after_load_.push_back([&object] { object.after_load(); });
        return *this;
    }

    /// A number, as double.
    Checkpoint& number(const std::string& name, double& value) {
        return add("state/", [name, &value](Parts& parts) { parts.number(name, value); });
    }
    /// A 64-bit counter.
    Checkpoint& counter(const std::string& name, std::uint64_t& value) {
        return add("state/", [name, &value](Parts& parts) { parts.counter(name, value); });
    }
    /// A flag, as 0 or 1.
    Checkpoint& flag(const std::string& name, bool& value) {
        return add("state/", [name, &value](Parts& parts) { parts.flag(name, value); });
    }
    /// A list of any length.
    Checkpoint& list(const std::string& name, std::vector<double>& values) {
        return add("state/", [name, &values](Parts& parts) { parts.list(name, values); });
    }
    /// A string of any length.
    Checkpoint& text(const std::string& name, std::string& characters) {
        return add("state/", [name, &characters](Parts& parts) { parts.any_length(name, characters); });
    }

    /// Writes the current values: temporary name, flush, rename.
    void save(const std::filesystem::path& path,
              const std::map<std::string, std::string>& metadata = {}) const {
        for (const auto& check : require_unlent_) check(false);
        std::vector<TensorView> tensors;
        const Parts parts = current();
        for (const Part& p : parts.all) {
            TensorView view{p.name, p.dtype, p.shape, p.bytes()};
            if (p.any_length) view.shape = {static_cast<Index>(view.bytes.size()) / info(p.dtype).bytes};
            tensors.push_back(std::move(view));
        }
        write_safetensors(path, tensors, metadata);
    }

    /// Loads everything, or the parameters, from a file that matches; see Restore.
    void load(const Safetensors& file, Restore what = Restore::everything) const {
        const bool all = what == Restore::everything;
        if (borrowed_)
            throw UsageError("checkpoint: the graph shares the weights of another; load into that one");
        for (const auto& check : require_unlent_) check(!all);  // the state of the borrower is loaded, too
        const Parts parts = current();
        match(parts, file, all);
        for (const Part& p : parts.all)
            if (p.check) p.check(file.at(p.name).bytes, file.name());
        for (const Part& p : parts.all)  // allocate everything first, so that the load cannot fail halfway
            if (p.reserve && all) p.reserve(file.at(p.name).bytes.size());
        for (const Part& p : parts.all)
            if (all || !is_state(p.name)) p.assign(file.at(p.name).bytes);
        for (const auto& act : after_load_) act();
    }

private:
    struct Part {
        std::string name;
        DType dtype;
        std::vector<Index> shape;
        bool any_length;
        std::function<std::span<const std::byte>()> bytes;
        std::function<void(std::span<const std::byte>)> assign;
        std::function<void(std::size_t)> reserve = {};  // reserves so many bytes, if assign needs them
        // throws where the bytes, of a file of this name, cannot be assigned
        std::function<void(std::span<const std::byte>, const std::string&)> check = {};
    };
    // What was added, as it is in memory now; the visitor of an object's visit().
    struct Parts {
        std::vector<Part> all = {};
        std::set<std::string> names = {};
        std::string prefix = {};  // of the names that follow

        void number(const std::string& name, double& value) { memory(name, &value, {}); }
        void counter(const std::string& name, std::uint64_t& value) { memory(name, &value, {}); }
        void flag(const std::string& name, bool& value) {
            add({prefix + name,
                 DType::u8,
                 {},
                 false,
                 [&value] { return std::as_bytes(std::span(&value, 1)); },
                 [&value](std::span<const std::byte> bytes) { value = bytes[0] != std::byte{0}; }});
        }
        void list(const std::string& name, std::vector<double>& values) { any_length(name, values); }
        template <class T> void array(const std::string& name, T* data, Index rows, Index cols) {
            memory(name, data, {rows, cols});
        }
        template <class V> void memory(const std::string& name, V* data, std::vector<Index> shape) {
            const std::size_t n = static_cast<std::size_t>(*product_of(shape));
            add({prefix + name, dtype_of<V>(), std::move(shape), false,
                 [data, n] { return std::as_bytes(std::span<const V>(data, n)); },
                 [data](std::span<const std::byte> bytes) {
                     if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
                 }});
        }
        // A vector of doubles or a string.
        template <class C> void any_length(const std::string& name, C& values) {
            constexpr std::size_t unit = sizeof(typename C::value_type);
            add({prefix + name,
                 unit == 1 ? DType::u8 : DType::f64,
                 {0},
                 true,
                 [&values] { return std::as_bytes(std::span(values)); },
                 [&values](std::span<const std::byte> bytes) {
                     values.resize(bytes.size() / unit);
                     if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
                 },
                 [&values](std::size_t bytes) { values.reserve(bytes / unit); }});
        }
        void add(Part p) {
            if (!names.insert(p.name).second)
                throw UsageError("checkpoint: two parts are named '", p.name, "'; names must differ");
            all.push_back(std::move(p));
        }
    };

    static bool is_state(const std::string& name) { return name.starts_with("state/"); }

    // Throws one FileError listing every tensor that is missing, not expected, or of another scalar type or shape.
    static void match(const Parts& parts, const Safetensors& file, bool all) {
        const auto described = [](const auto& t) {
            return std::string(info(t.dtype).name) + " " + dimensions_text(t.shape);
        };
        std::string missing, extra, misshapen;
        for (const Part& p : parts.all) {
            if (!all && is_state(p.name)) continue;
            const TensorView* const found = file.find(p.name);
            if (!found) missing += "\n    " + in_quotes(p.name) + " " + described(p);
            else if (found->dtype != p.dtype ||
                     (p.any_length ? found->shape.size() != 1 : found->shape != p.shape)) {
                misshapen +=
                    "\n    " + in_quotes(p.name) + " is " + described(*found) + ", expected " + described(p);
                if (found->shape == p.shape && detail::is_numeric(file, *found) &&
                    info(found->dtype).bytes < info(p.dtype).bytes)
                    misshapen +=
                        message("; load io::widened<", p.dtype == DType::f64 ? "double" : "float", ">(file)");
            }
        }
        for (const TensorView& t : file.tensors())
            if (!parts.names.contains(t.name) && (all || !is_state(t.name)))
                extra += "\n    " + in_quotes(t.name);
        const auto list = [](const char* title, const std::string& lines) {
            return lines.empty() ? "" : std::string("\n  ") + title + ":" + lines;
        };
        if (!missing.empty() || !extra.empty() || !misshapen.empty())
            throw FileError(file.name(),
                            ": the file does not fit the model; nothing was loaded. Build the model with ",
                            "the options it was saved with", list("missing", missing), list("extra", extra),
                            list("misshapen", misshapen));
    }

    // The objects may have moved their memory since the last call.
    Parts current() const {
        Parts parts;
        for (const auto& [prefix, show] : added_) {
            parts.prefix = prefix;
            show(parts);
        }
        return parts;
    }
    template <class Show> Checkpoint& add(std::string prefix, Show show) {
        added_.emplace_back(std::move(prefix), std::move(show));
        try {
            current();  // names may clash
        } catch (...) {
            added_.pop_back();
            throw;
        }
        return *this;
    }

    template <class T>
    static void check_rows(const Parameter<T>& p, std::span<const std::byte> bytes, const std::string& file) {
        std::vector<T> row(static_cast<std::size_t>(p.cols));
        for (Index i = 0; i < p.rows; ++i) {
            std::memcpy(row.data(), bytes.data() + static_cast<std::size_t>(i) * row.size() * sizeof(T),
                        row.size() * sizeof(T));
            require<FileError>(file, message("the norm of row ", i, " of '", p.name, "', held at 1"),
                               std::sqrt(kernel::sum_of_squares(p.cols, row.data())), 0.95, 1.05);
        }
    }

    std::vector<std::pair<std::string, std::function<void(Parts&)>>>
        added_;              // with the prefix of their names
    bool borrowed_ = false;  // the graph uses the weights of another
    std::vector<std::function<void(bool)>> require_unlent_;
    std::vector<std::function<void()>> after_load_;
};

}}}  // namespace isogloss::io
