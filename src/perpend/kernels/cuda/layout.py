"""Rows in the order in which the tile kernels read them: padded with zeros, cut into tiles."""

from collections.abc import Iterator

import torch

from perpend._typing import Array

PADDED_ROWS = 64  # rows are padded to a multiple of this: every kernel's step divides it
CHUNK_BYTES = 1 << 28  # converted at a time, so that the copy needs little room beside itself


def bf16_tiles(X: Array, parts: int) -> Array:
    """Return X as bf16, high and (for two `parts`) low: (tiles, blocks, parts, 16, 8)."""
    n, blocks = _padded(X)
    tiles = torch.empty((n // 16, blocks, parts, 16, 8), dtype=torch.bfloat16, device=X.device)
    for first, rows in _chunks(X, blocks):
        target = tiles[first // 16 : (first + rows.shape[0]) // 16]
        rest = rows
        for part in range(parts):
            rounded = rest.to(torch.bfloat16)
            target[:, :, part] = rounded.view(-1, 16, blocks, 8).transpose(1, 2)
            rest = rest - rounded  # exact: the difference has fewer digits
    return tiles


def float64_tiles(X: Array) -> Array:
    """Return X as float64: (tiles, blocks, 2, 8, 4)."""
    n, blocks = _padded(X)
    tiles = torch.empty((n // 8, blocks, 2, 8, 4), dtype=torch.float64, device=X.device)
    for first, rows in _chunks(X, blocks):
        target = tiles[first // 8 : (first + rows.shape[0]) // 8]
        target[:] = rows.view(-1, 8, blocks, 2, 4).permute(0, 2, 3, 1, 4)
    return tiles


def _padded(X: Array) -> tuple[int, int]:
    n, D = X.shape
    return -(-n // PADDED_ROWS) * PADDED_ROWS, -(-D // 8)


def _chunks(X: Array, blocks: int) -> Iterator[tuple[int, Array]]:
    """Yield ranges of rows, padded with zeros to whole tiles and blocks."""
    n, D = X.shape
    size = max(CHUNK_BYTES // (8 * blocks * X.element_size() * PADDED_ROWS), 1) * PADDED_ROWS
    for first in range(0, n, size):
        rows = X[first : first + size]
        below = -rows.shape[0] % PADDED_ROWS
        yield first, torch.nn.functional.pad(rows, (0, 8 * blocks - D, 0, below))
