"""Conan 2: conan create . -s compiler.cppstd=20. What the library stands on comes from the system; see docs/building.md."""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import load, rmdir
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.0"


class Isogloss(ConanFile):
    name = "isogloss"
    license = "BSD-3-Clause"
    description = "Header-only language models, taggers and word vectors on a CPU"
    topics = ("language-model", "word-vectors", "recurrent-neural-networks", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"blas": ["openblas", "none"]}
    default_options = {"blas": "openblas"}
    exports_sources = "CMakeLists.txt", "LICENSE", ".cmake/*", "include/*"
    test_package_folder = "tests/consumer/conan"

    def set_version(self):
        lists = load(self, os.path.join(self.recipe_folder, "CMakeLists.txt"))
        self.version = re.search(r"project\(isogloss VERSION ([\d.]+)", lists)[1]

    def validate(self):
        check_min_cppstd(self, 20)

    def system_requirements(self):
        apt = Apt(self)
        apt.install(["libxtensor-dev", "libxsimd-dev", "nlohmann-json3-dev"])
        if self.options.blas == "none":
            return
        apt.install(["libxtensor-blas-dev"])
        apt.install_substitutes(["libopenblas-openmp-dev"], ["libopenblas-pthread-dev"], ["libopenblas-serial-dev"])

    def layout(self):
        cmake_layout(self)

    def package_id(self):
        self.info.settings.clear()

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "PROGRAMS", "BENCHMARKS", "DOCS", "COMPILED", "MPI", "NATIVE"):
            toolchain.cache_variables[f"ISOGLOSS_{part}"] = "OFF"
        toolchain.cache_variables["ISOGLOSS_BLAS"] = str(self.options.blas)
        toolchain.generate()

    def build(self):
        CMake(self).configure()  # finds the system's libraries, or says which is missing

    def package(self):
        CMake(self).install()
        rmdir(self, os.path.join(self.package_folder, "lib"))

    def package_info(self):
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_find_mode", "none")  # it brings isogloss-config.cmake
        self.cpp_info.builddirs = [os.path.join("share", "cmake", "isogloss")]
