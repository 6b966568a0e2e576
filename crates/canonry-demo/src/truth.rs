//! The true duplicates of the demo, according to the samples and the week.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use canonry_models::chat::{ChatAnswer, ChatError, ChatModel, ChatRequest};
use canonry_testkit::github::World;
use canonry_testkit::samples::ALL;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use crate::week::Week;

/// Every item of the samples that belongs to a group, by repository and number, with the first item of its group.
#[derive(Debug, Default)]
pub(crate) struct SampleTruth {
    first: BTreeMap<(&'static str, u64), u64>,
}

#[derive(Deserialize)]
struct Row {
    number: u64,
    relevant: Vec<u64>,
}

impl SampleTruth {
    /// The truth of the samples and of the week's arrivals.
    pub(crate) fn of(week: &Week) -> Result<Self> {
        let mut truth = Self::default();
        for sample in &ALL {
            for line in sample.truth.lines() {
                let Row { number, relevant } = serde_json::from_str(line)?;
                let earliest = relevant.into_iter().min().unwrap_or(number);
                let first = truth.first_of(sample.repo, earliest);
                truth.first.insert((sample.repo, number), first);
            }
        }
        for (repo, number, arrival) in week.arrived.values() {
            if let Some(target) = arrival.duplicate_of {
                let first = truth.first_of(repo, target);
                truth.first.insert((*repo, *number), first);
            }
        }
        Ok(truth)
    }

    /// Whether two items report the same problem.
    pub(crate) fn is_same(&self, repo: &'static str, one: u64, other: u64) -> bool {
        one != other && self.first_of(repo, one) == self.first_of(repo, other)
    }

    fn first_of(&self, repo: &'static str, number: u64) -> u64 {
        self.first.get(&(repo, number)).copied().unwrap_or(number)
    }
}

/// A judge that knows the truth: the demo's audit compares the compiled-in judge with it.
pub(crate) struct TruthJudge {
    truth: SampleTruth,
    repo: &'static str,
    /// The issues by their title and the last line of their body, to recognize the source of a question: a template's
    /// text comes first.
    known: Vec<(u64, String, String)>,
}

impl TruthJudge {
    pub(crate) fn new(truth: SampleTruth, repo: &'static str, world: &World) -> Self {
        let issues = world.get(repo).issues.values();
        let known = issues.map(|issue| {
            let body = issue.body.as_deref().unwrap_or_default();
            (issue.number, issue.title.clone(), body.lines().last().unwrap_or_default().to_owned())
        });
        Self { truth, repo, known: known.collect() }
    }

    /// A question shows the source, then each candidate under its number.
    fn answer(&self, question: &str) -> String {
        let mut parts = question.split("\nCandidate ");
        let source = parts.next().unwrap_or_default();
        let is_source = |(_, title, line): &&(u64, String, String)| {
            source.contains(&format!("| Title: {title}\n")) && source.contains(&format!("| {line}"))
        };
        let candidates = parts.filter_map(|part| part.split(',').next()?.parse::<u64>().ok());
        let target = self.known.iter().find(is_source).and_then(|(number, _, _)| {
            let mut same = candidates.filter(|candidate| self.truth.is_same(self.repo, *number, *candidate));
            same.next()
        });
        match target {
            Some(target) => json!({
                "is_duplicate": true, "duplicate_of": target, "confidence": 0.99,
                "reasoning": "The samples say that both report the same.",
                "relation": "same_instance", "root_cause_match": "same", "scope_relation": "same_scope",
                "path_match": "same", "certainty": "sure",
            }),
            None => json!({
                "is_duplicate": false, "duplicate_of": null, "confidence": 0.01,
                "reasoning": "The samples know of none that reports the same.",
            }),
        }
        .to_string()
    }
}

impl ChatModel for TruthJudge {
    fn model_id(&self) -> &'static str {
        "the-samples-own-truth"
    }

    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatAnswer, ChatError>> {
        let text = self.answer(&request.user);
        Box::pin(
            async move { Ok(ChatAnswer { text, input_tokens: None, output_tokens: None, latency: Duration::ZERO }) },
        )
    }
}
