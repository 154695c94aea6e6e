# SPDX-License-Identifier: Apache-2.0
# libtwinstep_trace: the writer of traces for other trainers (docs/FOREIGN.md). It is compiled for
# itself, as code that can lie anywhere, from the few files that writing needs; it shows no name but
# those of its header.
if(TWINSTEP_DEPS) # archives of another machine, which no shared object can take in
  return()
endif()
set(TWINSTEP_TRACE_SOURCES
    base/arena.c
    base/dtype.c
    base/input.c
    base/network.c
    base/parent.c
    base/publish.c
    base/status.c
    determinism/carrier.c
    determinism/digest.c
    determinism/foreign_roots.c
    determinism/keyed_digest.c
    determinism/leafhash.c
    determinism/record.c
    determinism/root.c
    determinism/trace/trace_axes.c
    determinism/trace/trace_begin.c
    determinism/trace/trace_create.c
    determinism/trace/trace_hdf5.c
    determinism/trace/trace_heap.c
    determinism/trace/trace_layout.c
    determinism/trace/trace_names.c
    determinism/trace/trace_path.c
    determinism/trace/trace_reader.c
    determinism/trace/trace_scales.c
    determinism/trace/trace_seal.c
    determinism/trace/trace_snapshot.c
    determinism/trace/trace_write.c
    determinism/trace/twinstep_trace.c)
set(TWINSTEP_TRACE_MAP ${CMAKE_SOURCE_DIR}/cmake/packaging/twinstep_trace.map)
add_library(twinstep_trace SHARED ${TWINSTEP_TRACE_SOURCES})
target_link_libraries(twinstep_trace PRIVATE twinstep_flags twinstep_hdf5 twinstep_nettle)
target_link_options(twinstep_trace PRIVATE -Wl,--version-script=${TWINSTEP_TRACE_MAP})
if(NOT TWINSTEP_SANITIZE) # whose library the program brings
  target_link_options(twinstep_trace PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(
  twinstep_trace PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 POSITION_INDEPENDENT_CODE ON
                            LINK_DEPENDS ${TWINSTEP_TRACE_MAP})

include(GNUInstallDirs)
install(TARGETS twinstep_trace LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT headers)
install(FILES ${CMAKE_SOURCE_DIR}/determinism/trace/twinstep_trace.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers)
file(RELATIVE_PATH TWINSTEP_PREFIX_OF_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/packaging/twinstep-trace.pc.in
               ${CMAKE_BINARY_DIR}/generated/twinstep-trace.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/twinstep-trace.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT headers)
