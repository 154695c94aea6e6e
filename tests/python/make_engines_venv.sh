#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes an environment with DeepSpeed, megatron-core and torchtitan beside the torch of another
# environment, which make_torch_venv.sh made, for python_record_engines_torch:
#
#   sh tests/python/make_engines_venv.sh FOLDER TORCH_FOLDER
#   TWINSTEP_TORCH_VENV=FOLDER ctest --test-dir build/strict -R python_record_engines_torch
#
# The versions are those that the examples of docs/RECORD.md were run with. They bring older datasets
# and huggingface_hub, so the other tests labelled torch keep the environment that they have. On a
# processor without CUDA DeepSpeed compiles a part of its own at its first start (g++, ninja).
set -eu
[ $# = 2 ] || {
    echo 'usage: sh tests/python/make_engines_venv.sh FOLDER TORCH_FOLDER' >&2
    exit 2
}
[ -x "$1/bin/python" ] || python3 -m venv "$1"
torch=$("$2/bin/python" -c 'import torch, pathlib; print(pathlib.Path(torch.__file__).parents[1])')
packages=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$torch" > "$packages/torch.pth"
"$1/bin/pip" install deepspeed==0.19.8 megatron-core==0.16.1 torchtitan==0.3.0
"$1/bin/python" -c 'import importlib.metadata as m
for name in ("torch", "deepspeed", "megatron-core", "torchtitan"):
    print(name, m.version(name))'
