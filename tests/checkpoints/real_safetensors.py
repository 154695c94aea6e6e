#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the real safetensors library reads in a file: metadata, then one line per tensor.

    real_safetensors.py FILE

The exit status is 77 where the library is not installed."""
import json
import sys

try:
    import safetensors
except ImportError:
    sys.exit(77)

if len(sys.argv) < 2:  # only asked whether there is one
    sys.exit(0)

# deserialize() names tensors' bytes without numpy or torch; metadata needs the header.
with open(sys.argv[1], "rb") as file:
    data = file.read()
header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
for key, value in sorted(header.get("__metadata__", {}).items()):
    print("metadata", key, value)
try:
    tensors = safetensors.deserialize(data)
except safetensors.SafetensorError as error:
    sys.exit(f"refused: {error}")
for name, tensor in sorted(tensors):
    print(name, tensor["dtype"], tensor["shape"], bytes(tensor["data"]).hex())
