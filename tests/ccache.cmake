# A comment changed in a header that a precompiled header holds, and that a unit includes once more: through ccache the unit must
# compile as it does without. Needs SOURCE (the project), WORK (an own directory), COMPILER and GENERATOR.
cmake_minimum_required(VERSION 3.21)

file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/CMakeLists.txt "cmake_minimum_required(VERSION 3.21)
project(ccache_test CXX)
set(ISOGLOSS_CCACHE ON)
include(${SOURCE}/.cmake/ccache.cmake)
add_library(unit OBJECT unit.cpp)
target_precompile_headers(unit PRIVATE below.hpp)
")
file(WRITE ${WORK}/below.hpp "#include \"header.hpp\"\n")
set(ENV{CCACHE_DIR} ${WORK}/cache)
unset(ENV{CCACHE_DISABLE})

function(build round comment)
    file(WRITE ${WORK}/unit.cpp "#include \"header.hpp\"\nHeader round_${round}() { return {}; }\n")  # never in the cache
    file(WRITE ${WORK}/header.hpp "#pragma once\n// ${comment}\nstruct Header {};\n")
    # ccache takes no file that is as young as the call.
    execute_process(COMMAND ${CMAKE_COMMAND} -E sleep 2)
    file(REMOVE_RECURSE ${WORK}/build)  # as a fresh clone beside the cache of an older one
    foreach(arguments IN ITEMS "-G;${GENERATOR};-DCMAKE_CXX_COMPILER=${COMPILER};-S;${WORK};-B;${WORK}/build" "--build;${WORK}/build")
        execute_process(COMMAND ${CMAKE_COMMAND} ${arguments} RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
        if(NOT result EQUAL 0)
            message(FATAL_ERROR "with the comment '${comment}':\n${said}")
        endif()
    endforeach()
endfunction()

build(1 "a comment")
build(2 "another, longer comment")
build(3 "a comment")
file(GLOB_RECURSE cached ${WORK}/cache/*)
if(NOT cached)
    message(FATAL_ERROR "ccache was not called: ${WORK}/cache is empty")
endif()
file(REMOVE_RECURSE ${WORK})
