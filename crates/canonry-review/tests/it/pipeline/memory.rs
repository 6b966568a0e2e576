//! Tests past findings and where they are used.

use canonry_domain::review::ReviewSubject;
use canonry_models::{Provider, RemoteEmbedder, RemoteSettings};
use canonry_store::Store;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::models::ModelServer;
use canonry_testkit::on_both_engines;

use crate::pipeline::project::{Asked, Project, at, code, pull, statuses, the};

pub(crate) fn embedder(server: &ModelServer) -> RemoteEmbedder {
    let settings = RemoteSettings { base_url: server.base_url(), attempts: 1, ..RemoteSettings::new(Provider::OpenAi) };
    RemoteEmbedder::new(settings).expect("an embedder")
}

async fn open(database: &TestDatabase) -> Store {
    Store::open(&database.url().parse().expect("a URL"), at(0)).await.expect("opens")
}

/// Flags one line of a file, which is then fixed or not.
async fn push(project: &mut Project, subject: ReviewSubject, title: &str, then: Option<&str>, asked: Asked<'_>) -> u8 {
    project.subject = subject;
    let branch = project.another("topic");
    project.git.switch("main");
    let base = project.git.head();
    project.git.branch(&branch).write("a.js", code("b();")).commit("push A");
    project.reported(&[(title, "a.js", 30, "minor", "performance")]);
    let report = project.review_asked(&base, asked).await;
    if let Some(then) = then {
        project.git.write("a.js", code(then)).commit("push B");
        project.reported(&[]);
        assert!(project.review_asked(&base, asked).await.findings[0].is_fixed());
    }
    the(&report, title).confidence.get()
}

async fn project(store: Store, name: &str) -> Project {
    let project = Project::named(store, name).await;
    project.git.write("a.js", code("a();")).commit("base");
    project
}

on_both_engines! {
    async fn an_accepted_twin_confirms_within_its_repository_alone(database: TestDatabase) {
        let server = ModelServer::start().await;
        server.vector_for("in a loop", vec![1.0, 0.0]);
        server.vector_for("inside loops", vec![0.9, 0.435_889_9]);
        server.vector_for("Something else", vec![0.0, 0.0, 1.0]);
        let embedder = embedder(&server);
        let asked = Asked { embedder: Some(&embedder), ..Asked::default() };
        let mut here = project(open(&database).await, "tide/pool").await;
        let plain = push(&mut here, pull(1), "Query in a loop", None, asked).await;
        assert_eq!(plain, 55);
        // Reported, but neither fixed nor praised: Canonry does not learn from itself.
        assert_eq!(push(&mut here, pull(2), "Queries inside loops", None, asked).await, 55);
        // Fixed by a later commit: the twin gets more confidence.
        assert_eq!(push(&mut here, pull(3), "Query in a loop", Some("done();"), asked).await, 55);
        assert_eq!(push(&mut here, pull(4), "Queries inside loops", None, asked).await, 65);
        assert_eq!(push(&mut here, pull(5), "Something else", None, asked).await, 55);

        // Another repository of the same owner knows nothing of it, unless both share.
        let mut there = project(open(&database).await, "tide/lagoon").await;
        assert_eq!(push(&mut there, pull(1), "Queries inside loops", None, asked).await, 55);
        there.settings.knowledge.share_within_owner = true;
        assert_eq!(push(&mut there, pull(2), "Queries inside loops", None, asked).await, 55);
        here.settings.knowledge.share_within_owner = true;
        push(&mut here, pull(6), "Something else", None, asked).await;
        assert_eq!(push(&mut there, pull(3), "Queries inside loops", None, asked).await, 65);
        let mut stranger = project(open(&database).await, "other/pool").await;
        stranger.settings.knowledge.share_within_owner = true;
        assert_eq!(push(&mut stranger, pull(1), "Queries inside loops", None, asked).await, 55);

        // Each repository has its own distance and switch.
        here.settings.knowledge.retrieval.distance_threshold = Some(0.05);
        assert_eq!(push(&mut here, pull(7), "Queries inside loops", None, asked).await, 55);
        here.settings.knowledge.retrieval.distance_threshold = None;
        here.settings.knowledge.retrieval.enabled = false;
        assert_eq!(push(&mut here, pull(8), "Queries inside loops", None, asked).await, 55);
    }

    async fn a_finding_does_not_confirm_itself(database: TestDatabase) {
        let server = ModelServer::start().await;
        server.vector_for("", vec![1.0]);
        let embedder = embedder(&server);
        let asked = Asked { embedder: Some(&embedder), ..Asked::default() };
        let mut project = project(open(&database).await, "tide/pool").await;
        let base = project.git.head();
        push(&mut project, pull(1), "Query in a loop", Some("done();"), asked).await;
        project.git.write("a.js", code("b();")).commit("push C");
        project.reported(&[("Query in a loop", "a.js", 30, "minor", "performance")]);
        let report = project.review_asked(&base, asked).await;
        assert_eq!(statuses(&report), ["a.js:30 reopened!"]);
        assert_eq!(the(&report, "Query in a loop").confidence.get(), 55);
    }

    async fn counts_are_shared_with_everybody_only_by_who_wants_that(database: TestDatabase) {
        let mut project = project(open(&database).await, "tide/pool").await;
        push(&mut project, pull(1), "Query in a loop", Some("done();"), Asked::default()).await;
        assert_eq!(project.store.findings().global_patterns(10).await.expect("read"), []);
        project.settings.knowledge.share_global = true;
        push(&mut project, pull(2), "Query in a loop", None, Asked::default()).await;
        let shared = project.store.findings().global_patterns(10).await.expect("read");
        assert_eq!(shared.iter().map(|one| (one.shown, one.fixed)).collect::<Vec<_>>(), [(2, 1)]);
    }

    async fn no_secret_is_embedded(database: TestDatabase) {
        let server = ModelServer::start().await;
        server.vector_for("", vec![1.0]);
        let embedder = embedder(&server);
        let asked = Asked { embedder: Some(&embedder), ..Asked::default() };
        let mut project = project(open(&database).await, "tide/pool").await;
        let base = project.git.head();
        let title = format!("The token ghp_{} is in the code", "a1B2".repeat(9));
        project.reported(&[(&title, "a.js", 30, "minor", "style")]);
        for (number, branch) in [(1, "topic-1"), (2, "topic-2")] {
            project.git.switch("main").branch(branch).write("a.js", code("b();")).commit("push A");
            project.subject = pull(number);
            project.review_asked(&base, asked).await;
        }
        let texts = server.embedded_texts();
        assert!(texts.len() >= 2 && texts.iter().all(|text| text.contains("is in the code")), "{texts:?}");
        assert!(!texts.iter().any(|text| text.contains("ghp_")), "{texts:?}");
    }

    async fn a_review_goes_on_without_its_memory(database: TestDatabase) {
        let server = ModelServer::start().await;
        let embedder = embedder(&server);
        let base_url = server.base_url();
        drop(server);
        let mut project = project(open(&database).await, "tide/pool").await;
        let base = project.git.head();
        project.git.branch("topic").write("a.js", code("b();")).commit("push A");
        project.reported(&[("Slow", "a.js", 30, "minor", "performance")]);
        let report = project.review_asked(&base, Asked { embedder: Some(&embedder), ..Asked::default() }).await;
        assert_eq!((report.findings.len(), report.notes.len()), (1, 1), "{base_url}: {:?}", report.notes);
        assert!(report.notes[0].starts_with("the review goes on without a memory of its findings: failed to"));
        assert_eq!(project.stored_reviews().await, 1);
    }
}
