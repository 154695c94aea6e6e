# SPDX-License-Identifier: Apache-2.0
"""Sets what torch can be told about kernels, and prints what is set here and what is set in the
process that `twinstep.noise` starts (for test_noise_torch.py): settings.py old|new"""
import multiprocessing
import sys

import torch

from twinstep.record import facts
from twinstep.repeats import child


def there(to):
    """What another process has after it was told."""
    child._set(to)
    print(child.settings(), flush=True)


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cudnn.benchmark = True
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    if sys.argv[1] == "old":
        torch.backends.cuda.matmul.allow_tf32 = True
    else:
        torch.backends.cuda.matmul.fp32_precision = "tf32"
    facts.environment([])
    print(child.settings(), flush=True)
    process = multiprocessing.get_context("spawn").Process(target=there, args=(child.settings(),))
    process.start()
    process.join()
    sys.exit(process.exitcode)
