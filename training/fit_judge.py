"""Fits the weights of the local judge to pairs that retrieval offered.

    judge_replay --vectors A --features rust.tsv rust.issue                   # canonry-triage's example
    judge_replay --vectors O --features openoffice.tsv openoffice.issue
    judge_replay --vectors C --features small.tsv gitbugs_hadoop.issue gitbugs_seamonkey.issue
    judge_replay --vectors C --features prs.tsv rust.pr rails.pr
    python fit_judge.py rust.tsv openoffice.tsv small.tsv    # how a fit without each set does on it, then the weights of all
    python fit_judge.py prs.tsv --prior 0.25

A pair is an item and one of the up to eight earlier items that retrieval finds for it, as `detect-new` asks; every item of
a set is asked, so that duplicates have their natural frequency. Positives and negatives come from the same retriever. The
slopes are shared by all sets; each set has an intercept of its own while they are fitted, because sets differ in how many
duplicates they hold and people linked. The vectors of a set must come from a model that was not trained on its duplicates, as
for `fit_ranker.py`: A, O and C are the same folders. The intercept that is kept is the mean of those, each moved to where `--prior` of the
items would be duplicates: how many there are is not in the texts.
"""

import argparse

import numpy as np

# Issues of rust up to this one, in order of creation: those from 2014-07-01 on are measured and not fitted to.
RUST_ISSUES = 8_486
# Items and queries of each set, as far as they are fitted to.
SETS = {
    "rust.issue": (8_486, 421),
    "openoffice.issue": (4_548, 2_499),
    "gitbugs_hadoop.issue": (2_503, 66),
    "gitbugs_seamonkey.issue": (1_076, 46),
    "rust.pr": (5_996, 78),
    "rails.pr": (15_829, 119),
}
# Of openoffice every item is a duplicate, its text is stripped of code and case, and it has more positives than all others.
SET_WEIGHTS = {"openoffice.issue": 0.1}
RIDGE = 3.0


class Pairs:
    """Files of features."""

    def __init__(self, paths):
        rows = []
        for path in paths:
            with open(path) as file:
                names = file.readline().rstrip("\n").split("\t")
                rows += [line.rstrip("\n").split("\t") for line in file]
        self.names = names[5:]
        self.set = np.array([row[0] for row in rows])
        self.source = np.array([int(row[1]) for row in rows])
        self.candidate = np.array([int(row[2]) for row in rows])
        self.query = np.array([row[3] == "1" for row in rows])
        self.label = np.array([row[4] == "1" for row in rows], float)
        self.x = np.array([[float(value) for value in row[5:]] for row in rows])

    def of(self, chosen):
        part = object.__new__(Pairs)
        part.names = self.names
        for name in ("set", "source", "candidate", "query", "label", "x"):
            setattr(part, name, getattr(self, name)[chosen])
        return part


def sigmoid(z):
    return 1 / (1 + np.exp(-np.clip(z, -30, 30)))


def fit(pairs, ridge=RIDGE):
    """Slopes and the intercept of each set, by Newton's method."""
    sets = sorted(set(pairs.set))
    x = np.hstack([pairs.x] + [(pairs.set == name)[:, None].astype(float) for name in sets])
    weight = np.array([SET_WEIGHTS.get(name, 1.0) for name in sets])[np.searchsorted(sets, pairs.set)]
    penalty = np.array([ridge] * pairs.x.shape[1] + [1e-3] * len(sets))
    beta = np.zeros(x.shape[1])
    for _ in range(60):
        p = sigmoid(x @ beta)
        gradient = x.T @ (weight * (pairs.label - p)) - penalty * beta
        curvature = (x * (weight * p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        beta += step
        if np.abs(step).max() < 1e-8:
            break
    return beta[:pairs.x.shape[1]], dict(zip(sets, beta[pairs.x.shape[1]:]))


def best_answers(pairs, p):
    """For every source the highest probability of its candidates, and whether people linked that one."""
    order = np.lexsort((-p, pairs.source))
    first = np.ones(len(order), bool)
    first[1:] = pairs.source[order][1:] != pairs.source[order][:-1]
    at = order[first]
    return p[at], pairs.label[at] > 0


def auc(p, label):
    rank = np.empty(len(p))
    rank[np.argsort(p)] = np.arange(1, len(p) + 1)
    positive = label.sum()
    return (rank[label > 0].sum() - positive * (positive + 1) / 2) / (positive * (len(p) - positive))


def at_prior(intercepts, prior):
    """The mean of the sets' intercepts, each moved from its own share of duplicates to `prior`."""
    moved = [value - np.log(SETS[name][1] / (SETS[name][0] - SETS[name][1])) for name, value in intercepts.items()]
    return np.mean(moved) + np.log(prior / (1 - prior))


def report(name, pairs, p):
    """The best answer for each source, against what people linked, at natural frequency."""
    queries = SETS[pairs.set[0]][1]
    answer, right = best_answers(pairs, p)
    print(f"{name}: AUC of pairs {auc(p, pairs.label):.3f}")
    for threshold in (0.5, 0.7, 0.85, 0.92, 0.95):
        given = answer >= threshold
        if given.any():
            print(f"  p >= {threshold:.2f}: {given.sum():5d} answers, linked {right[given].mean():.3f}, recall {right[given].sum() / queries:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="+")
    parser.add_argument("--prior", type=float, default=0.5)
    arguments = parser.parse_args()
    pairs = Pairs(arguments.features)
    pairs = pairs.of((pairs.set != "rust.issue") | (pairs.source <= RUST_ISSUES))
    names = sorted(set(pairs.set))
    slopes, intercepts = fit(pairs)
    intercept = at_prior(intercepts, arguments.prior)
    for name in names:
        rest, own = pairs.of(pairs.set != name), pairs.of(pairs.set == name)
        without, others = fit(rest)
        report(f"{name}, fitted without it", own, sigmoid(own.x @ without + at_prior(others, arguments.prior)))
        report(f"{name}, fitted to all", own, sigmoid(own.x @ slopes + intercept))
        # Fitted to the rest and four fifths of its own time.
        p = np.zeros(len(own.label))
        fifth = own.source * 5 // (own.source.max() + 1)
        for held in range(5):
            known = pairs.of((pairs.set != name) | (pairs.source * 5 // (own.source.max() + 1) != held))
            part_slopes, part_intercepts = fit(known)
            p[fifth == held] = sigmoid(own.x[fifth == held] @ part_slopes + at_prior(part_intercepts, arguments.prior))
        report(f"{name}, each fifth of its time held out", own, p)
    print(f"intercept {intercept:.3f}; of each set alone:", {str(name): round(float(at_prior({name: value}, arguments.prior)), 2) for name, value in intercepts.items()})
    for name, slope in zip(pairs.names, slopes):
        print(f"    {slope:.3f}, // {name}")


if __name__ == "__main__":
    main()
