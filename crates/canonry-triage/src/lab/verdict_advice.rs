//! What a replay of verdicts means for a maintainer, in plain sentences.

use canonry_domain::{Interval, RepoName, Verdict, VerdictEstimate};

use crate::judge::judge_case::Judge;
use crate::lab::replay_verdicts::VerdictReplay;

/// The score from which Canonry comments, unless a repository sets `triage.duplicateThreshold`.
const DEFAULT_THRESHOLD: f64 = 0.85;
/// Higher thresholds that are tried if the default is not right often enough.
const HIGHER_THRESHOLDS: [f64; 2] = [0.90, 0.95];
/// So many verdicts are enough to comment by what they showed; with fewer the lower end of the interval counts.
const FEWEST_FOR_COMMENTS: u64 = 10;
/// Fewer verdicts than this prove nothing about closing.
const FEWEST_FOR_CLOSING: u64 = 20;
/// The share of right "duplicate" verdicts, at the lower end of its interval, before a close without review.
const RIGHT_FOR_CLOSING: f64 = 0.85;
/// Pairs that a person reads in a minute.
const READ_A_MINUTE: u64 = 12;

impl VerdictReplay {
    /// The sentence about what the estimates rest on.
    pub fn method(&self) -> String {
        let counts = &self.counts;
        let sample = |replayed: usize, all: usize, what: &str| match replayed < all {
            true => format!("a sample of {replayed} of {all} {what}"),
            false => format!("all {all} {what}"),
        };
        format!(
            "Replayed {} and {}, each as of the time when it was filed, with the same judge and gates as `detect-new`.{} \
            The check at the end of a grace period is not replayed. Templates and word frequencies are those of today's \
            items, so an early item that was made from a template may look easier than it was. People's links miss duplicates: what nobody linked counts as people read it, and what was read stands for what was \
            not. Intervals are 95 % confidence intervals.",
            sample(counts.duplicates_replayed, counts.duplicates, "known duplicates"),
            sample(counts.others_replayed, counts.others, "other items"),
            match self.asks_model() {
                true => {
                    " What the model calls a duplicate is read again with the two exchanged, as in the mode `grace`, \
                    whether or not an audit has proven the model."
                }
                false => "",
            },
        )
    }

    fn asks_model(&self) -> bool {
        self.judge != Judge::Local.stored()
    }

    /// What to do next, one or two sentences each. `local` is the same replay with the local judge.
    pub fn recommendation(&self, repo: &RepoName, wanted: f64, local: Option<&Self>) -> Vec<String> {
        let mut advice = match self.not_reached {
            0 => vec![self.mode(repo, wanted), self.closing()],
            left => vec![format!(
                "The budget was used up before {left} of {} items were judged, so this backtest advises no mode. Run it again \
                with a higher `--max-calls` or `--max-cost`, or with a smaller `--sample`.",
                self.verdicts.len() + self.without_date + left
            )],
        };
        advice.extend(local.map(|local| self.compared_with(&local.of_items_in(self))));
        advice
    }

    /// Whether to comment, and at which threshold.
    fn mode(&self, repo: &RepoName, wanted: f64) -> String {
        let at = |threshold: f64| self.commented(threshold).estimate;
        let default = at(DEFAULT_THRESHOLD);
        if default.given == 0 {
            return "The judge would have commented on none of these items. Keep `triage.mode: shadow`.".to_owned();
        }
        let meets = |estimate: &VerdictEstimate| {
            estimate.combined.is_some_and(|share| {
                share.low >= wanted || share.value >= wanted && estimate.given >= FEWEST_FOR_COMMENTS
            })
        };
        if meets(&default) {
            return format!("{} Set `triage.mode: suggest`.", right(&default, "Comments"));
        }
        if default.unread > 0 {
            let minutes = default.unread.div_ceil(READ_A_MINUTE);
            return format!(
                "{} Read the open ones with `canonry adjudicate --repo {repo}` (about {minutes} min), then run the backtest again.",
                right(&default, "Comments"),
            );
        }
        let higher = HIGHER_THRESHOLDS.iter().find(|threshold| at(**threshold).given > 0 && meets(&at(**threshold)));
        match higher {
            Some(threshold) => format!(
                "{} Set `triage.mode: suggest` and `triage.duplicateThreshold: {:.0}`.",
                right(&at(*threshold), &format!("Comments at {:.0} % and above", threshold * 100.0)),
                threshold * 100.0
            ),
            None if default.combined.is_some_and(|share| share.value >= wanted) => format!(
                "{} Fewer than {FEWEST_FOR_COMMENTS} verdicts are too few to tell. Keep `triage.mode: shadow`, and replay \
                more items with a larger `--sample`.",
                right(&default, "Comments")
            ),
            None => format!("{} Keep `triage.mode: shadow`.", right(&default, "Comments")),
        }
    }

    fn closing(&self) -> String {
        let sure = self.of_kind(Verdict::Duplicate).estimate;
        let is_proven = sure.given >= FEWEST_FOR_CLOSING
            && sure.unread == 0
            && sure.combined.is_some_and(|share| share.low >= RIGHT_FOR_CLOSING);
        let others = |count: u64, what: &str| match count {
            0 => String::new(),
            1 => format!(" One other {what}."),
            count => format!(" {count} others {what}."),
        };
        let unconfirmed = others(self.unconfirmed(), "failed a second reading with the two exchanged")
            + &others(self.without_evidence(), "counted as \"maybe\", because only the model's answer spoke for it");
        if sure.given == 0 {
            return format!("No verdict is \"duplicate\", so `grace` would close nothing.{unconfirmed}");
        }
        let so = right(&sure, "Verdicts \"duplicate\"") + &unconfirmed;
        match (is_proven, self.asks_model()) {
            (true, false) => format!("{so} `triage.mode: grace` may close them after its grace period."),
            (true, true) => format!(
                "{so} `triage.mode: grace` may close them after its grace period, after an audit has proven the model here \
                (`canonry judge-audit`)."
            ),
            (false, false) => format!("{so} Do not close anything without a person's review."),
            (false, true) => format!(
                "{so} Do not close anything without a person's review; the model itself closes nothing before an audit has \
                proven it here (`canonry judge-audit`)."
            ),
        }
    }

    fn compared_with(&self, local: &Self) -> String {
        let (own, base) = (self.said(), local.said());
        let named = |share: &crate::JudgedShare| share.estimate.linked + share.estimate.read_same;
        let spent = match self.cost_per_duplicate() {
            Some(cost) => format!(
                "{} calls, {:.3} ({:.3} to {:.3}) US dollars for each duplicate",
                self.calls, cost.value, cost.low, cost.high
            ),
            None => format!("{} calls", self.calls),
        };
        let better = named(&own) > named(&base);
        let precision = |share: &crate::JudgedShare| share.estimate.precision().map_or(0.0, |share| share.value);
        let verdict = match (better, precision(&own) >= precision(&base)) {
            (true, true) => "The model is worth asking.",
            (true, false) => "The model finds more and is right less often.",
            (false, true) => "The model is right more often and finds no more.",
            (false, false) => "The local judge is enough here.",
        };
        format!(
            "The model named {} duplicates that are known to be right ({spent}), the local judge {}. {verdict}",
            named(&own),
            named(&base)
        )
    }
}

/// `Comments would have been right 66 % of the time (47 to 81 %): of 30, 10 are linked, and 6 of 10 that were read are the
/// same.`
fn right(estimate: &VerdictEstimate, what: &str) -> String {
    let VerdictEstimate { given, linked, read_same, read_different, unread, .. } = *estimate;
    let share = |share: Interval| {
        format!("{:.0} % of the time ({:.0} to {:.0} %)", share.value * 100.0, share.low * 100.0, share.high * 100.0)
    };
    let often = match (estimate.combined, estimate.by_links) {
        (Some(combined), _) => share(combined),
        (None, Some(links)) => format!("at least {:.0} % of the time", links.low * 100.0),
        (None, None) => return format!("{what}: none."),
    };
    let read = match read_same + read_different {
        0 => "none was read".to_owned(),
        all => format!("{read_same} of {all} that were read are the same"),
    };
    let open = if unread > 0 { format!(", and {unread} are open") } else { String::new() };
    format!("{what} would have been right {often}: of {given}, {linked} are linked by people, {read}{open}.")
}

#[cfg(test)]
mod tests {
    use canonry_domain::{ItemNumber, ItemType, OnlineVerdict, Probability, Similarity, Verdict};

    use crate::judge::judge_case::Judge;
    use crate::lab::backtest_plan::BacktestCounts;
    use crate::lab::replay_verdicts::{ReplayedVerdict, VerdictReplay};

    fn verdict(at: i64, is_linked: bool, read: Option<bool>, kind: Verdict) -> ReplayedVerdict {
        let number = |number| ItemNumber::new(number).expect("positive");
        ReplayedVerdict {
            item_type: ItemType::Issue,
            number: number(at + 100),
            is_duplicate: is_linked,
            verdict: OnlineVerdict {
                verdict: kind,
                target: Some(number(1)),
                confidence: Probability::new(0.9).ok(),
                reason: "low_confidence_duplicate".to_owned(),
            },
            score: Similarity::new(0.9).ok(),
            is_linked,
            read,
            by_model: false,
            saw_linked: false,
            shown: Vec::new(),
        }
    }

    fn replay(verdicts: Vec<ReplayedVerdict>) -> VerdictReplay {
        let counts = BacktestCounts {
            duplicates: 50,
            duplicates_replayed: 50,
            others: 50,
            others_replayed: 50,
            ..BacktestCounts::default()
        };
        let judge = Judge::Local.stored();
        VerdictReplay {
            judge,
            is_cascade: false,
            counts,
            verdicts,
            without_date: 0,
            calls: 0,
            cost_usd: None,
            stopped: None,
            not_reached: 0,
        }
    }

    fn advice(linked: usize, same: usize, different: usize, unread: usize) -> Vec<String> {
        let of = |count, is_linked, read| {
            (0..count).map(move |at| verdict(at as i64, is_linked, read, Verdict::MaybeDuplicate)).collect::<Vec<_>>()
        };
        let all = [
            of(linked, true, None),
            of(same, false, Some(true)),
            of(different, false, Some(false)),
            of(unread, false, None),
        ];
        replay(all.concat()).recommendation(&"octo/cat".parse().expect("a name"), 0.7, None)
    }

    #[test]
    fn what_nobody_read_is_no_reason_for_silence() {
        let mode = |counts: (usize, usize, usize, usize)| advice(counts.0, counts.1, counts.2, counts.3)[0].clone();
        insta::assert_snapshot!(mode((8, 0, 0, 22)), @"Comments would have been right at least 14 % of the time: of 30, 8 are linked by people, none was read, and 22 are open. Read the open ones with `canonry adjudicate --repo octo/cat` (about 2 min), then run the backtest again.");
        let right = mode((8, 15, 7, 0));
        assert!(
            right.contains("would have been right 77 % of the time") && right.ends_with("`triage.mode: suggest`."),
            "{right}"
        );
        let wrong = mode((3, 3, 24, 0));
        assert!(
            wrong.contains("would have been right 20 % of the time") && wrong.ends_with("`triage.mode: shadow`."),
            "{wrong}"
        );
        let silent = mode((0, 0, 0, 0));
        assert!(silent.starts_with("The judge would have commented on none of these items."), "{silent}");
    }

    #[test]
    fn a_few_right_verdicts_are_no_reason_to_comment() {
        let mode = |counts: (usize, usize, usize, usize)| advice(counts.0, counts.1, counts.2, counts.3)[0].clone();
        insta::assert_snapshot!(mode((1, 0, 0, 0)), @"Comments would have been right 100 % of the time (21 to 100 %): of 1, 1 are linked by people, none was read. Fewer than 10 verdicts are too few to tell. Keep `triage.mode: shadow`, and replay more items with a larger `--sample`.");
        assert!(mode((9, 0, 0, 0)).ends_with("`triage.mode: suggest`."), "the lower end is high enough");
        assert!(mode((5, 2, 2, 0)).contains("too few to tell"));
        assert!(mode((5, 3, 2, 0)).ends_with("`triage.mode: suggest`."));
    }

    /// Half the items were known duplicates that were named rightly; of a thousand others, ten were judged until the
    /// budget ended, and five of them got a wrong comment.
    #[test]
    fn a_budget_that_ends_early_gives_no_advice_about_the_mode() {
        let of = |range: std::ops::Range<i64>, is_linked: bool, kind| {
            range.map(move |at| verdict(at, is_linked, Some(is_linked), kind)).collect::<Vec<_>>()
        };
        let named = of(0..10, true, Verdict::MaybeDuplicate);
        let (wrong, silent) = (of(10..15, false, Verdict::MaybeDuplicate), of(15..20, false, Verdict::NotDuplicate));
        let mut model = replay([named.clone(), wrong, silent].concat());
        (model.counts.others, model.counts.others_replayed, model.not_reached) = (1_000, 10, 80);
        model.counts.duplicates_replayed = 10;
        model.judge.provider = "openai".to_owned();
        let right = model.commented(0.85).estimate.combined.expect("read").value;
        assert!(right < 0.1, "duplicates are rare among new items: {right}");
        // The local judge named fifty, of which the model saw ten.
        let local = replay([named, of(20..60, true, Verdict::MaybeDuplicate)].concat());
        let advice = model.recommendation(&"octo/cat".parse().expect("a name"), 0.7, Some(&local));
        insta::assert_snapshot!(advice.join("\n"), @"
        The budget was used up before 80 of 100 items were judged, so this backtest advises no mode. Run it again with a higher `--max-calls` or `--max-cost`, or with a smaller `--sample`.
        The model named 10 duplicates that are known to be right (0 calls), the local judge 10. The local judge is enough here.
        ");
        assert!(
            model.method().starts_with("Replayed a sample of 10 of 50 known duplicates and a sample of 10 of 1000")
        );
    }

    #[test]
    fn well_read_verdicts_do_not_stand_for_hardly_read_answers() {
        let of = |range: std::ops::Range<i64>, read: Option<bool>, confidence: f64| {
            let sure =
                |at| ReplayedVerdict { is_duplicate: false, ..verdict(at, false, read, Verdict::MaybeDuplicate) };
            let mut all: Vec<ReplayedVerdict> = range.map(sure).collect();
            all.iter_mut().for_each(|one| one.verdict.confidence = Probability::new(confidence).ok());
            all
        };
        // All twenty maybes were read and are right; of forty low answers, four were read and are wrong.
        let all = [of(0..20, Some(true), 0.9), of(20..24, Some(false), 0.55), of(24..60, None, 0.55)].concat();
        let estimate = replay(all).at_confidence(0.50).estimate.combined.expect("read");
        assert!((estimate.value - 20.0 / 60.0).abs() < 1e-9, "{estimate:?}");
    }

    #[test]
    fn the_cost_of_a_duplicate_is_as_uncertain_as_their_number() {
        let mut model = replay((0..40).map(|at| verdict(at, at < 4, None, Verdict::MaybeDuplicate)).collect());
        model.cost_usd = Some(2.0);
        let cost = model.cost_per_duplicate().expect("priced");
        assert!((cost.value - 0.5).abs() < 1e-9 && cost.low < 0.3 && cost.high > 1.0, "{cost:?}");
    }

    #[test]
    fn only_proven_verdicts_may_close() {
        let sure = |count, right| {
            let verdicts = (0..count).map(|at| verdict(at, at < right, Some(at < right), Verdict::Duplicate));
            replay(verdicts.collect())
        };
        let advice =
            |replay: VerdictReplay| replay.recommendation(&"octo/cat".parse().expect("a name"), 0.7, None)[1].clone();
        let local = advice(sure(40, 40));
        assert!(local.contains("may close them") && !local.contains("audit"), "{local}");
        for (count, right) in [(40, 30), (10, 10)] {
            let unproven = advice(sure(count, right));
            assert!(unproven.contains("Do not close anything"), "{unproven}");
        }
        let mut by_model = sure(40, 40);
        by_model.judge.provider = "openai".to_owned();
        assert!(by_model.method().contains("read again with the two exchanged"), "{}", by_model.method());
        let by_model = advice(by_model);
        assert!(by_model.ends_with("after an audit has proven the model here (`canonry judge-audit`)."), "{by_model}");

        let mut unconfirmed = sure(2, 2);
        for one in &mut unconfirmed.verdicts {
            one.verdict = one.verdict.clone().unconfirmed();
        }
        insta::assert_snapshot!(advice(unconfirmed), @r#"No verdict is "duplicate", so `grace` would close nothing. 2 others failed a second reading with the two exchanged."#);
        assert!(!sure(1, 1).method().contains("exchanged"));
    }

    #[test]
    fn a_cascade_tells_what_it_may_have_missed() {
        let linked =
            |at, kind, by_model, saw_linked| ReplayedVerdict { by_model, saw_linked, ..verdict(at, true, None, kind) };
        let mut replay = replay(vec![
            linked(1, Verdict::NotDuplicate, false, true),
            linked(2, Verdict::NotDuplicate, false, false),
            linked(3, Verdict::NotDuplicate, true, true),
            linked(4, Verdict::MaybeDuplicate, false, true),
            ReplayedVerdict { saw_linked: true, ..verdict(5, false, None, Verdict::NotDuplicate) },
        ]);
        assert_eq!(replay.settled_duplicates(), 0, "no cascade");
        replay.is_cascade = true;
        assert_eq!(replay.settled_duplicates(), 1);
    }
}
