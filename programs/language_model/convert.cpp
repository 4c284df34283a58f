/// @file convert.cpp  Converts a model to a smaller file.
#include <filesystem>
#include <iostream>
#include <utility>
#include <vector>

#include "../shared/outputs.hpp"
#include "commands.hpp"
#include "model_file.hpp"
#include "print.hpp"

namespace lm {

int convert(const ConvertOptions& o) {
    files::Outputs().read("--model", o.model).write("--to", o.to, model_kind()).check();
    auto file = ig::io::Safetensors::open(o.model);
    stored_options(file);
    if (is_training(file)) {  // its model alone: the rest serves only to resume it
        std::vector<ig::io::TensorView> tensors;
        for (const auto& t : file.tensors())
            if (!t.name.starts_with("state/") || t.name == "state/vocabulary") tensors.push_back(t);
        file = file.with(std::move(tensors), file.owner());
    }
    const auto type = o.store == "bf16"   ? ig::io::Compact::bf16
                      : o.store == "int8" ? ig::io::Compact::int8
                                          : ig::io::Compact::none;
    ig::io::write_compact(o.to, std::move(file), type);
    const auto size = [](const std::string& path) {
        return grouped(static_cast<ig::Index>(std::filesystem::file_size(path)));
    };
    std::cout << "model of " << size(o.model) << " bytes written to '" << o.to << "' as " << o.store << ", "
              << size(o.to) << " bytes\n";
    return 0;
}

}  // namespace lm
