# Links and runs a product and a QR factorisation. Says at configure time, with the name of a package,
# what would otherwise be an undefined symbol at the end of a long build.
if(CMAKE_CROSSCOMPILING OR ISOGLOSS_BLAS STREQUAL "none")
    return()
endif()
# A library that the project builds itself, as FetchContent brings it, is a target of this configuration: try_run sees imported targets
# alone and would link a file of its name.
foreach(library IN LISTS isogloss_libraries)
    if(TARGET ${library})
        get_target_property(imported ${library} IMPORTED)
        if(NOT imported)
            message(STATUS "isogloss: BLAS and LAPACK are not tried out, as the project builds ${library} itself")
            return()
        endif()
    endif()
endforeach()
set(isogloss_probe "${CMAKE_CXX_COMPILER} ${CMAKE_CXX_FLAGS} ${BLAS_LIBRARIES} ${LAPACK_LIBRARIES} ${isogloss_definitions} ${isogloss_native}")
if("${ISOGLOSS_PROBED}" STREQUAL "${isogloss_probe}")
    return()
endif()

message(STATUS "isogloss: running a product and a QR factorisation")
set(isogloss_probe_flags ${isogloss_native})
foreach(definition IN LISTS isogloss_definitions)
    list(APPEND isogloss_probe_flags -D${definition})
endforeach()
unset(ISOGLOSS_PROBE_RUNS CACHE)
unset(ISOGLOSS_PROBE_LINKS CACHE)
try_run(ISOGLOSS_PROBE_RUNS ISOGLOSS_PROBE_LINKS ${PROJECT_BINARY_DIR}/probe ${CMAKE_CURRENT_LIST_DIR}/probe.cpp
    COMPILE_DEFINITIONS ${isogloss_probe_flags}
    LINK_LIBRARIES ${isogloss_libraries}
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
    COMPILE_OUTPUT_VARIABLE isogloss_probe_said RUN_OUTPUT_VARIABLE isogloss_probe_printed)
set(isogloss_probe_with "BLAS: ${BLAS_LIBRARIES}\nLAPACK: ${LAPACK_LIBRARIES}\n")
if(NOT ISOGLOSS_PROBE_LINKS)
    message(FATAL_ERROR "${isogloss_probe_said}\n"
        "isogloss: a program that calls gemm and QR does not compile and link (above).\n${isogloss_probe_with}"
        "Undefined references to cblas_… or to names that end in _: apt-get install libopenblas-openmp-dev.\n"
        "Errors in headers: g++ 12 or clang++ 14 or later is needed, with a matching set of xtensor, xtensor-blas "
        "and xsimd: apt-get install g++ libxtensor-dev libxtensor-blas-dev libxsimd-dev.")
elseif(NOT ISOGLOSS_PROBE_RUNS EQUAL 0)
    message(FATAL_ERROR "${isogloss_probe_printed}\n"
        "isogloss: a program that calls gemm and QR was linked but does not run right (result "
        "${ISOGLOSS_PROBE_RUNS}).\n${isogloss_probe_with}"
        "A library that cannot be loaded, or a broken one: apt-get install --reinstall libopenblas0-openmp "
        "libopenblas-openmp-dev.")
endif()
set(ISOGLOSS_PROBED "${isogloss_probe}" CACHE INTERNAL "With what the probe has run")
