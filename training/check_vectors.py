"""Compares vectors of the crate with those of the fp32 network.

    embed_speed texts.jsonl --vectors ours.f32        # the crate's example
    python onnx_speed.py WHEEL texts.jsonl --fp32 --vectors reference.f32
    python check_vectors.py ours.f32 reference.f32
"""

import sys

import numpy as np

DIMENSION = 384


def main():
    ours, reference = (np.fromfile(path, np.float32).reshape(-1, DIMENSION) for path in sys.argv[1:])
    worded = np.linalg.norm(ours, axis=1) > 0
    cosines = (ours[worded] * reference[worded]).sum(axis=1)
    print(f"{len(cosines)} texts: cosine least {cosines.min():.5f}, 1 % {np.quantile(cosines, 0.01):.5f},",
          f"mean {cosines.mean():.5f}")


if __name__ == "__main__":
    main()
