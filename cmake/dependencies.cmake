# SPDX-License-Identifier: Apache-2.0
# Libraries from the distribution, each behind one target. Found with pkg-config and plain
# find_library, so that an unpacked folder of archives serves as well as an installed package.
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)

function(twinstep_dependency target package)
  pkg_check_modules(${package} REQUIRED IMPORTED_TARGET ${package})
  add_library(${target} INTERFACE)
  # SYSTEM: their headers are not held to our warnings.
  target_include_directories(${target} SYSTEM INTERFACE ${${package}_INCLUDE_DIRS})
  target_link_libraries(${target} INTERFACE PkgConfig::${package})
endfunction()

twinstep_dependency(twinstep_gsl gsl)
twinstep_dependency(twinstep_fyaml libfyaml)
twinstep_dependency(twinstep_jansson jansson)
twinstep_dependency(twinstep_nettle nettle)

find_path(HDF5_HEADERS hdf5.h PATH_SUFFIXES hdf5/serial REQUIRED)
find_library(HDF5_LIBRARY NAMES hdf5_serial hdf5 REQUIRED)
find_library(HDF5_HL_LIBRARY NAMES hdf5_serial_hl hdf5_hl REQUIRED)
add_library(twinstep_hdf5 INTERFACE)
target_include_directories(twinstep_hdf5 SYSTEM INTERFACE ${HDF5_HEADERS})
target_link_libraries(twinstep_hdf5 INTERFACE ${HDF5_HL_LIBRARY} ${HDF5_LIBRARY})
