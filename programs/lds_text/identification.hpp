/// @file identification.hpp  Subspace identification with a progress bar, interruption and resumption.
#pragma once

#include <cstdio>
#include <isogloss/distributed/lds.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/lds.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "../shared/interrupt.hpp"
#include "../shared/progress.hpp"
#include "../shared/ranks.hpp"
#include "common.hpp"

namespace lt {

/// Thrown after a signal during subspace identification. `kept`: whether its state is in the file.
struct IdentificationInterrupted {
    bool kept;
};

/// The file in which `fit` keeps the state of subspace identification until there is a model.
inline std::string identification_file(const std::string& model) { return model + ".ssid"; }
inline files::Kind identification_kind() {
    return {"subspace identification of `lds_text fit`", [](const std::string& path) {
                return ig::io::Safetensors::map(path).metadata().contains("lds_text.identification");
            }};
}

/// subspace_identification with a progress bar. The state goes to `file`, unless its name is empty, after a
/// product of the singular vectors if `seconds` have passed since the last time; with `go_on` the work starts
/// from it, if it was begun with pairs of the same checksum `pairs_of`. `shared`: by rows that the ranks share,
/// with the same bits for any number of ranks; the first writes the file. Throws IdentificationInterrupted after
/// a signal, DataError for a file of other counts or options.
inline lds::Subspace<float> identify(const lds::LagMoments<float>& moments,
                                     const lds::SubspaceOptions& options, const std::string& file,
                                     double seconds, bool go_on, const std::string& pairs_of,
                                     program::Ranks& ranks, bool shared) {
    const auto& mu = moments.whitening().mu;
    const auto made_with = moments.made_with();
    ig::Index pairs = 0;
    for (ig::Index k = 1; k < 2 * options.lags; ++k) pairs += moments.pairs(k);
    const std::string before = ig::message(  // what 0.1.0 wrote
        options.states, " states, ", options.lags, " blocks, seed ", options.svd.seed, ", boundary ",
        made_with.boundary, ", ", pairs, " pairs of words with frequencies ",
        ig::file::hex16(
            ig::file::hash_bytes({reinterpret_cast<const char*>(mu.data()), mu.size() * sizeof(double)})),
        shared ? ", by rows" : "");
    const std::string settings = before + ", " + pairs_of;

    program::Progress bar("subspace identification");
    Stopwatch since;
    lds::SubspaceWatch<float> watch;
    bool kept = false;  // a file that is there may be of another call
    if (go_on && !file.empty() && files::has_content(file)) {
        const auto in = ig::io::Safetensors::open(file);
        const auto at = in.metadata().find("lds_text.identification");
        if (at == in.metadata().end() || (at->second != settings && at->second != before))
            throw ig::DataError(ig::message(
                "--resume: '", file, "' was begun with\n  ",
                at == in.metadata().end() ? "another program" : at->second, "\nand this call has\n  ",
                settings, "\nGive the text and options it was begun with, or remove the file"));
        watch.from.products = in.scalar<std::int64_t>("products");
        const auto* const block = in.find("block");
        if (!block || block->shape.size() != 2)
            throw ig::FileError(ig::message("'", file, "' has no block of singular vectors; remove it"));
        watch.from.block = lds::zeros<float>(block->shape[0], block->shape[1]);
        in.read<float>("block", block->shape, {watch.from.block.data(), watch.from.block.size()});
        say("resume subspace identification after %td products\n", watch.from.products);
        kept = true;
    }
    watch.progress = [&](double share) {
        bar.update(static_cast<std::int64_t>(1000 * share), 1000, [] { return std::string("products"); });
        if (!ranks.any(interrupt::wanted != 0)) return;
        if (!interrupt::wanted) interrupt::wanted = SIGTERM;  // another rank received a signal
        bar.clear();
        throw IdentificationInterrupted{kept};
    };
    if (!file.empty() && ranks.first())
        watch.checkpoint = [&](ig::Index products, const lds::TallMatrix<float>& block) {
            if (since.seconds() < seconds) return;
            since.reset();
            const std::int64_t made = products;
            ig::io::write_safetensors(
                file,
                std::vector<ig::io::TensorView>{
                    ig::io::tensor_view<float>("block", {lds::rows(block), lds::cols(block)},
                                               {block.data(), block.size()}),
                    ig::io::tensor_view<std::int64_t>("products", {}, {&made, 1})},
                {{"lds_text.identification", settings}});
            kept = true;
        };
    return shared ? distributed::subspace_identification(moments, options, ranks, std::move(watch))
                  : lds::subspace_identification(moments, options, std::move(watch));
}

}  // namespace lt
