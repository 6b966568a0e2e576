"""Adapts MiniLM to issues and pull requests, on one GPU.

    python train_encoder.py FOLDER OUT --words PUBLISHED.safetensors [--split 2014-07-01] [--seed 1] ...

One encoder with two heads: the mean-pooled vector, and a small vector per token for late interaction (MaxSim). First
titles are held against bodies, and one part of a body against the rest; then duplicates against what a hybrid search
takes for them. Issues of `rust` created after the split are never trained on, and are what is measured.
"""

import argparse
import collections
import gzip
import json
import math
import pathlib
import random
import re
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch.utils.checkpoint import checkpoint
from transformers import BertConfig, BertModel

from quantise import quantise

START = time.time()
DEVICE = "cuda"
LIMIT = 256
TITLE_LIMIT = 64


def log(*words):
    print(f"[{time.time() - START:5.0f}s]", *words, flush=True)


# ---------------------------------------------------------------- words and BM25, as close to the product's as a measurement needs

WORD = re.compile(r"[a-z0-9_]+")
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
JOINED = re.compile(r"\w*(?:_|[a-z][A-Z])\w*")


def words(text):
    found = [word for word in WORD.findall(text.lower()) if len(word) > 1]
    for joined in JOINED.findall(text):
        found += [part.lower() for part in PART.findall(joined) if len(part) > 1]
    return found


class Lexical:
    def __init__(self, texts, k1=1.2, b=0.75):
        postings, lengths = collections.defaultdict(list), []
        for at, text in enumerate(texts):
            counts = collections.Counter(words(text))
            lengths.append(sum(counts.values()))
            for word, count in counts.items():
                postings[word].append((at, count))
        self.size = len(texts)
        lengths = np.array(lengths, np.float32)
        norm = k1 * (1 - b + b * lengths / lengths.mean())
        self.postings = {}
        for word, found in postings.items():
            if len(found) > self.size * 0.4:
                continue
            ids = np.array([at for at, _ in found])
            counts = np.array([count for _, count in found], np.float32)
            weight = math.log(1 + (self.size - len(found) + 0.5) / (len(found) + 0.5))
            self.postings[word] = (ids, weight * counts * (k1 + 1) / (counts + norm[ids]))

    def scores(self, text):
        scores = np.zeros(self.size, np.float32)
        for word in set(words(text)):
            if word in self.postings:
                ids, values = self.postings[word]
                scores[ids] += values
        return scores


class Project:
    """One project's items of one type, in order of creation."""

    def __init__(self, name, items, tokenizer):
        self.name, self.items = name, items
        titles, bodies = items["title"], items["body"]
        self.texts = [f"{title}\n\n{body}" for title, body in zip(titles, bodies)]
        self.ids = encode_ids(tokenizer, self.texts, LIMIT)
        self.title_ids = encode_ids(tokenizer, titles, TITLE_LIMIT)
        self.body_ids = encode_ids(tokenizer, bodies, 2 * LIMIT)
        self.cluster = {at: tuple(members) for members in items["clusters"] for at in members}
        self._lexical = None

    @property
    def lexical(self):
        if self._lexical is None:
            weighted = [f"{title}\n{title}\n{title}\n{body}" for title, body in zip(self.items["title"], self.items["body"])]
            self._lexical = (Lexical(weighted), weighted)
        return self._lexical

    def lexical_scores(self, at):
        index, texts = self.lexical
        return index.scores(texts[at])


def encode_ids(tokenizer, texts, limit):
    return [encoding.ids[:limit - 1] + [102] if len(encoding.ids) > limit else encoding.ids
            for encoding in tokenizer.encode_batch(texts)]


# ---------------------------------------------------------------- the network

class Encoder(torch.nn.Module):
    def __init__(self, folder, words_file, layers, token_width, dropout=0.1):
        super().__init__()
        config = BertConfig.from_dict(json.loads((folder / "config.json").read_text()))
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout
        config._attn_implementation = "sdpa"
        self.bert = BertModel(config, add_pooling_layer=False)
        state = {name: tensor.float() for name, tensor in load_file(folder / "layers.safetensors").items()}
        compiled = load_file(words_file)
        state["embeddings.word_embeddings.weight"] = compiled["words.weight"].float() * compiled["words.scale"][:, None]
        missing, unexpected = self.bert.load_state_dict(state, strict=False)
        assert not [name for name in missing if "position_ids" not in name], missing
        assert not [name for name in unexpected if "position_ids" not in name], unexpected
        self.keep(layers)
        self.tokens = torch.nn.Linear(config.hidden_size, token_width, bias=False)

    def keep(self, layers):
        self.bert.encoder.layer = torch.nn.ModuleList([self.bert.encoder.layer[layer] for layer in layers])
        self.bert.config.num_hidden_layers = len(layers)

    def forward(self, sequences):
        longest = max(map(len, sequences))
        ids = torch.zeros(len(sequences), longest, dtype=torch.long)
        mask = torch.zeros(len(sequences), longest, dtype=torch.long)
        for at, sequence in enumerate(sequences):
            ids[at, :len(sequence)] = torch.tensor(sequence)
            mask[at, :len(sequence)] = 1
        ids, mask = ids.to(DEVICE, non_blocking=True), mask.to(DEVICE, non_blocking=True)
        hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        keep = mask.unsqueeze(-1).to(hidden.dtype)
        pooled = F.normalize(((hidden * keep).sum(1) / keep.sum(1)).float(), dim=-1)
        tokens = F.normalize(self.tokens(hidden).float(), dim=-1) * keep.float()
        return pooled, tokens, mask


def late_interaction(query, query_mask, document, document_mask):
    """Mean over the query's tokens of the best match among the document's."""
    def best(part, document, document_mask):
        similarity = torch.einsum("qid,cjd->qcij", part.bfloat16(), document.bfloat16())
        return similarity.masked_fill(document_mask[None, :, None, :] == 0, -1e4).max(-1).values.float()

    # All of it at once takes tens of gigabytes; a part is computed again for its gradient.
    parts = [checkpoint(best, part, document, document_mask, use_reentrant=False) for part in query.split(32)]
    return (torch.cat(parts) * query_mask[:, None, :]).sum(-1) / query_mask.sum(-1)[:, None]


# ---------------------------------------------------------------- training

def set_rate(optimiser, step, steps, rate, warm=0.08):
    factor = min(1, (step + 1) / max(1, warm * steps)) * max(0.03, 1 - max(0, step - warm * steps) / (steps * (1 - warm)))
    for group in optimiser.param_groups:
        group["lr"] = rate * group["share"] * factor


def contrast(encoder, batches, rate, tag, temperature=0.05):
    """Each batch: queries, their documents in the same order, further documents, and which pairs are not negatives."""
    encoder.train()
    optimiser = torch.optim.AdamW([
        {"params": encoder.bert.parameters(), "share": 1.0},
        {"params": encoder.tokens.parameters(), "share": 10.0},
    ], lr=rate, weight_decay=0.01, fused=True)
    total = 0.0
    for step, (queries, documents, more, blank) in enumerate(batches):
        set_rate(optimiser, step, len(batches), rate)
        with torch.autocast("cuda", torch.bfloat16):
            query, query_tokens, query_mask = encoder(queries)
            document, document_tokens, document_mask = encoder(documents + more)
        right = torch.arange(len(queries), device=DEVICE)
        pooled = query @ document.T / temperature
        late = late_interaction(query_tokens, query_mask, document_tokens, document_mask) / temperature
        if blank:
            hidden = torch.zeros_like(pooled, dtype=torch.bool)
            rows, columns = zip(*blank)
            hidden[list(rows), list(columns)] = True
            pooled, late = pooled.masked_fill(hidden, -1e4), late.masked_fill(hidden, -1e4)
        back = pooled[:, :len(queries)].T
        loss = F.cross_entropy(pooled, right) + F.cross_entropy(late, right) + 0.5 * F.cross_entropy(back, right)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimiser.step()
        total += loss.item()
        if (step + 1) % max(1, len(batches) // 4) == 0:
            log("  ", tag, step + 1, "of", len(batches), "loss", round(total / max(1, len(batches) // 4), 3))
            total = 0.0


def views(project, at, rng):
    """Two texts that are about the same: the title and the body, or two parts of one report."""
    title, body = project.title_ids[at], project.body_ids[at]
    inner = body[1:-1]
    if len(inner) < 16:
        return None
    if len(inner) >= 80 and rng.random() < 0.35:
        # A part of the body with the title, against the rest without it.
        cut = rng.randint(24, len(inner) - 24)
        first, second = inner[:cut], inner[cut:]
        if rng.random() < 0.5:
            first, second = second, first
        query = title[:-1] + first[:LIMIT - TITLE_LIMIT] if rng.random() < 0.5 else [101] + first[:LIMIT - 2]
        return query + [102], [101] + second[:LIMIT - 2] + [102]
    return title, [101] + inner[:LIMIT - 2] + [102]


def title_batches(projects, size, epochs, rng):
    """Batches of one project each: a negative of the same project says more than one of another."""
    batches = []
    for _ in range(epochs):
        for project, allowed, share in projects:
            items = [at for at in allowed if rng.random() < share]
            rng.shuffle(items)
            pairs = [(at, view) for at in items if (view := views(project, at, rng))]
            for begin in range(0, len(pairs) - size // 2, size):
                part = pairs[begin:begin + size]
                blank = [(i, j) for i, (a, _) in enumerate(part) for j, (b, _) in enumerate(part)
                         if i != j and b in project.cluster.get(a, ())]
                batches.append(([view[0] for _, view in part], [view[1] for _, view in part], [], blank))
    rng.shuffle(batches)
    return batches


def duplicate_batches(encoder, projects, size, epochs, rng, negatives=2):
    """Duplicates of the training projects, each with texts that a hybrid search takes for it."""
    pairs = []
    for project, until, weight in projects:
        vectors, _ = vectors_of(encoder, project, tokens=False)
        for query, relevant in project.items["queries"]:
            if query >= until:
                continue
            own = set(project.cluster.get(query, ())) | {query}
            scores = z(vectors[:until] @ vectors[query]) + z(project.lexical_scores(query)[:until])
            hard = [int(at) for at in np.argsort(-scores)[:60] if at not in own]
            for target in relevant[:4]:
                if rng.random() < weight:
                    pairs.append((project, query, target, hard))
    log("   duplicates", len(pairs))
    batches = []
    for _ in range(epochs):
        rng.shuffle(pairs)
        by_project = collections.defaultdict(list)
        for pair in pairs:
            by_project[pair[0].name].append(pair)
        for found in by_project.values():
            for begin in range(0, len(found), size):
                part = found[begin:begin + size]
                if len(part) < 8:
                    continue
                queries, documents, more, columns = [], [], [], []
                for project, query, target, hard in part:
                    if rng.random() < 0.5:
                        query, target = target, query
                    queries.append((query, project.ids[query]))
                    documents.append((target, project.ids[target]))
                    more += [(at, project.ids[at]) for at in rng.sample(hard[:30], negatives)]
                columns = [at for at, _ in documents + more]
                cluster = part[0][0].cluster
                blank = [(i, j) for i, (query, _) in enumerate(queries) for j, at in enumerate(columns)
                         if i != j and (at == query or at in cluster.get(query, ()))]
                batches.append(([ids for _, ids in queries], [ids for _, ids in documents], [ids for _, ids in more], blank))
    rng.shuffle(batches)
    return batches


def distil(student, teacher, sequences, size, epochs, rate, rng):
    """Makes the student's vectors those of the teacher."""
    student.train()
    teacher.eval()
    optimiser = torch.optim.AdamW([
        {"params": student.bert.parameters(), "share": 1.0},
        {"params": student.tokens.parameters(), "share": 3.0},
    ], lr=rate, weight_decay=0.01, fused=True)
    steps = epochs * (len(sequences) // size)
    step = 0
    for epoch in range(epochs):
        rng.shuffle(sequences)
        for begin in range(0, len(sequences) - size + 1, size):
            part = sequences[begin:begin + size]
            set_rate(optimiser, step, steps, rate)
            step += 1
            with torch.autocast("cuda", torch.bfloat16):
                pooled, tokens, mask = student(part)
                with torch.no_grad():
                    wanted, wanted_tokens, _ = teacher(part)
            away = ((1 - (tokens * wanted_tokens).sum(-1)) * mask).sum() / mask.sum()
            own, others = pooled @ pooled.T / 0.05, wanted @ wanted.T / 0.05
            alike = F.kl_div(F.log_softmax(own, -1), F.softmax(others, -1), reduction="batchmean")
            loss = 8 * (1 - (pooled * wanted).sum(-1)).mean() + 4 * away + alike
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
            optimiser.step()
        log("   distil epoch", epoch, "loss", round(loss.item(), 4))


# ---------------------------------------------------------------- measuring

def vectors_of(encoder, project, tokens=True, size=256):
    encoder.eval()
    ids = project.ids
    pooled = np.zeros((len(ids), encoder.bert.config.hidden_size), np.float32)
    late = [None] * len(ids)
    order = np.argsort([-len(sequence) for sequence in ids])
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        for begin in range(0, len(ids), size):
            part = order[begin:begin + size]
            vectors, small, _ = encoder([ids[at] for at in part])
            pooled[part] = vectors.float().cpu().numpy()
            if tokens:
                # As they are stored: one signed byte for each dimension.
                small = (small * 127).round().clamp(-127, 127).to(torch.int8)
                for row, at in enumerate(part):
                    late[at] = small[row, :len(ids[at])].clone()
    return pooled, late


def z(scores):
    return (scores - scores.mean()) / (scores.std() + 1e-9)


def late_scores(late, query, candidates, limit=LIMIT):
    own = late[query][:limit].float() / 127
    longest = max(min(limit, late[at].shape[0]) for at in candidates)
    documents = torch.zeros(len(candidates), longest, own.shape[1], device=DEVICE)
    mask = torch.zeros(len(candidates), longest, device=DEVICE)
    for row, at in enumerate(candidates):
        tokens = late[at][:limit]
        documents[row, :len(tokens)] = tokens.float() / 127
        mask[row, :len(tokens)] = 1
    similarity = torch.einsum("id,cjd->cij", own, documents).masked_fill(mask[:, None, :] == 0, -1e4)
    there = similarity.max(-1).values.mean(-1)
    back = (similarity.max(1).values * mask).sum(-1) / mask.sum(-1)
    return there.cpu().numpy(), back.cpu().numpy()


def measure(encoder, project, tag, since=0, late_limits=(LIMIT,)):
    pooled, late = vectors_of(encoder, project)
    ranks = collections.defaultdict(list)
    for query, relevant in project.items["queries"]:
        if query < since:
            continue
        dense = pooled[:query] @ pooled[query]
        lexical = project.lexical_scores(query)[:query]
        both = z(dense) + z(lexical)

        def rank(scores):
            return 1 + int((scores > max(scores[at] for at in relevant)).sum())

        ranks["lexical"].append(rank(lexical))
        ranks["dense"].append(rank(dense))
        ranks["dense+lexical"].append(rank(both))
        candidates = [int(at) for at in np.argsort(-both)[:100]]
        for limit in late_limits:
            there, back = late_scores(late, query, candidates, limit)
            base = z(dense[candidates]) + z(lexical[candidates])
            for name, scores in (("+late", base + z(there)), ("+2 late both", base + 2 * z(there + back))):
                order = [candidates[at] for at in np.argsort(-scores)]
                found = [place for place, at in enumerate(order) if at in set(relevant)]
                ranks[f"{name}@{limit}"].append(1 + found[0] if found else 10**6)
    for name, found in ranks.items():
        found = np.array(found, float)
        figures = " ".join(f"R@{k} {(found <= k).mean():.3f}" for k in (1, 5, 10, 20, 50, 100))
        log(f"{project.name:20s} {tag:22s} {name:18s} {figures} MRR {(1 / found).mean():.3f} n={len(found)}")


# ---------------------------------------------------------------- the whole course

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--words", type=pathlib.Path, required=True, help="the published weights as convert_encoder.py writes them; their word table is the start")
    parser.add_argument("--split", default="2014-07-01", help="rust issues from this day on are not trained on; 'none': none of them")
    parser.add_argument("--layers", default="0,1,2,3,4,5")
    parser.add_argument("--student", default="0,1,2,3,5", help="layers of the distilled model; empty for none")
    parser.add_argument("--token-width", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--duplicate-epochs", type=int, default=4)
    parser.add_argument("--size", type=int, default=192)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--duplicate-rate", type=float, default=2e-5)
    parser.add_argument("--openoffice", type=float, default=0.4, help="the share of its duplicates that is used")
    parser.add_argument("--pull-pairs", type=float, default=0.0, help="the share of duplicate pull requests that is used; they are measured")
    parser.add_argument("--leave-out", default="gitbugs_hadoop,gitbugs_seamonkey", help="projects that are measured and not trained on")
    parser.add_argument("--distil-epochs", type=int, default=10)
    parser.add_argument("--rails", type=float, default=0.3, help="the share of its texts that is used")
    parser.add_argument("--keep-teacher", action="store_true", help="write the model with all layers too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--base", action="store_true", help="measure the published weights too")
    parser.add_argument("--stages", action="store_true", help="measure after each stage")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    torch.manual_seed(options.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    tokenizer = Tokenizer.from_file(str(options.folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    with gzip.open(options.folder / "data.json.gz", "rt") as file:
        packed = json.load(file)
    projects = {name: Project(name, items, tokenizer) for name, items in packed.items()}
    log("read and tokenised")
    rust = projects["rust/issue"]
    created = rust.items["created"]
    split = 0 if options.split == "none" else sum(day < options.split for day in created)
    log("rust issues trained on:", split, "queries after:", sum(query >= split for query, _ in rust.items["queries"]))

    layers = [int(layer) for layer in options.layers.split(",")]
    encoder = Encoder(options.folder, options.words, layers, options.token_width).to(DEVICE)
    measured = [(rust, split), (projects["gitbugs_hadoop/issue"], 0), (projects["gitbugs_seamonkey/issue"], 0)]
    if options.base:
        for project, since in measured:
            measure(encoder, project, "published", since)
    left_out = set(options.leave_out.split(","))

    def is_used(name):
        return name.split("/")[0] not in left_out

    texts = [(rust, range(split), 1.0)] if split else []
    texts += [(projects[name], range(len(projects[name].ids)), share) for name, share in (
        ("rust/pr", 1.0), ("rails/pr", options.rails), ("openoffice/issue", 1.0), ("gitbugs_hadoop/issue", 1.0), ("gitbugs_seamonkey/issue", 1.0)) if is_used(name)]
    batches = title_batches(texts, options.size, options.epochs, rng)
    log("title against body:", len(batches), "batches")
    contrast(encoder, batches, options.rate, "title/body")
    if options.stages:
        measure(encoder, rust, "after title/body", split)
    pairs = [(rust, split, 1.0)] if split else []
    pairs += [(projects[name], len(projects[name].ids), weight) for name, weight in (
        ("rust/pr", options.pull_pairs), ("rails/pr", options.pull_pairs), ("openoffice/issue", options.openoffice),
        ("gitbugs_hadoop/issue", 1.0), ("gitbugs_seamonkey/issue", 1.0)) if is_used(name) and weight]
    contrast(encoder, duplicate_batches(encoder, pairs, 48, options.duplicate_epochs, rng), options.duplicate_rate, "duplicates")
    if options.student:
        if options.stages:
            measure_all(encoder, "teacher", measured)
        if options.keep_teacher:
            write(encoder, options.out.with_name(options.out.name + "-teacher"))
        student = Encoder(options.folder, options.words, layers, options.token_width).to(DEVICE)
        student.load_state_dict(encoder.state_dict())
        student.keep([int(layer) for layer in options.student.split(",")])
        sequences = []
        for project, allowed, _ in texts:
            for at in allowed:
                sequences.append(project.ids[at])
                if rng.random() < 0.3:
                    sequences.append(project.title_ids[at])
        distil(student, encoder, sequences, 192, options.distil_epochs, 1.5e-4, rng)
        contrast(student, duplicate_batches(student, pairs, 48, 2, rng), options.duplicate_rate, "duplicates")
        encoder = student
    write(encoder, options.out)
    measure_all(encoder, "trained", measured)


def measure_all(encoder, tag, measured):
    for project, since in measured:
        measure(encoder, project, tag, since, (64, 128))


def write(encoder, out):
    """The weights in parts of at most 15 MB, so that they can travel."""
    out.mkdir(parents=True, exist_ok=True)
    state = {name: tensor.half().cpu().contiguous() for name, tensor in encoder.state_dict().items() if tensor.is_floating_point()}
    # The word table as it will be compiled in: as fp16 it would be half of everything.
    table = quantise(state.pop("bert.embeddings.word_embeddings.weight").float().numpy())
    state["words.weight"], state["words.scale"] = map(torch.from_numpy, table)
    parts, size = [{}], 0
    for name, tensor in state.items():
        if size and size + tensor.nbytes > 15_000_000:
            parts.append({})
            size = 0
        parts[-1][name] = tensor
        size += tensor.nbytes
    for part, tensors in enumerate(parts):
        save_file(tensors, out / f"encoder-{part}.safetensors")
    log("written", {path.name: path.stat().st_size for path in out.iterdir()})


if __name__ == "__main__":
    main()
