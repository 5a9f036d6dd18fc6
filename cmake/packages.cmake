# SPDX-License-Identifier: MIT
# Packages, by `cpack -G DEB` and `cpack -G RPM`: a package for each component of cmake/install.cmake, and one
# with debug data. The preset `packages` has their directories and options.
set(PERFMAP_PACKAGER "perfmap's packagers <packagers@perfmap.invalid>" CACHE STRING
  "Who makes packages, and answers for them: NAME <ADDRESS>")

set(CPACK_PACKAGE_NAME perfmap)
set(CPACK_PACKAGE_VENDOR perfmap)
set(CPACK_PACKAGE_CONTACT "${PERFMAP_PACKAGER}")
# CPack's default, which is not put before the summary of each package.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_NAME} built using CMake")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL program library writer dev debug)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/finish.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib ${PROJECT_BINARY_DIR}/lib/profile)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_RELEASE 1)

# package(COMPONENT NAME SECTION SUMMARY DESCRIPTION DEPENDS...): the packages that it needs are components.
function(package component name section summary description)
  string(TOUPPER ${component} upper)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${description}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DEPENDS ${ARGN} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${description}" PARENT_SCOPE)
  set(CPACK_RPM_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_RPM_${upper}_PACKAGE_SUMMARY "${summary}" PARENT_SCOPE)
  set(CPACK_RPM_${upper}_PACKAGE_DESCRIPTION "${description}" PARENT_SCOPE)
  set(docs ${CMAKE_INSTALL_DATADIR}/doc/${name})
  install(FILES ${PROJECT_BINARY_DIR}/packaging/copyright DESTINATION ${docs}
    COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES packaging/changelog.Debian DESTINATION ${docs} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES CHANGELOG.md DESTINATION ${docs} RENAME changelog COMPONENT ${component} EXCLUDE_FROM_ALL)
  set(kept "")
  foreach(line IN LISTS overrides)
    if(line MATCHES "^#")
      set(reason "${line}\n")
    elseif(line MATCHES "^(\\*|${name}): (.+)$")
      string(APPEND kept "${reason}${name}: ${CMAKE_MATCH_2}\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT packaging/overrides/${name} CONTENT "${kept}" @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/packaging/overrides/${name}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

file(STRINGS packaging/lintian-overrides overrides)
# The licence as machine-readable copyright file.
file(READ LICENSE licence)
string(REGEX MATCH "Copyright \\(c\\) ([^\n]+)\n+(.*[^\n])" licence "${licence}")
set(holder "${CMAKE_MATCH_1}")
string(REPLACE "\n\n" "\n.\n" licence "${CMAKE_MATCH_2}")
string(REPLACE "\n" "\n " licence "${licence}")
file(CONFIGURE OUTPUT packaging/copyright @ONLY CONTENT [[
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: perfmap

Files: *
Copyright: @holder@
License: Expat
 @licence@
]])
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  LICENSE packaging/lintian-overrides packaging/changelog.Debian)
file(STRINGS packaging/changelog.Debian newest LIMIT_COUNT 1)
if(NOT newest MATCHES "^perfmap \\(${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}\\) ")
  message(WARNING "packaging/changelog.Debian has no entry for version ${PROJECT_VERSION}")
endif()

package(program perfmap devel "Names and profiles of just-in-time compiled code"
"Records and reads profiles of programs whose code is generated while they
run, such as those of Node.js, Java, Python, .NET or PHP: perf maps,
jitdumps and perf's recordings. It checks, merges and converts these files,
unwinds and names stacks, prints reports and draws flame graphs, and says
why names are missing.")
package(library libperfmap${PROJECT_VERSION_MAJOR} libs "Libraries for code of just-in-time compilers"
"Read and write perf maps and jitdumps, name addresses of processes, unwind
stacks and read perf's recordings. This package has the shared libraries
libperfmap, libperfmap-profile for profilers, and libperfmap-cpython for
programs that use the functions of CPython for perf maps.")
package(writer libperfmap-writer${PROJECT_VERSION_MAJOR} libs "Library that writes perf maps and jitdumps"
"For runtimes: tells perf and other profilers the names of code that is
generated while a program runs. It needs the C library alone.")
package(dev libperfmap-dev libdevel "Files to compile programs with libperfmap"
"Headers, files for CMake and pkg-config, and the static library of
libperfmap-writer, for programs that read or write perf maps and jitdumps."
  library writer)
package(debug perfmap-dbg debug "Debug data of perfmap"
"What debuggers and profilers need to name the functions and source lines of
the program perfmap and its libraries.")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "linux-perf, libzydis4.0, libcapstone4, libdebuginfod1")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libexpected-dev")
# What a package that links a library depends on: as for CMake, another minor version is another interface.
math(EXPR next_minor "${PROJECT_VERSION_MINOR} + 1")
set(libraries_library libperfmap libperfmap-profile libperfmap-cpython)
set(libraries_writer libperfmap-writer)
foreach(component IN ITEMS library writer)
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(shlibs "")
  foreach(library IN LISTS libraries_${component})
    string(APPEND shlibs "${library} ${PROJECT_VERSION_MAJOR} ${name} (>= ${PROJECT_VERSION}), "
      "${name} (<< ${PROJECT_VERSION_MAJOR}.${next_minor}~)\n")
  endforeach()
  file(CONFIGURE OUTPUT packaging/${component}/shlibs CONTENT "${shlibs}" @ONLY)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/packaging/triggers ${PROJECT_BINARY_DIR}/packaging/${component}/shlibs)
  set(CPACK_RPM_${upper}_POST_INSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/packaging/ldconfig.sh)
  set(CPACK_RPM_${upper}_POST_UNINSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/packaging/ldconfig.sh)
endforeach()
set(CPACK_RPM_PACKAGE_AUTOREQPROV ON)
set(CPACK_RPM_DEV_PACKAGE_REQUIRES
  "libperfmap${PROJECT_VERSION_MAJOR} = ${PROJECT_VERSION}, libperfmap-writer${PROJECT_VERSION_MAJOR} = ${PROJECT_VERSION}")
# Debug data are in perfmap-dbg alone.
set(CPACK_RPM_SPEC_MORE_DEFINE "%define _build_id_links none")
# Directories that the distribution owns.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION)
foreach(folder IN ITEMS lib lib/debug lib/debug/.build-id ${CMAKE_INSTALL_LIBDIR}
    ${CMAKE_INSTALL_LIBDIR}/cmake ${CMAKE_INSTALL_LIBDIR}/pkgconfig share/bash-completion
    share/bash-completion/completions share/zsh share/zsh/site-functions share/fish share/fish/vendor_completions.d
    share/man share/man/man1 share/man/man3 share/man/man5)
  list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION ${CMAKE_INSTALL_PREFIX}/${folder})
endforeach()
list(REMOVE_DUPLICATES CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION)
include(CPack)
