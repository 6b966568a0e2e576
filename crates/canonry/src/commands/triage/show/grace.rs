//! What `show` prints about announced closes, and about a pause.

use canonry_domain::{GraceEnd, RepoName};
use canonry_store::{Brake, BrakeKind, Grace, GraceState};

use crate::output::printable::one_line;
use crate::output::reasons::row_reason;
use crate::session::context::Context;

/// An announced close that led to a close is shown as that close, not here.
pub(crate) fn graces_in_words(graces: &[Grace], context: &Context) -> String {
    let mut text = String::new();
    for grace in graces.iter().filter(|grace| grace.state != GraceState::Closed) {
        let by = grace.approved_by.as_ref().map(|by| format!(", as {} ruled", one_line(by.as_str())));
        let (target, by) = (grace.target, by.unwrap_or_default());
        let why = grace.reason.as_deref().map(because);
        text += &match (grace.state, why) {
            (GraceState::Waiting, why) => {
                let why = why.map_or_else(|| ", unless somebody objects".to_owned(), |why| format!("; waiting: {why}"));
                format!("\nWill be closed as a duplicate of #{target} on {}{by}{why}\n", context.due(grace.due_at))
            }
            (_, why) => {
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                let ended = grace.ended_at.map(|at| format!(" {}", context.when(at))).unwrap_or_default();
                format!("\nAnnounced close as a duplicate of #{target}{by}: cancelled{ended}{why}\n")
            }
        };
    }
    text
}

pub(crate) fn brakes_in_words(repo: &RepoName, brakes: &[Brake], context: &Context) -> String {
    brakes.iter().map(|brake| format!("\n{}\n", brake_in_words(repo, brake, context))).collect()
}

/// A brake that is in force (a pause, or the breaker for automatic closes), in one line.
pub(crate) fn brake_in_words(repo: &RepoName, brake: &Brake, context: &Context) -> String {
    let by = brake.set_by.as_ref().map(|by| format!(" by {}", one_line(by.as_str()))).unwrap_or_default();
    let what = match brake.kind {
        BrakeKind::Pause => format!("{repo} is paused{by}"),
        BrakeKind::Breaker => format!("Automatic closes are off in {repo}"),
    };
    format!("{what}, since {}: {}", context.when(brake.set_at), one_line(&brake.why))
}

/// A stored reason as a sentence.
fn because(reason: &str) -> String {
    reason.parse::<GraceEnd>().map_or_else(|_| row_reason(reason), |end| end.in_words().to_owned())
}
