# A port of the checkout it lies in: vcpkg install isogloss --overlay-ports=packaging/vcpkg. A registry's port takes the
# sources by vcpkg_from_github instead, and nothing else changes.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release) # headers alone

set(blas none)
if("blas" IN_LIST FEATURES)
    set(blas openblas) # or another: BLA_VENDOR
endif()

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DISOGLOSS_BLAS=${blas}
        -DBLA_VENDOR=All
        -DISOGLOSS_TESTS=OFF
        -DISOGLOSS_EXAMPLES=OFF
        -DISOGLOSS_PROGRAMS=OFF
        -DISOGLOSS_BENCHMARKS=OFF
        -DISOGLOSS_DOCS=OFF
        -DISOGLOSS_COMPILED=OFF
        -DISOGLOSS_MPI=OFF
        -DISOGLOSS_NATIVE=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/isogloss)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
