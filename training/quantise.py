"""Weights as signed bytes."""

import numpy as np

# Per channel the scale with the least squared error is taken among these shares of the largest weight:
# giving up one outlier often makes all other weights of the channel finer.
CLIPS = np.arange(1.0, 0.69, -0.05, dtype=np.float32)


def quantise(matrix):
    """int8 codes and one scale per row, symmetric, within ±127."""
    largest = np.maximum(np.abs(matrix).max(axis=1), 1e-12)
    best_error = np.full(len(matrix), np.inf, np.float32)
    best_codes = np.zeros(matrix.shape, np.int8)
    best_scale = np.zeros(len(matrix), np.float32)
    for clip in CLIPS:
        scale = (largest * clip / 127).astype(np.float32)
        codes = np.clip(np.rint(matrix / scale[:, None]), -127, 127)
        error = ((codes * scale[:, None] - matrix) ** 2).sum(axis=1)
        better = error < best_error
        best_error[better] = error[better]
        best_scale[better] = scale[better]
        best_codes[better] = codes[better].astype(np.int8)
    return best_codes, best_scale
