/// @file io/checkpoint.hpp  A model and its complete training state in one file.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <isogloss/graph/graph.hpp>
#include <isogloss/io/mismatch.hpp>
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
                    parts.all.back().fault = [&p](auto bytes) { return fault_of_rows(p, bytes); };
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
    /// if any, is called after a load, including one of parameters only; its function
    /// `before_load_of_parameters()`, if any, before the latter, and may refuse it by throwing.
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
        if constexpr (requires { object.before_load_of_parameters(); })
            before_load_of_parameters_.push_back([&object] { object.before_load_of_parameters(); });
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
            if (p.any_length) view.shape = {static_cast<Index>(view.bytes.size()) * 8 / info(p.dtype).bits};
            tensors.push_back(std::move(view));
        }
        write_safetensors(path, tensors, metadata);
    }

    /// Loads everything, or the parameters, from a file that matches; see Restore.
    void load(const Safetensors& file, Restore what = Restore::everything) const {
        const bool all = what == Restore::everything;
        if (borrowed_)
            throw UsageError(
                "checkpoint: the graph shares the weights of another, which others may be reading; "
                "load into that one");
        for (const auto& check : require_unlent_) check(!all);  // the state of the borrower is loaded, too
        const Parts parts = current();
        std::vector<TensorSpec> expected;
        for (const Part& p : parts.all) {
            if (!all && is_state(p)) continue;
            TensorSpec spec{p.name, p.dtype, p.shape};
            if (p.any_length) {
                const TensorView* found = file.find(p.name);
                spec.shape = found && found->shape.size() == 1 ? found->shape : std::vector<Index>{0};
            }
            expected.push_back(std::move(spec));
        }
        require_match(expected, file,
                      all ? std::vector<std::string_view>{} : std::vector<std::string_view>{"state/"});
        for (const Part& p : parts.all)
            if (const std::string fault = p.fault ? p.fault(file.at(p.name).bytes) : ""; !fault.empty())
                throw FileError(file.name(), ": ", fault);
        if (!all)  // behind all checks: they may change an object
            for (const auto& act : before_load_of_parameters_) act();
        for (const Part& p : parts.all)  // allocate everything first, so that the load cannot fail halfway
            if (p.reserve && all) p.reserve(file.at(p.name).bytes.size());
        for (const Part& p : parts.all)
            if (all || !is_state(p)) p.assign(file.at(p.name).bytes);
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
        std::function<std::string(std::span<const std::byte>)> fault =
            {};  // why bytes cannot be assigned, or ""
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
                 {},
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

    static bool is_state(const Part& p) { return p.name.starts_with("state/"); }

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
    static std::string fault_of_rows(const Parameter<T>& p, std::span<const std::byte> bytes) {
        std::vector<T> row(static_cast<std::size_t>(p.cols));
        for (Index i = 0; i < p.rows; ++i) {
            std::memcpy(row.data(), bytes.data() + static_cast<std::size_t>(i) * row.size() * sizeof(T),
                        row.size() * sizeof(T));
            const double norm = std::sqrt(kernel::sum_of_squares(p.cols, row.data()));
            if (!(std::abs(norm - 1) <= 0.05))
                return message("row ", i, " of '", p.name, "' has the norm ", norm, ", expected 1, at which ",
                               "the graph holds it; nothing was loaded. Build the graph without ",
                               "WeightOptions::unit_rows, or choose another file");
        }
        return {};
    }

    std::vector<std::pair<std::string, std::function<void(Parts&)>>>
        added_;              // with the prefix of their names
    bool borrowed_ = false;  // the graph uses the weights of another
    std::vector<std::function<void(bool)>> require_unlent_;
    std::vector<std::function<void()>> before_load_of_parameters_, after_load_;
};

}}}  // namespace isogloss::io
