//! Tests what is reported of dependencies that a change adds, with the crates read from git.

use canonry_domain::review::{Category, Severity};
use canonry_review::{FetchedRepository, Remote, Repository, ReviewReport};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::pipeline::project::{Project, statuses, the};

const ROOT: &str = "[workspace]\nmembers = [\"crates/*\"]\n\n[workspace.dependencies]\nserde = \"1\"\n";
const POOL: &str = "[package]\nname = \"pool\"\n\n[dependencies]\nserde.workspace = true\n";
const ROCK: &str = "[package]\nname = \"rock\"\n\n[dependencies]\nserde = \"1\"\n";

fn messages(report: &ReviewReport) -> Vec<&str> {
    report.findings.iter().map(|one| one.sighting.finding.message.as_str()).collect()
}

/// A workspace with two crates at the base, and a branch to work on.
async fn workspace(database: &TestDatabase) -> (Project, canonry_domain::review::CommitSha) {
    let project = Project::new(database).await;
    let git = &project.git;
    git.write("Cargo.toml", ROOT).write("crates/pool/Cargo.toml", POOL).write("crates/rock/Cargo.toml", ROCK);
    git.write("crates/pool/src/lib.rs", "use serde::Serialize;\n").write("crates/rock/src/lib.rs", "use serde::de;\n");
    let base = git.commit("base");
    git.branch("topic");
    (project, base)
}

on_both_engines! {
    async fn a_dependency_that_no_file_of_the_crate_names_is_reported(database: TestDatabase) {
        let (project, base) = workspace(&database).await;
        let git = &project.git;
        git.write("Cargo.toml", format!("{ROOT}fluent = \"0.17\"\nlog = {{ version = \"0.4\", features = [\"std\"] }}\n"));
        // `rand` is used in another crate only, `dice` by its new name, `md-5` by its library's, `log` has features.
        let added = "fluent = { workspace = true }\nlog.workspace = true\nrand = \"0.8\"\n\
            dice = { package = \"rand_core\", version = \"0.6\" }\nmd-5 = \"0.10\"\nquote = \"1\"\n";
        git.write("crates/pool/Cargo.toml", format!("{POOL}{added}"));
        git.write("crates/pool/tests/rolls.rs", "use dice::RngCore;\nuse md5::Digest;\n");
        git.write("crates/pool/src/macros.rs", "macro_rules! a { () => { $crate::private::quote::quote!() }; }\n");
        git.write("crates/rock/Cargo.toml", format!("{ROCK}rand = \"0.8\"\n"));
        git.write("crates/rock/src/roll.rs", "use rand::Rng;\n");
        // A crate below a crate has code of its own, and a new crate is not searched.
        git.write("crates/pool/fuzz/Cargo.toml", "[package]\nname = \"fuzz\"\n[dependencies]\nregex = \"1\"\n");
        git.write("crates/pool/fuzz/roll.rs", "use rand::Rng;\nuse fluent::FluentBundle;\n");
        git.commit("push A");
        let report = project.review(&base).await;
        assert_eq!(statuses(&report), ["crates/pool/Cargo.toml:6 new!", "crates/pool/Cargo.toml:8 new!"]);
        let finding = &the(&report, "A dependency is not used").sighting.finding;
        assert_eq!(finding.witnesses[0].rule.as_deref(), Some("unused-dependency"));
        assert_eq!((finding.severity, finding.category), (Severity::Medium, Category::Style));
        assert_eq!(
            messages(&report),
            ["fluent", "rand"].map(|name| format!(
                "The change adds `{name}`, and no Rust file of this crate names it. Remove it, or add the code that uses it."
            ))
        );
    }

    async fn the_code_decides_although_the_manifest_stays_as_it_is(database: TestDatabase) {
        let (project, base) = workspace(&database).await;
        let git = &project.git;
        git.write("crates/rock/Cargo.toml", format!("{ROCK}rand = \"0.8\"\nregex = \"1\"\n"));
        git.write("crates/rock/src/roll.rs", "use regex::Regex;\n").commit("push A");
        let found = project.review(&base).await;
        assert_eq!(statuses(&found), ["crates/rock/Cargo.toml:6 new!"]);
        git.write("crates/pool/src/lib.rs", "use serde::Serialize;\nuse rand::Rng;\n").commit("push B");
        assert_eq!(statuses(&project.review(&base).await), ["crates/rock/Cargo.toml:6 same"], "another crate");
        git.write("crates/rock/src/roll.rs", "use rand::Rng;\n").commit("push C");
        let used = project.review(&base).await;
        assert_eq!(statuses(&used), ["crates/rock/Cargo.toml:6 fixed", "crates/rock/Cargo.toml:7 new!"]);
        git.run(&["rm", "--quiet", "crates/rock/src/roll.rs"]);
        git.commit("push D");
        let gone = project.review(&base).await;
        let standing: Vec<String> = statuses(&gone).into_iter().filter(|one| !one.ends_with("fixed")).collect();
        assert_eq!(standing.len(), 2, "{:?}", statuses(&gone));
    }

    async fn settings_silence_it_like_other_rules(database: TestDatabase) {
        let (mut project, base) = workspace(&database).await;
        project.settings = canonry_config::parse("review:\n  skipPaths: ['crates/rock/**']\n").config;
        let git = &project.git;
        git.write("crates/rock/Cargo.toml", format!("{ROCK}rand = \"0.8\"\n"));
        git.write("crates/pool/Cargo.toml", format!("{POOL}rand = \"0.8\"\n")).commit("push A");
        assert_eq!(statuses(&project.review(&base).await), ["crates/pool/Cargo.toml:6 new!"]);
        git.write("crates/rock/src/more.rs", "fn a() {}\n").commit("push B");
        assert_eq!(statuses(&project.review(&base).await), ["crates/pool/Cargo.toml:6 same"]);
    }

    async fn code_that_cannot_be_read_says_nothing(database: TestDatabase) {
        let (project, base) = workspace(&database).await;
        let git = &project.git;
        for (name, manifest) in [("pool", POOL), ("rock", ROCK)] {
            git.write(format!("crates/{name}/Cargo.toml"), format!("{manifest}rand = \"0.8\"\n"));
        }
        git.write("crates/pool/src/bytes.rs", b"// \0\n").write("crates/rock/src/large.rs", "// large\n".repeat(300_000));
        git.commit("push A");
        let report = project.review(&base).await;
        assert_eq!(statuses(&report), [""; 0]);
        git.write("crates/pool/src/bytes.rs", "\n").write("crates/rock/src/large.rs", "\n").commit("push B");
        let report = project.review(&base).await;
        assert_eq!(statuses(&report), ["crates/pool/Cargo.toml:6 new!", "crates/rock/Cargo.toml:6 new!"]);
        // A link in the place of code, and a manifest that nobody can read.
        git.run(&["rm", "--quiet", "crates/pool/src/bytes.rs"]);
        std::os::unix::fs::symlink("../../rock/src", git.path("crates/pool/src/more")).expect("a link");
        git.write("crates/rock/Cargo.toml", format!("{ROCK}rand = \"0.8\"\n{{% if x %}}\n")).commit("push C");
        let report = project.review(&base).await;
        assert!(statuses(&report).iter().all(|one| one.ends_with("fixed")), "{:?}", statuses(&report));
    }

    async fn a_repository_without_files_fetches_the_crate_unless_it_is_large(database: TestDatabase) {
        let (mut project, base) = workspace(&database).await;
        project.git.run(&["config", "uploadpack.allowFilter", "true"]);
        project.git.run(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
        project.git.write("Cargo.toml", format!("{ROOT}rand = \"0.8\"\n"));
        project.git.write("crates/pool/Cargo.toml", format!("{POOL}log = \"0.4\"\nrand.workspace = true\n"));
        project.git.write("crates/rock/Cargo.toml", format!("{ROCK}rand = \"0.8\"\n"));
        for at in 0..499 {
            project.git.write(format!("crates/rock/src/a{at}.rs"), format!("// {at}\n"));
        }
        let head = project.git.write("crates/pool/src/log.rs", "use log::info;\n").commit("push A");
        let folder = tempfile::tempdir().expect("a folder");
        let remote = Remote::new(&project.git.url(), None).expect("an address");
        let fetched = FetchedRepository::fetch(folder.path(), &remote, &base, &head).await.expect("fetched");
        project.repository = Repository::Fetched(fetched);
        assert_eq!(statuses(&project.review(&base).await), ["crates/pool/Cargo.toml:7 new!"]);
    }
}
