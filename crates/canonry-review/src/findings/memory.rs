//! Finds past findings that resemble the present ones, and what became of them.

use std::collections::{BTreeMap, BTreeSet};

use canonry_config::RetrievalSettings;
use canonry_domain::redact;
use canonry_domain::review::{Finding, FindingStatus, Severity, Sighting};
use canonry_models::{EmbedError, Embedder, FindingDistances, InputType};
use canonry_store::{FindingId, LedgerFinding, NewMemory, Store, StoreError, StoredMemory};
use jiff::Timestamp;

use crate::reviewers::FileToRead;
use crate::run::request::ReviewRequest;

/// The memories that are compared: the newest say most about the present code.
const MOST_MEMORIES: u32 = 5_000;

/// The findings that are looked up, and the findings that are remembered, in one run: embedding takes milliseconds
/// each, and a linter that runs for the first time reports thousands.
const MOST_FINDINGS: usize = 100;

/// The files for which a model gets memories.
const MOST_FILES: usize = 30;

/// The characters of a message, or of a file's new lines, that go into a vector; the compiled-in model reads no
/// further.
const LONGEST_TEXT: usize = 1_000;

/// The characters of a remembered message that a model is shown.
const LONGEST_MESSAGE: usize = 300;

#[derive(Debug, thiserror::Error)]
pub(crate) enum MemoryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

/// The past findings of a repository to which people reacted.
pub(crate) struct Memory<'a> {
    embedder: &'a dyn Embedder,
    settings: &'a RetrievalSettings,
    /// From the settings, or the embedder's defaults.
    distances: FindingDistances,
    memories: Vec<StoredMemory>,
}

struct RecalledFinding<'a> {
    memory: &'a StoredMemory,
    distance: f64,
}

impl<'a> Memory<'a> {
    /// Loads the memories of the request's repository, and of its owner's other repositories if that is allowed; `None`
    /// if there are none or the settings disable them.
    pub(crate) async fn open(
        store: &Store,
        request: &ReviewRequest<'a>,
        embedder: &'a dyn Embedder,
    ) -> Result<Option<Self>, StoreError> {
        let knowledge = &request.settings.knowledge;
        if !knowledge.retrieval.enabled {
            return Ok(None);
        }
        let shared = knowledge.share_within_owner;
        let memories = store.findings().memories(request.repo, shared, embedder.model_id(), MOST_MEMORIES).await?;
        let settings = &knowledge.retrieval;
        let distances = match settings.distance_threshold {
            Some(written) => FindingDistances { from_code: written, from_finding: written },
            None => embedder.finding_distances(),
        };
        let memory = Self { embedder, settings, distances, memories };
        Ok((!memory.memories.is_empty()).then_some(memory))
    }

    /// The past findings that resemble the new code, described for a model.
    pub(crate) async fn for_files(&self, files: &[FileToRead<'_>]) -> Result<Vec<String>, MemoryError> {
        let readable = files.iter().filter(|file| file.text.is_some() && !file.change.added.is_empty());
        let queries: Vec<String> = readable.take(MOST_FILES).map(text_of_file).collect();
        let mut nearest: BTreeMap<FindingId, RecalledFinding<'_>> = BTreeMap::new();
        for recalled in self.recall(&queries, self.distances.from_code).await?.into_iter().flatten() {
            let known = nearest.get(&recalled.memory.finding);
            if known.is_none_or(|known| recalled.distance < known.distance) {
                nearest.insert(recalled.memory.finding, recalled);
            }
        }
        let mut nearest: Vec<RecalledFinding<'_>> = nearest.into_values().collect();
        nearest.sort_by(|one, other| one.distance.total_cmp(&other.distance));
        let mut room = self.settings.max_context_chars as usize;
        let mut told = Vec::new();
        for recalled in nearest.into_iter().take(self.settings.top_k as usize) {
            let line = line_of(recalled.memory);
            let length = line.chars().count();
            if length > room {
                break;
            }
            room -= length;
            self.log(&recalled, "a model is shown a past finding");
            told.push(line);
        }
        Ok(told)
    }

    /// The positions of the sightings for which people accepted a very similar finding. A finding is not its own twin:
    /// otherwise Canonry would confirm itself.
    pub(crate) async fn accepted_twins(
        &self,
        sightings: &[Sighting],
        ledger: &[LedgerFinding],
    ) -> Result<BTreeSet<usize>, MemoryError> {
        let mut asked: Vec<usize> = (0..sightings.len())
            .filter(|at| !matches!(sightings[*at].status, FindingStatus::Fixed | FindingStatus::Dismissed))
            .collect();
        asked.sort_by_key(|at| (std::cmp::Reverse(sightings[*at].finding.severity), *at));
        asked.truncate(MOST_FINDINGS);
        let queries: Vec<String> = asked.iter().map(|at| text_of(&sightings[*at].finding)).collect();
        let mut twins = BTreeSet::new();
        for (at, recalled) in asked.into_iter().zip(self.recall(&queries, self.distances.from_finding).await?) {
            let own = sightings[at].earlier.map(|place| ledger[place].id);
            let twin = recalled.into_iter().find(|one| Some(one.memory.finding) != own);
            if let Some(twin) = twin.filter(|twin| twin.memory.outcome.is_accepted()) {
                self.log(&twin, "people accepted a finding that is very much alike");
                twins.insert(at);
            }
        }
        Ok(twins)
    }

    /// The memories nearest to each text, nearest first, within `farthest` and the number that the settings allow.
    async fn recall(&self, queries: &[String], farthest: f64) -> Result<Vec<Vec<RecalledFinding<'_>>>, EmbedError> {
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        let vectors = self.embedder.embed(queries, InputType::Query).await?;
        let near = |vector: &Vec<f32>| {
            let all = self
                .memories
                .iter()
                .map(|memory| RecalledFinding { memory, distance: distance(vector, &memory.vector) });
            let mut near: Vec<RecalledFinding<'_>> = all.filter(|recalled| recalled.distance <= farthest).collect();
            near.sort_by(|one, other| {
                one.distance.total_cmp(&other.distance).then(other.memory.at.cmp(&one.memory.at))
            });
            near.truncate(self.settings.top_k as usize);
            near
        };
        Ok(vectors.iter().map(near).collect())
    }

    fn log(&self, recalled: &RecalledFinding<'_>, what: &str) {
        let memory = recalled.memory;
        tracing::info!(
            repo = %memory.repo, subject = %memory.subject, finding = %memory.finding, outcome = memory.outcome.as_str(),
            distance = recalled.distance, "{what}"
        );
    }
}

/// Stores vectors of a subject's findings. What became of each is recorded later, elsewhere.
pub(crate) async fn remember(
    store: &Store,
    request: &ReviewRequest<'_>,
    embedder: &dyn Embedder,
    now: Timestamp,
) -> Result<(), MemoryError> {
    let mut unknown = store.findings().to_remember(request.repo, request.subject, embedder.model_id()).await?;
    unknown.sort_by_key(|(id, finding)| (std::cmp::Reverse::<Severity>(finding.severity), *id));
    unknown.truncate(MOST_FINDINGS);
    if unknown.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = unknown.iter().map(|(_, finding)| text_of(finding)).collect();
    let vectors = embedder.embed(&texts, InputType::Document).await?;
    let model = embedder.model_id();
    let memories: Vec<NewMemory<'_>> = unknown
        .iter()
        .zip(&vectors)
        .map(|((finding, _), vector)| NewMemory { finding: *finding, model, vector })
        .collect();
    Ok(store.findings().remember(&memories, now).await?)
}

/// 1 − cosine; a vector of zeros counts as unrelated.
fn distance(one: &[f32], other: &[f32]) -> f64 {
    if one.len() != other.len() {
        return f64::INFINITY;
    }
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths > 0.0 { 1.0 - dot(one, other) / lengths } else { 1.0 }
}

/// The text for a finding's vector. Secrets are removed before anything is cut, because the embedder may be a remote
/// service.
fn text_of(finding: &Finding) -> String {
    let message = redact(&finding.message);
    format!("{}\n{}\n{}", redact(&finding.title), cut(&message, LONGEST_TEXT), finding.path)
}

fn text_of_file(file: &FileToRead<'_>) -> String {
    // A minified line may be megabytes long, and only its beginning is used.
    let added: Vec<&str> = file.change.added.iter().map(|(_, line)| cut(line, 2 * LONGEST_TEXT)).take(100).collect();
    format!("{}\n{}", file.change.path, cut(&redact(&added.join("\n")), LONGEST_TEXT))
}

fn line_of(memory: &StoredMemory) -> String {
    let message = redact(&memory.message);
    let message = cut(message.lines().next().unwrap_or_default(), LONGEST_MESSAGE);
    let (outcome, title, path) = (memory.outcome.as_str(), redact(&memory.title), &memory.path);
    let (severity, category) = (memory.severity.as_str(), memory.category.as_str());
    let colon = if message.is_empty() { "" } else { ": " };
    format!("[{outcome}] {severity} {category}, {path}: {title}{colon}{message}")
}

fn cut(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::{cut, distance};

    #[test]
    fn distance_is_one_minus_the_cosine() {
        assert!(distance(&[1.0, 0.0], &[2.0, 0.0]).abs() < 1e-9);
        assert!((distance(&[1.0, 0.0], &[0.0, 3.0]) - 1.0).abs() < 1e-9);
        assert!((distance(&[1.0, 0.0], &[-1.0, 0.0]) - 2.0).abs() < 1e-9);
        assert!((distance(&[0.0, 0.0], &[1.0, 0.0]) - 1.0).abs() < 1e-9);
        assert_eq!(distance(&[1.0], &[1.0, 0.0]), f64::INFINITY);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!((cut("äöü", 2), cut("äöü", 3), cut("", 1)), ("äö", "äöü", ""));
    }
}
