//! Formats times, counts and shares for people.

use std::fmt;

use askama::filters::HtmlSafe;
use canonry_domain::review::{FindingStatus, HiddenBy, ReviewSubject, Severity, ShownAs};
use canonry_domain::{ItemNumber, ItemType, Login, Share};
use canonry_github::api::CheckState;
use jiff::{SignedDuration, Timestamp};

/// A moment as `<time>`: how long ago, with the exact time on hovering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeLabel {
    at: Timestamp,
    now: Timestamp,
}

pub(crate) const fn when(at: Timestamp, now: Timestamp) -> TimeLabel {
    TimeLabel { at, now }
}

impl TimeLabel {
    /// `3 hours ago`, `in 2 days`, `now`.
    pub(crate) fn in_words(&self) -> String {
        let apart = self.at.duration_until(self.now);
        let length = length(apart.abs());
        match (length.as_str(), apart.is_negative()) {
            ("", _) => "now".to_owned(),
            (length, false) => format!("{length} ago"),
            (length, true) => format!("in {length}"),
        }
    }
}

impl fmt::Display for TimeLabel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = self.at.strftime("%Y-%m-%d %H:%M UTC");
        write!(
            formatter,
            r#"<time datetime="{}" title="{exact}">{}</time>"#,
            self.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            self.in_words()
        )
    }
}

// Contains only digits and our own words.
impl HtmlSafe for TimeLabel {}

/// `3 hours`, `2 days`; empty below a minute.
pub(crate) fn length(of: SignedDuration) -> String {
    let minutes = of.as_secs() / 60;
    let (amount, unit) = match minutes {
        0 => return String::new(),
        1..60 => (minutes, "minute"),
        60..2_880 => (minutes / 60, "hour"),
        2_880..86_400 => (minutes / 1_440, "day"),
        86_400..1_051_200 => (minutes / 43_200, "month"),
        _ => (minutes / 525_600, "year"),
    };
    format!("{amount} {unit}{}", if amount == 1 { "" } else { "s" })
}

/// `1 item`, `1,204 items`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// `1,204`.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `87 %`: the format of all scores and confidences.
pub(crate) fn score(value: f64) -> String {
    format!("{:.0}\u{a0}%", value * 100.0)
}

/// `$12.50`, and below a dollar `$0.0134`.
pub(crate) fn dollars(amount: f64) -> String {
    if amount > 0.0 && amount < 1.0 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

pub(crate) fn item_path(repo_path: &str, item_type: ItemType, number: ItemNumber) -> String {
    let kind = match item_type {
        ItemType::Issue => "issues",
        ItemType::Pr => "pulls",
    };
    format!("{repo_path}/{kind}/{number}")
}

/// `81 %` with a no-break space; 0 % and 100 % only for exact values.
pub(crate) fn percent(share: f64) -> String {
    let whole = (share * 100.0).round();
    if whole >= 100.0 && share < 1.0 {
        return "over 99\u{a0}%".to_owned();
    }
    if whole <= 0.0 && share > 0.0 {
        return "below 1\u{a0}%".to_owned();
    }
    format!("{whole:.0}\u{a0}%")
}

/// `21 of 26 right (95 % CI 62–92 %)`: a share with its count and its confidence interval.
pub(crate) fn share(share: Share, what: &str) -> String {
    if share.all() == 0 {
        return "none yet".to_owned();
    }
    let (right, all) = (thousands(share.right), thousands(share.all()));
    let what = if what.is_empty() { String::new() } else { format!(" {what}") };
    let ends = share.interval();
    format!("{right} of {all}{what} (95\u{a0}% CI {})", interval(ends.low, ends.high))
}

/// The ends of a confidence interval: `62–92 %`.
pub(crate) fn interval(low: f64, high: f64) -> String {
    format!("{:.0}–{:.0}\u{a0}%", low * 100.0, high * 100.0)
}

/// A short word with a colour; the word alone is sufficient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Badge {
    /// `good`, `warn`, `bad`, `info` or nothing.
    pub(crate) class: &'static str,
    pub(crate) words: String,
}

impl Badge {
    pub(crate) fn new(class: &'static str, words: impl Into<String>) -> Self {
        Self { class, words: words.into() }
    }
}

impl fmt::Display for Badge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, r#"<span class="badge {}">{}</span>"#, self.class, canonry_charts::chart_text(&self.words))
    }
}

// The class is our own word, and the text is escaped.
impl HtmlSafe for Badge {}

pub(crate) fn severity_badge(severity: Severity) -> Badge {
    let class = match severity {
        Severity::Critical => "bad",
        Severity::Major => "warn",
        Severity::Medium => "info",
        Severity::Minor => "",
    };
    Badge::new(class, severity.as_str())
}

pub(crate) fn status_badge(status: FindingStatus) -> Badge {
    let class = match status {
        FindingStatus::New => "info",
        FindingStatus::Reopened => "warn",
        FindingStatus::Fixed => "good",
        FindingStatus::Same | FindingStatus::Moved | FindingStatus::Dismissed => "",
    };
    Badge::new(class, finding_status_in_words(status))
}

pub(crate) const fn finding_status_in_words(status: FindingStatus) -> &'static str {
    match status {
        FindingStatus::Same => "still open",
        FindingStatus::New
        | FindingStatus::Moved
        | FindingStatus::Fixed
        | FindingStatus::Reopened
        | FindingStatus::Dismissed => status.as_str(),
    }
}

pub(crate) const fn shown_in_words(shown: ShownAs) -> &'static str {
    match shown {
        ShownAs::Inline => "inline",
        ShownAs::Details => "in the details",
        ShownAs::LowConfidence => "low confidence",
        ShownAs::Suppressed => "hidden",
    }
}

pub(crate) fn hidden_by_in_words(by: &HiddenBy) -> String {
    match by {
        HiddenBy::Dismissal => "dismissed by a person".to_owned(),
        HiddenBy::Feedback => "people reject its pattern".to_owned(),
        HiddenBy::Pattern(pattern) => format!("review.suppressions: {pattern}"),
        HiddenBy::Area => "its category is off in the settings".to_owned(),
        HiddenBy::Severity => "below review.severity.minLevel".to_owned(),
        HiddenBy::SecondReading => "a second reading did not confirm it".to_owned(),
        HiddenBy::Scope => "off the changed lines, or older than the change".to_owned(),
    }
}

pub(crate) fn check_badge(state: CheckState) -> Badge {
    match state {
        CheckState::InProgress => Badge::new("info", "in progress"),
        CheckState::Success => Badge::new("good", "success"),
        CheckState::Neutral => Badge::new("", "neutral"),
        CheckState::Failure => Badge::new("bad", "failure"),
        CheckState::ActionRequired => Badge::new("warn", "action required"),
    }
}

/// The judge: Canonry's own, or a model and its provider.
pub(crate) fn judge_in_words(provider: &str, model: &str) -> String {
    match (provider, model) {
        ("local", _) => format!("Canonry’s own judge ({model})"),
        (_, "") => provider.to_owned(),
        _ if model == provider => provider.to_owned(),
        _ => format!("{model} by {provider}"),
    }
}

/// The account that did something. Only the operator, with the admin token or at the command line, has no name.
pub(crate) fn by(login: Option<&Login>) -> String {
    login.map_or_else(|| "the operator".to_owned(), |login| format!("@{login}"))
}

/// Whether a reader may copy the text into a shell; other texts of strangers stay out of commands.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
}

/// The same words with a capital letter at the beginning.
pub(crate) fn capital(words: &str) -> String {
    let mut characters = words.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// The subject of a review, as a link's text.
pub(crate) fn subject_in_words(subject: &ReviewSubject) -> String {
    match subject {
        ReviewSubject::Pull(number) => format!("#{number}"),
        ReviewSubject::Branch(name) => format!("branch {name}"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use canonry_domain::Share;

    use super::{by, capital, counted, dollars, is_plain, percent, score, share, when};

    #[test]
    fn moments_are_told_as_people_tell_them() {
        let now: Timestamp = "2026-05-04T12:00:00Z".parse().expect("time");
        let told = |seconds: i64| when(now - SignedDuration::from_secs(seconds), now).in_words();
        assert_eq!(told(20), "now");
        assert_eq!(told(60), "1 minute ago");
        assert_eq!(told(3_600 * 47), "47 hours ago");
        assert_eq!(told(86_400 * 3), "3 days ago");
        assert_eq!(told(-7_200), "in 2 hours");
        assert_eq!(told(86_400 * 800), "2 years ago");
        let page = when(now, now).to_string();
        assert_eq!(page, r#"<time datetime="2026-05-04T12:00:00Z" title="2026-05-04 12:00 UTC">now</time>"#);
    }

    #[test]
    fn numbers_are_grouped_and_scores_are_short() {
        assert_eq!(counted(1, "item"), "1 item");
        assert_eq!(counted(1_234_567, "item"), "1,234,567 items");
        assert_eq!([0.0, 0.01344, 1.005, 20.0].map(dollars), ["$0.00", "$0.0134", "$1.00", "$20.00"]);
        assert_eq!([0.874, 1.0, 0.0].map(score), ["87\u{a0}%", "100\u{a0}%", "0\u{a0}%"]);
    }

    #[test]
    fn what_a_shell_would_understand_is_not_plain() {
        assert!(is_plain("tide/pool") && is_plain("feature/v1.2-x_y"));
        for text in ["", "-rf", "--help", "a b", "$(id)", "a;b", "a'", "é"] {
            assert!(!is_plain(text), "{text:?}");
        }
    }

    #[test]
    fn whoever_has_no_name_runs_the_service() {
        assert_eq!(by(Some(&"mona".parse().expect("a login"))), "@mona");
        assert_eq!(capital(&by(None)), "The operator");
        assert_eq!((capital("ßtill"), capital("")), ("SStill".to_owned(), String::new()));
    }

    #[test]
    fn a_share_comes_with_its_count_and_its_interval() {
        let some = Share { right: 8, wrong: 2 };
        assert_eq!(share(some, "right"), "8 of 10 right (95\u{a0}% CI 48–94\u{a0}%)");
        assert_eq!(share(some, ""), "8 of 10 (95\u{a0}% CI 48–94\u{a0}%)");
        assert_eq!(share(Share::default(), "right"), "none yet");
        assert_eq!(
            [0.0, 0.001, 0.5, 0.9999, 1.0].map(percent),
            ["0\u{a0}%", "below 1\u{a0}%", "50\u{a0}%", "over 99\u{a0}%", "100\u{a0}%"]
        );
    }
}
