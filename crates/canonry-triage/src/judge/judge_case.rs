//! One question to a judge, answered by the rules in this program or by a model.

use std::collections::BTreeMap;

use canonry_domain::{
    AnswerQuotes, Boilerplate, CascadeRoute, Certainty, Consequence, ContentVersion, DecisionStatus, Extractor,
    GateCandidate, GateRules, InvalidAnswer, Item, ItemNumber, JUDGE_PROMPT_VERSION, JudgeAnswer, JudgedItem,
    OnlineThresholds, PairScores, Probability, RepoName, Similarity, cascade_route, content_hash, gate_answer,
    is_confirmed, is_judged, is_quoted, online_verdict, parse_judge_answer, quotes_of_answer, redact,
};
use canonry_models::chat::{ChatError, ChatModel, ChatRequest, JudgeText, TokenBudget, judge_request};
use canonry_retrieval::{CommonFacts, FactKind, FoundFact, Hit, RetrievalMode, TextFacts};
use canonry_store::{ANSWER_LIMIT, CandidateSet, NewLlmCall};
use sha2::{Digest, Sha256};

use crate::close::row_evidence::{evidence_text, telling_facts_which};
use crate::judge::compared_texts::compared_texts;
use crate::judge::local::answer::{LOCAL_JUDGE, LocalCandidate, LocalText, judge_locally, possible_duplicates};
use crate::judge::local::item_facts::{is_printed, is_telling};
use crate::judge::redact_secrets::WithoutSecrets;
use crate::retrieval::neighbourhood::{Neighbourhood, RetrievalError};

/// What judges. The operator decides; a repository's own settings file never does.
#[derive(Clone, Copy)]
pub enum Judge<'a> {
    Local,
    Model {
        provider: Extractor,
        model: &'a dyn ChatModel,
    },
    /// The local judge first; the model only about what that does not settle ([`cascade_route`]).
    Cascade {
        provider: Extractor,
        model: &'a dyn ChatModel,
    },
}

/// The rules that an answer passes through.
#[derive(Clone, Copy)]
pub(crate) enum AnswerRules<'a> {
    Edge(&'a GateRules),
    NewItem(&'a OnlineThresholds),
}

impl Judge<'_> {
    /// The stored name of the provider.
    pub fn provider(&self) -> &'static str {
        match self {
            Self::Local => Extractor::Local.as_str(),
            Self::Model { provider, .. } | Self::Cascade { provider, .. } => provider.as_str(),
        }
    }

    /// The stored name of the model.
    pub fn model_id(&self) -> &str {
        match self {
            Self::Local => LOCAL_JUDGE,
            Self::Model { model, .. } | Self::Cascade { model, .. } => model.model_id(),
        }
    }
}

impl<'a> Judge<'a> {
    /// The judge that answers about a case: the local one or a model, never a cascade. Its name is stored with the
    /// answer.
    pub(crate) fn for_case(self, case: &JudgeCase, rules: AnswerRules<'_>) -> Self {
        let Self::Cascade { provider, model } = self else { return self };
        let route = cascade_route(&locally(case), &case.numbers(), |answer| case.consequence(answer, rules));
        match route {
            CascadeRoute::Local => Self::Local,
            CascadeRoute::Model => Self::Model { provider, model },
        }
    }

    pub(crate) const fn is_cascade(self) -> bool {
        matches!(self, Self::Cascade { .. })
    }

    /// Whether its answers count as those of the compiled-in judge, which reads no instructions.
    pub(crate) fn is_compiled_in(self) -> bool {
        self.provider() == Extractor::Local.as_str()
    }

    pub(crate) const fn is_local(self) -> bool {
        matches!(self, Self::Local)
    }
}

/// A source, its candidates, and the known scores between them. The items contain only their own text, without
/// boilerplate.
pub(crate) struct JudgeCase {
    pub(crate) source: Item,
    pub(crate) candidates: Vec<CaseCandidate>,
    pub(crate) pairs: PairScores,
    /// Rendered cards, the source's first; empty unless all items have a fresh one.
    pub(crate) cards: Vec<String>,
    /// Facts of the source that many items contain, which prove nothing; empty until [`Self::set_common_facts`].
    pub(crate) common: CommonFacts,
}

pub(crate) struct CaseCandidate {
    pub(crate) item: Item,
    pub(crate) score: Similarity,
    pub(crate) parts: BTreeMap<String, f64>,
}

/// The request, and the hash of everything that the answer can depend on.
pub(crate) struct JudgeQuestion {
    request: Option<ChatRequest>,
    pub(crate) input_hash: String,
}

impl JudgeQuestion {
    /// The length of what a model reads; 0 for the local judge.
    pub(crate) fn characters(&self) -> usize {
        self.request.as_ref().map_or(0, |request| request.system.chars().count() + request.user.chars().count())
    }
}

/// A judge's answer.
pub(crate) struct JudgeReply {
    pub(crate) answer: Result<JudgeAnswer, InvalidAnswer>,
    pub(crate) said: String,
    pub(crate) call: Option<NewLlmCall>,
}

/// Why a question got no answer.
pub(crate) enum JudgeFailure {
    /// The budget is used up, so the judge was not asked.
    OverBudget(String),
    /// The judge was asked and did not answer.
    NoAnswer { error: ChatError, call: Box<NewLlmCall> },
}

impl JudgeCase {
    /// The case of a stored set, without candidates that have left the repository.
    pub(crate) fn of_set(
        source: &Item,
        set: &CandidateSet,
        items: &BTreeMap<ItemNumber, Item>,
        boilerplate: &Boilerplate,
    ) -> Self {
        let score = |score: f64| Similarity::clamped(score).unwrap_or(Similarity::ZERO);
        let candidates = set.members.iter().filter_map(|member| {
            let item = items.get(&member.number).filter(|item| item.gone.is_none())?;
            Some(CaseCandidate { item: item.clone(), score: score(member.score), parts: member.parts.clone() })
        });
        let pairs = set.pairs.iter().map(|(one, other, alike)| (*one, *other, score(*alike)));
        Self::new(source, candidates.collect(), pairs.collect(), boilerplate)
    }

    /// The case of those neighbours that the judge may see.
    pub(crate) async fn of_neighbours(
        source: &Item,
        hits: &[Hit],
        items: &BTreeMap<ItemNumber, Item>,
        near: &Neighbourhood,
        thresholds: &OnlineThresholds,
        mode: RetrievalMode,
    ) -> Result<Self, RetrievalError> {
        let candidates = hits.iter().filter_map(|hit| {
            let parts = hit.parts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            Some(CaseCandidate { item: items.get(&hit.number)?.clone(), score: hit.score, parts })
        });
        let mut case = Self::new(source, candidates.collect(), PairScores::default(), near.boilerplate());
        case.common = near.index().common_facts(&TextFacts::of(&evidence_text(&case.source)));
        let is_shown: Vec<bool> =
            case.gate_candidates().iter().map(|one| is_judged(&case.gate_source(), one, thresholds)).collect();
        let mut shown = is_shown.into_iter();
        case.candidates.retain(|_| shown.next().unwrap_or(false));
        for (one, other, score) in near.pair_scores(&case.numbers(), mode).await? {
            case.pairs.insert(one, other, score);
        }
        Ok(case)
    }

    /// The case of these items, without candidates that have no text of their own.
    pub(crate) fn new(
        source: &Item,
        mut candidates: Vec<CaseCandidate>,
        pairs: PairScores,
        boilerplate: &Boilerplate,
    ) -> Self {
        candidates.retain(|one| boilerplate.leaves_content(&one.item));
        for one in &mut candidates {
            one.item = boilerplate.own(&one.item);
        }
        Self { source: boilerplate.own(source), candidates, pairs, cards: Vec::new(), common: CommonFacts::default() }
    }

    /// Chooses the source's facts from those that many items of the repository contain.
    pub(crate) fn set_common_facts(&mut self, of_repository: &CommonFacts) {
        self.common = of_repository.among(&TextFacts::of(&evidence_text(&self.source)));
    }

    /// The question of the second reading: the candidate as the source, and the source as its only candidate. `None`
    /// if there is no such candidate.
    pub(crate) fn exchanged(&self, target: ItemNumber) -> Option<Self> {
        let place = self.candidates.iter().position(|one| one.item.number == target)?;
        let candidate = &self.candidates[place];
        let source =
            CaseCandidate { item: self.source.clone(), score: candidate.score, parts: candidate.parts.clone() };
        let cards = match (self.cards.get(place + 1), self.cards.first()) {
            (Some(candidate), Some(source)) => vec![candidate.clone(), source.clone()],
            _ => Vec::new(),
        };
        let (source, candidates) = (candidate.item.clone(), vec![source]);
        Some(Self { source, candidates, pairs: PairScores::default(), cards, common: self.common.clone() })
    }

    pub(crate) fn gate_source(&self) -> JudgedItem<'_> {
        JudgedItem::from(&self.source)
    }

    /// The candidates for the gates, without their clusters.
    pub(crate) fn gate_candidates(&self) -> Vec<GateCandidate<'_>> {
        self.candidates
            .iter()
            .map(|one| GateCandidate { item: JudgedItem::from(&one.item), score: one.score, cluster: None })
            .collect()
    }

    /// The version of a candidate's text.
    pub(crate) fn version_of(&self, number: ItemNumber) -> Option<ContentVersion> {
        self.candidates.iter().find(|one| one.item.number == number).map(|one| one.item.content_version)
    }

    pub(crate) fn numbers(&self) -> Vec<ItemNumber> {
        self.candidates.iter().map(|one| one.item.number).collect()
    }

    /// Whether a source and a candidate show by themselves that they are the same: both contain the same error as a
    /// program printed it, the same stack frame, or two of the same names in code or quotes; the local judge is sure; or
    /// they change the same lines. A stranger's text can tell a model what to answer, in a second reading too, so a
    /// model's answer alone closes nothing.
    pub(crate) fn shares_evidence(&self, repo: &RepoName, target: ItemNumber) -> bool {
        let Some(candidate) = self.candidates.iter().find(|one| one.item.number == target) else { return false };
        let [source, other] = [&self.source, &candidate.item].map(evidence_text);
        let facts = telling_facts_which(repo, &self.common, &source, &other, is_proof);
        let count = |kinds: &[FactKind]| facts.iter().filter(|fact| kinds.contains(&fact.kind)).count();
        let pair: Vec<LocalCandidate<'_>> =
            local_candidates(self).into_iter().filter(|one| one.text.number == target).collect();
        let locally = judge_locally(&local_source(self), &pair);
        let changes = self.source.changes.as_ref().zip(candidate.item.changes.as_ref());
        count(&[FactKind::Error, FactKind::Frame]) > 0
            || count(&[FactKind::Code, FactKind::Quote]) > 1
            || locally.is_duplicate && locally.structure.certainty == Some(Certainty::Sure)
            || changes.is_some_and(|(one, other)| one.is_sent_again(other).is_some())
    }

    fn consequence(&self, answer: &JudgeAnswer, rules: AnswerRules<'_>) -> Consequence {
        let (source, candidates) = (self.gate_source(), self.gate_candidates());
        match rules {
            AnswerRules::Edge(rules) => {
                let ruled = gate_answer(&source, &candidates, &self.pairs, &Ok(answer.clone()), rules);
                match ruled.status {
                    DecisionStatus::Accepted => Consequence::Duplicate,
                    DecisionStatus::Rejected | DecisionStatus::Skipped => Consequence::Nothing,
                }
            }
            AnswerRules::NewItem(thresholds) => {
                online_verdict(&source, &candidates, &self.pairs, Some(answer), thresholds).verdict.into()
            }
        }
    }

    /// Parses an answer; it may name only candidates of this case.
    pub(crate) fn read(&self, said: &str) -> Result<JudgeAnswer, InvalidAnswer> {
        let answer = parse_judge_answer(said, &self.numbers())?;
        match (answer.duplicate_of, quotes_of_answer(said)) {
            (Some(target), Some(quotes)) if !self.are_quoted(target, &quotes) => Err(InvalidAnswer::QuoteNotFound),
            _ => Ok(answer),
        }
    }

    /// Whether both texts contain what an answer quotes of them.
    fn are_quoted(&self, target: ItemNumber, quotes: &AnswerQuotes) -> bool {
        let place = self.candidates.iter().position(|one| one.item.number == target);
        let contains = |item: &Item, card: Option<&String>, quote: &str| {
            let WithoutSecrets { title, body, changes, .. } = WithoutSecrets::of(item);
            let changes = changes.map(|changes| format!("{}\n{}", changes.files.join("\n"), changes.diff));
            let shown = [title, body, changes.unwrap_or_default(), card.cloned().unwrap_or_default()];
            is_quoted(quote, &shown.join("\n"))
        };
        place.is_some_and(|place| {
            contains(&self.source, self.cards.first(), &quotes.source)
                && contains(&self.candidates[place].item, self.cards.get(place + 1), &quotes.candidate)
        })
    }
}

impl Judge<'_> {
    pub(crate) fn question(&self, case: &JudgeCase) -> JudgeQuestion {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        add(self.provider());
        add(self.model_id());
        match self {
            Self::Local => {
                add(&weighed(&case.source));
                for one in &case.candidates {
                    add(&format!("{} {} {}", one.item.number, weighed(&one.item), one.score));
                    add(&serde_json::to_string(&one.parts).expect("invariant: numbers by name"));
                }
                case.common.terms().for_each(|term| add(&format!("common {term:016x}")));
                JudgeQuestion { request: None, input_hash: digits(hash) }
            }
            Self::Model { .. } | Self::Cascade { .. } => {
                let request = case_request(case);
                add(&JUDGE_PROMPT_VERSION.to_string());
                add(&request.system);
                add(&request.user);
                JudgeQuestion { request: Some(request), input_hash: digits(hash) }
            }
        }
    }

    /// The candidates that the judge considers possible duplicates, best first. Empty for a model, which names at
    /// most one, in its answer.
    pub(crate) fn possible_duplicates(&self, case: &JudgeCase) -> Vec<ItemNumber> {
        match self {
            Self::Local => possible_duplicates(&local_source(case), &local_candidates(case)),
            Self::Model { .. } | Self::Cascade { .. } => Vec::new(),
        }
    }

    /// Asks once, within the budget; the model's client retries what can be retried.
    pub(crate) async fn ask(
        &self,
        question: &JudgeQuestion,
        case: &JudgeCase,
        purpose: &'static str,
        budget: &TokenBudget,
    ) -> Result<JudgeReply, JudgeFailure> {
        let (Self::Model { model, .. } | Self::Cascade { model, .. }, Some(request)) = (self, &question.request) else {
            let answer = locally(case);
            let said = serialised(&answer);
            return Ok(JudgeReply { answer: Ok(answer), said, call: None });
        };
        let taken = budget.take().await.map_err(|why| JudgeFailure::OverBudget(why.to_string()))?;
        let began = std::time::Instant::now();
        let note = |input: Option<u64>, output: Option<u64>, error: Option<String>| NewLlmCall {
            purpose,
            provider: self.provider(),
            model: self.model_id().to_owned(),
            input_tokens: input,
            output_tokens: output,
            cost_usd: budget.cost(input, output),
            latency: began.elapsed(),
            error,
        };
        match model.complete(request).await {
            Ok(told) => {
                let call = note(told.input_tokens, told.output_tokens, None);
                budget.settle(taken, call.cost_usd);
                let answer = case.read(&told.text);
                // The store keeps only the beginning of an answer, so one that is too long is stored as it was
                // parsed.
                let said = match &answer {
                    Ok(answer) if told.text.chars().count() > ANSWER_LIMIT => serialised(answer),
                    _ => told.text,
                };
                Ok(JudgeReply { answer, said, call: Some(call) })
            }
            // This counts as an answer, and it was paid for.
            Err(
                ref error @ (ChatError::Refused { input_tokens, output_tokens, .. }
                | ChatError::CutOff { input_tokens, output_tokens, .. }),
            ) => {
                let kind = match error {
                    ChatError::Refused { .. } => InvalidAnswer::Refusal,
                    _ => InvalidAnswer::NotJson,
                };
                let call = note(input_tokens, output_tokens, Some(error.to_string()));
                budget.settle(taken, call.cost_usd);
                Ok(JudgeReply { answer: Err(kind), said: String::new(), call: Some(call) })
            }
            Err(error) => {
                budget.settle(taken, Some(0.0));
                let call = Box::new(note(None, None, Some(error.to_string())));
                Err(JudgeFailure::NoAnswer { error, call })
            }
        }
    }
}

/// The result of a second reading.
pub(crate) struct SecondReading {
    pub(crate) is_confirmed: bool,
    pub(crate) call: Option<NewLlmCall>,
}

impl Judge<'_> {
    /// Reads a pair again with the two exchanged. The local judge compares both ways at once, so it is not asked.
    pub(crate) async fn read_again(
        &self,
        case: &JudgeCase,
        target: ItemNumber,
        least: Probability,
        purpose: &'static str,
        budget: &TokenBudget,
    ) -> Result<SecondReading, JudgeFailure> {
        if self.is_local() {
            return Ok(SecondReading { is_confirmed: true, call: None });
        }
        let Some(exchanged) = case.exchanged(target) else {
            return Ok(SecondReading { is_confirmed: false, call: None });
        };
        let reply = self.ask(&self.question(&exchanged), &exchanged, purpose, budget).await?;
        let is_confirmed = is_confirmed(&reply.answer, case.source.number, least);
        Ok(SecondReading { is_confirmed, call: reply.call })
    }
}

/// Whether it proves something that two texts contain this fact. Two sentences about an error may be about two errors,
/// and two blocks of code have their keywords in common.
fn is_proof(found: &FoundFact<'_>) -> bool {
    match found.kind {
        FactKind::Error => is_telling(found) && is_printed(found),
        FactKind::Code => found.is_structured_name(),
        FactKind::Frame | FactKind::Quote => true,
        FactKind::Version => false,
    }
}

fn serialised(answer: &JudgeAnswer) -> String {
    serde_json::to_string(answer).expect("invariant: plain data")
}

fn locally(case: &JudgeCase) -> JudgeAnswer {
    let mut answer = judge_locally(&local_source(case), &local_candidates(case));
    // The reasoning quotes what both texts contain, and people see it.
    answer.reasoning = redact(&answer.reasoning);
    answer
}

fn local_source(case: &JudgeCase) -> LocalText<'_> {
    LocalText { common: Some(&case.common), ..local_text(&case.source) }
}

fn local_candidates(case: &JudgeCase) -> Vec<LocalCandidate<'_>> {
    let candidates = case.candidates.iter();
    candidates.map(|one| LocalCandidate { text: local_text(&one.item), score: one.score, parts: &one.parts }).collect()
}

/// Everything about an item that the local judge weighs.
fn weighed(item: &Item) -> String {
    let changes = item.changes.as_ref().map(|changes| (&changes.files, &changes.diff));
    let text = content_hash(item.item_type, &item.title, &item.body);
    let parts = (text.as_str(), &item.labels, &item.author, item.created_at, changes, &item.base_branch);
    serde_json::to_string(&parts).expect("invariant: plain data")
}

fn local_text(item: &Item) -> LocalText<'_> {
    LocalText {
        item_type: item.item_type,
        number: item.number,
        title: &item.title,
        body: &item.body,
        labels: &item.labels,
        author: item.author.as_ref(),
        created_at: item.created_at,
        changes: item.changes.as_ref(),
        base_branch: item.base_branch.as_deref(),
        common: None,
    }
}

/// How many digits of the hash mark the borders of a text.
const BOUNDARY_DIGITS: usize = 16;

fn case_request(case: &JudgeCase) -> ChatRequest {
    let items = std::iter::once(&case.source).chain(case.candidates.iter().map(|one| &one.item));
    let safe: Vec<(ItemNumber, WithoutSecrets)> =
        items.clone().map(|item| (item.number, WithoutSecrets::of(item))).collect();
    // The boundary depends on every text, so that nobody can write a text that contains it.
    let mut hash = Sha256::new();
    items.for_each(|item| hash.update(item.content_hash.as_str()));
    let boundary = &digits(hash)[..BOUNDARY_DIGITS];
    let compared: Vec<String> =
        safe.iter().map(|(_, candidate)| compared_texts(&safe[0].1, candidate, &case.common)).collect();
    let texts: Vec<JudgeText<'_>> = safe
        .iter()
        .enumerate()
        .map(|(at, (number, safe))| JudgeText {
            item_type: safe.item_type,
            number: *number,
            title: &safe.title,
            body: &safe.body,
            card: case.cards.get(at).map(String::as_str),
            changes: safe.changes.as_ref(),
            compared: (at > 0).then(|| compared[at].as_str()),
        })
        .collect();
    let (source, candidates) = texts.split_first().expect("invariant: there is a source");
    judge_request(*source, candidates, boundary)
}

fn digits(hash: Sha256) -> String {
    canonry_domain::hex_digits(hash.finalize())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use canonry_domain::{
        Boilerplate, Item, ItemNumber, ItemRecord, ItemType, PairScores, PullChanges, Similarity, merge_record,
    };

    use super::{CaseCandidate, JudgeCase};

    fn number(at: i64) -> ItemNumber {
        ItemNumber::new(at).expect("positive")
    }

    fn shares(source: ItemRecord, candidate: ItemRecord) -> bool {
        let [source, candidate]: [Item; 2] = [source, candidate].map(|record| merge_record(None, record).item);
        let target = candidate.number;
        let candidate = CaseCandidate { item: candidate, score: Similarity::ZERO, parts: BTreeMap::new() };
        let case = JudgeCase::new(&source, vec![candidate], PairScores::default(), &Boilerplate::default());
        case.shares_evidence(&"tide/pool".parse().expect("a name"), target)
    }

    /// Two reports of other problems, each with one of these texts.
    fn both_contain(one: &str, other: &str) -> bool {
        let report = |at, title: &str, words: &str, shown: &str| ItemRecord {
            body: Some(format!("{words}\n\n{shown}\n")),
            ..ItemRecord::new(ItemType::Issue, number(at), title)
        };
        let first = report(2, "The menu is grey", "I opened the menu of the second window and it stayed grey.", one);
        let second =
            report(1, "Sorting takes an hour", "A table of nine rows is sorted for an hour on Mondays.", other);
        shares(first, second)
    }

    #[test]
    fn errors_frames_names_and_quotes_in_both_are_evidence() {
        for shown in [
            "```\nError: cannot open the summary file of the exporter for writing\n```",
            "```\nthread 'live' panicked at src/live/socket.rs:214:9:\nsession ticket 7741 is stale after resume\n```",
            "thread 'main' panicked at src/tide.rs:88:40:",
            "```\n   2: tide::table::begin\n```",
            "It is `client.reconnect` that calls `client.state`.",
            "E0308 in HashMap::entry",
            "```\nread_all(rowCount)\n```",
            "It says \"the tide is too low\" and \"the moon is too high\".",
        ] {
            assert!(both_contain(shown, shown), "{shown}");
        }
    }

    #[test]
    fn words_of_code_and_sentences_about_errors_are_no_evidence() {
        for (one, other) in [
            ("```js\nconst menu = open(3);\nreturn menu;\n```", "```js\nconst rows = load(7);\nreturn rows;\n```"),
            ("`const` and `return` in `async` code", "I write `const`, `return` and `async`."),
            ("The app cannot connect to the server.", "The app cannot connect to the server."),
            ("Traceback (most recent call last):", "Traceback (most recent call last):"),
            ("It is `client.reconnect`.", "It is `client.reconnect`."),
            ("Seen with `python3.11`, `pip3.11` and/or 1.2.3.", "On `python3.11` with `pip3.11` and/or 1.2.3."),
        ] {
            assert!(!both_contain(one, other), "{one}");
        }
        let error = "error: tide table lost its anchor in the harbour";
        assert!(!both_contain(error, &format!("```\n{error}\n```")), "printed in one of them only");
    }

    #[test]
    fn lines_that_both_change_are_evidence() {
        let pull = |at, title: &str, file: &str, patch: &str| ItemRecord {
            changes: Some(PullChanges::of_patches([(file, patch)].into_iter())),
            ..ItemRecord::new(ItemType::Pr, number(at), title)
        };
        let patch = "@@ -1 +1 @@\n-let anchor = viewport.top();\n+let anchor = viewport.anchor();";
        let file = "src/tide.rs";
        assert!(shares(pull(2, "Keep the anchor", file, patch), pull(1, "Do not jump", file, patch)));
        let bundle = format!("@@ -1 +1 @@\n-{}\n+another", "!function(e){}".repeat(500));
        let file = "dist/app.min.js";
        assert!(!shares(pull(2, "Keep the anchor", file, &bundle), pull(1, "Do not jump", file, &bundle)));
    }
}
