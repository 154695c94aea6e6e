#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a test labelled torch with the Python of the environment that TWINSTEP_TORCH_VENV names;
# skipped (77) where it names none.
if [ -z "${TWINSTEP_TORCH_VENV-}" ]; then
    echo 'TWINSTEP_TORCH_VENV names no environment (tests/python/make_torch_venv.sh makes one): skipped'
    exit 77
fi
exec "$TWINSTEP_TORCH_VENV/bin/python" "$@"
