#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# llm.c's CPU trainer, patched to write a trace (docs/llmc.patch): applies, compiles, trains 41
# updates of a tiny model three times, and twinstep must find two of them equal and the third apart.
#
#     sh tests/bench/llmc_trace.sh LLMC BUILD PYTHON_WITH_NUMPY
#
# LLMC is a checkout of github.com/karpathy/llm.c (tried at f1e2ace6), BUILD a build folder of
# twinstep. Nothing of either is changed.
set -eu
llmc=$1 build=$(realpath "$2") python=${3:-python3}
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$llmc/train_gpt2.c" "$llmc/llmc" "$work"
cd "$work"
patch -s -p1 <"$here/../../docs/llmc.patch"
mkdir include
cp "$here/../../determinism/trace/twinstep_trace.h" include
"${CC:-cc}" -O2 -w -Iinclude train_gpt2.c -o train_gpt2 -L"$build" -ltwinstep_trace -lm
"$python" - <<'PROGRAM'
import os
import numpy as np
length, vocab, layers, heads, width = 64, 256, 2, 2, 32
draw = np.random.default_rng(3)
header = np.zeros(256, "<i4")
header[:8] = 20240326, 3, length, vocab, layers, heads, width, vocab
count = (vocab + length) * width + layers * (12 * width * width + 13 * width) + 2 * width
open("gpt2_124M.bin", "wb").write(header.tobytes() + (draw.standard_normal(count) * 0.02).astype("<f4").tobytes())
os.makedirs("dev/data/tinyshakespeare")
for which, tokens in (("train", 6000), ("val", 3000)):
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, tokens
    open(f"dev/data/tinyshakespeare/tiny_shakespeare_{which}.bin", "wb").write(
        header.tobytes() + draw.integers(0, vocab, tokens).astype("<u2").tobytes())
PROGRAM
export LD_LIBRARY_PATH="$build"
TWINSTEP_TRACE=a.h5 ./train_gpt2 >a.txt
TWINSTEP_TRACE=b.h5 ./train_gpt2 >b.txt
LEARNING_RATE=2e-4 TWINSTEP_TRACE=c.h5 ./train_gpt2 >c.txt
"$build/bin/twinstep" import --check a.h5
"$build/bin/twinstep" certify a.h5 b.h5
"$build/bin/twinstep" certify a.h5 c.h5 && exit 1
"$build/bin/twinstep" compare a.h5 c.h5 | grep 'A/B of lr_applied is 1/2 in 41 of 41 pairs'
