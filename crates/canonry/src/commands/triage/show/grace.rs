//! What `show` tells about a close that was announced, and about what holds Canonry back.

use canonry_domain::{GraceEnd, RepoName};
use canonry_store::{Brake, BrakeKind, Grace, GraceState};

use crate::output::printable::one_line;

/// One that led to a close is told by the close.
pub(crate) fn graces_in_words(graces: &[Grace]) -> String {
    let mut text = String::new();
    for grace in graces.iter().filter(|grace| grace.state != GraceState::Closed) {
        let by = grace.approved_by.as_ref().map(|by| format!(", as {} ruled", one_line(by.as_str())));
        let (target, by) = (grace.target, by.unwrap_or_default());
        let why = grace.reason.as_deref().map(because);
        let ended = grace.ended_at.map(|at| format!(" on {at}")).unwrap_or_default();
        text += &match (grace.state, why) {
            (GraceState::Waiting, None) => {
                format!(
                    "\nIt is to be closed in favour of #{target} after {}{by}, unless somebody objects\n",
                    grace.due_at
                )
            }
            (GraceState::Waiting, Some(why)) => {
                format!("\nIt is to be closed in favour of #{target} after {}{by}; waiting: {why}\n", grace.due_at)
            }
            (_, why) => {
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                format!("\nIt was to be closed in favour of #{target}{by}; called off{ended}{why}\n")
            }
        };
    }
    text
}

pub(crate) fn brakes_in_words(repo: &RepoName, brakes: &[Brake]) -> String {
    brakes.iter().map(|brake| format!("\n{}\n", brake_in_words(repo, brake))).collect()
}

/// A brake that is in force, in one line.
pub(crate) fn brake_in_words(repo: &RepoName, brake: &Brake) -> String {
    let by = brake.set_by.as_ref().map(|by| format!(" by {}", one_line(by.as_str()))).unwrap_or_default();
    let what = match brake.kind {
        BrakeKind::Pause => format!("{repo} is paused{by} since"),
        BrakeKind::Breaker => format!("Nothing is closed by itself in {repo} since"),
    };
    format!("{what} {}: {}", brake.set_at, one_line(&brake.why))
}

/// A stored reason as people read it.
fn because(reason: &str) -> String {
    reason.parse::<GraceEnd>().map_or_else(|_| one_line(&reason.replace('_', " ")), |end| end.in_words().to_owned())
}
