# SPDX-License-Identifier: Apache-2.0
# Libraries from the distribution, each behind one target: installed ones, found with pkg-config and
# find_library, or, with TWINSTEP_DEPS, those of an unpacked tests/bench/static_archive.sh alone.
set(TWINSTEP_DEPS "" CACHE PATH "folder unpacked from tests/bench/static_archive.sh; empty: installed libraries")
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

if(TWINSTEP_DEPS)
  set(HDF5_HEADERS ${TWINSTEP_DEPS}/include)
  twinstep_dependency(twinstep_hdf5 hdf5)
else()
  find_path(HDF5_HEADERS hdf5.h PATH_SUFFIXES hdf5/serial REQUIRED)
  find_library(HDF5_LIBRARY NAMES hdf5_serial hdf5 REQUIRED)
  find_library(HDF5_HL_LIBRARY NAMES hdf5_serial_hl hdf5_hl REQUIRED)
  add_library(twinstep_hdf5 INTERFACE)
  target_include_directories(twinstep_hdf5 SYSTEM INTERFACE ${HDF5_HEADERS})
  target_link_libraries(twinstep_hdf5 INTERFACE ${HDF5_HL_LIBRARY} ${HDF5_LIBRARY})
endif()
