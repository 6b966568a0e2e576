//! Writes the comment on a new issue whose problem was fixed before: fixed already, or possibly back.

use crate::duplicates::suggestion_text::{NOTHING_IS_CLOSED, in_brackets};
use crate::text::code_span::code_span;
use crate::{FixKind, FixMatch, PairFact, evidence_sentences};

/// The contents of the comment. The title is inserted as it is: the caller has removed every mention, reference, link
/// and marker from it.
#[derive(Debug, Clone, Copy)]
pub struct FixSuggestion<'a> {
    pub found: &'a FixMatch,
    /// The closed report's title, quoted; empty if it is unknown.
    pub title: &'a str,
    pub facts: &'a [PairFact],
}

/// A longer name of a release is left out.
const RELEASE_CHARACTERS: usize = 40;

/// The comment: the fix and what to do, the evidence, the way to object. Nothing follows from it.
pub fn fix_suggestion_text(suggestion: &FixSuggestion<'_>) -> String {
    let FixMatch { kind, report, fix, merged_at, release, .. } = suggestion.found;
    let evidence = evidence_sentences(suggestion.facts);
    // With evidence the comment would become too long.
    let title = if evidence.is_some() { String::new() } else { in_brackets(suggestion.title) };
    let release = release.as_deref().filter(|release| release.chars().count() <= RELEASE_CHARACTERS);
    let release = release.and_then(|release| code_span(release, 1, RELEASE_CHARACTERS));
    let merged = merged_at.strftime("%-d %b %Y");
    let mut parts = match kind {
        FixKind::Fixed => {
            let try_it = release.map(|release| format!("; please try {release}")).unwrap_or_default();
            vec![
                format!("Probably fixed by #{fix} (merged {merged}){try_it}."),
                format!("That change fixed #{report}{title}, which may be the same problem."),
            ]
        }
        FixKind::PossibleRegression => {
            let released = release.map(|release| format!(", released in {release}")).unwrap_or_default();
            let regression = format!("This may be a regression of #{report}{title}.");
            vec![format!("{regression} That was fixed by #{fix} (merged {merged}{released}).")]
        }
    };
    parts.extend(evidence);
    parts.push(NOTHING_IS_CLOSED.to_owned());
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use canonry_testkit::public_text::{assert_readable, words_in_sight};
    use jiff::Timestamp;

    use super::{FixSuggestion, fix_suggestion_text};
    use crate::{FixKind, FixMatch, ItemNumber, PairFact, Similarity};

    fn found(kind: FixKind, release: Option<&str>) -> FixMatch {
        let number = |number| ItemNumber::new(number).expect("positive");
        let merged_at: Timestamp = "2026-10-03T20:00:40Z".parse().expect("a time");
        let release = release.map(str::to_owned);
        FixMatch {
            kind,
            report: number(12),
            score: Similarity::ONE,
            confidence: None,
            fix: number(31),
            merged_at,
            release,
        }
    }

    fn text(kind: FixKind, release: Option<&str>, title: &str, facts: &[PairFact]) -> String {
        fix_suggestion_text(&FixSuggestion { found: &found(kind, release), title, facts })
    }

    const TITLE: &str = "Client never reconnects after laptop sleep";

    #[test]
    fn a_fix_is_named_first() {
        let facts = ["client.reconnect", "client.state"].map(|name| PairFact::Name(name.to_owned()));
        insta::assert_snapshot!(text(FixKind::Fixed, Some("v1.4"), TITLE, &facts), @"
        Probably fixed by #31 (merged 3 Oct 2026); please try `v1.4`.

        That change fixed #12, which may be the same problem.

        Both mention `client.reconnect` and `client.state`.

        **Not the same?** 👎 this comment. Nothing is closed because of it.
        ");
        insta::assert_snapshot!(text(FixKind::Fixed, None, TITLE, &[]), @"
        Probably fixed by #31 (merged 3 Oct 2026).

        That change fixed #12 (*Client never reconnects after laptop sleep*), which may be the same problem.

        **Not the same?** 👎 this comment. Nothing is closed because of it.
        ");
    }

    #[test]
    fn a_regression_is_only_possible() {
        insta::assert_snapshot!(text(FixKind::PossibleRegression, Some("v1.4"), TITLE, &[]), @"
        This may be a regression of #12 (*Client never reconnects after laptop sleep*). That was fixed by #31 (merged 3 Oct 2026, released in `v1.4`).

        **Not the same?** 👎 this comment. Nothing is closed because of it.
        ");
        insta::assert_snapshot!(text(FixKind::PossibleRegression, None, "", &[PairFact::Name("client.state".to_owned())]), @"
        This may be a regression of #12. That was fixed by #31 (merged 3 Oct 2026).

        Both mention `client.state`.

        **Not the same?** 👎 this comment. Nothing is closed because of it.
        ");
    }

    #[test]
    fn every_text_is_short_and_readable() {
        let message =
            PairFact::Message("one two three four five six seven eight nine ten eleven twelve thirteen".to_owned());
        let all = vec![
            message,
            PairFact::Place("src/a.rs:88:40".to_owned()),
            PairFact::Frame("a::b".to_owned()),
            PairFact::Name("100 %".to_owned()),
            PairFact::Name("c.d".to_owned()),
        ];
        let long = "a title of more words than anybody wants to read in a comment that should be short";
        let releases = [
            None,
            Some("v1.4"),
            Some("@scope/package@1.2.3"),
            Some("`v1.4`"),
            Some("a release with a very long name of many words"),
        ];
        for kind in FixKind::ALL {
            for release in releases {
                for facts in [&[][..], &all] {
                    let text = text(*kind, release, long, facts);
                    assert_readable(&text);
                    assert!(words_in_sight(&text) <= 60, "{} words:\n{text}", words_in_sight(&text));
                    assert!(!text.contains("duplicate"), "{text}");
                    assert!(text.contains("#12") && text.contains("#31") && text.contains("👎"), "{text}");
                }
            }
        }
    }
}
