//! Finds where a text contains the facts that it shares with another, for pages that mark them.

use std::ops::Range;

use crate::evidence::{SharedFact, for_each_fact};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactSpan {
    /// The position in bytes; both ends are between characters.
    pub range: Range<usize>,
    /// The indices of the facts, the shortest fact first. A version in an error line belongs to both.
    pub facts: Vec<usize>,
}

/// The parts of a text that contain shared facts, in order and without overlap. Every fact that
/// [`shared_facts`](crate::shared_facts) found in two texts is in a span of each.
pub fn marked(text: &str, facts: &[SharedFact]) -> Vec<FactSpan> {
    let mut places: Vec<(Range<usize>, usize)> = Vec::new();
    for_each_fact(text, |found| {
        let shared = facts.iter().position(|fact| fact.kind == found.kind && fact.compared == found.compared);
        if let Some(fact) = shared.filter(|_| !found.range.is_empty()) {
            places.push((found.range, fact));
        }
    });
    let mut cuts: Vec<usize> = places.iter().flat_map(|(range, _)| [range.start, range.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut spans: Vec<FactSpan> = Vec::new();
    for cut in cuts.windows(2) {
        let range = cut[0]..cut[1];
        let mut over: Vec<(usize, usize)> = places
            .iter()
            .filter(|(place, _)| place.start <= range.start && range.end <= place.end)
            .map(|(place, fact)| (place.len(), *fact))
            .collect();
        over.sort_unstable();
        let mut facts: Vec<usize> = Vec::new();
        for (_, fact) in over {
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        }
        match spans.last_mut() {
            _ if facts.is_empty() => {}
            Some(last) if last.range.end == range.start && last.facts == facts => last.range.end = range.end,
            _ => spans.push(FactSpan { range, facts }),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, prop, prop_assert, prop_oneof, proptest};

    use super::{FactSpan, marked};
    use crate::evidence::{SharedFact, TextFacts, shared_facts};

    fn shared(one: &str, other: &str) -> Vec<SharedFact> {
        shared_facts(&TextFacts::of(one), &TextFacts::of(other))
    }

    fn shown<'a>(text: &'a str, spans: &[FactSpan]) -> Vec<(&'a str, Vec<usize>)> {
        spans.iter().map(|span| (&text[span.range.clone()], span.facts.clone())).collect()
    }

    #[test]
    fn the_same_error_is_marked_as_each_text_writes_it() {
        let one = "It dies:\n```\nthread panicked at 'index out of bounds: 3', src/a.rs:7\n```\n";
        let line = "thread panicked at 'index out of bounds: 12', lib/b.rs:9";
        let other = format!("Für mich:\n{line}");
        let facts = shared(one, &other);
        assert_eq!(
            shown(one, &marked(one, &facts)),
            [("thread panicked at 'index out of bounds: 3', src/a.rs:7", vec![0])]
        );
        assert_eq!(shown(&other, &marked(&other, &facts)), [(line, vec![0])]);
    }

    #[test]
    fn a_fact_inside_another_is_marked_too() {
        let text = "error: `open_file` failed with v1.30.0 here";
        let facts = shared(text, text);
        let marks = marked(text, &facts);
        assert_eq!(
            shown(text, &marks),
            [
                ("error: `", vec![0]),
                ("open_file", vec![1, 0]),
                ("` failed with ", vec![0]),
                ("v1.30.0", vec![2, 0]),
                (" here", vec![0]),
            ]
        );
    }

    #[test]
    fn nothing_shared_is_nothing_marked() {
        assert_eq!(marked("error: `open_file` failed", &[]), []);
        assert_eq!(marked("", &shared("`open_file`", "`open_file`")), []);
    }

    /// Lines with and without facts, joined in any order.
    fn texts() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "error: [a-c]{3,8} failed at 0x[0-9a-f]{4} v1\\.[0-9]\\.[0-9]",
            "    at org\\.[a-c]{3}\\.Main\\([a-c]{3}\\.java:[0-9]\\)",
            "`[a-c]{3}_[a-c]{3}` says \"[a-c ]{8,12}\" für ü",
            Just("```".to_owned()),
            Just("fatal: cannot open lock_file\r".to_owned()),
            "[ -~`\"ü😀]{0,40}",
        ];
        prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #[test]
        fn spans_are_ordered_apart_and_hold_every_shared_fact(one in texts(), other in texts()) {
            let facts = shared(&one, &other);
            for text in [&one, &other] {
                let spans = marked(text, &facts);
                let mut end = 0;
                for span in &spans {
                    prop_assert!(span.range.start >= end && span.range.start < span.range.end);
                    prop_assert!(text.is_char_boundary(span.range.start) && text.is_char_boundary(span.range.end));
                    prop_assert!(!span.facts.is_empty() && span.facts.iter().all(|fact| *fact < facts.len()));
                    end = span.range.end;
                }
                for (at, fact) in facts.iter().enumerate() {
                    prop_assert!(spans.iter().any(|span| span.facts.contains(&at)), "{fact:?} in {text:?}");
                }
            }
        }
    }
}
