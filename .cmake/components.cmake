# isogloss_component(NAME PACKAGE VERSION DEBIAN TARGET): a part of the library beside the core that is
# asked for by name, in CMake as isogloss::NAME, and that alone needs PACKAGE.
macro(isogloss_component name package version debian target)
    if("${name}" IN_LIST ISOGLOSS_COMPONENTS)
        isogloss_find(${package} ${version} ${debian})
        add_library(isogloss_${name} INTERFACE)
        add_library(isogloss::${name} ALIAS isogloss_${name})
        target_link_libraries(isogloss_${name} INTERFACE isogloss ${target})
        set_target_properties(isogloss_${name} PROPERTIES EXPORT_NAME ${name})
        set(isogloss_${name}_dependency ${package})
        list(APPEND isogloss_components ${name})
    endif()
endmacro()
set(isogloss_components "")
