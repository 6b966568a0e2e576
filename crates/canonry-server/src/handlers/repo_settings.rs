//! The rules that a repository sets for itself: `.canonry.yml` of its default branch, as it is now.

use canonry_config::{ParsedSettings, SettingsSection, TriageSettings, parse};
use canonry_domain::{Probability, Threshold, ThresholdSettings, TriageMode};
use canonry_github::GitHubError;
use canonry_store::{BrakeKind, Repo};
use canonry_triage::{GraceRules, SettingsError, TriageRules, live_settings, triage_mode};
use jiff::SignedDuration;

use crate::jobs::job_handler::JobError;
use crate::service::Service;

/// What a repository allows.
#[derive(Debug, Clone)]
pub(crate) struct RepoRules {
    pub(crate) triage: TriageRules,
    /// What hosted models may cost in a calendar month, in US dollars.
    pub(crate) monthly_cost: Option<f64>,
}

/// The rules as they are now. Thresholds are learned anew when the file asks for other ones.
pub(crate) async fn repo_rules(service: &Service, repo: &Repo) -> Result<RepoRules, JobError> {
    let text = settings_text(service, repo).await?;
    let (mut rules, thresholds) = rules_of(text.as_deref(), service.parts().monthly_cost);
    if let Some(thresholds) = thresholds {
        service.store().learning().set_threshold_settings(repo.id, &thresholds, service.now()).await?;
    }
    if service.github().is_none() && rules.triage.mode.speaks() {
        rules.triage.mode = TriageMode::Shadow;
    }
    let is_grace = rules.triage.mode == TriageMode::Grace;
    if is_grace && service.store().close().brake_in_force(repo.id, BrakeKind::Breaker).await?.is_some() {
        rules.triage.mode = TriageMode::Suggest;
    }
    Ok(rules)
}

/// The name by which Canonry is spoken to in a repository, by its settings as they were last read.
pub(crate) async fn handle_of(service: &Service, repo: &Repo) -> Result<String, JobError> {
    let kept = service.store().repos().settings(repo.id).await?.and_then(|kept| kept.text);
    Ok(parse(&kept.unwrap_or_default()).config.mentions.handle)
}

/// The file's text as it is now. While GitHub is down, what is kept holds.
pub(crate) async fn settings_text(service: &Service, repo: &Repo) -> Result<Option<String>, JobError> {
    let store = service.store();
    let live = match service.github() {
        Some(github) => live_settings(store, github, repo).await,
        None => return Ok(store.repos().settings(repo.id).await?.and_then(|kept| kept.text)),
    };
    let error = match live {
        Ok(text) => return Ok(text),
        Err(SettingsError::Store(error)) => return Err(error.into()),
        Err(SettingsError::GitHub(error)) => error,
    };
    match store.repos().settings(repo.id).await? {
        Some(kept) => {
            tracing::warn!(repo = %repo.name, %error, "the settings could not be fetched; the last ones hold");
            Ok(kept.text)
        }
        // Not a word about the file: the rest of the work finds out what it means for the repository.
        None if matches!(error, GitHubError::NotInstalled { .. }) => Ok(None),
        None => Err(error.into()),
    }
}

/// What a file allows, and the thresholds it asks for; none when that cannot be told.
fn rules_of(text: Option<&str>, operator: Option<f64>) -> (RepoRules, Option<ThresholdSettings>) {
    let parsed = parse(text.unwrap_or_default());
    let triage = &parsed.config.triage;
    let mistaken = parsed.fell_back(SettingsSection::Triage);
    let rules = TriageRules {
        mode: triage_mode(&parsed),
        max_candidates: usize::from(triage.max_candidates),
        exclude_labels: triage.exclude_labels.clone(),
        cooldown: SignedDuration::from_hours(i64::from(triage.cooldown_hours)),
        grace: grace_of(&parsed),
    };
    let own = parsed.config.budget.monthly_cost_usd;
    let monthly_cost = match operator {
        // A limit that cannot be read must not become no limit.
        _ if parsed.fell_back(SettingsSection::Budget) => Some(0.0),
        Some(operator) if own > 0.0 => Some(operator.min(own)),
        None if own > 0.0 => Some(own),
        operator => operator,
    };
    let thresholds = (!mistaken).then(|| thresholds_of(triage)).flatten();
    (RepoRules { triage: rules, monthly_cost }, thresholds)
}

/// How duplicates are closed; none where a mistake stands in place of what somebody chose.
fn grace_of(parsed: &ParsedSettings) -> Option<GraceRules> {
    if triage_mode(parsed) != TriageMode::Grace || parsed.fell_back(SettingsSection::Close) {
        return None;
    }
    let close = &parsed.config.close;
    Some(GraceRules {
        hours: close.grace_hours,
        min_close: Probability::new(close.min_close).ok()?,
        protected_labels: close.protected_labels.clone(),
        handle: parsed.config.mentions.handle.clone(),
    })
}

fn thresholds_of(triage: &TriageSettings) -> Option<ThresholdSettings> {
    Some(ThresholdSettings {
        rule: triage.learning.rule,
        configured: Threshold::new(triage.duplicate_threshold).ok()?,
        wanted: Probability::new(triage.learning.target_precision).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use canonry_domain::{ThresholdRule, TriageMode};

    use super::rules_of;

    #[test]
    fn a_mistake_leaves_the_thresholds_as_they_are() {
        for text in
            ["triage: {mode: suggest, maxCandidates: 99}", "triage: {mode: loud}", "{", "trige: {mode: suggest}"]
        {
            let (rules, thresholds) = rules_of(Some(text), None);
            assert_eq!((rules.triage.mode, thresholds), (TriageMode::Shadow, None), "{text}");
        }
    }

    #[test]
    fn a_close_is_announced_only_by_settings_that_are_read_without_a_guess() {
        let grace = |text: &str| rules_of(Some(text), None).0.triage.grace;
        let rules =
            grace("triage: {mode: grace}\nclose: {graceHours: 5}\nmentions: {handle: dedupe}").expect("a grace");
        assert_eq!((rules.hours, rules.min_close.get(), rules.handle.as_str()), (5, 0.9, "dedupe"));
        assert_eq!(rules.protected_labels, ["security"]);
        for text in [
            "triage: {mode: suggest}",
            "triage: {mode: grace}\nclose: {graceHours: soon}",
            "triage: {mode: grace, x: 1}",
        ] {
            assert_eq!(grace(text), None, "{text}");
        }
    }

    #[test]
    fn no_file_is_the_defaults() {
        let (rules, thresholds) = rules_of(None, None);
        assert_eq!((rules.triage.mode, rules.triage.max_candidates, rules.monthly_cost), (TriageMode::Shadow, 3, None));
        let thresholds = thresholds.expect("a choice");
        assert_eq!((thresholds.rule, thresholds.configured.get()), (ThresholdRule::PrecisionTarget, 85));
    }

    #[test]
    fn the_lower_limit_of_cost_holds() {
        let cost = |text: &str, operator| rules_of(Some(text), operator).0.monthly_cost;
        assert_eq!(cost("budget: {monthlyCostUsd: 5}", None), Some(5.0));
        assert_eq!(cost("budget: {monthlyCostUsd: 5}", Some(3.0)), Some(3.0));
        assert_eq!(cost("budget: {monthlyCostUsd: 5}", Some(9.0)), Some(5.0));
        assert_eq!(cost("budget: {monthlyCostUsd: 0}", Some(9.0)), Some(9.0));
        // No limit of the repository's own is none at all where the operator has none either.
        assert_eq!(cost("budget: {monthlyCostUsd: 0}", None), None);
        assert_eq!(cost("", None), None);
        assert_eq!(cost("budget: {monthlyCostUsd: a lot}", None), Some(0.0));
    }
}
