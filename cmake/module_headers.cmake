# SPDX-License-Identifier: Apache-2.0
# The headers that a user's module includes (docs/PLUGINS.md): all of them, and no others. They
# install to include/twinstep, with the program: cmake --install BUILD --prefix FOLDER.
set(TWINSTEP_MODULE_HEADERS
    base/dtype.h
    base/key.h
    base/macro.h
    base/module_abi.h
    base/module_kit.h
    base/real.h
    base/real_basic.h
    base/real_exp.h
    base/real_log.h
    base/real_round.h
    base/real_trig.h
    base/status.h
    optim/optim.h
    optim/optim_module.h
    sched/sched.h
    sched/sched_module.h)
include(GNUInstallDirs)
foreach(header ${TWINSTEP_MODULE_HEADERS})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${CMAKE_SOURCE_DIR}/${header}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/twinstep/${folder} COMPONENT headers)
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/tests/plugins/template_optim.c
              ${CMAKE_SOURCE_DIR}/tests/plugins/template_sched.c
        DESTINATION ${CMAKE_INSTALL_DATADIR}/twinstep COMPONENT headers)
# pkg-config --cflags twinstep: where they are, and the flags that keep a module's bits.
file(RELATIVE_PATH TWINSTEP_PREFIX_OF_PC /${CMAKE_INSTALL_DATADIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/packaging/twinstep.pc.in
               ${CMAKE_BINARY_DIR}/generated/twinstep.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/twinstep.pc
        DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig COMPONENT headers)
