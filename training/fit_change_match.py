"""Fits the weights of `change_match.rs` in canonry-domain to the pairs of changes that `check --diff` compares.

    check_replay --vectors C --features changes.tsv rust.pr rails.pr     # canonry-triage's example; C as for fit_judge.py
    python fit_change_match.py changes.tsv

Fits to each project alone and measures on the other, at the score that one in fifty other pull requests of the first reaches. The
weights of rust are the shipped ones; the shipped threshold also counts what the same lines alone decide, without the author's own. By
links, positives are about 98 % clean; the others are not: many are the same change sent again, which nobody linked. How many of the
wrong ones change the same lines is printed.
"""

import sys

import numpy as np

RIDGE = 1.0
FALSE = 0.02
QUERIES = {"rust.pr": 78, "rails.pr": 119}


def sigmoid(z):
    return 1 / (1 + np.exp(-np.clip(z, -30, 30)))


def fit(x, label):
    """Weights and, last, the intercept, by Newton's method."""
    x = np.hstack([x, np.ones((len(x), 1))])
    penalty = np.array([RIDGE] * (x.shape[1] - 1) + [1e-6])
    beta = np.zeros(x.shape[1])
    for _ in range(60):
        p = sigmoid(x @ beta)
        gradient = x.T @ (label - p) - penalty * beta
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + np.diag(penalty), gradient)
        beta += step
        if np.abs(step).max() < 1e-8:
            break
    return beta


def best(rows, score, left_out):
    """The best candidate of each source: its score, whether it is a duplicate, whether it has the same lines; by query or not."""
    found = {}
    for at, (source, query) in enumerate(zip(rows["source"], rows["query"])):
        if not left_out[at] and (source not in found or score[at] > score[found[source][1]]):
            found[source] = (query, at)
    pick = lambda wanted: [(score[at], rows["duplicate"][at], rows["same"][at]) for query, at in found.values() if query == wanted]
    return pick(True), pick(False), len({s for s, q in zip(rows["source"], rows["query"]) if not q})


def main():
    lines = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
    names = lines[0][7:]
    all_rows = {}
    for name in QUERIES:
        own = [line for line in lines[1:] if line[0] == name]
        rows = {key: np.array([line[at] == "1" for line in own]) for at, key in enumerate(["query", "duplicate", "own", "same"], 3)}
        rows["source"] = [line[1] for line in own]
        rows["x"] = np.array([[float(value) for value in line[7:]] for line in own])
        all_rows[name] = rows
    for trained in QUERIES:
        rows = all_rows[trained]
        beta = fit(rows["x"], rows["duplicate"].astype(float))
        print(f"\nfitted to {trained}:", ", ".join(f"{n} {w:.3f}" for n, w in zip(names + ["intercept"], beta)))
        for what in ["author unknown", "author known"]:
            threshold = None
            for measured in [trained] + [name for name in QUERIES if name != trained]:
                rows = all_rows[measured]
                score = rows["x"] @ beta[:-1] + beta[-1]
                left_out = rows["own"] if what == "author known" else np.zeros(len(score), bool)
                duplicates, others, asked = best(rows, score, left_out)
                if threshold is None:
                    threshold = sorted((one[0] for one in others), reverse=True)[int(FALSE * asked)]
                warned = [one for one in duplicates if one[0] > threshold]
                wrong = [one for one in others if one[0] > threshold]
                print(
                    f"  {what}, from {threshold:.2f}, on {measured}: warned {len(warned) / QUERIES[measured]:.3f}, rightly named "
                    f"{sum(one[1] for one in warned) / QUERIES[measured]:.3f}; others {len(wrong) / asked:.4f}, with the same lines "
                    f"{sum(one[2] for one in wrong) / asked:.4f}"
                )


if __name__ == "__main__":
    main()
