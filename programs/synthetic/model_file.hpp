// A trained model as a file: parameters, training state, symbols, and the options to rebuild it.
#pragma once

#include <isogloss/io.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "../shared/outputs.hpp"
#include "learner.hpp"
#include "options.hpp"

// The metadata key of the options, in JSON.
inline constexpr const char* metadata_key = "synthetic";

// The progress of training, over all calls.
struct Progress {
    double seconds = 0, bits = 1e300;  // bits: on the selection text, at the best moment
    std::uint64_t rounds = 0;
    template <class Visitor> void visit(Visitor& v) {
        v.number("seconds", seconds);
        v.number("bits", bits);
        v.counter("rounds", rounds);
    }
};

inline std::map<std::string, std::string> metadata(const Options& o) {
    nlohmann::json json = {
        {"level", o.level}, {"start", o.start}, {"doublings", o.doublings}, {"cut", o.cut}};
    if (!o.text_hash.empty()) json["text"] = o.text_hash;
    each_stored(o, [&](const char* name, const auto& value, const char*) { json[name] = value; });
    return {{metadata_key, json.dump()}};
}

// The options in a file that this program wrote. Throws FileError for another file.
inline Options stored_options(const isogloss::io::Safetensors& file) {
    using isogloss::FileError, isogloss::message;
    const auto at = file.metadata().find(metadata_key);
    const auto json =
        at == file.metadata().end() ? nlohmann::json() : nlohmann::json::parse(at->second, nullptr, false);
    if (!json.is_object() || !file.find("state/symbols"))
        throw FileError(message(file.name(), ": this is not a model of synthetic; use a file of its --save"));
    Options o;
    std::string wrong;
    try {
        const auto take = [](const char* name, const nlohmann::json& found, auto& value) {
            using Value = std::decay_t<decltype(value)>;
            if (std::is_integral_v<Value> && !std::is_same_v<Value, bool> && !found.is_number_integer())
                throw isogloss::DataError(message(name, " is ", found.dump(), ", expected a whole number"));
            found.get_to(value);
        };
        json.at("level").get_to(o.level);
        each_stored(o, [&](const char* name, auto& value, const char*) {
            const std::string_view it = name;
            if (json.contains(name) || (it != "--average" && it != "--portable"))  // absent in earlier files
                take(name, json.at(name), value);
        });
        take("start", json.value("start", nlohmann::json(0)), o.start);  // absent in earlier files
        take("doublings", json.value("doublings", nlohmann::json(0)), o.doublings);
        take("cut", json.value("cut", nlohmann::json(0)), o.cut);
        json.value("text", nlohmann::json("")).get_to(o.text_hash);
        wrong = fault(o);
    } catch (const nlohmann::json::exception& error) {
        wrong = error.what();
    } catch (const isogloss::DataError& error) {
        wrong = error.what();
    }
    // Checks the width of the head before anything of that size is built.
    const auto* table = file.find(o.network == "hmm" ? "state/best/transition" : "out.W");
    if (wrong.empty() && (!table || table->shape.size() != 2 || table->shape[1] != o.units))
        wrong = message("the model in it does not have ", o.units, " units");
    if (!wrong.empty()) throw FileError(message(file.name(), ": it is damaged: ", wrong));
    return o;
}

// A model file of this program, which may be overwritten.
inline files::Kind model_kind() {
    return {"model of synthetic", [](const std::string& path) {
                stored_options(isogloss::io::Safetensors::open(path));
                return true;
            }};
}

// All contents of a file.
inline isogloss::io::Checkpoint checkpoint(Learner& learner, Progress& progress, std::string& symbols) {
    isogloss::io::Checkpoint c;
    learner.parts(c);
    return c.state("progress", progress).text("symbols", symbols);
}
