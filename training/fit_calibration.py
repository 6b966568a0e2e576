"""Fits the anchors of the local model's calibration to issues whose duplicates are known.

    embed_sets FOLDER                                 # canonry-models' example: the vectors of the shipped model
    embed_sets OTHER --model FILE openoffice.issue    # and those of one that was trained without openoffice
    python fit_calibration.py BENCH FOLDER --openoffice OTHER > calibration.json

Only pairs that the model was not trained on count: rust issues from the day of the split on. Every pair counts once. The
true pairs of the first anchor are all pairs of the truth; the odds of the others are those of the pairs a retriever offers:
for each query of a set's truth its eight nearest earlier issues. The method is the one of `CalibrationData::fit`.
MODEL_CARD.md says what came out, also where an anchor does not hold.
"""

import argparse
import gzip
import json
import pathlib
import sys

import numpy as np

SETS = ["rust", "openoffice", "gitbugs_hadoop", "gitbugs_seamonkey"]
NEIGHBOURS = 8
BIN = 40


def issues(bench, name):
    with gzip.open(bench / f"{name}.jsonl.gz", "rt") as file:
        rows = [row for row in map(json.loads, file) if row["type"] == "issue"]
    return sorted(rows, key=lambda row: (row["created_at"].removesuffix("Z").removesuffix("+00:00"), row["number"]))


def read_vectors(path):
    """By number: what the example embed_sets wrote."""
    data = path.read_bytes()
    assert data[:8] == b"CNRYVEC1", path
    dimension, count = np.frombuffer(data, "<u4", 2, 8)
    rows = np.frombuffer(data, np.dtype([("number", "<i8"), ("vector", "<f4", (dimension,))]), count, 16)
    return {int(row["number"]): row["vector"] for row in rows}


def pairs(bench, folder, name, since):
    """Cosines of all true pairs; cosines and truth of the neighbours of every query; ranks; the neighbours of all issues."""
    rows = issues(bench, name)
    known = read_vectors(folder / f"{name}.issue.vec")
    vectors = np.stack([known[row["number"]] for row in rows])
    first = sum(row["created_at"] < since for row in rows)
    place = {}
    for at, row in enumerate(rows):
        place.setdefault(row["number"], at)
    with open(bench / f"{name}.truth.jsonl") as file:
        truth = [line for line in map(json.loads, file) if line["type"] == "issue"]
    true_pairs, cosines, labels, ranks = [], [], [], []
    relevant_of = {}
    for line in truth:
        query = place[line["number"]]
        relevant = {place[number] for number in line["relevant"] if place.get(number, query) < query}
        if not relevant or query < first:
            continue
        relevant_of[query] = relevant
        near = vectors[:query] @ vectors[query]
        true_pairs += [near[at] for at in relevant]
        ranks.append(1 + (near > max(near[at] for at in relevant)).sum())
        for at in np.argsort(-near)[:NEIGHBOURS]:
            cosines.append(near[at])
            labels.append(at in relevant)
    nearest = [(float((near := vectors[:at] @ vectors[at]).max()), int(near.argmax()) in relevant_of.get(at, ()))
               for at in range(max(1, first), len(rows))]
    return np.array(true_pairs), np.array(cosines), np.array(labels, float), np.array(ranks), np.array(nearest)


def odds(cosines, labels):
    """(cosine, share of true pairs), rising: means of bins of 40 pairs, pooled where a later bin has a lower share."""
    order = np.argsort(cosines)
    blocks = []
    for end in range(len(order), 0, -BIN):
        members = order[max(0, end - BIN):end]
        blocks.insert(0, [cosines[members].sum(), labels[members].sum(), len(members)])
    rising = []
    for block in blocks:
        rising.append(block)
        while len(rising) > 1 and rising[-2][1] / rising[-2][2] >= rising[-1][1] / rising[-1][2]:
            last = rising.pop()
            rising[-1] = [left + right for left, right in zip(rising[-1], last)]
    return [(cosine / count, true / count) for cosine, true, count in rising]


def reached(curve, share):
    """Where the odds reach a share, linear between two blocks; halfway to 1 where they never do."""
    for (left, low), (right, high) in zip([curve[0], *curve], curve):
        if high >= share:
            return right if high == low else left + (share - low) / (high - low) * (right - left)
    return (curve[-1][0] + 1) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--openoffice", type=pathlib.Path)
    parser.add_argument("--split", default="2014-07-01", help="rust issues before it were trained on")
    options = parser.parse_args()
    data = {name: pairs(options.bench, (options.openoffice if name == "openoffice" else None) or options.folder, name,
                        options.split if name == "rust" else "")
            for name in SETS}

    def fit(names):
        true_pairs, cosines, labels = (np.concatenate([data[name][part] for name in names]) for part in range(3))
        curve = odds(cosines, labels)
        return [round(float(at), 3) for at in (np.quantile(true_pairs, 0.05), reached(curve, 0.5), reached(curve, 0.8))]

    keeping, even, sure = fit(SETS)
    for name in SETS:
        true_pairs, cosines, labels, ranks, nearest = data[name]
        print(f"{name}: R@1/10/20 {(ranks <= 1).mean():.3f} {(ranks <= 10).mean():.3f} {(ranks <= 20).mean():.3f};",
              f"anchors of this set alone {fit([name])},",
              f"of the others {fit([other for other in SETS if other != name])};",
              f"kept at .75 {(true_pairs >= keeping).mean():.3f},",
              f"of those among the nearest eight {(cosines[labels > 0] >= keeping).mean():.3f};", file=sys.stderr)
        for label, low, high in (("around .90", even - 0.03, even + 0.03), ("around .95", sure - 0.03, sure + 0.03),
                                 (".95 and up", sure, 1.01)):
            near = (cosines >= low) & (cosines < high)
            every = (nearest[:, 0] >= low) & (nearest[:, 0] < high)
            print(f"  {label}: {int(labels[near].sum())} of {near.sum()} neighbours of queries are true,",
                  f"{int(nearest[every, 1].sum())} of {every.sum()} nearest neighbours of any issue", file=sys.stderr)
    anchors = [[0.0, 0.0], [keeping, 0.75], [even, 0.9], [sure, 0.95], [1.0, 1.0]]
    print(json.dumps({"anchors": anchors}))


if __name__ == "__main__":
    main()
