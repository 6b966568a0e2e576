"""What `canonry embed` and `canonry candidates` do, with onnxruntime, numpy and bm25s: vectors and words of every
issue, the nearest by both, their z-scores added, the best four above a cosine.

    python python_pipeline.py WHEEL items.jsonl --out neighbours.jsonl
"""

import argparse
import json
import os
import time

import bm25s
import numpy as np

from bench_texts import raw_text
from onnx_encoder import OnnxEncoder

# How many of each kind are looked at before they are fused.
NEAREST = 100
KEPT = 4
# The cosine that Canonry's default gate of 0.75 stands for.
LEAST_COSINE = 0.339
BLOCK = 512


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel")
    parser.add_argument("items")
    parser.add_argument("--model", help="keep the graph here; one that is there already is taken as it is")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    began = time.perf_counter()
    with open(arguments.items) as file:
        rows = [json.loads(line) for line in file]
    texts = [raw_text(row) for row in rows]
    encoder = OnnxEncoder(arguments.wheel, workers=arguments.workers, kept=arguments.model)
    vectors = encoder.vectors(encoder.tokens(texts))
    np.save(arguments.out + ".npy", vectors)
    embedded = time.perf_counter()

    words = bm25s.tokenize(texts, stopwords=None, show_progress=False)
    index = bm25s.BM25()
    index.index(words, show_progress=False)
    lexical = index.retrieve(words, k=min(NEAREST, len(texts)), n_threads=arguments.workers, show_progress=False)
    searched = time.perf_counter()

    with open(arguments.out, "w") as out:
        for start in range(0, len(rows), BLOCK):
            cosines = vectors[start:start + BLOCK] @ vectors.T
            for row, at in enumerate(range(start, min(start + BLOCK, len(rows)))):
                best = neighbours(at, cosines[row], lexical.documents[at], lexical.scores[at])
                out.write(json.dumps({"number": rows[at]["number"],
                                      "neighbours": [[rows[other]["number"], score] for other, score in best]}) + "\n")
    done = time.perf_counter()
    print(json.dumps({"read_and_embed_s": round(embedded - began, 1), "words_s": round(searched - embedded, 1),
                      "vectors_and_fusion_s": round(done - searched, 1)}))


def neighbours(at, cosines, documents, scores):
    near = np.argpartition(-cosines, min(NEAREST, len(cosines) - 1))[:NEAREST]
    union = np.union1d(near, documents)
    union = union[(union != at) & (cosines[union] >= LEAST_COSINE)]
    by_words = dict(zip(documents.tolist(), scores.tolist()))
    of_words = np.array([by_words.get(other, 0.0) for other in union.tolist()])
    fused = ((cosines[union] - cosines.mean()) / (cosines.std() + 1e-9)
             + (of_words - scores.mean()) / (scores.std() + 1e-9))
    order = np.argsort(-fused)[:KEPT]
    return [(int(union[one]), round(float(cosines[union[one]]), 4)) for one in order]


if __name__ == "__main__":
    main()
