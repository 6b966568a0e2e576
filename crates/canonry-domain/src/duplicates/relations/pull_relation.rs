//! Compares two pull requests: whether one reverts, backports or contains the other.

use std::sync::LazyLock;

use regex::Regex;

use crate::{JudgedItem, PairRelation};

/// How two pull requests are related, by their titles, their base branches if known, and their changed lines.
pub(crate) fn pull_relation(source: &JudgedItem<'_>, target: &JudgedItem<'_>) -> Option<PairRelation> {
    let [one, other] = [source, target].map(|item| ChangeTitle::of(item.title));
    let changes = source.origin.changes.zip(target.origin.changes);
    let is_same_title = !one.words.is_empty() && one.words == other.words;
    if one.reverts != other.reverts && one.is_same_change_as(&other) {
        return Some(PairRelation::Revert);
    }
    if changes.is_some_and(|(one, other)| one.is_inverse_of(other)) {
        let is_named = one.reverts + other.reverts > 0;
        return Some(if is_named { PairRelation::Revert } else { PairRelation::OppositeChange });
    }
    let bases = source.origin.base_branch.zip(target.origin.base_branch);
    let is_other_branch = bases.map_or(one.marks != other.marks, |(one, other)| one != other);
    let is_same_change = || changes.is_some_and(|(one, other)| one.is_same_change(other));
    if is_other_branch && (is_same_title || is_same_change()) {
        return Some(PairRelation::Backport);
    }
    // A change that is sent again from a branch with more on it has the title of the first.
    let contains = || changes.is_some_and(|(later, earlier)| later.contains_change(earlier));
    (!is_same_title && contains()).then_some(PairRelation::FollowUp)
}

/// A title without the marks of branches and reverts.
#[derive(Debug)]
pub(crate) struct ChangeTitle {
    words: Vec<String>,
    /// The branches that the title names, and words such as "backport".
    pub(crate) marks: Vec<String>,
    pub(crate) reverts: usize,
    /// GitHub cuts the title of a revert.
    is_cut: bool,
}

impl ChangeTitle {
    pub(crate) fn of(title: &str) -> Self {
        let marks = MARK.find_iter(title).map(|mark| bare_mark(mark.as_str())).collect();
        let unmarked = MARK.replace_all(title, " ");
        let (mut rest, mut reverts) = (unmarked.trim(), 0);
        while let Some(found) = REVERT.find(rest) {
            rest = &rest[found.end()..];
            reverts += 1;
        }
        let is_cut = rest.trim_end_matches(['"', '”', ' ']).ends_with(['…']) || rest.ends_with("...");
        Self { words: words(rest), marks, reverts, is_cut: is_cut && reverts > 0 }
    }

    /// Whether the two name one change, whatever is done to it.
    pub(crate) fn is_same_change_as(&self, other: &Self) -> bool {
        let is_beginning = |cut: &Self, whole: &Self| {
            let known = cut.words.len().saturating_sub(1);
            cut.is_cut && known >= 3 && whole.words.len() >= known && cut.words[..known] == whole.words[..known]
        };
        !self.words.is_empty() && (self.words == other.words || is_beginning(self, other) || is_beginning(other, self))
    }
}

/// A branch, or "backport" however it is said.
fn bare_mark(mark: &str) -> String {
    let mark = words(mark).concat();
    if mark.starts_with("backport") || mark.starts_with("cherry") { "backport".to_owned() } else { mark }
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the pattern is constant")
}

static REVERT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?i)^\s*(?:\[[^\]]*\]\s*)*revert(?:s|ed|ing)?\b[\s:]*(?:merge\s+of\s+)?["'“]?\s*"#));

/// `[3-2-stable]`, `[release/1.4]`, `(backport #12)`, `backport:`, `cherry-pick`, `… to 3-2-stable`.
static MARK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?xi) [\[(] \s* (?: back-?port(?:ed)? \b [^\])]* | (?: release [-/\ ] )? v? \d+ [-.] (?: \d+ | x ) (?: [-.] (?: \d+ | x ) )* (?: [-.]? stable )?
              | (?: release | stable | branch ) [-/] [\w.-]+ | beta | stable ) \s* [\])] \s* :?
          | \b (?: to | for | into | on ) \s+ (?: the \s+ )? (?: \d+ [-.] \d+ (?: [-.] \d+ )* [-.] stable | (?: release | stable ) [-/] [\w.-]+ ) (?: \s+ branch )?
          | \b back-?port (?: s | ed | ing )? \b (?: \s+ of \b )? :? | \b cherry [-\ ]? pick (?: s | ed | ing )? \b :?
          | \b \d+ - \d+ - stable \b :?",
    )
});

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::pull_relation;
    use crate::{ItemNumber, ItemOrigin, ItemState, ItemType, JudgedItem, PairRelation, PullChanges};

    fn pull<'a>(title: &'a str, changes: Option<&'a PullChanges>, base_branch: Option<&'a str>) -> JudgedItem<'a> {
        JudgedItem {
            number: ItemNumber::new(1).expect("positive"),
            state: ItemState::Open,
            item_type: ItemType::Pr,
            title,
            body: "",
            labels: &[],
            origin: ItemOrigin { changes, base_branch, ..ItemOrigin::default() },
        }
    }

    fn titled(one: &str, other: &str) -> Option<PairRelation> {
        pull_relation(&pull(one, None, None), &pull(other, None, None))
    }

    fn change(diff: &str) -> PullChanges {
        PullChanges { files: Vec::new(), diff: diff.to_owned() }
    }

    #[test]
    fn titles_name_reverts_and_backports() {
        use PairRelation::{Backport, Revert};
        for (one, other, expected) in [
            ("Revert \"Stop using an absolute path\"", "Stop using an absolute path", Some(Revert)),
            ("Revert \"Revert \"Reduce allocations\"\"", "Revert \"Reduce allocations\"", Some(Revert)),
            ("Revert \"Revert \"Reduce allocations\"\"", "Reduce allocations", Some(Revert)),
            ("revert: keep the anchor of the viewport", "Keep the anchor of the viewport", Some(Revert)),
            ("Revert \"Keep the anchor of the view…\"", "Keep the anchor of the viewport when drawn", Some(Revert)),
            ("Revert \"Reduce allocations\"", "Revert \"Reduce allocations\"", None),
            ("Revert \"Reduce allocations\"", "Reduce the noise", None),
            ("[3-2-stable] Fix the cache key", "Fix the cache key", Some(Backport)),
            ("[3-2-stable] Fix the cache key", "[3-1-stable] Fix the cache key", Some(Backport)),
            ("[3-2-stable] Fix the cache key", "[3-2-stable] Fix the cache key", None),
            ("Backport: Fix the cache key", "Fix the cache key", Some(Backport)),
            ("Fix the cache key (backport #12)", "Fix the cache key", Some(Backport)),
            ("Fix the cache key", "Fix the cache key", None),
            ("Backporting accepted changes", "Backport accepted changes", None),
            ("Backport X", "Fix the cache key", None),
            ("Bump it to 1.2", "Bump it to 1.3", None),
            ("", "", None),
        ] {
            assert_eq!(titled(one, other), expected, "{one}");
            assert_eq!(titled(other, one), expected, "{one}");
        }
    }

    const LINES: &str = "-    return glyphs.get(letter)\n+    found = glyphs.get(letter)\n+    if found is None:\n\
        +        found = fallback_font.glyph_of(letter)\n+    return found_or_box\n";

    fn inverted(diff: &str) -> String {
        diff.replace("+ ", "* ").replace("- ", "+ ").replace("* ", "- ")
    }

    #[test]
    fn changed_lines_show_the_direction() {
        let (change_of, back) = (change(LINES), change(&inverted(LINES)));
        let related =
            |one: &str, other: &str| pull_relation(&pull(one, Some(&back), None), &pull(other, Some(&change_of), None));
        assert_eq!(related("Do not draw boxes", "Draw boxes"), Some(PairRelation::OppositeChange));
        assert_eq!(related("Revert the boxes", "Draw boxes"), Some(PairRelation::Revert));
        let same = pull("Draw boxes", Some(&change_of), None);
        assert_eq!(pull_relation(&same, &pull("Boxes for glyphs", Some(&change_of), None)), None, "a duplicate");
    }

    #[test]
    fn the_same_change_for_another_base_is_a_backport() {
        let lines = change(LINES);
        let on = |title, base| pull(title, Some(&lines), Some(base));
        assert_eq!(pull_relation(&on("Draw boxes", "main"), &on("Boxes", "1.x")), Some(PairRelation::Backport));
        assert_eq!(pull_relation(&on("Draw boxes", "main"), &on("Boxes", "main")), None);
        // A known base says more than the title.
        assert_eq!(pull_relation(&on("[1-2-stable] Boxes", "main"), &on("Boxes", "main")), None);
    }

    #[test]
    fn only_a_later_and_much_larger_change_contains_another() {
        let small: String = (0..12).map(|at| format!("+    let glyph_{at} = draw(letter_{at});\n")).collect();
        let more: String = (0..60).map(|at| format!("+    let window_{at} = open(frame_{at});\n")).collect();
        let (small, large) = (change(&small), change(&format!("{small}{more}")));
        let (later, earlier) = (pull("Windows", Some(&large), None), pull("Glyphs", Some(&small), None));
        assert_eq!(pull_relation(&later, &earlier), Some(PairRelation::FollowUp));
        assert_eq!(pull_relation(&earlier, &later), None);
        let again = JudgedItem { title: "Glyphs", ..later };
        assert_eq!(pull_relation(&again, &earlier), None, "sent again from a larger branch");
    }

    proptest! {
        #[test]
        fn any_titles_are_compared_in_any_order(one in any::<String>(), other in any::<String>()) {
            prop_assert_eq!(titled(&one, &other), titled(&other, &one));
            prop_assert_eq!(titled(&one, &one), None);
        }
    }
}
