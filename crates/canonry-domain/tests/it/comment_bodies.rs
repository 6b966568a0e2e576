//! Tests that every kind of comment that triage writes is short, without percentages, and readable.

use canonry_domain::{
    ClosingText, DESCRIPTION_RECEIVED, DESCRIPTION_REQUEST, GraceEnd, ItemNumber, ItemType, PairFact, RepoName,
    SuggestionComment, UndoReason, Verdict, back_link_comment, breaker_comment, cancelled_close_text, closing_comment,
    comment_if_refused, corrected_announcement, left_open_text, named_duplicate, repointed_comment, ruled_apart_text,
    suggestion_text, undo_comment, withdrawn_text,
};
use jiff::{SignedDuration, Timestamp};
use pulldown_cmark::{Event, Parser};

/// The maximum number of words, for each kind of comment.
const SUGGESTION: usize = 60;
const ANNOUNCEMENT: usize = 70;
const CLOSE: usize = 60;
const OTHER: usize = 45;

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("positive")
}

/// Quoted titles: short, long, and with many marks.
fn titles() -> [String; 4] {
    let long = ["Reconnecting", "fails"].repeat(20).join(" ");
    [
        String::new(),
        "Client never reconnects".into(),
        long,
        "@&ZeroWidthSpace;x \\#&ZeroWidthSpace;1 a\\_b &lt;c&gt;".into(),
    ]
}

/// No facts, a few, the maximum of everything, and facts that try to break out of their code span.
fn evidence() -> [Vec<PairFact>; 5] {
    let message = |text: &str| PairFact::Message(text.to_owned());
    let (place, long) = (PairFact::Place("sqlite.rs:88:40".into()), "handle ".repeat(40));
    let frames = ["store::begin", "store::open"].map(|frame| PairFact::Frame(frame.into()));
    let names = ["a_b", "c_d", "e_f", "g_h"].map(|name| PairFact::Name(name.into()));
    [
        Vec::new(),
        names[..2].to_vec(),
        [vec![message(&long), place.clone()], frames.to_vec(), names.to_vec()].concat(),
        [vec![message(&long)], frames.to_vec()].concat(),
        vec![
            message("called `unwrap()` on ``None``\u{200b} @octocat #12 https://x.y <b> 80% *a* <!-- x -->"),
            message("`80 %` of ``disk`` used by @octocat\u{200b} </details>"),
            place,
            PairFact::Name("`tick`".into()),
        ],
    ]
}

fn suggestions() -> Vec<(usize, String)> {
    let at: Timestamp = "2026-11-18T20:00:00Z".parse().expect("a time");
    let mut bodies = Vec::new();
    for (item_type, closes_at) in
        [ItemType::Issue, ItemType::Pr].into_iter().flat_map(|one| [(one, None), (one, Some(at))])
    {
        for (title, facts) in titles().iter().flat_map(|title| evidence().map(|facts| (title, facts))) {
            for verdict in [Verdict::Duplicate, Verdict::MaybeDuplicate] {
                let suggestion = SuggestionComment {
                    item_type,
                    verdict,
                    target: number(203),
                    title,
                    facts: &facts,
                    others: &[number(15), number(16)],
                    closes_at,
                };
                let body = suggestion_text(&suggestion);
                if closes_at.is_some() {
                    for end in GraceEnd::ALL {
                        bodies.push((ANNOUNCEMENT, cancelled_close_text(&body, end.in_words()).expect("announced")));
                    }
                    let late = corrected_announcement(&body, at + SignedDuration::from_hours(5)).expect("late");
                    bodies.push((ANNOUNCEMENT, late));
                }
                bodies.push((if closes_at.is_some() { ANNOUNCEMENT } else { SUGGESTION }, body));
            }
        }
    }
    bodies
}

fn closes() -> Vec<(usize, String)> {
    let mut bodies = Vec::new();
    for (title, facts) in titles().iter().flat_map(|title| evidence().map(|facts| (title, facts))) {
        for (item_type, approved) in
            [(ItemType::Issue, false), (ItemType::Issue, true), (ItemType::Pr, false), (ItemType::Pr, true)]
        {
            for handle in [Some("canonry"), None] {
                let closing = ClosingText {
                    item_type,
                    target: number(79),
                    target_title: Some(title),
                    facts: &facts,
                    approved,
                    handle,
                    template: None,
                };
                bodies.push((CLOSE, closing_comment(&closing)));
            }
        }
    }
    bodies
}

fn others() -> Vec<(usize, String)> {
    let by = "ann".parse().expect("a login");
    let mut bodies =
        vec![breaker_comment(3, 7, "canonry"), DESCRIPTION_REQUEST.to_owned(), DESCRIPTION_RECEIVED.to_owned()];
    bodies.extend(GraceEnd::ALL.iter().map(|end| left_open_text(end.in_words())));
    for item_type in [ItemType::Issue, ItemType::Pr] {
        bodies.extend([
            withdrawn_text(item_type, number(12)),
            ruled_apart_text(item_type, number(12), &by),
            comment_if_refused(item_type, number(12)),
            back_link_comment(item_type, &[]),
            back_link_comment(item_type, &[number(3), number(9)]),
            repointed_comment(item_type, number(12), number(15)),
        ]);
        bodies.extend(UndoReason::ALL.iter().map(|reason| undo_comment(item_type, number(12), *reason)));
    }
    bodies.into_iter().map(|body| (OTHER, body)).collect()
}

#[test]
fn the_pause_says_how_to_end_it() {
    insta::assert_snapshot!(breaker_comment(3, 7, "canonry"), @"Automatic closing is paused in this repository: people objected to 3 closes within 7 days. Canonry still suggests. A maintainer can turn closing on again with `/canonry resume`, or close reviewed duplicates with `canonry plan-close`.");
}

#[test]
fn every_comment_is_short_and_clean() {
    let repo: RepoName = "o/n".parse().expect("a name");
    for (limit, body) in [suggestions(), closes(), others()].concat() {
        let words = body.split_whitespace().count();
        assert!(words <= limit, "{words} of {limit} words:\n{body}");
        for event in Parser::new(&body) {
            match event {
                Event::Text(text) => {
                    assert!(!text.contains(['`', '%']), "{text}\n{body}");
                }
                Event::Code(code) => {
                    assert!(!code.contains("ZeroWidth") && !code.contains("<!--"), "{code}\n{body}");
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    panic!("{html}\n{body}");
                }
                _ => {}
            }
        }
        assert!(!body.contains(canonry_domain::printable::is_invisible), "{body:?}");
        assert_eq!(named_duplicate(&repo, &body), None, "nobody may take it for an order:\n{body}");
    }
}
