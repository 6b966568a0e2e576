"""Compares the crate's vectors and token vectors with those of the fp32 network on real texts.

    embed_sets FOLDER                          # canonry-models' example
    python check_vectors.py WHEEL WEIGHTS BENCH FOLDER

WEIGHTS is the folder that train_encoder.py wrote.
"""

import pathlib
import sys

import numpy as np
import onnxruntime
import tokenizers

from fit_calibration import SETS, issues, read_vectors
from minilm import onnx_graph, read_trained, read_wheel

SAMPLE = 300


def read_tokens(path):
    """By number, rows of signed bytes: what the example embed_sets wrote."""
    data, found, at = path.read_bytes(), {}, 12
    assert data[:8] == b"CNRYTOK1", path
    while at < len(data):
        number, length = int.from_bytes(data[at:at + 8], "little"), int.from_bytes(data[at + 8:at + 12], "little")
        rows = np.frombuffer(data, np.int8, length - 1, at + 13)
        found[number] = rows.reshape(-1, data[at + 12]).astype(np.float32)
        at += 12 + length
    return found


def main():
    wheel, weights, bench, folder = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    config, limit, _, _, tokenizer = read_wheel(wheel)
    tokenizer = tokenizers.Tokenizer.from_str(tokenizer)
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    tokenizer.encode_special_tokens = True
    graph = onnx_graph(*read_trained(config, weights))
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    cosines, token_cosines = [], []
    for name in SETS:
        vectors, tokens = read_vectors(folder / f"{name}.issue.vec"), read_tokens(folder / f"{name}.issue.tokens")
        rows = issues(bench, name)
        for row in rows[::max(1, len(rows) // SAMPLE)]:
            ids = tokenizer.encode((row.get("title") or "")[:300] + "\n\n" + (row.get("body") or "")[:7700]).ids
            inputs = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
            (vector,), (small,) = session.run(None, inputs)
            own = tokens[row["number"]]
            cosines.append(vector @ vectors[row["number"]])
            token_cosines += list((small[:len(own)] * own).sum(axis=1) / np.linalg.norm(own, axis=1))
    for kind, found in (("vectors", cosines), ("token vectors", token_cosines)):
        print(f"{len(found)} {kind}: cosine least {min(found):.4f}, 1 % {np.quantile(found, 0.01):.4f},",
              f"mean {np.mean(found):.4f}")


if __name__ == "__main__":
    main()
