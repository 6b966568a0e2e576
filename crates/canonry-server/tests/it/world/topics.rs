//! Texts about numbered topics, with an embedder and a judge for them: the texts state their own similarity.
//!
//! An original says `topic17`. A report that says `topic17 alike82` has the score 0.82 with it, and a low score with
//! everything else.

use std::time::Duration;

use canonry_domain::Extractor;
use canonry_models::chat::{ChatAnswer, ChatError, ChatModel, ChatRequest};
use canonry_models::{Calibration, EmbedError, Embedder, InputType};
use canonry_triage::{DetectorSource, Detectors, IndexCache, Judge};
use futures_util::future::BoxFuture;
use serde_json::json;

/// Long enough that random directions have little in common.
const DIMENSION: usize = 256;

/// The judge's answer to a report with this word is unusable.
pub(crate) const UNJUDGEABLE: &str = "unjudgeable";

/// Compares by topic and judges by topic.
pub(crate) struct Topics {
    embedder: TopicEmbedder,
    judge: TopicJudge,
    indexes: IndexCache,
}

impl Topics {
    /// `reasoning` is the judge's reasoning for every yes.
    pub(crate) fn new(reasoning: &'static str) -> Self {
        Self {
            embedder: TopicEmbedder { calibration: Calibration::identity() },
            judge: TopicJudge { reasoning },
            indexes: IndexCache::new(64 << 20),
        }
    }
}

impl DetectorSource for Topics {
    fn detectors(&self) -> Detectors<'_> {
        Detectors {
            github: None,
            embedder: &self.embedder,
            extractor: None,
            // As trusted as the compiled-in judge: other tests check whether a judge is proven.
            judge: Judge::Model { provider: Extractor::Local, model: &self.judge },
            snapshots: None,
            indexes: Some(&self.indexes),
        }
    }

    fn is_hosted(&self) -> bool {
        false
    }
}

struct TopicEmbedder {
    calibration: Calibration,
}

impl Embedder for TopicEmbedder {
    fn model_id(&self) -> &'static str {
        "topics"
    }

    fn dimension(&self) -> Option<usize> {
        Some(DIMENSION)
    }

    fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    fn embed<'a>(&'a self, texts: &'a [String], _: InputType) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move { Ok(texts.iter().map(|text| vector(text)).collect()) })
    }
}

struct TopicJudge {
    reasoning: &'static str,
}

impl ChatModel for TopicJudge {
    fn model_id(&self) -> &'static str {
        "topic-judge"
    }

    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatAnswer, ChatError>> {
        let text = self.answer(&request.user);
        Box::pin(
            async move { Ok(ChatAnswer { text, input_tokens: None, output_tokens: None, latency: Duration::ZERO }) },
        )
    }
}

impl TopicJudge {
    /// The candidate of the source's topic, the original before other reports of it.
    fn answer(&self, question: &str) -> String {
        let mut parts = question.split("\nCandidate ");
        let source = parts.next().unwrap_or_default();
        if source.contains(UNJUDGEABLE) {
            return "It depends.".to_owned();
        }
        let topic = number_after(source, "topic");
        let same = parts.filter(|part| number_after(part, "topic") == topic);
        let numbered = same.filter_map(|part| {
            let number: i64 = part.split(',').next()?.parse().ok()?;
            Some((number_after(part, "alike").is_some(), number))
        });
        let Some((_, target)) = numbered.min().filter(|_| topic.is_some()) else {
            let no = json!({ "is_duplicate": false, "duplicate_of": null, "confidence": 0.9, "reasoning": "Another topic." });
            return no.to_string();
        };
        json!({
            "is_duplicate": true, "duplicate_of": target, "confidence": 0.97, "reasoning": self.reasoning,
            "relation": "same_instance", "root_cause_match": "same", "scope_relation": "same_scope",
            "path_match": "same", "certainty": "sure",
        })
        .to_string()
    }
}

/// The number right after the first such word.
fn number_after(text: &str, word: &str) -> Option<u64> {
    text.match_indices(word).find_map(|(at, _)| {
        let rest = &text[at + word.len()..];
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    })
}

fn vector(text: &str) -> Vec<f32> {
    let own = text.bytes().fold(7_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let Some(topic) = number_after(text, "topic").map(direction) else { return narrowed(&direction(own)) };
    let Some(alike) = number_after(text, "alike") else { return narrowed(&topic) };
    let cosine = alike as f64 / 100.0;
    let other = direction(own);
    let shared: f64 = other.iter().zip(&topic).map(|(one, other)| one * other).sum();
    let apart: Vec<f64> = other.iter().zip(&topic).map(|(one, topic)| one - shared * topic).collect();
    let length = apart.iter().map(|part| part * part).sum::<f64>().sqrt();
    let rest = (1.0 - cosine * cosine).sqrt() / length;
    narrowed(&topic.iter().zip(&apart).map(|(topic, apart)| cosine * topic + rest * apart).collect::<Vec<f64>>())
}

fn narrowed(vector: &[f64]) -> Vec<f32> {
    vector.iter().map(|part| *part as f32).collect()
}

/// A direction of length 1 for a seed (SplitMix64).
fn direction(seed: u64) -> Vec<f64> {
    let part = 1.0 / (DIMENSION as f64).sqrt();
    (1..=DIMENSION as u64)
        .map(|at| {
            let mut mixed =
                seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            if (mixed >> 40) & 1 == 0 { part } else { -part }
        })
        .collect()
}

#[test]
fn reports_are_as_alike_as_they_say() {
    let cosine = |one: &str, other: &str| {
        vector(one).iter().zip(vector(other)).map(|(one, other)| f64::from(*one) * f64::from(other)).sum::<f64>()
    };
    for alike in [50, 82, 85, 99] {
        let found = cosine("It stops (topic17).", &format!("It halts: topic17, alike{alike}."));
        assert!((found - f64::from(alike) / 100.0).abs() < 1e-6, "{found}");
    }
    for other in 0..300 {
        let found = cosine("topic1000 alike95", &format!("topic{other}"));
        assert!(found.abs() < 0.4, "{found}");
    }
}
