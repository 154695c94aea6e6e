# SPDX-License-Identifier: Apache-2.0
"""Tensors as a safetensors file (safetensors 0.5, README "Format": eight bytes with the header's
length, the header as JSON, the tensors' bytes one after another), without that package."""
from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from typing import Any

# dtype as numpy and torch name it: as safetensors does
_DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
           "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL"}


def _parts(name: str, value: Any) -> tuple[str, list[int], bytes]:
    """Returns dtype, shape and bytes (row-major, little-endian) of an array of numpy or torch, or
    of what numpy makes an array of."""
    if hasattr(value, "detach"):  # a tensor of torch: numpy has no bfloat16, so its bytes are taken
        import torch

        dtype, shape = str(value.dtype).removeprefix("torch."), list(value.shape)
        if value.layout != torch.strided:
            raise TypeError(f"{name}: expected a dense tensor, got layout {value.layout}")
        flat = value.detach().cpu().reshape(-1).contiguous()
        raw = flat.view(torch.uint8).numpy().tobytes() if dtype in _DTYPES and len(flat) else b""
    else:
        import numpy

        array = numpy.asarray(value)
        dtype, shape = array.dtype.name, list(array.shape)
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        raw = little.tobytes(order="C")
    if dtype not in _DTYPES:
        raise TypeError(f"{name}: expected {', '.join(_DTYPES)}, got {dtype}")
    return _DTYPES[dtype], shape, raw


def save(tensors: Mapping[str, Any], path: pathlib.Path) -> None:
    """Writes the tensors, in ascending order of their names. Raises TypeError for another dtype."""
    header: dict[str, Any] = {}
    bodies: list[bytes] = []
    end = 0
    for name in sorted(tensors):
        dtype, shape, raw = _parts(name, tensors[name])
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(raw)]}
        bodies.append(raw)
        end += len(raw)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)  # so that the first tensor stands at a multiple of 8
    with path.open("xb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.writelines(bodies)
