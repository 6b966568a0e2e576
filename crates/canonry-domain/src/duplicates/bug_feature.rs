//! Detects pairs in which one item reports a bug and the other requests a feature.

use std::sync::LazyLock;

use regex::Regex;

use crate::intent::sections::heading;
use crate::text::template_text::{TemplateLine, written_lines};
use crate::{JudgedItem, KindMismatch};

/// Why two items cannot be the same.
///
/// An item that is marked as both, or as neither, has an unknown kind, and an unknown kind contradicts nothing.
pub fn bug_feature_mismatch(one: &JudgedItem<'_>, other: &JudgedItem<'_>) -> Option<KindMismatch> {
    match (kind_of(one)?, kind_of(other)?) {
        (Kind::Bug, Kind::Feature) => Some(KindMismatch::BugVsFeature),
        (Kind::Feature, Kind::Bug) => Some(KindMismatch::FeatureVsBug),
        (Kind::Bug, Kind::Bug) | (Kind::Feature, Kind::Feature) => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bug,
    Feature,
}

/// Tags and labels decide the kind of an item; its words count only if there are none.
fn kind_of(item: &JudgedItem<'_>) -> Option<Kind> {
    let tags = title_tags(item.title);
    let told: Vec<Kind> =
        tags.iter().copied().chain(item.labels.iter().map(String::as_str)).filter_map(kind_of_tag).collect();
    if let Some(first) = told.first() {
        return told.iter().all(|kind| kind == first).then_some(*first);
    }
    let words = own_words(item);
    match (BUG_WORDS.is_match(&words), FEATURE_WORDS.is_match(&words)) {
        (true, false) => Some(Kind::Bug),
        (false, true) => Some(Kind::Feature),
        _ => None,
    }
}

/// The tags before the actual title: `[Bug][UI]: …`, `Feature request: …`, `fix(parser)!: …`.
fn title_tags(title: &str) -> Vec<&str> {
    let mut tags = Vec::new();
    let mut rest = title;
    loop {
        rest = rest.trim_start_matches(|character: char| !character.is_alphanumeric() && !"[(【".contains(character));
        let Some(found) = TITLE_TAG.captures(rest) else {
            return tags;
        };
        let tag = found.iter().skip(1).flatten().next().expect("invariant: each alternative has a group");
        tags.push(tag.as_str());
        rest = &rest[found.get(0).expect("invariant: group 0 is the match").end()..];
    }
}

/// The kind that a tag or a label names, if all its words agree: `kind/bug`, `Feature Request`, `type: enhancement`.
///
/// `area/feature-flags` names a part of the program, and `not a bug` means the opposite.
fn kind_of_tag(tag: &str) -> Option<Kind> {
    let mut kind = None;
    for word in tag.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let says = match word.to_lowercase().as_str() {
            "bug" | "bugs" | "bugfix" | "fix" | "hotfix" | "defect" | "regression" | "crash" => Kind::Bug,
            "feature" | "features" | "feat" | "enhancement" | "enhancements" | "wish" | "wishlist" => Kind::Feature,
            "kind" | "type" | "t" | "c" | "category" | "issue" | "report" | "request" | "requests" | "new"
            | "confirmed" | "possible" | "potential" | "critical" | "major" | "minor" => continue,
            _ => return None,
        };
        if kind.is_some_and(|kind| kind != says) {
            return None;
        }
        kind = Some(says);
    }
    kind
}

/// Title and first paragraph, without template, code, quotes and negated words.
///
/// Later paragraphs are often about something else. This rule was chosen by the mismatches on a compiler's tracker:
/// whole bodies gave 15 mismatches in 2,176 true pairs and 15 in 1,087 random ones; first paragraphs gave 2 and 7.
/// Three other projects have too few pairs to confirm it: next to none either way.
fn own_words(item: &JudgedItem<'_>) -> String {
    let mut words = item.title.to_owned();
    let lines = written_lines(item.body).into_iter().filter(|(kind, _)| *kind == TemplateLine::Prose);
    for (_, line) in lines.skip_while(|(_, line)| line.is_empty()).take_while(|(_, line)| !line.is_empty()) {
        words.push('\n');
        words.push_str(heading(&line).map_or(line.as_str(), |(_, _, rest)| rest));
    }
    NOT_SAID.replace_all(&words, " … ").into_owned()
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the pattern is constant")
}

static TITLE_TAG: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x) ^ (?: [\[【] \s* ([^\[\]【】]{1,40}) [\]】] | \( \s* ([^()]{1,40}) \)
            | ([A-Za-z][A-Za-z\ /_-]{0,30}?) \s* (?: \( [^()]{0,60} \) )? !? \s* [:：] )",
    )
});

/// Code spans, and negations such as "not a bug".
static NOT_SAID: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?xi) `[^`\n]*` | \b (?: not | isn['’]?t | never | no | without ) \s+
            (?: (?: really | necessarily | just | only | an? | the | any | more ) \s+ )*
            (?: bugs? | regressions? | crash(?:es|ed|ing)? | broken | enhancements? | (?: new \s+ )? features? (?: \s+ requests? )? ) \b",
    )
});

/// Words that say that something goes wrong. "error" is not among them: people also request better error messages.
static BUG_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?xi) \b (?: bugs? | buggy | regressions? | regressed | crash(?:es|ed|ing) | crash \s+ (?: on|when|in|at|after|while|if|during )
            | broken | segfaults? | segmentation \s+ faults? | panics | panicked | hangs | freezes | fails \s+ (?: to|with|when|on|if|in|for )
            | (?: does | do | did ) (?: \s+ not | n['’]?t ) \s+ work | (?: not | stopped ) \s+ working ) \b
            | \A \s* fix(?:es|ed)? \b",
    )
});

/// Words that request something new. "feature" alone is not among them: a feature can also be broken.
static FEATURE_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?xi) \b (?: features? \s+ (?: requests? | proposals? | suggestions? | ideas? ) | new \s+ features? | enhancements?
            | (?: please | could \s+ you | can \s+ you | can \s+ we ) \s+ (?: add | support | implement | provide | allow | introduce | consider )
            | would \s+ be \s+ (?: (?: very | really | so ) \s+ )? (?: nice | great | good | helpful | useful | awesome | cool | handy )
            | would \s+ love | (?: add | adding | implement | introduce | provide ) \s+ (?: [\w-]+ \s+ ){0,4}?
              (?: options? | settings? | flags? | commands? | support | ability | way | parameters? | buttons? | modes? | toggles? ) ) \b",
    )
});

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{Kind, bug_feature_mismatch, kind_of, kind_of_tag, title_tags};
    use crate::{ItemNumber, ItemOrigin, ItemState, ItemType, JudgedItem, KindMismatch};

    fn item<'a>(title: &'a str, body: &'a str, labels: &'a [String]) -> JudgedItem<'a> {
        JudgedItem {
            number: ItemNumber::new(1).expect("positive"),
            state: ItemState::Open,
            item_type: ItemType::Issue,
            title,
            body,
            labels,
            origin: ItemOrigin::default(),
        }
    }

    fn kind(title: &str, body: &str) -> Option<Kind> {
        kind_of(&item(title, body, &[]))
    }

    #[test]
    fn a_bug_is_no_feature() {
        let bug =
            item("[Bug] Telegram messages arrive out of order", "They come as they like, it is a nice feature.", &[]);
        let feature = item(
            "[Feature] Improve message ordering controls",
            "Add a new ordering strategy option. It is broken.",
            &[],
        );
        assert_eq!(bug_feature_mismatch(&bug, &feature), Some(KindMismatch::BugVsFeature));
        assert_eq!(bug_feature_mismatch(&feature, &bug), Some(KindMismatch::FeatureVsBug));
        assert_eq!(bug_feature_mismatch(&bug, &bug), None);
        let [one, other] = ["Support for prefix matching is broken in debug builds", "Prefix matching broken"]
            .map(|title| item(title, "", &[]));
        assert_eq!(bug_feature_mismatch(&one, &other), None);
    }

    #[test]
    fn tags_before_the_title_decide() {
        for (title, expected) in [
            ("[Bug] it", Some(Kind::Bug)),
            ("[Bug]: it", Some(Kind::Bug)),
            ("bug: it", Some(Kind::Bug)),
            ("Bug report: it", Some(Kind::Bug)),
            ("🐛 [BUG][UI] it", Some(Kind::Bug)),
            ("[UI] [Bug] it", Some(Kind::Bug)),
            ("【Bug】它", Some(Kind::Bug)),
            ("fix(parser)!: it", Some(Kind::Bug)),
            ("feat: it", Some(Kind::Feature)),
            ("feat(exec, core): crashes less", Some(Kind::Feature)),
            ("[Feature Request] it crashes", Some(Kind::Feature)),
            ("Feature request: it", Some(Kind::Feature)),
            ("(Enhancement) it", Some(Kind::Feature)),
            ("[Bug] [Feature] it", None),
            ("[Not a bug] it", None),
            ("[Debug] it", None),
            ("prefix: it", None),
            ("docs: it", None),
            ("[feature-flags] it", None),
            ("[[[((( it", None),
            ("", None),
        ] {
            assert_eq!(kind(title, ""), expected, "{title}");
        }
        assert_eq!(title_tags("[Bug][UI]: fix(x): it"), ["Bug", "UI", "fix"]);
    }

    #[test]
    fn labels_are_read_by_their_words() {
        for (label, expected) in [
            ("bug", Some(Kind::Bug)),
            ("kind/bug", Some(Kind::Bug)),
            ("C-bug", Some(Kind::Bug)),
            ("Type: Bug", Some(Kind::Bug)),
            (":bug: bug", Some(Kind::Bug)),
            ("enhancement", Some(Kind::Feature)),
            ("feature-request", Some(Kind::Feature)),
            ("type/feature", Some(Kind::Feature)),
            ("debug", None),
            ("not a bug", None),
            ("bug bounty", None),
            ("area/feature-flags", None),
            ("bug or feature", None),
            ("kind", None),
        ] {
            assert_eq!(kind_of_tag(label), expected, "{label}");
        }
        let labels = ["enhancement".to_owned()];
        assert_eq!(kind_of(&item("It crashes", "", &labels)), Some(Kind::Feature));
        assert_eq!(kind_of(&item("[Bug] it", "", &labels)), None, "relabelled, or mislabelled");
    }

    #[test]
    fn words_decide_where_nothing_is_tagged() {
        for (text, expected) in [
            ("The window crashes when it is closed", Some(Kind::Bug)),
            ("This is a bug.", Some(Kind::Bug)),
            ("Uploading doesn't work", Some(Kind::Bug)),
            ("It would be really nice to sort them", Some(Kind::Feature)),
            ("Please add dark colours", Some(Kind::Feature)),
            ("Add a new ordering strategy option", Some(Kind::Feature)),
            ("This is a feature request", Some(Kind::Feature)),
            ("The new feature is broken", None),
            ("The export feature is slow", None),
            ("The debugger is a prefix of debugging", None),
            ("This is not a bug", None),
            ("It isn't really a feature request", None),
            ("Better error messages", None),
            ("Look at `bug`", None),
        ] {
            assert_eq!(kind("It", text), expected, "{text}");
            assert_eq!(kind(text, ""), expected, "{text}");
        }
    }

    #[test]
    fn templates_code_and_diffs_are_not_the_authors_words() {
        for body in [
            "### Describe the bug\n\nIt is late",
            "**Bug description**\nIt is late",
            "**Is this a bug or a feature request?** neither",
            "<!-- a bug is something that crashes -->",
            "- [ ] This is a bug",
            "```\nthis is a bug\n```",
            "\n\n    a bug\n",
            "diff --git a/a b/a\n@@ -1 +1 @@\n-// bug\n+// crashes\n",
            "> this is a bug",
        ] {
            assert_eq!(kind("It", body), None, "{body}");
        }
        assert_eq!(kind("It", "It is late.\n\nIt would be nice to know why."), None, "only the first paragraph counts");
        assert_eq!(kind("It", "### Kind\n\nBug"), Some(Kind::Bug), "an answer under a heading");
        assert_eq!(kind("It", "- [ ] New feature\n- [x] Bug fix"), Some(Kind::Bug));
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_never_contradicts_itself(title in any::<String>(), body in any::<String>(), label in any::<String>()) {
            let labels = [label];
            let item = item(&title, &body, &labels);
            prop_assert_eq!(bug_feature_mismatch(&item, &item), None);
        }
    }
}
