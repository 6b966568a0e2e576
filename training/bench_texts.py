"""Takes issues out of a file of `shared/bench`, in its order: all, or some that are evenly spread over it.

    python bench_texts.py rust.jsonl.gz texts.jsonl --count 800   # a text per line, as Canonry embeds it
    python bench_texts.py rust.jsonl.gz items.jsonl --rows        # the rows of all, for `canonry import`
"""

import argparse
import gzip
import json


def raw_text(row):
    """Title, blank line, body: cut as `canonry embed` cuts them."""
    def normalised(text):
        return (text or "").replace("\r\n", "\n").replace("\r", "\n").strip()

    title, body = normalised(row["title"])[:300], normalised(row.get("body"))[:7700]
    return f"{title}\n\n{body}" if title and body else title or body


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("out")
    parser.add_argument("--count", type=int)
    parser.add_argument("--rows", action="store_true")
    arguments = parser.parse_args()
    with gzip.open(arguments.corpus, "rt") as file:
        rows = [row for row in map(json.loads, file) if row["type"] == "issue"]
    count = min(arguments.count or len(rows), len(rows))
    with open(arguments.out, "w") as out:
        for at in range(count):
            row = rows[at * len(rows) // count]
            out.write(json.dumps(row if arguments.rows else raw_text(row)) + "\n")


if __name__ == "__main__":
    main()
