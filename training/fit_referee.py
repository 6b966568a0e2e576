"""Fits the weights of `remark_rank.rs` in canonry-domain to the groups of judged review comments.

    cargo run --release -p canonry-review --example referee features.tsv
    python fit_referee.py features.tsv

Prints the weights fitted to all projects, which are the shipped ones, and how well those of the other projects rank each project.
A tool's record in the table is from the other projects; in the product it is from the repository itself.
"""

import sys

import numpy as np

RIDGE = 1.0


def fit(x, label):
    """Weights and, last, the intercept, by Newton's method."""
    x = np.hstack([x, np.ones((len(x), 1))])
    penalty = np.array([RIDGE] * (x.shape[1] - 1) + [1e-6])
    beta = np.zeros(x.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + np.diag(penalty), x.T @ (label - p) - penalty * beta)
        beta += step
        if np.abs(step).max() < 1e-8:
            break
    return beta


def area(score, label):
    """The probability that a right group ranks before a wrong one."""
    right, wrong = score[label == 1], score[label == 0]
    return np.mean((right[:, None] > wrong[None]) + 0.5 * (right[:, None] == wrong[None]))


def main():
    lines = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
    names = lines[0][2:] + ["intercept"]
    project = np.array([line[0] for line in lines[1:]])
    label = np.array([float(line[1]) for line in lines[1:]])
    x = np.array([[float(value) for value in line[2:]] for line in lines[1:]])
    print(f"{len(x)} groups, {label.mean():.3f} right")
    for left_out in sorted(set(project)):
        known = project != left_out
        beta = fit(x[known], label[known])
        print(f"project {left_out}: AUC {area(x[~known] @ beta[:-1], label[~known]):.3f}")
    for name, weight in zip(names, fit(x, label)):
        print(f"{name}: {weight:.3f}")


if __name__ == "__main__":
    main()
