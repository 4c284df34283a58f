# isogloss::compiled, the core compiled once for float and double (include/isogloss/compiled.hpp), and how the project's
# own programs are built against it. isogloss_core is what they link.
set(isogloss_core isogloss::isogloss)
set(isogloss_sanitized OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_FLAGS_DEBUG MATCHES "-fsanitize=")
    set(isogloss_sanitized ON)
endif()
if(ISOGLOSS_COMPILED)
    set(sources factor graph loss node sparse_node update)
    if(TARGET isogloss_lds)
        list(APPEND sources lds)
    endif()
    list(TRANSFORM sources PREPEND src/)
    list(TRANSFORM sources APPEND .cpp)
    add_library(isogloss_compiled STATIC ${sources})
    add_library(isogloss::compiled ALIAS isogloss_compiled)
    target_link_libraries(isogloss_compiled PUBLIC isogloss PRIVATE $<BUILD_INTERFACE:isogloss_warnings>)
    target_compile_definitions(isogloss_compiled PUBLIC ISOGLOSS_COMPILED)
    if(TARGET isogloss_lds)
        target_link_libraries(isogloss_compiled PRIVATE $<BUILD_INTERFACE:isogloss_lds>)
        target_compile_definitions(isogloss_compiled PUBLIC ISOGLOSS_COMPILED_LDS)
    endif()
    # A program and the library in it agree on the instruction set: memory is laid out by its width.
    target_compile_options(isogloss_compiled PUBLIC ${isogloss_native})
    set_target_properties(isogloss_compiled PROPERTIES EXPORT_NAME compiled)
    set(isogloss_core isogloss::compiled)
endif()

# For code of which little is the library's: g++ takes half the time that -O2 takes, clang++ has no such level.
set(isogloss_light $<IF:$<CXX_COMPILER_ID:GNU>,-Og,-O1>)

# isogloss_links_core(TARGET OPTIMISATION): links the core, compiled where there is one. Its library comes first in the
# link, so that a function that both it and the program hold is the library's, fully optimised. The program's own code
# is then compiled with OPTIMISATION, and under the sanitizers, where it is run on little, with -O0.
function(isogloss_links_core target optimisation)
    target_link_libraries(${target} PRIVATE ${isogloss_core})
    if(NOT ISOGLOSS_COMPILED)
        return()
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
        target_link_options(${target} PRIVATE
            LINKER:--whole-archive $<TARGET_FILE:isogloss_compiled> LINKER:--no-whole-archive)
    endif()
    if(isogloss_sanitized)
        set(optimisation -O0)
    endif()
    target_compile_options(${target} PRIVATE ${optimisation})
endfunction()
