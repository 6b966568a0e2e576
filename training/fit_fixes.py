"""Fits the weights of crates/canonry-retrieval/src/fix_index.rs.

    cargo run --release -p canonry-retrieval --example fixes -- --features features.jsonl
    python training/fit_fixes.py features.jsonl

Needs numpy and scipy. Fits on the earlier half of the issues and measures on the later half, then the other way round.
"""

import json
import sys

import numpy as np
from scipy.optimize import minimize

PENALTY = 0.0015
# Similarities and the same author can only speak for a pull request; time can only speak against it.
BOUNDS = [(0, None)] * 9 + [(None, 0)] * 2 + [(0, None)]


def read(path):
    halves = ([], [])
    for line in open(path):
        query = json.loads(line)
        relevant = np.array([row[0] for row in query["candidates"]], dtype=bool)
        features = np.array([row[1] for row in query["candidates"]])
        halves[query["late"]].append((features, relevant))
    return halves


def loss(weights, queries):
    total, slope = 0.0, np.zeros_like(weights)
    for features, relevant in queries:
        scores = features @ weights
        top = scores.max()
        odds = np.exp(scores - top)
        hit = odds[relevant].sum()
        total += np.log(odds.sum()) - np.log(hit)
        slope += odds @ features / odds.sum() - odds[relevant] @ features[relevant] / hit
    count = len(queries)
    return total / count + PENALTY * weights @ weights, slope / count + 2 * PENALTY * weights


def fit(queries):
    usable = [(features, relevant) for features, relevant in queries if relevant.any()]
    start = np.array([2.0] * 9 + [-3.0, -0.7, 0.3])
    return minimize(loss, start, args=(usable,), jac=True, method="L-BFGS-B", bounds=BOUNDS).x


def recall(weights, queries, depth):
    found = 0
    for features, relevant in queries:
        order = np.argsort(-(features @ weights), kind="stable")
        found += relevant[order[:depth]].any()
    return found / len(queries)


def calibration(weights, queries):
    """The log odds that the first is right, from its score and its lead."""
    rows, right = [], []
    for features, relevant in queries:
        if len(relevant) < 2:
            continue
        scores = features @ weights
        order = np.argsort(-scores, kind="stable")
        rows.append([scores[order[0]], scores[order[0]] - scores[order[1]], 1.0])
        right.append(relevant[order[0]])
    rows, right = np.array(rows), np.array(right, dtype=float)

    def cost(parts):
        odds = rows @ parts
        return np.logaddexp(0, odds).sum() - right @ odds + 0.01 * parts @ parts

    return minimize(cost, np.zeros(3), method="L-BFGS-B").x


def main():
    early, late = read(sys.argv[1])
    for name, seen, unseen in [("earlier", early, late), ("later", late, early)]:
        weights = fit(seen)
        print(f"fitted on the {name} half: R@1 {recall(weights, unseen, 1):.3f}, R@10 {recall(weights, unseen, 10):.3f} on the other")
        print("  weights", np.round(weights, 3).tolist())
        print("  calibration", np.round(calibration(weights, seen), 3).tolist())


main()
