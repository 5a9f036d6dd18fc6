# SPDX-License-Identifier: MIT
# Rules for `cmake --install`: libraries, headers, program, completions, manual pages, documentation,
# JSON schemas, and files for find_package() and pkg-config. A component is a package, see packages.cmake.
include(CMakePackageConfigHelpers)

install(TARGETS perfmap_writer perfmap_writer_static EXPORT perfmapTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT writer NAMELINK_COMPONENT dev
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
set(pc_files perfmap-writer.pc)
if(PERFMAP_WRITER_ONLY)
  install(FILES lib/include/perfmap_writer.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
else()
  install(TARGETS perfmap perfmap_profile perfmap_cpython EXPORT perfmapTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  # These find libperfmap.so in their own directory.
  set_target_properties(perfmap_profile perfmap_cpython PROPERTIES INSTALL_RPATH "$ORIGIN")
  if(TARGET perfmap_program)
    install(TARGETS perfmap_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  endif()
  install(DIRECTORY lib/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
  list(APPEND pc_files perfmap.pc perfmap-profile.pc perfmap-cpython.pc)
endif()
install(EXPORT perfmapTargets NAMESPACE perfmap::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/perfmap COMPONENT dev)

configure_package_config_file(cmake/perfmapConfig.cmake.in perfmapConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/perfmap)
write_basic_package_version_file(perfmapConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/perfmapConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/perfmapConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/perfmap COMPONENT dev)
# Paths in the .pc files are relative to the files themselves, so --prefix may relocate the tree.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
# cmake_path(APPEND) keeps a directory that was given as an absolute path.
cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
foreach(file IN LISTS pc_files)
  configure_file(cmake/${file}.in ${file} @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT dev)
endforeach()
if(NOT TARGET perfmap_program)
  return()
endif()

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
# The links between pages need the same directories as here.
install(FILES README.md CONTRIBUTING.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs
  FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN man EXCLUDE PATTERN schema EXCLUDE)
install(DIRECTORY docs/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/perfmap)
file(RELATIVE_PATH docs_to_schema ${CMAKE_INSTALL_FULL_DOCDIR}/docs
  ${CMAKE_INSTALL_FULL_DATADIR}/perfmap/schema)
file(CREATE_LINK ${docs_to_schema} ${CMAKE_CURRENT_BINARY_DIR}/schema SYMBOLIC)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/schema DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)

install(FILES completions/perfmap.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME perfmap)
install(FILES completions/_perfmap DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES completions/perfmap.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# Manual pages are generated only if scdoc is installed.
find_program(SCDOC scdoc)
if(SCDOC)
  file(GLOB pages CONFIGURE_DEPENDS docs/man/*.scd)
  foreach(source IN LISTS pages)
    get_filename_component(page ${source} NAME_WLE)
    string(REGEX MATCH "[0-9]$" section ${page})
    add_custom_command(OUTPUT ${page}
      COMMAND sh -c "'${SCDOC}' < '${source}' > '${CMAKE_CURRENT_BINARY_DIR}/${page}'"
      DEPENDS ${source} VERBATIM)
    list(APPEND made_pages ${CMAKE_CURRENT_BINARY_DIR}/${page})
    set(component program)
    if(section EQUAL 3)
      set(component dev)
    endif()
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${page}
      DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
  endforeach()
  add_custom_target(manual_pages ALL DEPENDS ${made_pages})
else()
  message(STATUS "scdoc is not here: no manual pages")
endif()
if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
    -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake VERBATIM)
  include(cmake/packages.cmake)
endif()
