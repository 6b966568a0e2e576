"""Fits the weights of the ranker to candidates that retrieval offered.

    ranker_pairs a.tsv --vectors A rust.issue                                # canonry-retrieval's example
    ranker_pairs o.tsv --vectors O openoffice.issue
    ranker_pairs c.tsv --vectors C gitbugs_hadoop.issue gitbugs_seamonkey.issue rust.pr rails.pr
    python fit_ranker.py a.tsv o.tsv c.tsv --write

A query's candidates are the hundred that retrieval offers; positives that it missed are not added. The vectors of a set must
come from a model that was not trained on that set's duplicates: to a model, pairs it has learned look more alike than new
ones ever will, and weights fitted to them trust it too much (on issues of rust after the split that cost 3 points of recall
at 10). So A is the recipe of the compiled-in model without issues of rust, O without openoffice, C the compiled-in model.

The loss of a query is minus the logarithm of the share of its duplicates in the softmax over its candidates. Besides the
weights of all sets, weights without each set are fitted, and without each kind of feature: those are what the benchmark
measures with. `--write` puts the weights into ranker_weights.rs and all of them into ranker.json.
"""

import argparse
import datetime
import json
import pathlib

import numpy as np

TRAINING = pathlib.Path(__file__).parent
RUST = TRAINING.parent / "crates/canonry-retrieval/src/ranker_weights.rs"
# Issues of rust from here on are what is measured, and are never fitted to.
SPLIT = datetime.datetime(2014, 7, 1, tzinfo=datetime.timezone.utc).timestamp()
# The text of openoffice is stripped of code and case, and its pool holds duplicates only.
SET_WEIGHTS = {"openoffice.issue": 0.1}
# What a type is ranked by. Left out is what did not help on a project that was not fitted to: between issues, shares of the
# titles alone, the lengths of the texts, much text under other titles; between pull requests, words and titles within texts.
FEATURES = {
    "issue": ["dense", "late", "lexical", "words_back", "title_within", "title_within_back", "evidence", "near",
              "same_author", "sibling", "series"],
    "pr": ["dense", "late", "lexical", "title_within_back", "paths", "diff", "diff_back", "near",
           "same_author"],
}
RIDGE = {"issue": 3.0, "pr": 1.0}
# Late interaction is worth more on some projects than on others, and without restraint it is trusted too much where it is
# worth less: of 1, 4, 9, 25, 100 times the ridge, 9 has the best mean MRR over projects that were left out.
RESTRAINED = {"late": 9.0}
ABLATIONS = {
    "vectors": ["dense"],
    "words": ["lexical", "words_back"],
    "titles": ["title_within", "title_within_back"],
    "evidence": ["evidence"],
    "paths": ["paths"],
    "changes": ["diff", "diff_back"],
    "nearness": ["near"],
    "author": ["same_author", "sibling"],
    "series": ["series"],
}
TABLES = {"ISSUES": ("issue", True), "ISSUES_WITHOUT_LATE": ("issue", False), "PULLS": ("pr", True), "PULLS_WITHOUT_LATE": ("pr", False)}


class Candidates:
    """The candidates of one set's queries, query after query. Queries of which retrieval missed every duplicate are counted only."""

    def __init__(self, name, names, rows):
        self.name = name
        self.names = names
        query = np.array([int(row[1]) for row in rows])
        duplicate = np.array([row[4] == "1" for row in rows])
        self.asked = {asked: float(row[2]) for asked, row in zip(query, rows)}
        found = np.isin(query, query[duplicate])
        query, self.duplicate = query[found], duplicate[found].astype(float)
        self.created = np.array([float(row[2]) for row in rows])[found]
        self.x = np.array([[float(value) for value in row[5:]] for row in rows])[found]
        self.start = np.r_[0, np.nonzero(query[1:] != query[:-1])[0] + 1]
        self.of = np.repeat(np.arange(len(self.start)), np.diff(np.r_[self.start, len(query)]))
        self.weight = np.full(len(self.start), SET_WEIGHTS.get(name, 1.0))

    def only(self, features):
        return self.x[:, [self.names.index(name) for name in features]]


def read(paths):
    found = {}
    for path in paths:
        with open(path) as file:
            names = file.readline().rstrip("\n").split("\t")[5:]
            for line in file:
                row = line.rstrip("\n").split("\t")
                found.setdefault(row[0], []).append(row)
    return {name: Candidates(name, names, rows) for name, rows in found.items()}


def softmax(sums, candidates):
    exp = np.exp(sums - np.maximum.reduceat(sums, candidates.start)[candidates.of])
    all_of, right = np.add.reduceat(exp, candidates.start), np.add.reduceat(exp * candidates.duplicate, candidates.start)
    return exp, all_of, right


def fit(sets, features, ridge, whole=False):
    """The weights, by Newton's method on a bound of the loss; the queries after the split count only if `whole`."""
    penalty = ridge * np.array([RESTRAINED.get(name, 1.0) for name in features])
    data = []
    for candidates in sets:
        weight = candidates.weight.copy()
        if candidates.name == "rust.issue" and not whole:
            weight[candidates.created[candidates.start] >= SPLIT] = 0.0
        data.append((candidates, candidates.only(features), weight))

    def loss(weights):
        total = penalty @ weights**2 / 2
        for candidates, x, weight in data:
            _, all_of, right = softmax(x @ weights, candidates)
            total += weight @ (np.log(all_of) - np.log(right + 1e-300))
        return total

    weights = np.zeros(len(features))
    known = loss(weights)
    for _ in range(60):
        gradient, curvature = penalty * weights, np.diag(penalty)
        for candidates, x, weight in data:
            exp, all_of, right = softmax(x @ weights, candidates)
            share, wanted = exp / all_of[candidates.of], exp * candidates.duplicate / right[candidates.of]
            gradient = gradient + x.T @ ((share - wanted) * weight[candidates.of])
            mean = np.add.reduceat(x * share[:, None], candidates.start, axis=0)
            curvature = curvature + (x * (share * weight[candidates.of])[:, None]).T @ x - (mean * weight[:, None]).T @ mean
        step, length = np.linalg.solve(curvature, gradient), 1.0
        while length > 1e-4 and loss(weights - length * step) > known:
            length /= 2
        weights = weights - length * step
        better = loss(weights)
        if known - better < 1e-7:
            break
        known = better
    return dict(zip(features, weights))


def measure(candidates, weights, after=None):
    """Recall at 1, 5, 10, 20 and MRR; queries of which retrieval found no duplicate count."""
    queries = sum(after is None or created >= after for created in candidates.asked.values())
    sums = candidates.only(list(weights)) @ np.array(list(weights.values()))
    end = np.r_[candidates.start[1:], len(sums)]
    ranks = []
    for start, end in zip(candidates.start, end):
        if after is None or candidates.created[start] >= after:
            order = np.argsort(-sums[start:end], kind="stable")
            ranks.append(np.nonzero(candidates.duplicate[start:end][order])[0][0] + 1)
    ranks = np.array(ranks)
    return [float((ranks <= at).sum()) / queries for at in (1, 5, 10, 20)] + [float((1 / ranks).sum()) / queries]


def told(values):
    return " ".join(f"{value:.3f}" for value in values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    sets = read(arguments.pairs)
    kept = {"all": {}, "without": {}}

    def chosen(item_type, late, left_out=()):
        return [name for name in FEATURES[item_type] if (late or name != "late") and name not in left_out]

    for table, (item_type, late) in TABLES.items():
        own = [candidates for name, candidates in sets.items() if name.endswith("." + item_type)]
        if not own:
            continue
        features = chosen(item_type, late)
        kept["all"][table] = fit(own, features, RIDGE[item_type])
        print(table, {name: round(float(weight), 2) for name, weight in kept["all"][table].items()})
        for candidates in own:
            others = [other for other in own if other is not candidates]
            if not others:
                continue
            without = kept["without"].setdefault(candidates.name, {})
            without["late" if late else "no_late"] = fit(others, features, RIDGE[item_type], whole=True)
            print(f"  {candidates.name}, fitted without it", told(measure(candidates, without["late" if late else "no_late"])))
            if candidates.name == "rust.issue":
                print("    after the split, fitted to what was before", told(measure(candidates, kept["all"][table], SPLIT)))
            if late:
                for ablation, names in ABLATIONS.items():
                    if set(names) & set(features):
                        without[f"late, without {ablation}"] = fit(others, chosen(item_type, late, names), RIDGE[item_type], whole=True)
                        print(f"    without {ablation:10}", told(measure(candidates, without[f"late, without {ablation}"])))
    if arguments.write:
        write(kept, next(iter(sets.values())).names)


def write(kept, names):
    lines = []
    for table, weights in kept["all"].items():
        lines.append(f"const {table}: [f64; RANKER_FEATURES.len()] = [")
        values = [f"{weights.get(name, 0.0):.3f}," for name in names]
        width = max(map(len, values))
        lines += [f"    {value:{width}} // {name}" for value, name in zip(values, names)]
        lines.append("];")
    text = RUST.read_text()
    before, after = text.split("// <weights>\n")[0], text.split("// </weights>")[1]
    RUST.write_text(before + "// <weights>\n" + "\n".join(lines) + "\n// </weights>" + after)
    rounded = {
        kind: {name: {of: round(weight, 3) for of, weight in weights.items()} if kind == "all" else
               {of: {feature: round(weight, 3) for feature, weight in each.items()} for of, each in weights.items()}
               for name, weights in tables.items()}
        for kind, tables in kept.items()
    }
    (TRAINING / "ranker.json").write_text(json.dumps(rounded, indent=1) + "\n")


if __name__ == "__main__":
    main()
