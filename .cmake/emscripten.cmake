# WebAssembly, by emcmake cmake: the core alone, in one thread. Its dependencies are headers of no architecture, taken from
# ISOGLOSS_HEADERS by links: with the folder itself those of the host's C library would come along.

if(NOT ISOGLOSS_BLAS STREQUAL "none")
    message(FATAL_ERROR "isogloss: found ISOGLOSS_BLAS=${ISOGLOSS_BLAS} for WebAssembly, expected none: pass -DISOGLOSS_BLAS=none.")
endif()
if(ISOGLOSS_COMPONENTS)
    message(FATAL_ERROR "isogloss: found ISOGLOSS_COMPONENTS=${ISOGLOSS_COMPONENTS} for WebAssembly, expected none.")
endif()
set(ISOGLOSS_HEADERS /usr/include CACHE PATH "For WebAssembly: the folder with the headers of xtensor, xtl and xsimd")
set(isogloss_headers ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${isogloss_headers})
foreach(package IN ITEMS xtensor xtl xsimd)
    if(NOT EXISTS ${ISOGLOSS_HEADERS}/${package})
        message(FATAL_ERROR "isogloss: no ${ISOGLOSS_HEADERS}/${package} was found.\n"
            "On Debian and Ubuntu: apt-get install libxtensor-dev libxsimd-dev\n"
            "Elsewhere: pass -DISOGLOSS_HEADERS=<the folder with xtensor, xtl and xsimd>.")
    endif()
    file(CREATE_LINK ${ISOGLOSS_HEADERS}/${package} ${isogloss_headers}/${package} SYMBOLIC)
endforeach()

add_library(isogloss_wasm INTERFACE)
target_include_directories(isogloss_wasm SYSTEM INTERFACE ${isogloss_headers})
# xsimd takes its code for SSE4.1, which em++ translates.
target_compile_options(isogloss_wasm INTERFACE -msimd128 -msse4.1 -fwasm-exceptions
    "SHELL:-include ${PROJECT_SOURCE_DIR}/packaging/emscripten/libcxx13.hpp")
target_link_options(isogloss_wasm INTERFACE -fwasm-exceptions -sWASM_BIGINT=1 -sALLOW_MEMORY_GROWTH=1)
set(isogloss_libraries isogloss_wasm)
set(isogloss_definitions ISOGLOSS_NO_BLAS XTENSOR_USE_XSIMD)
set(isogloss_native "")
set(ISOGLOSS_INSTALL OFF)  # the links belong to this build
