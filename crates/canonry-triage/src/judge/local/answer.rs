//! The judge without a model: computes a calibrated answer from what two items share.

use std::collections::BTreeMap;

use canonry_domain::{
    Certainty, ItemNumber, ItemOrigin, ItemState, ItemType, JudgeAnswer, JudgedItem, Login, PairRelation, PathMatch,
    Probability, PullChanges, REASONING_LIMIT, Relation, RootCauseMatch, SENT_TWICE_HOURS, STRONG_RETRIEVAL,
    ScopeRelation, SentAgain, Similarity, Structure, bug_feature_mismatch, has_content, pair_relation,
};
use canonry_retrieval::{CommonFacts, FactKind};
use jiff::Timestamp;

use crate::judge::local::features::{PairFeatures, compare};
use crate::judge::local::item_facts::first_chars;
use crate::judge::local::weights::probability;

/// The parts of an item that the judge reads.
#[derive(Debug, Clone, Copy)]
pub struct LocalText<'a> {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub title: &'a str,
    pub body: &'a str,
    pub labels: &'a [String],
    /// `None` if unknown.
    pub author: Option<&'a Login>,
    pub created_at: Option<Timestamp>,
    /// What a pull request changes; `None` if unknown.
    pub changes: Option<&'a PullChanges>,
    /// The branch that a pull request is to be merged into; `None` if unknown.
    pub base_branch: Option<&'a str>,
    /// Facts that many items of the repository contain, which prove nothing. Only the source needs them.
    pub common: Option<&'a CommonFacts>,
}

/// A candidate as retrieval found it.
#[derive(Debug, Clone, Copy)]
pub struct LocalCandidate<'a> {
    pub text: LocalText<'a>,
    pub score: Similarity,
    pub parts: &'a BTreeMap<String, f64>,
}

/// The name of this judge, stored with its answers; it changes with its weights and rules.
pub const LOCAL_JUDGE: &str = "evidence.8";

/// Judges by what the items share.
///
/// The confidence is the probability that the named candidate is a duplicate, given a prior of one in two that the
/// source has an earlier duplicate (for pull requests, one in four): the texts do not show how many duplicates a
/// repository gets. `sure`, and the structure that goes with it, is used only for copies and for the same specific
/// error under the same title or in nearly the same text; everything else is `unsure`, whatever the number.
///
/// A candidate that is related in another way ([`pair_relation`]) is named only if nothing else is a possible
/// duplicate. The gates then refuse it and store the relation.
pub fn judge_locally(source: &LocalText<'_>, candidates: &[LocalCandidate<'_>]) -> JudgeAnswer {
    let compared = compare(source, candidates);
    let weighed = best_first(source, candidates, &compared);
    let Some(best) = weighed.first() else {
        return JudgeAnswer {
            is_duplicate: false,
            duplicate_of: None,
            confidence: Probability::ZERO,
            reasoning: "There are no items to compare with.".to_owned(),
            structure: Structure::default(),
        };
    };
    let is_duplicate = best.probability >= YES;
    JudgeAnswer {
        is_duplicate,
        duplicate_of: is_duplicate.then_some(best.candidate.text.number),
        confidence: Probability::clamped(best.probability).unwrap_or(Probability::ZERO),
        reasoning: best.reasoning(),
        structure: best.structure(),
    }
}

/// The candidates that the judge considers possible duplicates, best first.
pub(crate) fn possible_duplicates(source: &LocalText<'_>, candidates: &[LocalCandidate<'_>]) -> Vec<ItemNumber> {
    let compared = compare(source, candidates);
    let weighed = best_first(source, candidates, &compared);
    weighed.iter().take_while(|one| one.class() == 0).map(|one| one.candidate.text.number).collect()
}

fn best_first<'a>(
    source: &LocalText<'_>,
    candidates: &'a [LocalCandidate<'a>],
    compared: &'a [PairFeatures],
) -> Vec<WeighedCandidate<'a>> {
    let others: Vec<JudgedItem<'_>> = candidates.iter().map(|candidate| judged(&candidate.text)).collect();
    let pairs = candidates.iter().zip(compared).zip(&others);
    let mut weighed: Vec<WeighedCandidate<'_>> = pairs
        .map(|((candidate, compared), other)| {
            let relation = pair_relation(&judged(source), other, others.iter());
            WeighedCandidate::of(source, candidate, compared, relation)
        })
        .collect();
    let number = |weighed: &WeighedCandidate<'_>| weighed.candidate.text.number;
    weighed.sort_by(|one, other| {
        let by_class = one.class().cmp(&other.class());
        let by_score = other.candidate.score.cmp(&one.candidate.score);
        by_class
            .then(other.probability.total_cmp(&one.probability))
            .then(by_score)
            .then(number(one).cmp(&number(other)))
    });
    weighed
}

/// The answer is yes from this probability on.
const YES: f64 = 0.5;
/// The maximum for a pair for which similarity decides nothing.
const CANNOT_TELL: f64 = 0.45;
/// The minimum for a copy, whatever the weights say: they were fitted to links, and people rarely link what was sent
/// twice. When this was chosen, people had linked 2 of the 15 copies that became `duplicate` among the issues of
/// rust; all 15 are the same when read.
const COPY: f64 = 0.97;
/// The minimum for the same specific error under the same title or in nearly the same text. When this was chosen,
/// people had linked 3 of 7 in rust; all 7 are the same when read, and three of them were filed again on purpose
/// because the first had been closed.
const SAME_ERROR: f64 = 0.93;
/// The minimum for a change that was sent again: enough to suggest it, never to close.
const SENT_AGAIN: f64 = 0.9;

struct WeighedCandidate<'a> {
    candidate: &'a LocalCandidate<'a>,
    compared: &'a PairFeatures,
    tie: Tie,
    probability: f64,
}

/// The kind of pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tie {
    /// Related in another way than as duplicates.
    Related(PairRelation),
    Copy,
    /// The same specific error, and the same title or nearly the same text.
    SameError,
    /// Two pull requests with the same changed lines of the same files.
    SentAgain,
    /// The same title except for a number.
    Series,
    /// The same text again by the same author, on another day.
    Recurring,
    /// By one author within an hour, but not a copy.
    Siblings,
    /// One is a bug report, the other a feature request.
    OtherKind,
    /// One of them has too little text of its own.
    TooShort,
    Alike,
}

impl<'a> WeighedCandidate<'a> {
    fn of(
        source: &LocalText<'_>,
        candidate: &'a LocalCandidate<'a>,
        compared: &'a PairFeatures,
        relation: Option<PairRelation>,
    ) -> Self {
        let tie = relation.map_or_else(|| Tie::of(source, candidate, compared), Tie::Related);
        let fitted = probability(source.item_type, &compared.features);
        let probability = match tie {
            Tie::Copy => fitted.max(COPY),
            Tie::SameError => fitted.max(SAME_ERROR),
            Tie::SentAgain => fitted.max(SENT_AGAIN),
            Tie::Series | Tie::Recurring | Tie::Siblings | Tie::OtherKind | Tie::TooShort => fitted.min(CANNOT_TELL),
            Tie::Related(_) | Tie::Alike => fitted,
        };
        Self { candidate, compared, tie, probability }
    }

    /// Possible duplicates come first, then what only looks like one, then the rest.
    fn class(&self) -> u8 {
        match (self.probability >= YES, self.tie) {
            (true, Tie::Related(_)) => 1,
            (true, _) => 0,
            (false, _) => 2,
        }
    }

    fn structure(&self) -> Structure {
        let path_match = if self.compared.places_shared || self.shares(FactKind::Frame) {
            Some(PathMatch::Same)
        } else {
            self.compared.places_differ.then_some(PathMatch::Different)
        };
        if let Tie::Related(relation) = self.tie {
            let relation = match relation {
                PairRelation::FollowUp => Relation::RelatedFollowup,
                _ => Relation::Different,
            };
            return Structure { relation: Some(relation), path_match, ..Structure::default() };
        }
        if !self.tie.is_sure() {
            return Structure { path_match, certainty: Some(Certainty::Unsure), ..Structure::default() };
        }
        Structure {
            relation: Some(Relation::SameInstance),
            root_cause_match: Some(RootCauseMatch::Same),
            scope_relation: Some(ScopeRelation::SameScope),
            path_match: path_match.filter(|path| *path == PathMatch::Same),
            certainty: Some(Certainty::Sure),
        }
    }

    fn shares(&self, kind: FactKind) -> bool {
        self.compared.facts.iter().any(|fact| fact.kind == kind)
    }

    /// The text for people: the kind of pair, then what both contain.
    fn reasoning(&self) -> String {
        let number = self.candidate.text.number;
        let mut reasoning = match self.tie {
            Tie::Related(relation) => relation.about(number),
            Tie::Copy => format!("Nearly the same text as #{number}"),
            Tie::SameError if self.compared.titles.overlap >= SAME_TITLE => {
                format!("Same error and title as #{number}")
            }
            Tie::SameError => format!("Same error in nearly the same text as #{number}"),
            Tie::SentAgain => format!("The same changed lines as #{number}"),
            Tie::Series => format!("Same title as #{number} except for a number: a series, or another version"),
            Tie::Recurring => {
                format!("Same text as #{number} by the same author on another day: a recurring report")
            }
            Tie::Siblings => {
                format!("Filed within an hour of #{number} by the same author: usually related, not duplicates")
            }
            Tie::OtherKind => format!("Similar to #{number}, but one is a bug report and the other a feature request"),
            Tie::TooShort => format!("Too little text to compare with #{number}"),
            Tie::Alike if self.probability >= YES => {
                format!("Similar to #{number}, but similarity alone proves nothing")
            }
            Tie::Alike => format!("#{number} is the most similar, but not similar enough"),
        };
        let mut told = 0;
        for fact in &self.compared.facts {
            let more = format!("; {fact}");
            let is_new = !reasoning.contains(&fact.text);
            if told < FACTS_TOLD && is_new && reasoning.chars().count() + more.chars().count() <= REASONING_LIMIT {
                reasoning.push_str(&more);
                told += 1;
            }
        }
        if self.candidate.text.item_type == ItemType::Pr && self.compared.paths > 0.0 {
            reasoning.push_str("; both change the same files");
        }
        let line: String =
            reasoning.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
        first_chars(&line, REASONING_LIMIT).to_owned()
    }
}

fn judged<'a>(text: &LocalText<'a>) -> JudgedItem<'a> {
    let LocalText { item_type, number, title, body, labels, author, created_at, changes, base_branch, common: _ } =
        *text;
    let origin = ItemOrigin { author, created_at, changes, base_branch };
    // The state does not affect the kind of report.
    JudgedItem { number, state: ItemState::Open, item_type, title, body, labels, origin }
}

/// The maximum number of shared facts in the reasoning.
const FACTS_TOLD: usize = 3;
/// Titles with at least this overlap of words are the same.
const SAME_TITLE: f64 = 0.9;
/// The minimum overlap of the titles of one text that was sent twice.
const ALIKE_TITLE: f64 = 1.0 / 3.0;
/// The minimum overlap of word triples of two reports of one error.
const SAME_TEXT: f64 = 0.4;
/// A text with fewer words is not a report.
const FEWEST_WORDS: usize = 8;
/// The number of triples in that many words.
const FEWEST_TRIPLES: usize = FEWEST_WORDS - 2;
/// The same error three months later often has another cause.
const SAME_ERROR_HOURS: f64 = 90.0 * 24.0;

impl Tie {
    fn of(source: &LocalText<'_>, candidate: &LocalCandidate<'_>, compared: &PairFeatures) -> Self {
        let (titles, score) = (compared.titles, candidate.score.get());
        // People rarely link a change that was sent again, and the texts do not show which of the two should stay.
        if source.item_type == ItemType::Pr {
            let again = source.changes.zip(candidate.text.changes).and_then(|(one, other)| one.is_sent_again(other));
            let is_sent_again = match again {
                Some(SentAgain::Whole) => true,
                Some(SentAgain::Beginning) => titles.overlap >= ALIKE_TITLE,
                None => false,
            };
            if is_sent_again {
                return Self::SentAgain;
            }
        }
        if titles.numbers_differ {
            return Self::Series;
        }
        if source.item_type == ItemType::Pr {
            return Self::Alike;
        }
        if compared.shortest < FEWEST_WORDS && !titles.same {
            return Self::TooShort;
        }
        // Unfilled forms of a repository before its template is learned: their titles are the template's, or have
        // nothing in common.
        let is_titled =
            titles.shortest > 1 && [source.title, candidate.text.title].iter().all(|title| has_content(title, ""));
        let is_copy = titles.same && compared.triples >= 0.75
            || !titles.each_own && compared.triples >= 0.85
            || titles.overlap >= ALIKE_TITLE && compared.triples >= 0.95;
        if is_copy
            && is_titled
            && compared.shortest >= FEWEST_WORDS
            && compared.copied >= FEWEST_TRIPLES
            && !compared.versions_differ
            && !compared.places_differ
        {
            let sent_twice = compared.hours.is_some_and(|hours| hours < SENT_TWICE_HOURS);
            // Two people who send the same words may both have sent a form that is not known yet, in any language. What
            // a program printed is in no form. One person who sends them under two titles means two things, and a bot
            // means what it says each time.
            return match compared.same_author {
                true if sent_twice && titles.each_own => Self::Alike,
                true if sent_twice && !source.author.is_some_and(Login::is_bot) => Self::Copy,
                true => Self::Recurring,
                false if compared.prints_same => Self::Copy,
                false => Self::Alike,
            };
        }
        if compared.same_author && compared.hours.is_some_and(|hours| hours < 1.0) {
            return Self::Siblings;
        }
        if bug_feature_mismatch(&judged(source), &judged(&candidate.text)).is_some() {
            return Self::OtherKind;
        }
        let telling = compared.printed_words >= 4 && !compared.places_differ && !compared.same_author;
        // One message under one title can have two causes: "Cannot read properties of undefined" is in every project.
        let has_witness = compared.places_shared || compared.frames_shared || compared.triples >= SAME_TEXT;
        let same_title = titles.overlap >= SAME_TITLE
            && titles.shortest >= 4
            && has_witness
            && compared.hours.is_none_or(|hours| hours < SAME_ERROR_HOURS)
            && score >= STRONG_RETRIEVAL;
        let same_text = compared.triples >= SAME_TEXT && compared.printed_words >= 5 && score >= 0.94;
        if telling && (same_title || same_text) {
            return Self::SameError;
        }
        Self::Alike
    }

    fn is_sure(self) -> bool {
        matches!(self, Self::Copy | Self::SameError)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use canonry_domain::{
        Certainty, ItemNumber, ItemType, JudgeAnswer, Login, Probability, PullChanges, REASONING_LIMIT, Relation,
        Similarity, parse_moment,
    };
    use canonry_retrieval::{FactCounter, TextFacts};
    use proptest::prelude::{any, prop, prop_assert, proptest};

    use super::{LocalCandidate, LocalText, judge_locally, possible_duplicates};

    /// A short form of an item: author, minute of the month, title, body.
    #[derive(Clone, Copy)]
    struct Written<'a>(&'a str, u32, &'a str, &'a str);

    struct Filed {
        author: Login,
        created_at: jiff::Timestamp,
    }

    impl Filed {
        fn of(written: Written<'_>) -> Self {
            let time =
                format!("2024-05-{:02}T{:02}:{:02}:00Z", 1 + written.1 / 1_440, written.1 / 60 % 24, written.1 % 60);
            Self { author: written.0.parse().expect("a login"), created_at: parse_moment(&time).expect("a time") }
        }
    }

    fn text<'a>(number: i64, written: Written<'a>, filed: &'a Filed) -> LocalText<'a> {
        LocalText {
            item_type: ItemType::Issue,
            number: ItemNumber::new(number).expect("a number"),
            title: written.2,
            body: written.3,
            labels: &[],
            author: Some(&filed.author),
            created_at: Some(filed.created_at),
            changes: None,
            base_branch: None,
            common: None,
        }
    }

    /// Judges a new item against one earlier item with this retrieval score, and parts that match it.
    fn judge(new: Written<'_>, earlier: Written<'_>, score: f64) -> JudgeAnswer {
        let (filed, before) = (Filed::of(new), Filed::of(earlier));
        let parts: BTreeMap<String, f64> =
            [("lexical", score), ("title", score), ("evidence", score), ("words", score)]
                .map(|(n, v)| (n.to_owned(), v))
                .into();
        let score = Similarity::new(score).expect("a score");
        let candidate = LocalCandidate { text: text(7, earlier, &before), score, parts: &parts };
        judge_locally(&text(9, new, &filed), &[candidate])
    }

    const CRASH: &str = "Opening a workspace with more than fifty folders crashes the window while the tree is drawn.\n\n\
        ```\nerror: tree renderer lost its viewport anchor during relayout\n```\n\nIt started after the last update.";

    fn is_sure(answer: &JudgeAnswer) -> bool {
        answer.structure.certainty == Some(Certainty::Sure)
    }

    #[test]
    fn a_report_sent_twice_is_a_duplicate() {
        let first = Written("ann", 10, "Window crashes with many folders", CRASH);
        let again = Written("ann", 12, "Window crashes with many folders", CRASH);
        let answer = judge(again, first, 1.0);
        assert!(answer.is_duplicate && is_sure(&answer) && answer.confidence.get() >= 0.92, "{answer:?}");
        assert_eq!(answer.duplicate_of.map(ItemNumber::get), Some(7));
        assert_eq!(answer.structure.relation, Some(Relation::SameInstance));
        insta::assert_snapshot!(answer.reasoning, @"Nearly the same text as #7; both show `error: tree renderer lost its viewport anchor during relayout`");
    }

    #[test]
    fn the_same_telling_error_under_the_same_title_is_a_duplicate() {
        let first = Written("ann", 10, "Tree renderer lost its viewport anchor", CRASH);
        let dies = |more: &str| {
            format!(
                "Today's build dies at once for me:\n\n    error: tree renderer lost its viewport anchor during relayout\n{more}\n\
                Nothing else is in the log, and I have only sixty folders."
            )
        };
        let (body, alone) = (dies("      at anchor.rs:412\n"), dies(""));
        let crash = CRASH.replace("relayout\n", "relayout\n  at anchor.rs:412\n");
        let first = Written(first.0, first.1, first.2, &crash);
        let answer = judge(Written("bob", 300, "tree renderer lost its viewport anchor", &body), first, 0.93);
        assert!(answer.is_duplicate && is_sure(&answer), "{answer:?}");
        insta::assert_snapshot!(answer.reasoning, @"Same error and title as #7; both show `error: tree renderer lost its viewport anchor during relayout`; both mention `anchor.rs`");
        // The same words with a weak retrieval score are no proof, nor is a message without a place: it may have two causes.
        assert!(!is_sure(&judge(Written("bob", 300, "tree renderer lost its viewport anchor", &body), first, 0.84)));
        assert!(!is_sure(&judge(Written("bob", 300, "tree renderer lost its viewport anchor", &alone), first, 0.93)));
    }

    #[test]
    fn a_panic_that_two_people_paste_is_a_copy() {
        let body = "Saving the settings fails:\n\n```\nthread 'main' panicked at src/settings.rs:218:13:\n\
            E4711: settings file is locked by process 99\n```\n\nVersion 4.2.1 on Debian 12.";
        let title = "Saving the settings panics with E4711";
        let answer = judge(Written("bob", 20, title, body), Written("ann", 10, title, body), 1.0);
        assert!(is_sure(&answer), "{answer:?}");
    }

    /// The current release is in many reports, which says nothing about whether two reports are about different ones.
    #[test]
    fn the_same_panic_in_another_release_is_no_copy_however_many_name_the_release() {
        let of_release = |release: &str| {
            format!(
                "Saving the settings fails every time since the last update of our machines, and nothing is written to \
                the disk although there is a lot of space left on it.\n\n```\nthread 'main' panicked at \
                src/settings.rs:218:13:\nE4711: settings file is locked by process 99\n```\n\nVersion {release} on Debian 12."
            )
        };
        let mut counter = FactCounter::of_all();
        (0..20).for_each(|_| counter.count(&TextFacts::of("Seen in 5.0.0.")));
        let common = counter.common();
        let title = "Saving the settings panics with E4711";
        let (current, previous) = (of_release("5.0.0"), of_release("4.2.1"));
        let new = Written("bob", 20, title, &current);
        let filed = Filed::of(new);
        for (earlier, is_copy) in [(&current, true), (&previous, false)] {
            let earlier = Written("ann", 10, title, earlier);
            let (before, parts) = (Filed::of(earlier), BTreeMap::new());
            let candidate = LocalCandidate { text: text(7, earlier, &before), score: Similarity::ONE, parts: &parts };
            for common in [None, Some(&common)] {
                let source = LocalText { common, ..text(9, new, &filed) };
                let answer = judge_locally(&source, &[candidate]);
                assert_eq!(is_sure(&answer), is_copy, "{common:?}: {answer:?}");
            }
        }
    }

    #[test]
    fn an_error_in_a_sentence_is_no_output() {
        let title = "App cannot connect to the server after the upgrade";
        let one = "After the upgrade to the new router the phone shows a spinner and then goes back to the first page.";
        let other =
            "Our proxy asks for a certificate now. Where do I put it so that the desktop client picks it up again?";
        assert!(!is_sure(&judge(Written("bob", 300, title, other), Written("ann", 10, title, one), 0.95)));
        let undefined = "TypeError: Cannot read properties of undefined (reading 'map')";
        let at = |what: &str| format!("{what}\n\n```\n{undefined}\n```\n");
        let one = at("The calendar stays empty when a shared folder has no owner.");
        let other = at("Pressing export twice in the invoice list gives a white page.");
        assert!(!is_sure(&judge(Written("bob", 300, undefined, &other), Written("ann", 10, undefined, &one), 0.95)));
    }

    #[test]
    fn one_person_who_sends_a_text_under_two_titles_means_two_things() {
        let body = "People who use it in the evening say that the bright background hurts their eyes, and the system has a \
            setting for it that every other program follows. The colours of the brand are described in the style guide, \
            page twelve, and the icons exist already in both variants, so that only the sheet has to be written.";
        let android = Written("ann", 13, "Add a dark mode to the Android app", body);
        let answer = judge(android, Written("ann", 10, "Add a dark mode to the iPhone app", body), 0.99);
        assert!(!is_sure(&answer), "{answer:?}");
    }

    #[test]
    fn a_bot_that_repeats_itself_reports_again() {
        let body = "The nightly build failed in the step that packs the installer.\n\n```\nerror: packing the installer stopped at the second volume\n```\n";
        let first = Written("nightly[bot]", 10, "Nightly build failed", body);
        for hours in [1, 23] {
            let answer = judge(Written("nightly[bot]", 10 + hours, "Nightly build failed", body), first, 1.0);
            assert!(!is_sure(&answer) && !answer.is_duplicate, "{hours}: {answer:?}");
        }
    }

    #[test]
    fn crashes_at_different_places_are_no_copies() {
        let crash = |place: &str| {
            format!(
                "The compiler stopped while it built my crate, and asked me to report it here, so here it is.\n\n```\n\
                error: internal compiler error: unexpected region in the inference table\n  at {place}\n\
                   4: std::rt::lang_start\n   5: main\n```\n"
            )
        };
        let (one, other) = (crash("collect.rs:1040"), crash("region.rs:377"));
        let title = "Internal compiler error";
        assert!(!is_sure(&judge(Written("bob", 300, title, &other), Written("ann", 10, title, &one), 0.99)));
    }

    #[test]
    fn siblings_of_one_author_are_none() {
        let body = |name: &str| {
            format!("The type {name} should implement Clone so that it can be used in a derive of the callers.")
        };
        let (one, two) = (body("Meadow"), body("Orchard"));
        let answer = judge(
            Written("ann", 13, "Implement Clone for Orchard", &two),
            Written("ann", 10, "Implement Clone for Meadow", &one),
            0.95,
        );
        assert!(!answer.is_duplicate && !is_sure(&answer), "{answer:?}");
        insta::assert_snapshot!(answer.reasoning, @"Filed within an hour of #7 by the same author: usually related, not duplicates");
    }

    #[test]
    fn the_next_of_a_series_is_none() {
        let checklist = "- [ ] branch\n- [ ] changelog\n- [ ] tag\n- [ ] announce\n\nThe usual steps apply, see the wiki for the order.";
        for (one, other) in [
            ("Tracking issue for async traits 1/5", "Tracking issue for async traits 2/5"),
            ("Release checklist 1.2.0", "Release checklist 1.3.0"),
            ("Move the docs", "Move the docs, part 2"),
        ] {
            let answer = judge(Written("ann", 900, other, checklist), Written("bob", 10, one, checklist), 0.99);
            let is_refused = !answer.is_duplicate || answer.structure.relation == Some(Relation::Different);
            assert!(is_refused && !is_sure(&answer), "{one}: {answer:?}");
            assert!(answer.reasoning.contains("series"), "{one}: {answer:?}");
        }
        // The same list for every release, by any author.
        let of = |version: &str| format!("{checklist}\n\nThis one is for 1.{version}.0 and nothing else.");
        let (one, two) = (of("2"), of("3"));
        let answer =
            judge(Written("ann", 900, "Release checklist", &two), Written("bob", 10, "Release checklist", &one), 0.99);
        assert!(!is_sure(&answer), "{answer:?}");
        let again = Written("ann", 3_000, "Weekly report", checklist);
        assert!(!judge(again, Written("ann", 10, "Weekly report", checklist), 1.0).is_duplicate);
    }

    #[test]
    fn a_template_alone_is_no_evidence() {
        let form = "## Describe the bug\n<!-- paste the error: lines that failed here -->\n\n## Steps\n1.\n2.\n\n**Version**\n";
        let answer = judge(Written("ann", 700, "Sound is gone", form), Written("bob", 10, "Menu flickers", form), 0.93);
        assert!(!answer.is_duplicate && !is_sure(&answer), "{answer:?}");
        assert!(!answer.reasoning.contains("paste"), "{}", answer.reasoning);
    }

    #[test]
    fn an_error_that_everybody_sees_proves_nothing() {
        let body = |what: &str| {
            format!(
                "Compiling my crate that uses {what} stops with this and nothing more:\n\n```\nerror: aborting due to previous error\n```\n"
            )
        };
        let (one, two) = (body("generic traits in a macro"), body("an inline module path"));
        let answer = judge(
            Written("ann", 700, "Compiler stops with an error", &two),
            Written("bob", 10, "Compiler stops with an error", &one),
            0.91,
        );
        assert!(!is_sure(&answer), "{answer:?}");
    }

    #[test]
    fn a_wish_is_no_duplicate_of_a_bug() {
        let bug = Written(
            "ann",
            10,
            "[Bug] Messages arrive out of order",
            "When I send three messages quickly, they arrive out of order on the other side.",
        );
        let wish = Written(
            "bob",
            700,
            "[Feature] Message ordering option",
            "Please add a new option for the order in which messages arrive on the other side.",
        );
        let answer = judge(wish, bug, 0.93);
        assert!(!answer.is_duplicate, "{answer:?}");
    }

    #[test]
    fn pull_requests_are_never_sure() {
        let filed = Filed::of(Written("ann", 10, "", ""));
        let changes =
            PullChanges { files: vec!["src/a.rs".to_owned()], diff: "+let anchor = viewport.anchor();\n".to_owned() };
        let pull = |number| LocalText {
            item_type: ItemType::Pr,
            changes: Some(&changes),
            ..text(
                number,
                Written("ann", 10, "Keep the anchor of the viewport", "So that the tree can be drawn again."),
                &filed,
            )
        };
        let parts: BTreeMap<String, f64> =
            [("diff", 1.0), ("paths", 1.0), ("words", 1.0)].map(|(n, v)| (n.to_owned(), v)).into();
        let candidate = LocalCandidate { text: pull(7), score: Similarity::ONE, parts: &parts };
        let answer = judge_locally(&pull(9), &[candidate]);
        assert!(!is_sure(&answer) && answer.reasoning.contains("same files"), "{answer:?}");
        let other = PullChanges { files: vec!["docs/b.md".to_owned()], diff: "+something else\n".to_owned() };
        let nothing = BTreeMap::new();
        let far = LocalCandidate { text: LocalText { changes: Some(&other), ..pull(7) }, parts: &nothing, ..candidate };
        assert!(judge_locally(&pull(9), &[far]).confidence < answer.confidence);
    }

    #[test]
    fn a_change_that_was_sent_again_is_suggested_and_never_sure() {
        let filed = Filed::of(Written("ann", 10, "", ""));
        let change = |lines: usize| PullChanges {
            files: vec!["src/viewport.rs".to_owned()],
            diff: (0..lines).map(|at| format!("+let anchor_{at} = viewport.anchor();\n")).collect(),
        };
        let answer = |titles: [&str; 2], lines: usize| {
            let (one, other) = (change(lines), change(lines));
            let pull = |number, title, changes| LocalText {
                item_type: ItemType::Pr,
                changes: Some(changes),
                ..text(number, Written("ann", 10, title, ""), &filed)
            };
            let nothing = BTreeMap::new();
            let score = Similarity::new(0.8).expect("a score");
            let candidate = LocalCandidate { text: pull(7, titles[0], &one), score, parts: &nothing };
            judge_locally(&pull(9, titles[1], &other), &[candidate])
        };
        let again = answer(["Keep the anchor", "Rebased onto the new branch"], 6);
        assert!(again.is_duplicate && !is_sure(&again) && again.confidence.get() >= 0.85, "{again:?}");
        insta::assert_snapshot!(again.reasoning, @"The same changed lines as #7; both change the same files");
        // Of a large change only the beginning is known.
        assert!(!answer(["Keep the anchor", "Draw the tree lazily"], 80).is_duplicate);
        assert!(answer(["Keep the anchor of the tree", "Keep the anchor"], 80).is_duplicate);
    }

    #[test]
    fn a_backport_does_not_hide_the_change_that_was_sent_again() {
        let filed = Filed::of(Written("ann", 10, "", ""));
        let change = PullChanges {
            files: vec!["src/viewport.rs".to_owned()],
            diff: (0..6).map(|at| format!("+let anchor_{at} = viewport.anchor();\n")).collect(),
        };
        let pull = |number, title, base_branch| LocalText {
            item_type: ItemType::Pr,
            changes: Some(&change),
            base_branch: Some(base_branch),
            ..text(number, Written("ann", 10, title, ""), &filed)
        };
        let nothing = BTreeMap::new();
        let candidate = |number, score, base_branch| LocalCandidate {
            text: pull(number, "Keep the anchor of the tree", base_branch),
            score: Similarity::new(score).expect("a score"),
            parts: &nothing,
        };
        // The backport is the more similar one.
        let candidates = [candidate(5, 0.99, "release-1.2"), candidate(7, 0.8, "main")];
        let answer = judge_locally(&pull(9, "Keep the anchor", "main"), &candidates);
        assert_eq!(answer.duplicate_of.map(ItemNumber::get), Some(7), "{answer:?}");
    }

    #[test]
    fn every_likely_candidate_is_a_possible_duplicate() {
        let new = Written("ann", 900, "Window crashes with many folders", CRASH);
        let filed = Filed::of(new);
        let far = "The colours of the status line are hard to read in the dark theme of the latest release.";
        let parts = |value: f64| -> BTreeMap<String, f64> {
            ["lexical", "title", "evidence", "words"].map(|name| (name.to_owned(), value)).into()
        };
        let (near, nearer, nothing) = (parts(0.97), parts(1.0), parts(0.0));
        let candidate = |number, title, body, score, parts| LocalCandidate {
            text: text(number, Written("bob", 10, title, body), &filed),
            score: Similarity::new(score).expect("a score"),
            parts,
        };
        let candidates = [
            candidate(3, "Status line is hard to read", far, 0.3, &nothing),
            candidate(5, "Window crashes with folders", CRASH, 0.97, &near),
            candidate(7, "Window crashes with many folders", CRASH, 1.0, &nearer),
        ];
        let source = text(9, new, &filed);
        let possible: Vec<i64> = possible_duplicates(&source, &candidates).iter().map(|number| number.get()).collect();
        assert_eq!(possible, [7, 5]);
        assert_eq!(judge_locally(&source, &candidates).duplicate_of.map(ItemNumber::get), Some(7));
    }

    #[test]
    fn a_duplicate_comes_before_what_is_only_related() {
        let new = Written("ann", 900, "Window crashes with many folders", CRASH);
        let cites = format!("{CRASH}\n\nUnlike #3, this happens at once.");
        let filed = Filed::of(new);
        let parts: BTreeMap<String, f64> =
            ["lexical", "title", "evidence", "words"].map(|name| (name.to_owned(), 1.0)).into();
        let candidate = |number| LocalCandidate {
            text: text(number, Written("bob", 10, "Window crashes with many folders", CRASH), &filed),
            score: Similarity::ONE,
            parts: &parts,
        };
        let source = LocalText { body: &cites, ..text(9, new, &filed) };
        let alone = judge_locally(&source, &[candidate(3)]);
        assert_eq!(alone.structure.relation, Some(Relation::Different));
        insta::assert_snapshot!(alone.reasoning, @"The text says that this and #3 are different; both show `error: tree renderer lost its viewport anchor during relayout`");
        let both = [candidate(3), candidate(7)];
        assert_eq!(judge_locally(&source, &both).duplicate_of.map(ItemNumber::get), Some(7));
        assert_eq!(possible_duplicates(&source, &both).len(), 1);
    }

    #[test]
    fn a_failed_assertion_alone_is_no_evidence() {
        let body = |what: &str| {
            format!(
                "The run with {what} ends like this:\n\n```\nTraceback (most recent call last):\n\
                assertion `left == right` failed\n   at assert_eq (src/helper.rs:88)\n```\n"
            )
        };
        let (one, two) = (body("generic traits in a macro"), body("an inline module path"));
        let answer = judge(Written("ann", 700, "Nightly run", &two), Written("bob", 10, "Nightly run", &one), 0.91);
        for shared in ["Traceback", "left == right", "assert_eq"] {
            assert!(!answer.reasoning.contains(shared), "{}", answer.reasoning);
        }
    }

    #[test]
    fn without_candidates_the_answer_is_no() {
        let new = Written("ann", 10, "Window crashes", CRASH);
        let answer = judge_locally(&text(9, new, &Filed::of(new)), &[]);
        assert!(!answer.is_duplicate && answer.duplicate_of.is_none() && answer.confidence == Probability::ZERO);
    }

    #[test]
    fn more_similar_is_more_likely() {
        let first = Written("ann", 10, "Window crashes with many folders", CRASH);
        let other = Written(
            "bob",
            700,
            "Crash while a large workspace opens",
            "The window crashes when I open a workspace with many folders in it.",
        );
        let confidences: Vec<Probability> =
            [0.76, 0.82, 0.88, 0.94].map(|score| judge(other, first, score).confidence).to_vec();
        assert!(confidences.is_sorted(), "{confidences:?}");
        assert!(!is_sure(&judge(other, first, 0.94)));
    }

    proptest! {
        #[test]
        fn any_text_gets_a_bounded_answer(
            texts in prop::collection::vec((any::<String>(), "[ -~\n`#]{0,300}"), 1..5),
            score in 0.0..=1.0_f64,
        ) {
            let filed = Filed::of(Written("ann", 10, "", ""));
            let item = |number: usize| text(number as i64 + 1, Written("ann", 10, &texts[number].0, &texts[number].1), &filed);
            let parts = BTreeMap::from([("words".to_owned(), f64::NAN), ("lexical".to_owned(), 7.0)]);
            let score = Similarity::new(score).expect("a score");
            let candidates: Vec<LocalCandidate<'_>> =
                (1..texts.len()).map(|number| LocalCandidate { text: item(number), score, parts: &parts }).collect();
            let answer = judge_locally(&item(0), &candidates);
            prop_assert!(answer.reasoning.chars().count() <= REASONING_LIMIT);
            prop_assert!(!answer.reasoning.contains(char::is_control));
            prop_assert!(answer.is_duplicate == answer.duplicate_of.is_some());
            prop_assert!(answer.is_duplicate == (answer.confidence.get() >= 0.5));
            let known = |target| candidates.iter().any(|candidate| candidate.text.number == target);
            prop_assert!(answer.duplicate_of.is_none_or(known));
        }
    }
}
