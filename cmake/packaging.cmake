# SPDX-License-Identifier: Apache-2.0
# Manual pages, and completion for bash and zsh.
include(GNUInstallDirs)
set(packaging ${CMAKE_SOURCE_DIR}/cmake/packaging)
set(pages ${CMAKE_BINARY_DIR}/pages)

# Pages and the tables of completion are written by the program itself, from what it prints its
# --help from; what the shells do with the tables stands in cmake/packaging. A program
# that cannot run where it is built is installed without them; one with sanitizers may need settings
# that only its tests have.
find_program(GZIP gzip REQUIRED)
if((CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR) OR TWINSTEP_SANITIZE)
  message(STATUS "no manual pages and no completion: this build does not run its program")
else()
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
  install(FILES ${pages}/twinstep.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          RENAME twinstep COMPONENT program)
  install(FILES ${pages}/_twinstep DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
          COMPONENT program)
endif()
