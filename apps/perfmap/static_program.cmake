# SPDX-License-Identifier: MIT
# perfmap-static: the program as one file without a loader, for containers. It is made of the objects of the
# shared libraries and of the program; only the sources that would load something are compiled again.
include(CheckCXXSourceCompiles)
set(static_libraries "")
foreach(library IN ITEMS elf lzma z zstd)
  find_library(PERFMAP_STATIC_${library} NAMES lib${library}.a)
  mark_as_advanced(PERFMAP_STATIC_${library})
  list(APPEND static_libraries ${PERFMAP_STATIC_${library}})
endforeach()
set(CMAKE_REQUIRED_FLAGS -fPIE)
set(CMAKE_REQUIRED_LINK_OPTIONS -static-pie)
set(CMAKE_REQUIRED_LIBRARIES ${static_libraries})
if(NOT PERFMAP_SANITIZE AND NOT PERFMAP_FUZZ AND NOT static_libraries MATCHES "NOTFOUND")
  check_cxx_source_compiles([[
    #include <string>
    #include <thread>
    int main(int count, char**) { std::thread([] {}).join(); return std::to_string(count).size() == 1 ? 0 : 1; }
  ]] PERFMAP_CAN_LINK_STATICALLY)
endif()
unset(CMAKE_REQUIRED_FLAGS)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
unset(CMAKE_REQUIRED_LIBRARIES)
if(PERFMAP_CAN_LINK_STATICALLY)
  set(static_program_default ON)
else()
  set(static_program_default OFF)
endif()
option(PERFMAP_STATIC_PROGRAM "Also link the program as one static file" ${static_program_default})
if(NOT PERFMAP_STATIC_PROGRAM)
  return()
endif()
if(NOT PERFMAP_CAN_LINK_STATICALLY)
  message(FATAL_ERROR "PERFMAP_STATIC_PROGRAM needs the static libraries libc, libstdc++, libelf, liblzma, libz and "
    "libzstd (the packages for development of Debian have them)")
endif()

# An archive, of which the linker takes what the program needs.
set(loading "/shared_library\\.cpp\\.o$")
add_library(perfmap_static_parts STATIC EXCLUDE_FROM_ALL)
foreach(objects IN ITEMS perfmap_writer_objects perfmap_objects perfmap_objects_fast perfmap_profile_objects
    perfmap_profile_objects_fast perfmap_commands)
  target_sources(perfmap_static_parts PRIVATE $<FILTER:$<TARGET_OBJECTS:${objects}>,EXCLUDE,${loading}>)
endforeach()
set_target_properties(perfmap_static_parts PROPERTIES LINKER_LANGUAGE CXX)

find_package(tl-expected REQUIRED)
add_executable(perfmap_static_program ${PROJECT_SOURCE_DIR}/lib/profile/module/shared_library.cpp
  $<TARGET_OBJECTS:perfmap_main>)
set_target_properties(perfmap_static_program PROPERTIES
  OUTPUT_NAME perfmap-static LINK_DEPENDS_NO_SHARED ON)
# -fPIE is given here: with the property, CMake may also link with -pie, which replaces -static-pie.
set_property(TARGET perfmap_static_program PROPERTY POSITION_INDEPENDENT_CODE)
foreach(target IN ITEMS perfmap_static_program perfmap_main perfmap_commands)
  target_compile_options(${target} PRIVATE -fPIE)
endforeach()
target_compile_definitions(perfmap_static_program PRIVATE PERFMAP_STATIC_PROGRAM)
target_include_directories(perfmap_static_program PRIVATE
  ${PROJECT_SOURCE_DIR}/lib/include ${PROJECT_SOURCE_DIR}/lib/profile)
target_link_libraries(perfmap_static_program PRIVATE perfmap_build_flags tl::expected perfmap_static_parts
  ${static_libraries} ${LIBIBERTY_LIBRARY})
target_link_options(perfmap_static_program PRIVATE -static-pie -Wl,--gc-sections)
