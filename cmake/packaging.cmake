# SPDX-License-Identifier: Apache-2.0
# What a distribution expects of an installed program: a stripped binary, manual pages, completion
# for bash and zsh, a licence, and a .deb by CPack. docs/INSTALL.md shows the commands.
#
# Components: program and headers (cmake/module_headers.cmake) are in every installation; plain is
# only in that of `cmake --install`, debian only in the .deb.
include(GNUInstallDirs)
set(TWINSTEP_MAINTAINER "the twinstep authors <authors@twinstep.invalid>"
    CACHE STRING "who answers for the .deb; a package that is passed on names a real address")
set(packaging ${CMAKE_SOURCE_DIR}/cmake/packaging)
set(pages ${CMAKE_BINARY_DIR}/pages)
set(documents ${CMAKE_INSTALL_DATADIR}/doc/twinstep)

# The binary is installed without its symbols, which stay in the build tree. CPack gets them,
# because it writes them to a package of their own; it is known by its staging folder. A sanitizer
# needs them.
if(NOT TWINSTEP_SANITIZE)
  install(
    CODE [[if(NOT "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}" MATCHES "/_CPack_Packages/")
    set(CMAKE_INSTALL_DO_STRIP 1)
  endif()]]
    COMPONENT program)
endif()
install(TARGETS twinstep RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(FILES ${packaging}/copyright ${CMAKE_SOURCE_DIR}/NOTICE DESTINATION ${documents}
        COMPONENT program)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${documents} COMPONENT plain)

# Pages and the tables of completion are written by the program itself, from what it prints its
# --help from; what the shells do with the tables stands in cmake/packaging. A program
# that cannot run where it is built is installed without them; one with sanitizers may need settings
# that only its tests have.
find_program(GZIP gzip)
if(NOT GZIP
   OR (CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
   OR TWINSTEP_SANITIZE)
  message(STATUS "no manual pages, no completion, no .deb: this build does not run its program")
  return()
endif()

add_custom_command(
  OUTPUT ${pages}/_twinstep
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
  COMMAND twinstep pages ${pages}
  COMMAND sh -c "cat \"$1\" >>\"$0/twinstep.bash\" && cat \"$2\" >>\"$0/_twinstep\"" ${pages}
          ${packaging}/completion.bash ${packaging}/completion.zsh
  COMMAND sh -c "exec \"$0\" -9n \"$1\"/*.1" ${GZIP} ${pages}
  DEPENDS twinstep ${packaging}/completion.bash ${packaging}/completion.zsh
  COMMENT "manual pages and completion"
  VERBATIM)
add_custom_target(pages ALL DEPENDS ${pages}/_twinstep)
install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program
        FILES_MATCHING PATTERN "*.1.gz")
install(FILES ${pages}/twinstep.bash RENAME twinstep
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
# zsh looks into site-functions of its own prefix; Debian keeps those of packages elsewhere.
install(FILES ${pages}/_twinstep DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
        COMPONENT plain)
install(FILES ${pages}/_twinstep DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
        COMPONENT debian EXCLUDE_FROM_ALL)

# The .deb: cpack --config BUILD/CPackConfig.cmake
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "${TWINSTEP_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "find why two trainings that should agree do not")
set(CPACK_PACKAGE_DESCRIPTION
    "Runs a pair of language-model trainings on real text, records every step to the
last bit, finds the first difference, measures what difference is normal, and
says which cause made it: the learning rate, a dtype, the order of sums, or
another one. Reads the logs of common training tools and says which schedule a
framework really applied.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL program headers debian)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libopenblas0-openmp") # mode fast, found when it runs
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)

# Debian wants the history of the package beside that of the program, both compressed.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # or SOURCE_DATE_EPOCH
configure_file(${packaging}/changelog.in ${CMAKE_BINARY_DIR}/debian/changelog.Debian @ONLY)
configure_file(${CMAKE_SOURCE_DIR}/CHANGELOG.md ${CMAKE_BINARY_DIR}/debian/changelog COPYONLY)
foreach(name changelog.Debian changelog)
  set(file ${CMAKE_BINARY_DIR}/debian/${name})
  execute_process(COMMAND ${GZIP} -9nc ${file} OUTPUT_FILE ${file}.gz COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${file}.gz DESTINATION ${documents} COMPONENT debian EXCLUDE_FROM_ALL)
endforeach()
include(CPack)
