# The programs in docs/*.md and README.md compile and run; programs.awk says which blocks are programs.
if(NOT TARGET isogloss::io OR NOT TARGET isogloss::lds)
    return()  # some of them write files, or count words
endif()
find_program(ISOGLOSS_AWK awk REQUIRED)
file(GLOB_RECURSE pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/docs/*.md)

# docs_program(NAME SELECTION PAGES ARGUMENTS...): a program out of pages, run in a folder of its own
function(docs_program name selection pages)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/docs/${name}.cpp)
    set(place ${CMAKE_CURRENT_BINARY_DIR}/docs/${name})
    file(MAKE_DIRECTORY ${place})
    set(script ${PROJECT_SOURCE_DIR}/tests/docs/programs.awk)
    list(TRANSFORM pages PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE sources)
    add_custom_command(OUTPUT ${unit} COMMAND ${ISOGLOSS_AWK} ${selection} -f ${script} ${pages} > ${unit}
        DEPENDS ${sources} ${script} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
    add_executable(docs_${name} ${unit})
    target_link_libraries(docs_${name} PRIVATE isogloss::io isogloss::lds isogloss_warnings)
    isogloss_links_core(docs_${name} ${tests_optimisation})
    target_compile_options(docs_${name} PRIVATE -Wno-sign-conversion)
    add_test(NAME docs/${name} COMMAND docs_${name} ${ARGN} WORKING_DIRECTORY ${place})
endfunction()

docs_program(pages "" "${pages}")
if(TARGET isogloss_programs)
    target_precompile_headers(docs_pages REUSE_FROM isogloss_programs)
endif()
# Any two texts will do.
docs_program(tutorial -vprogram=tutorial docs/tutorial.md
    ${PROJECT_SOURCE_DIR}/docs/surprises.md ${PROJECT_SOURCE_DIR}/docs/tutorial.md)
docs_program(readme -vprogram=readme README.md ${PROJECT_SOURCE_DIR}/docs/surprises.md ${PROJECT_SOURCE_DIR}/docs/tutorial.md)
docs_program(lds -vprogram=lds docs/lds.md ${PROJECT_SOURCE_DIR}/examples/data/tinyshakespeare.txt)
