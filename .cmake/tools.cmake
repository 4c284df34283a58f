# Targets for whoever changes the project: format, and tidy (best from the preset release-clang, whose
# flags clang-tidy understands; it goes through each header by way of the file of headers_all).
find_program(ISOGLOSS_CLANG_FORMAT clang-format)
if(ISOGLOSS_CLANG_FORMAT)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS include/*.hpp src/*.cpp examples/*.[hc]pp programs/*.[hc]pp tests/*.[hc]pp benchmarks/*.[hc]pp
        python/*.[hc]pp)
    add_custom_target(format COMMAND ${ISOGLOSS_CLANG_FORMAT} -i ${sources} VERBATIM)
endif()
find_program(ISOGLOSS_RUN_CLANG_TIDY run-clang-tidy)
if(ISOGLOSS_RUN_CLANG_TIDY)
    add_custom_target(tidy COMMAND ${ISOGLOSS_RUN_CLANG_TIDY} -quiet -p ${PROJECT_BINARY_DIR} VERBATIM USES_TERMINAL)
endif()
