"""Fits the anchors of the local model's calibration to issues whose duplicates are known.

    python fit_calibration.py texts BENCH FOLDER      # writes FOLDER/<set>.jsonl, one JSON string per issue
    embed_speed FOLDER/<set>.jsonl --vectors FOLDER/<set>.f32   # once per set: the crate's example
    python fit_calibration.py fit BENCH FOLDER > calibration.json

Every pair counts once. The true pairs of the first anchor are all pairs of the truth; the odds of the others are those of
the pairs a retriever offers: for each query of a set's truth its eight nearest earlier issues. The method is the one of
`CalibrationData::fit`. MODEL_CARD.md says what came out, also where an anchor does not hold.
"""

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


def write_texts(bench, folder):
    for name in SETS:
        with open(folder / f"{name}.jsonl", "w") as file:
            for row in issues(bench, name):
                text = (row.get("title") or "")[:300] + "\n\n" + (row.get("body") or "")[:7700]
                file.write(json.dumps(text) + "\n")


def pairs(bench, folder, name):
    """Cosines of all true pairs; cosines and truth of the neighbours of every query; ranks; the neighbours of all issues."""
    rows = issues(bench, name)
    vectors = np.fromfile(folder / f"{name}.f32", np.float32).reshape(len(rows), -1)
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
        if not relevant:
            continue
        relevant_of[query] = relevant
        near = vectors[:query] @ vectors[query]
        true_pairs += [near[at] for at in relevant]
        ranks.append(1 + (near > max(near[at] for at in relevant)).sum())
        for at in np.argsort(-near)[:NEIGHBOURS]:
            cosines.append(near[at])
            labels.append(at in relevant)
    nearest = [(float((near := vectors[:at] @ vectors[at]).max()), int(near.argmax()) in relevant_of.get(at, ()))
               for at in range(1, len(rows))]
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
    command, bench, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    if command == "texts":
        return write_texts(bench, folder)
    data = {name: pairs(bench, folder, name) for name in SETS}

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
              f"kept at .75 {(true_pairs >= keeping).mean():.3f};", file=sys.stderr)
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
