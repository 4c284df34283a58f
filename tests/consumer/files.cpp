// What a program outside the project does with files: it writes a tensor and reads it back. The argument
// is a folder.
#include <filesystem>
#include <iostream>
#include <isogloss/io.hpp>
#include <vector>

namespace ig = isogloss;

int main(int count, char** arguments) {
    const std::filesystem::path file =
        std::filesystem::path(count > 1 ? arguments[1] : ".") / "tensor.safetensors";
    const std::vector<float> written = {1, 2, 3, 4, 5, 6};
    ig::io::write_safetensors(file, std::vector{ig::io::tensor_view<float>("table", {2, 3}, written)});
    const auto read = ig::io::Safetensors::open(file).values<float>("table");
    std::cout << "read back " << read.size() << " numbers\n";
    return read == written ? 0 : 1;
}
