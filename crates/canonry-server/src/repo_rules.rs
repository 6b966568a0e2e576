//! The rules that a repository sets for itself: `.canonry.yml` of its default branch, as it is now.

use canonry_config::{LearningRule, Section, TriageSettings, parse};
use canonry_domain::{Probability, Threshold, ThresholdRule, ThresholdSettings, TriageMode};
use canonry_github::GitHubError;
use canonry_store::Repo;
use canonry_triage::{SettingsError, TriageRules, live_settings, triage_mode};
use jiff::SignedDuration;

use crate::handler::JobError;
use crate::service::Service;

/// What a repository allows.
#[derive(Debug, Clone)]
pub(crate) struct RepoRules {
    /// How new items are triaged.
    pub(crate) triage: TriageRules,
    /// What hosted models may cost in a calendar month, in US dollars.
    pub(crate) monthly_cost: Option<f64>,
}

/// The rules as they are now. Thresholds are learned anew when the file asks for other ones.
pub(crate) async fn repo_rules(service: &Service, repo: &Repo) -> Result<RepoRules, JobError> {
    let text = settings_text(service, repo).await?;
    let (mut rules, thresholds) = rules_of(text.as_deref(), service.parts().monthly_cost);
    if let Some(thresholds) = thresholds {
        service.store().set_threshold_settings(repo.id, &thresholds, service.now()).await?;
    }
    if service.github().is_none() && rules.triage.mode.speaks() {
        rules.triage.mode = TriageMode::Shadow;
    }
    Ok(rules)
}

/// The file's text as it is now. While GitHub is down, what is kept holds.
async fn settings_text(service: &Service, repo: &Repo) -> Result<Option<String>, JobError> {
    let store = service.store();
    let live = match service.github() {
        Some(github) => live_settings(store, github, repo).await,
        None => return Ok(store.repo_settings(repo.id).await?.and_then(|kept| kept.text)),
    };
    let error = match live {
        Ok(text) => return Ok(text),
        Err(SettingsError::Store(error)) => return Err(error.into()),
        Err(SettingsError::GitHub(error)) => error,
    };
    match store.repo_settings(repo.id).await? {
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
    let mistaken = parsed.fell_back(Section::Triage);
    let rules = TriageRules {
        mode: triage_mode(&parsed),
        max_candidates: usize::from(triage.max_candidates),
        exclude_labels: triage.exclude_labels.clone(),
        cooldown: SignedDuration::from_hours(i64::from(triage.cooldown_hours)),
    };
    let own = parsed.config.budget.monthly_cost_usd;
    let monthly_cost = match operator {
        // A limit that cannot be read must not become no limit.
        _ if parsed.fell_back(Section::Budget) => Some(0.0),
        Some(operator) if own > 0.0 => Some(operator.min(own)),
        None if own > 0.0 => Some(own),
        operator => operator,
    };
    let thresholds = (!mistaken).then(|| thresholds_of(triage)).flatten();
    (RepoRules { triage: rules, monthly_cost }, thresholds)
}

fn thresholds_of(triage: &TriageSettings) -> Option<ThresholdSettings> {
    let rule = match triage.learning.rule {
        LearningRule::PrecisionTarget => ThresholdRule::PrecisionTarget,
        LearningRule::BetaMean => ThresholdRule::BetaMean,
        LearningRule::BetaComplement => ThresholdRule::BetaComplement,
    };
    Some(ThresholdSettings {
        rule,
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
        assert_eq!(cost("", None), None);
        assert_eq!(cost("budget: {monthlyCostUsd: a lot}", None), Some(0.0));
    }
}
