"""Products in full precision, whatever torch is set to."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def full_precision() -> Iterator[None]:
    """Let products of single-precision tensors keep all their digits.

    Users may allow torch to round the factors to 11 or 8 bits (TF32, bfloat16), which suits neural
    networks. Our products decide about signs, ranks and zeros: they need every digit. The setting
    is torch's own, for the whole process, and is put back afterwards.
    """
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # torch refuses to sum up settings made one by one
        with _each_switch():
            yield
        return
    if before == "highest":
        yield
        return
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def _each_switch() -> Iterator[None]:
    switches = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)
    before = [switch.fp32_precision for switch in switches]
    for switch in switches:
        switch.fp32_precision = "ieee"
    try:
        yield
    finally:
        for switch, setting in zip(switches, before, strict=True):
            switch.fp32_precision = setting
