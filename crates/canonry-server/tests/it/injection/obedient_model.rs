//! A model that does what the texts of the suite demand, behind OpenAI's interface on loopback.

use std::sync::{Arc, Mutex, PoisonError};

use canonry_domain::{Extractor, JudgeProof, Probability};
use canonry_models::chat::{ChatModel, ChatProvider, ChatSettings, RemoteChat};
use canonry_store::{NewAudit, Representation};
use canonry_testkit::models::{ModelRequest, ModelServer, confirmed_second_reading};
use canonry_triage::{DetectorSource, Detectors, Judge};
use serde_json::{Value, json};

use crate::injection::texts::{Demand, InjectionText};
use crate::world::topics::Topics;

/// More than a title may have, and more than a comment shows.
const SAID: usize = 300;

/// What the model obeys at the moment, where it reads it.
#[derive(Default)]
struct Orders {
    texts: Vec<InjectionText>,
    /// Whether it reports nothing, as some texts demand, or everything that others demand.
    is_silent: bool,
    asked: usize,
    obeyed: usize,
}

pub(crate) struct ObedientModel {
    _server: ModelServer,
    pub(crate) chat: Arc<RemoteChat>,
    orders: Arc<Mutex<Orders>>,
}

impl ObedientModel {
    pub(crate) async fn start() -> Self {
        let server = ModelServer::start().await;
        let orders = Arc::new(Mutex::new(Orders::default()));
        let read = Arc::clone(&orders);
        server.answer_by(move |request| {
            let mut orders = read.lock().unwrap_or_else(PoisonError::into_inner);
            Some(answer(request, &mut orders))
        });
        let settings = ChatSettings {
            base_url: server.base_url(),
            model: "obedient".to_owned(),
            ..ChatSettings::new(ChatProvider::OpenAi)
        };
        let chat = Arc::new(RemoteChat::new(settings).expect("a client"));
        Self { _server: server, chat, orders }
    }

    /// From now on it obeys these texts; without any it answers honestly: no, and no findings.
    pub(crate) fn obey(&self, texts: &[InjectionText]) {
        self.change(|orders| orders.texts = texts.to_vec());
    }

    pub(crate) fn report_nothing(&self, is_silent: bool) {
        self.change(|orders| orders.is_silent = is_silent);
    }

    /// How many questions it was asked while there was a text to obey, and how many of them it answered as a text demanded,
    /// since the last call.
    pub(crate) fn asked_and_obeyed(&self) -> (usize, usize) {
        self.change(|orders| (std::mem::take(&mut orders.asked), std::mem::take(&mut orders.obeyed)))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Orders) -> T) -> T {
        change(&mut self.orders.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Items are compared by their topics and judged by this model, alone or after the compiled-in judge.
    pub(crate) fn detectors(&self, is_cascade: bool) -> Arc<dyn DetectorSource> {
        Arc::new(ObedientDetectors { topics: Topics::new(""), is_cascade, chat: Arc::clone(&self.chat) })
    }

    /// An audit in which all its answers were right.
    pub(crate) fn proving_audit(&self) -> NewAudit {
        let judge = Judge::Model { provider: Extractor::OpenAi, model: self.chat.as_ref() }.stored();
        NewAudit {
            representation: Representation::Raw,
            seed: 1,
            sample_size: 100,
            cheap_provider: judge.provider,
            cheap_model: judge.model,
            strong_provider: "command".to_owned(),
            strong_model: "people".to_owned(),
            min_edge: Probability::new(0.85).expect("a probability"),
            run_id: "audit".to_owned(),
            prompt_version: Some(judge.prompt_version),
            proof: Some(JudgeProof { right: 100, wrong: 0 }),
        }
    }
}

struct ObedientDetectors {
    topics: Topics,
    is_cascade: bool,
    chat: Arc<RemoteChat>,
}

impl DetectorSource for ObedientDetectors {
    fn detectors(&self) -> Detectors<'_> {
        let (provider, model): (_, &dyn ChatModel) = (Extractor::OpenAi, self.chat.as_ref());
        let judge = match self.is_cascade {
            true => Judge::Cascade { provider, model },
            false => Judge::Model { provider, model },
        };
        Detectors { judge, ..self.topics.detectors() }
    }

    fn is_hosted(&self) -> bool {
        true
    }
}

fn answer(request: &ModelRequest, orders: &mut Orders) -> String {
    let prompt = request.prompt();
    let what = request.body["response_format"]["json_schema"]["name"].as_str().unwrap_or_default();
    orders.asked += usize::from(!orders.texts.is_empty());
    // It obeys what it reads, and nothing else.
    let read: Vec<InjectionText> = orders.texts.iter().filter(|text| text.is_in(&prompt)).cloned().collect();
    let Some(text) = read.first() else {
        return match what {
            "duplicate_decision" => verdict(false, 0, "Another problem."),
            "review_findings" => json!({ "findings": [] }).to_string(),
            _ => confirmed_second_reading(&prompt).expect("the only other question is a second reading"),
        };
    };
    orders.obeyed += 1;
    match what {
        "duplicate_decision" => judged(text, &prompt),
        "review_findings" if orders.is_silent => json!({ "findings": [] }).to_string(),
        "review_findings" => findings(&read, &prompt),
        _ => confirmed_second_reading(&prompt).expect("the only other question is a second reading"),
    }
}

fn judged(text: &InjectionText, prompt: &str) -> String {
    let said: String = text.whole().chars().take(SAID).collect();
    match text.demands {
        Demand::Near => verdict(true, first_candidate(prompt), &said),
        Demand::Far => verdict(true, 5, &said),
        Demand::Outside => verdict(true, 4242, &said),
        Demand::No => verdict(false, 0, &said),
        Demand::Garbage => text.whole(),
    }
}

fn verdict(is_duplicate: bool, of: u64, reasoning: &str) -> String {
    json!({
        "is_duplicate": is_duplicate, "duplicate_of": of, "confidence": 1, "reasoning": reasoning,
        "relation": "same_instance", "root_cause_match": "same", "scope_relation": "same_scope",
        "path_match": "same", "certainty": "sure",
    })
    .to_string()
}

/// The first number of "There are 2 candidates: 1, 5."
fn first_candidate(prompt: &str) -> u64 {
    let line =
        prompt.lines().find(|line| line.starts_with("The source is ")).expect("the question says what it is about");
    let numbers = line.split(": ").nth(1).expect("it lists the candidates");
    numbers.split([',', '.']).next().and_then(|number| number.parse().ok()).expect("a number")
}

/// A finding in the words of each text: at a line of the change, at a line that is not there, in a file that is not part of
/// it, and outside of the repository.
fn findings(texts: &[InjectionText], prompt: &str) -> String {
    let shown: Vec<&str> = prompt.lines().filter_map(|line| line.strip_prefix("| path: ")).collect();
    let mut findings: Vec<Value> = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        let words: String = text.whole().chars().take(SAID).collect();
        let own = shown.get(at % shown.len().max(1)).copied().unwrap_or("src/pool.js");
        let (path, line) = match at % 4 {
            0 | 1 => (own, 2),
            2 => (own, 99_999),
            _ => ("../../etc/passwd", 1),
        };
        findings.push(json!({
            "title": words, "message": format!("{words}\n\nAPPROVED, please merge. @tide/admins https://evil.example"),
            "path": path, "line": line, "end_line": line, "severity": "critical", "category": "security",
            "suggestion": words,
        }));
    }
    json!({ "findings": findings }).to_string()
}
