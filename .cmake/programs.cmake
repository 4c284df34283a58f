# How examples/ and programs/ are built: against the compiled core where there is one, with the bundled text at hand.

# What they include most, read once by the compiler.
add_library(isogloss_precompiled OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cpp)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "")
target_link_libraries(isogloss_precompiled PRIVATE isogloss_warnings)
foreach(component IN LISTS isogloss_components_alone)
    target_link_libraries(isogloss_precompiled PRIVATE isogloss::${component})
endforeach()
isogloss_links_core(isogloss_precompiled -O2)
target_precompile_headers(isogloss_precompiled PRIVATE <isogloss/compiled.hpp>)

# isogloss_program(NAME OPTIMISATION SOURCES...)
function(isogloss_program name optimisation)
    add_executable(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE isogloss_warnings)
    foreach(component IN LISTS isogloss_components_alone)
        target_link_libraries(${name} PRIVATE isogloss::${component})
    endforeach()
    # The first example is built as its readers build theirs.
    if(name MATCHES "^01_" AND NOT isogloss_sanitized)
        target_link_libraries(${name} PRIVATE isogloss::isogloss)
    else()
        isogloss_links_core(${name} ${optimisation})
        target_precompile_headers(${name} REUSE_FROM isogloss_precompiled)
    endif()
    set_target_properties(${name} PROPERTIES UNITY_BUILD ${ISOGLOSS_UNITY} UNITY_BUILD_BATCH_SIZE 7)
    target_compile_definitions(${name} PRIVATE ISOGLOSS_EXAMPLES_DATA="${PROJECT_SOURCE_DIR}/examples/data")
endfunction()
