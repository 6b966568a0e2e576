//! Tests a language model among the reviewers.

use std::sync::Arc;

use canonry_models::chat::{ChatProvider, ChatSettings, RemoteChat};
use canonry_review::ReviewerChoice;
use canonry_review::reviewers::llm::LlmReviewer;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::models::ModelServer;
use canonry_testkit::on_both_engines;
use serde_json::json;

use crate::pipeline::memory::embedder;
use crate::pipeline::project::{Asked, Project, code, pull, statuses};

/// A model whose second readings confirm what it found.
pub(crate) fn model(server: &ModelServer) -> LlmReviewer {
    server.confirm_findings();
    let settings = ChatSettings { base_url: server.base_url(), attempts: 1, ..ChatSettings::new(ChatProvider::OpenAi) };
    LlmReviewer::new(Arc::new(RemoteChat::new(settings).expect("a model")))
}

fn says(title: &str, line: u32) -> String {
    let finding = json!({"title": title, "message": "Each turn asks the database again.", "path": "a.js", "line": line,
        "end_line": line, "severity": "minor", "category": "performance", "suggestion": null});
    json!({"findings": [finding]}).to_string()
}

/// The last question to the model.
pub(crate) fn question(server: &ModelServer) -> String {
    server.requests().iter().rev().find(|request| request.texts().is_empty()).expect("a question").prompt()
}

pub(crate) const NOTHING: &str = r#"{"findings": []}"#;

on_both_engines! {
    async fn a_model_is_told_what_was_found_and_its_silence_fixes_nothing(database: TestDatabase) {
        let server = ModelServer::start().await;
        server.vector_for("", vec![1.0]);
        let (llm, embedder) = (model(&server), embedder(&server));
        let asked = Asked { llm: Some(&llm), embedder: Some(&embedder), ..Asked::default() };
        let mut project = Project::new(&database).await;
        project.reviewers = vec![ReviewerChoice::Builtin, ReviewerChoice::Llm];
        let base = project.git.write("a.js", code("a();")).commit("base");
        project.git.branch("topic").write("a.js", code("for (x of y) query(x);")).commit("push A");
        server.answer_next(says("Query in a loop", 30));
        let first = project.review_asked(&base, asked).await;
        assert_eq!(statuses(&first), ["a.js:30 new!"]);
        assert_eq!(first.model.as_ref().map(|model| model.calls), Some(2));
        let names: Vec<_> = first.reviewers.iter().map(|one| (one.name.as_str(), one.findings, one.files)).collect();
        assert_eq!(names, [("builtin", 0, 1), ("llm", 1, 1)]);
        let stored = project.store.review().get(first.review.expect("stored")).await.expect("read").expect("there");
        assert_eq!(stored.model, first.model.map(|model| model.model));

        project.git.write("a.js", format!("x();\n{}", code("for (x of y) query(x);"))).commit("push B");
        server.answer_next(NOTHING);
        let second = project.review_asked(&base, asked).await;
        assert_eq!(statuses(&second), ["a.js:31 moved"]);
        assert!(question(&server).contains("Query in a loop"), "{}", question(&server));

        // Its code is removed: now it is fixed, and the model gets it with the next pull request.
        project.git.write("a.js", code("queryAll(y);")).commit("push C");
        server.answer_next(NOTHING);
        assert_eq!(statuses(&project.review_asked(&base, asked).await), ["a.js:31 fixed"]);
        project.subject = pull(2);
        server.answer_next(NOTHING);
        assert!(project.review_asked(&base, asked).await.findings.is_empty());
        assert!(question(&server).contains("[fixed] minor performance, a.js: Query in a loop"), "{}", question(&server));
        project.settings.knowledge.retrieval.max_context_chars = 20;
        project.subject = pull(3);
        server.answer_next(NOTHING);
        project.review_asked(&base, asked).await;
        assert!(!question(&server).contains("Query in a loop"));
    }

    async fn a_model_that_talks_is_told_and_the_others_are_heard(database: TestDatabase) {
        let server = ModelServer::start().await;
        let llm = model(&server);
        server.answer_when(|_| true, "I think that this looks good to me!");
        let mut project = Project::new(&database).await;
        project.reviewers = vec![ReviewerChoice::Builtin, ReviewerChoice::Llm];
        let base = project.git.write("a.js", code("a();")).commit("base");
        project.git.branch("topic").write("a.js", code("debugger;")).commit("push A");
        let report = project.review_asked(&base, Asked { llm: Some(&llm), ..Asked::default() }).await;
        assert_eq!(statuses(&report), ["a.js:30 new!"]);
        let llm = report.reviewers.iter().find(|one| one.name == "llm").expect("the model");
        assert!(llm.files == 0 && !llm.problems.is_empty(), "{llm:?}");
        assert!(report.coverage.skipped.iter().any(|one| one.path.as_str() == "a.js"), "{:?}", report.coverage);
    }
}
