# SPDX-License-Identifier: Apache-2.0
# Libraries from the distribution, each behind one target: installed ones, found with pkg-config and
# find_library, or, with TWINSTEP_DEPS, those of an unpacked tests/bench/static_archive.sh alone.
set(TWINSTEP_DEPS "" CACHE PATH "folder unpacked from tests/bench/static_archive.sh; empty: installed libraries")
option(TWINSTEP_STATIC "link the distribution's static libraries: a program that needs glibc alone" OFF)
if(TWINSTEP_STATIC AND NOT TWINSTEP_DEPS)
  set(TWINSTEP_DEPS ${CMAKE_BINARY_DIR}/deps)
  if(NOT EXISTS ${TWINSTEP_DEPS}/packages)
    file(MAKE_DIRECTORY ${TWINSTEP_DEPS})
    execute_process(
      COMMAND sh ${CMAKE_SOURCE_DIR}/tests/bench/static_archive.sh ${CMAKE_BINARY_DIR}/deps.tar.gz hdf5 gsl
              libfyaml jansson nettle zlib liblzma libzstd sqlite3
      COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND tar -xzf ${CMAKE_BINARY_DIR}/deps.tar.gz -C ${TWINSTEP_DEPS}
                    COMMAND_ERROR_IS_FATAL ANY)
  endif()
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libgomp.a OUTPUT_VARIABLE gomp
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(OpenMP_gomp_LIBRARY ${gomp} CACHE FILEPATH "the static one of the compiler")
endif()
find_package(OpenMP REQUIRED COMPONENTS C)

# SYSTEM: their headers are not held to our warnings.
if(TWINSTEP_DEPS)
  function(twinstep_dependency target package)
    file(STRINGS ${TWINSTEP_DEPS}/links/${package} files) # in the order of the linker
    list(TRANSFORM files PREPEND ${TWINSTEP_DEPS}/lib/)
    add_library(${target} INTERFACE)
    target_include_directories(${target} SYSTEM INTERFACE ${TWINSTEP_DEPS}/include)
    target_link_libraries(${target} INTERFACE ${files} m ${CMAKE_DL_LIBS})
  endfunction()
else()
  find_package(PkgConfig REQUIRED)
  function(twinstep_dependency target package)
    pkg_check_modules(${package} REQUIRED IMPORTED_TARGET ${package})
    add_library(${target} INTERFACE)
    target_include_directories(${target} SYSTEM INTERFACE ${${package}_INCLUDE_DIRS})
    target_link_libraries(${target} INTERFACE PkgConfig::${package})
  endfunction()
endif()

twinstep_dependency(twinstep_gsl gsl)
twinstep_dependency(twinstep_fyaml libfyaml)
twinstep_dependency(twinstep_jansson jansson)
twinstep_dependency(twinstep_nettle nettle)
twinstep_dependency(twinstep_zlib zlib)
twinstep_dependency(twinstep_lzma liblzma)
twinstep_dependency(twinstep_zstd libzstd)
twinstep_dependency(twinstep_sqlite sqlite3)

if(TWINSTEP_DEPS)
  set(HDF5_HEADERS ${TWINSTEP_DEPS}/include)
  twinstep_dependency(twinstep_hdf5 hdf5)
else()
  find_path(HDF5_HEADERS hdf5.h PATH_SUFFIXES hdf5/serial REQUIRED)
  find_library(HDF5_LIBRARY NAMES hdf5_serial hdf5 REQUIRED)
  find_library(HDF5_HL_LIBRARY NAMES hdf5_serial_hl hdf5_hl REQUIRED)
  add_library(twinstep_hdf5 INTERFACE)
  target_include_directories(twinstep_hdf5 SYSTEM INTERFACE ${HDF5_HEADERS})
  # The program itself takes HDF5 from the distribution's static library, where it is installed: the
  # shared one loads curl, OpenSSL, Kerberos and LDAP, which is most of the time in which a short
  # command runs (docs/decisions/start.md). Tests are linked with the shared one, which is quicker
  # to link, and so are programs with sanitizers, whose suppressions name it.
  find_library(HDF5_ARCHIVE NAMES libhdf5_serial.a libhdf5.a PATH_SUFFIXES hdf5/serial)
  find_library(HDF5_HL_ARCHIVE NAMES libhdf5_serial_hl.a libhdf5_hl.a PATH_SUFFIXES hdf5/serial)
  find_library(SZ_ARCHIVE NAMES libsz.a)
  find_library(AEC_ARCHIVE NAMES libaec.a)
  if(HDF5_ARCHIVE AND HDF5_HL_ARCHIVE AND SZ_ARCHIVE AND AEC_ARCHIVE AND NOT TWINSTEP_SANITIZE)
    set(archives ${HDF5_HL_ARCHIVE} ${HDF5_ARCHIVE} ${SZ_ARCHIVE} ${AEC_ARCHIVE} PkgConfig::zlib
                 ${CMAKE_DL_LIBS})
    set(is_archived $<BOOL:$<TARGET_PROPERTY:TWINSTEP_HDF5_ARCHIVED>>)
    target_link_libraries(
      twinstep_hdf5 INTERFACE "$<${is_archived}:${archives}>"
                              "$<$<NOT:${is_archived}>:${HDF5_HL_LIBRARY};${HDF5_LIBRARY}>")
  else()
    target_link_libraries(twinstep_hdf5 INTERFACE ${HDF5_HL_LIBRARY} ${HDF5_LIBRARY})
  endif()
endif()
