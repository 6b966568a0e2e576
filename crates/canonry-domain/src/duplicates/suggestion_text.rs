//! Writes the suggestion comment on a new item that looks like a duplicate, and the later edits of that comment.

use jiff::Timestamp;

use crate::{ItemNumber, ItemType, Login, PairFact, Verdict, evidence_sentences};

/// The maximum number of words of a title: enough to recognise it.
const TITLE_WORDS: usize = 10;

/// The contents of a suggestion. The title is inserted as it is: the caller has removed every mention, reference, link
/// and marker from it. Its line breaks become spaces.
///
/// A model's reasoning is not part of it: the author of a compared text could dictate it.
#[derive(Debug, Clone, Copy)]
pub struct SuggestionComment<'a> {
    pub item_type: ItemType,
    /// Duplicate or maybe.
    pub verdict: Verdict,
    pub target: ItemNumber,
    /// The target's title, quoted; empty if it is unknown.
    pub title: &'a str,
    pub facts: &'a [PairFact],
    /// Other items that the judge called possible duplicates, best first.
    pub others: &'a [ItemNumber],
    /// When the item will be closed unless a person objects.
    pub closes_at: Option<Timestamp>,
}

/// The comment on an issue that contains only its template.
pub const DESCRIPTION_REQUEST: &str = "This issue has no text of its own yet. Please edit it and describe what you \
    did, what happened, and what you expected. Canonry then compares it with the other issues.";

/// The text of that comment once the issue has a description and looks like no other issue.
pub const DESCRIPTION_RECEIVED: &str = "Thank you: the issue now has a description.";

/// The text before the time of an announced close.
const CLOSES_ON: &str = ", so it will be **closed on ";
/// The beginning of the paragraph that says how to object.
const OBJECTION: &str = "**Not the same?**";

/// The way to object to a suggestion from which nothing follows.
pub(crate) const NOTHING_IS_CLOSED: &str = "**Not the same?** 👎 this comment. Nothing is closed because of it.";

/// The comment on a new item that looks like a duplicate: the consequence, the evidence, the way to object.
///
/// The text never contains "duplicate of" before a number: at the start of a comment GitHub executes that as a
/// command.
pub fn suggestion_text(suggestion: &SuggestionComment<'_>) -> String {
    let SuggestionComment { item_type, target, .. } = *suggestion;
    let evidence = evidence_sentences(suggestion.facts);
    // An announcement with evidence needs no title.
    let title = match (suggestion.closes_at, &evidence) {
        (Some(_), Some(_)) => String::new(),
        _ => in_brackets(suggestion.title),
    };
    let looks = match suggestion.verdict {
        Verdict::Duplicate => "looks like",
        Verdict::MaybeDuplicate | Verdict::NotDuplicate => "may be",
    };
    let opening = format!("This {looks} {} as #{target}{title}", same(item_type));
    let (opening, objection) = match suggestion.closes_at {
        None => (format!("{opening}."), NOTHING_IS_CLOSED.to_owned()),
        Some(at) => {
            let follow = match item_type {
                ItemType::Issue => format!("please add your details to #{target}"),
                ItemType::Pr => format!("please continue in #{target}"),
            };
            let objection =
                format!("{OBJECTION} 👎 this comment or reply, and it stays open. If it is the same, {follow}.");
            (format!("{opening}{CLOSES_ON}{}**.", minute(at)), objection)
        }
    };
    let mut parts = vec![opening];
    parts.extend(evidence);
    if !suggestion.others.is_empty() {
        let others: Vec<String> = suggestion.others.iter().map(|other| format!("#{other}")).collect();
        parts.push(format!("Also possible: {}.", others.join(" and ")));
    }
    parts.push(objection);
    parts.join("\n\n")
}

/// The text of an announcement after its close is cancelled; `None` if the comment announces no close.
pub fn cancelled_close_text(comment: &str, why: &str) -> Option<String> {
    if let Some((before, last)) = comment.rsplit_once("\n\n")
        && last.starts_with(ANNOUNCED_BEFORE)
    {
        return Some(format!("{}\n\n{before}", cancelled(why)));
    }
    let mut paragraphs = comment.split("\n\n");
    let (looks, _) = paragraphs.next()?.split_once(CLOSES_ON)?;
    let mut parts = vec![cancelled(why), format!("{}.", looks.replacen("This looks like", "This looked like", 1))];
    parts.extend(paragraphs.take_while(|paragraph| !paragraph.starts_with(OBJECTION)).map(str::to_owned));
    Some(parts.join("\n\n"))
}

/// The beginning of the last paragraph of an announcement in earlier versions: some of these closes may still be due.
const ANNOUNCED_BEFORE: &str = "If nobody objects within ";

fn cancelled(why: &str) -> String {
    format!("**Close cancelled**, because {why}.")
}

/// The announcement with the actual end of its grace period; `None` if the comment announces no close or already names
/// that time. The comment may have been sent long after it was written. A close a few minutes after the announced time
/// is on time.
pub fn corrected_announcement(comment: &str, ends_at: Timestamp) -> Option<String> {
    let (before, rest) = comment.split_once(CLOSES_ON)?;
    let (named, after) = rest.split_once("**")?;
    let is_in_time = |minutes: i64| minute(ends_at - jiff::SignedDuration::from_mins(minutes)) == named;
    if (0..=MINUTES_LATE).any(is_in_time) {
        return None;
    }
    Some(format!("{before}{CLOSES_ON}{}**{after}", minute(ends_at)))
}

/// Whether two comments announce a close for the same reason, whatever its date, or neither announces one.
pub fn announce_the_same_close(one: &str, other: &str) -> bool {
    let reason = |comment: &'_ str| comment.split_once(CLOSES_ON).map(|(reason, _)| reason.trim().to_owned());
    reason(one) == reason(other)
}

/// The maximum delay of a close after its announced time.
const MINUTES_LATE: i64 = 15;

/// The new text of the comment if the item no longer looks like a duplicate.
pub fn withdrawn_text(item_type: ItemType, target: ItemNumber) -> String {
    format!("Withdrawn: this no longer looks like {} as #{target}.", same(item_type))
}

/// The new text of the comment if a person ruled that the two are not duplicates.
pub fn ruled_apart_text(item_type: ItemType, target: ItemNumber, by: &Login) -> String {
    // The login is code, so that the comment does not mention the person.
    format!(
        "`{by}` answered that this is not {} as #{target}. Canonry will not close it because of #{target}.",
        same(item_type)
    )
}

/// The noun phrase for what two duplicates have in common.
pub(crate) fn same(item_type: ItemType) -> &'static str {
    match item_type {
        ItemType::Issue => "the same problem",
        ItemType::Pr => "the same change",
    }
}

/// A quoted title in brackets, to follow a number; empty if the title is unknown.
pub(crate) fn in_brackets(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    match words.len() {
        0 => String::new(),
        1..=TITLE_WORDS => format!(" (*{}*)", words.join(" ")),
        _ => format!(" (*{}…*)", words[..TITLE_WORDS].join(" ")),
    }
}

fn minute(at: Timestamp) -> String {
    at.strftime("%-d %b, %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::{
        DESCRIPTION_RECEIVED, DESCRIPTION_REQUEST, SuggestionComment, announce_the_same_close, cancelled_close_text,
        corrected_announcement, ruled_apart_text, suggestion_text, withdrawn_text,
    };
    use crate::{ItemNumber, ItemType, PairFact, Verdict};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn at() -> Timestamp {
        "2026-11-18T20:00:40Z".parse().expect("a time")
    }

    fn bare(item_type: ItemType, verdict: Verdict) -> SuggestionComment<'static> {
        let (target, title) = (number(203), "Client never reconnects after laptop sleep");
        SuggestionComment { item_type, verdict, target, title, facts: &[], others: &[], closes_at: None }
    }

    fn facts() -> Vec<PairFact> {
        ["client.reconnect", "client.state"].map(|name| PairFact::Name(name.to_owned())).to_vec()
    }

    #[test]
    fn the_request_for_a_description_is_short() {
        for text in [DESCRIPTION_REQUEST, DESCRIPTION_RECEIVED] {
            assert!(text.split_whitespace().count() <= 40 && !text.contains("  "), "{text}");
        }
    }

    #[test]
    fn announcements_differ_by_target_and_not_by_date() {
        let announced = |target, closes_at| {
            let suggestion =
                SuggestionComment { target: number(target), closes_at, ..bare(ItemType::Issue, Verdict::Duplicate) };
            suggestion_text(&suggestion)
        };
        let (one, later) = (announced(7, Some(at())), announced(7, Some(at() + SignedDuration::from_hours(30))));
        assert!(announce_the_same_close(&one, &later));
        assert!(!announce_the_same_close(&one, &announced(8, Some(at()))));
        assert!(!announce_the_same_close(&one, &announced(7, None)));
        assert!(announce_the_same_close(&announced(7, None), "Something else."));
    }

    #[test]
    fn a_suggestion_says_what_it_looks_like_and_why() {
        let facts = facts();
        let suggestion = SuggestionComment {
            facts: &facts,
            others: &[number(15), number(16)],
            ..bare(ItemType::Issue, Verdict::Duplicate)
        };
        insta::assert_snapshot!(suggestion_text(&suggestion), @"
        This looks like the same problem as #203 (*Client never reconnects after laptop sleep*).

        Both mention `client.reconnect` and `client.state`.

        Also possible: #15 and #16.

        **Not the same?** 👎 this comment. Nothing is closed because of it.
        ");
        insta::assert_snapshot!(suggestion_text(&bare(ItemType::Pr, Verdict::MaybeDuplicate)), @"
        This may be the same change as #203 (*Client never reconnects after laptop sleep*).

        **Not the same?** 👎 this comment. Nothing is closed because of it.
        ");
    }

    #[test]
    fn an_announcement_begins_with_the_close_and_its_time() {
        let facts = facts();
        let bare = |item_type| SuggestionComment { closes_at: Some(at()), ..bare(item_type, Verdict::Duplicate) };
        insta::assert_snapshot!(suggestion_text(&SuggestionComment { facts: &facts, ..bare(ItemType::Issue) }), @"
        This looks like the same problem as #203, so it will be **closed on 18 Nov, 20:00 UTC**.

        Both mention `client.reconnect` and `client.state`.

        **Not the same?** 👎 this comment or reply, and it stays open. If it is the same, please add your details to #203.
        ");
        insta::assert_snapshot!(suggestion_text(&bare(ItemType::Pr)), @"
        This looks like the same change as #203 (*Client never reconnects after laptop sleep*), so it will be **closed on 18 Nov, 20:00 UTC**.

        **Not the same?** 👎 this comment or reply, and it stays open. If it is the same, please continue in #203.
        ");
    }

    #[test]
    fn a_cancelled_close_keeps_the_evidence() {
        let facts = facts();
        let announced = suggestion_text(&SuggestionComment {
            facts: &facts,
            closes_at: Some(at()),
            ..bare(ItemType::Issue, Verdict::Duplicate)
        });
        let cancelled = cancelled_close_text(&announced, "somebody commented").expect("announced");
        insta::assert_snapshot!(cancelled, @"
        **Close cancelled**, because somebody commented.

        This looked like the same problem as #203.

        Both mention `client.reconnect` and `client.state`.
        ");
        assert_eq!(cancelled_close_text(&cancelled, "y"), None, "what is cancelled stays so");
        let suggested = suggestion_text(&bare(ItemType::Issue, Verdict::Duplicate));
        assert_eq!(cancelled_close_text(&suggested, "x"), None);
        let before = "This issue looks like #12.\n\nIf nobody objects within 3 days, this issue will be closed.";
        insta::assert_snapshot!(cancelled_close_text(before, "somebody commented").expect("announced"), @"
        **Close cancelled**, because somebody commented.

        This issue looks like #12.
        ");
    }

    #[test]
    fn a_title_cannot_announce() {
        let title = "x, so it will be \\*\\*closed on 1 Jan\\*\\*";
        let hostile = SuggestionComment { title, ..bare(ItemType::Issue, Verdict::Duplicate) };
        assert_eq!(cancelled_close_text(&suggestion_text(&hostile), "x"), None);
    }

    #[test]
    fn an_announcement_that_was_sent_late_names_its_real_end() {
        let announced =
            suggestion_text(&SuggestionComment { closes_at: Some(at()), ..bare(ItemType::Issue, Verdict::Duplicate) });
        for minutes in [0, 1, 15] {
            let ends_at = at() + SignedDuration::from_mins(minutes);
            assert_eq!(corrected_announcement(&announced, ends_at), None, "{minutes}");
        }
        for minutes in [-1, 16, 300] {
            let ends_at = at() + SignedDuration::from_mins(minutes);
            let corrected = corrected_announcement(&announced, ends_at).expect("corrected");
            let named = ends_at.strftime("**closed on %-d %b, %H:%M UTC**.").to_string();
            assert!(corrected.contains(&named) && corrected.ends_with("#203."), "{corrected}");
            assert_eq!(corrected_announcement(&corrected, ends_at), None);
        }
        assert_eq!(corrected_announcement("Nothing is closed.", at()), None);
    }

    #[test]
    fn a_suggestion_that_no_longer_holds_says_so() {
        insta::assert_snapshot!(withdrawn_text(ItemType::Issue, number(12)), @"Withdrawn: this no longer looks like the same problem as #12.");
        insta::assert_snapshot!(ruled_apart_text(ItemType::Pr, number(12), &"ann".parse().expect("a login")), @"`ann` answered that this is not the same change as #12. Canonry will not close it because of #12.");
    }
}
