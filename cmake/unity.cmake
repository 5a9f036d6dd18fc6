# SPDX-License-Identifier: MIT
# Compiles a target's sources in groups: much of the work is the same headers and templates. Call it after
# all sources are added, in their folder. Files with compile options of their own stay separate.
option(PERFMAP_UNITY "Compile several sources at a time, for builds that are made once, such as of tests" OFF)

function(perfmap_unity target)
  if(NOT PERFMAP_UNITY)
    return()
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folders ${target} INCLUDE_DIRECTORIES)
  list(FILTER sources INCLUDE REGEX "^[^$]+\\.cpp$")
  list(TRANSFORM folders REPLACE "^\\$<BUILD_INTERFACE:(.*)>$" "\\1")
  set(arguments "")
  foreach(folder IN LISTS folders)
    get_filename_component(folder ${folder} ABSOLUTE)
    list(APPEND arguments -I ${folder})
  endforeach()
  foreach(source IN LISTS sources)
    get_source_file_property(without_headers ${source} SKIP_PRECOMPILE_HEADERS)
    if(without_headers)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      list(REMOVE_ITEM sources ${source})
    endif()
  endforeach()
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../scripts/unity_groups.py ${arguments} ${sources}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^(.*) (.*)$" line "${line}")
    set_source_files_properties(${CMAKE_MATCH_1} PROPERTIES UNITY_GROUP ${target}_${CMAKE_MATCH_2})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # gcc takes a file that another one includes for a header, whose types others might see.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
