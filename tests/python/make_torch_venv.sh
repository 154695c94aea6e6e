#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes an environment with torch, transformers, TRL and Lightning for the tests labelled torch:
#
#   sh tests/python/make_torch_venv.sh FOLDER
#   TWINSTEP_TORCH_VENV=FOLDER ctest --test-dir build/strict -L torch
#
# pip downloads some 3 GB: torch of the package index brings its CUDA libraries. PIP_INDEX_URL and
# other settings of pip hold. It runs what is not there yet, so it may be called again.
set -eu
[ $# = 1 ] || {
    echo 'usage: sh tests/python/make_torch_venv.sh FOLDER' >&2
    exit 2
}
[ -x "$1/bin/python" ] || python3 -m venv "$1"
"$1/bin/pip" install torch transformers trl lightning datasets accelerate h5py numpy pandas xarray \
    h5netcdf matplotlib mypy
"$1/bin/python" -c 'import torch, transformers, trl, lightning
for module in (torch, transformers, trl, lightning):
    print(module.__name__, module.__version__)'
