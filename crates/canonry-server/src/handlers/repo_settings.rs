//! A repository's own settings: `.canonry.yml` of its default branch, as it is now.

use canonry_config::{ParsedSettings, RepoConfig, SETTINGS_FILE, SettingsSection, TriageSettings, parse};
use canonry_domain::{Probability, Threshold, ThresholdSettings, TriageMode};
use canonry_github::GitHubError;
use canonry_store::{BrakeKind, Repo};
use canonry_triage::{GraceRules, SettingsError, TriageRules, live_settings, triage_mode};
use jiff::SignedDuration;
use tokio::sync::OnceCell;

use crate::jobs::job_handler::JobError;
use crate::service::Service;

/// The settings of one repository, with defaults for missing and invalid values.
#[derive(Debug, Clone)]
pub(crate) struct RepoSettings {
    parsed: ParsedSettings,
}

/// The settings of a job's repository, read once, on first use.
#[derive(Debug, Default)]
pub(crate) struct LazySettings(OnceCell<RepoSettings>);

impl LazySettings {
    pub(crate) async fn get(&self, service: &Service, repo: &Repo) -> Result<&RepoSettings, JobError> {
        self.0.get_or_try_init(|| RepoSettings::load(service, repo)).await
    }
}

impl RepoSettings {
    /// The current settings; the last known ones while GitHub is down.
    pub(crate) async fn load(service: &Service, repo: &Repo) -> Result<Self, JobError> {
        Ok(Self::read(settings_text(service, repo).await?.as_deref()))
    }

    pub(crate) async fn last_read(service: &Service, repo: &Repo) -> Result<Self, JobError> {
        let kept = service.store().repos().settings(repo.id).await?.and_then(|kept| kept.text);
        Ok(Self::read(kept.as_deref()))
    }

    pub(crate) fn read(text: Option<&str>) -> Self {
        Self { parsed: parse(text.unwrap_or_default()) }
    }

    pub(crate) fn parsed(&self) -> &ParsedSettings {
        &self.parsed
    }

    pub(crate) fn config(&self) -> &RepoConfig {
        &self.parsed.config
    }

    pub(crate) fn handle(&self) -> &str {
        &self.parsed.config.mentions.handle
    }

    /// The problems of the settings, as sentences for the details of a review.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.parsed.problems.iter().map(|problem| format!("{SETTINGS_FILE}: {problem}")).collect()
    }

    /// Whether the section `review` is valid or absent.
    pub(crate) fn is_review_readable(&self) -> bool {
        !self.parsed.fell_back(SettingsSection::Review)
    }

    /// The most that hosted models may cost in a calendar month, in US dollars. The operator may have a limit too.
    pub(crate) fn monthly_cost(&self, operator: Option<f64>) -> Option<f64> {
        let own = self.parsed.config.budget.monthly_cost_usd;
        match operator {
            // A limit that cannot be read must not become no limit.
            _ if self.parsed.fell_back(SettingsSection::Budget) => Some(0.0),
            Some(operator) if own > 0.0 => Some(operator.min(own)),
            None if own > 0.0 => Some(own),
            operator => operator,
        }
    }

    fn file_rules(&self) -> TriageRules {
        let triage = &self.parsed.config.triage;
        TriageRules {
            mode: triage_mode(&self.parsed),
            max_candidates: usize::from(triage.max_candidates),
            exclude_labels: triage.exclude_labels.clone(),
            ask_for_description: triage.ask_for_description,
            cooldown: SignedDuration::from_hours(i64::from(triage.cooldown_hours)),
            grace: grace_rules(&self.parsed),
        }
    }

    /// The thresholds of the file; `None` if they cannot be read.
    fn thresholds(&self) -> Option<ThresholdSettings> {
        if self.parsed.fell_back(SettingsSection::Triage) {
            return None;
        }
        thresholds_of(&self.parsed.config.triage)
    }

    /// The rules for new items. Thresholds are learned again if the file asks for other ones.
    pub(crate) async fn triage_rules(&self, service: &Service, repo: &Repo) -> Result<TriageRules, JobError> {
        let mut rules = self.file_rules();
        if let Some(thresholds) = self.thresholds() {
            service.store().learning().set_threshold_settings(repo.id, &thresholds, service.now()).await?;
        }
        if service.github().is_none() && rules.mode.speaks() {
            rules.mode = TriageMode::Shadow;
        }
        let is_grace = rules.mode == TriageMode::Grace;
        if is_grace && service.store().close().brake_in_force(repo.id, BrakeKind::Breaker).await?.is_some() {
            rules.mode = TriageMode::Suggest;
        }
        Ok(rules)
    }
}

/// The file's current text. While GitHub is down, the stored text is used.
async fn settings_text(service: &Service, repo: &Repo) -> Result<Option<String>, JobError> {
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
        // This says nothing about the file: later steps find out what it means for the repository.
        None if matches!(error, GitHubError::NotInstalled { .. }) => Ok(None),
        None => Err(error.into()),
    }
}

/// The rules for closing duplicates; `None` if an invalid value replaced a chosen one.
fn grace_rules(parsed: &ParsedSettings) -> Option<GraceRules> {
    if triage_mode(parsed) != TriageMode::Grace || parsed.fell_back(SettingsSection::Close) {
        return None;
    }
    let close = &parsed.config.close;
    Some(GraceRules {
        hours: close.grace_hours,
        min_close: Probability::new(close.min_close).ok()?,
        protected_labels: close.protected_labels.clone(),
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

    use super::RepoSettings;

    fn read(text: &str) -> RepoSettings {
        RepoSettings::read(Some(text))
    }

    #[test]
    fn a_mistake_leaves_the_thresholds_as_they_are() {
        for text in
            ["triage: {mode: suggest, maxCandidates: 99}", "triage: {mode: loud}", "{", "trige: {mode: suggest}"]
        {
            let settings = read(text);
            assert_eq!((settings.file_rules().mode, settings.thresholds()), (TriageMode::Shadow, None), "{text}");
        }
    }

    #[test]
    fn a_close_is_announced_only_by_settings_that_are_read_without_a_guess() {
        let grace = |text: &str| read(text).file_rules().grace;
        let rules = grace("triage: {mode: grace}\nclose: {graceHours: 5}").expect("a grace");
        assert_eq!((rules.hours, rules.min_close.get()), (5, 0.9));
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
        let settings = RepoSettings::read(None);
        let rules = settings.file_rules();
        assert_eq!((rules.mode, rules.max_candidates, settings.monthly_cost(None)), (TriageMode::Shadow, 3, None));
        let thresholds = settings.thresholds().expect("a choice");
        assert_eq!((thresholds.rule, thresholds.configured.get()), (ThresholdRule::PrecisionTarget, 85));
        assert!(settings.is_review_readable() && settings.notes().is_empty() && !settings.config().review.enabled);
    }

    #[test]
    fn the_lower_limit_of_cost_holds() {
        let cost = |text: &str, operator| read(text).monthly_cost(operator);
        assert_eq!(cost("budget: {monthlyCostUsd: 5}", None), Some(5.0));
        assert_eq!(cost("budget: {monthlyCostUsd: 5}", Some(3.0)), Some(3.0));
        assert_eq!(cost("budget: {monthlyCostUsd: 5}", Some(9.0)), Some(5.0));
        assert_eq!(cost("budget: {monthlyCostUsd: 0}", Some(9.0)), Some(9.0));
        // If neither the repository nor the operator has a limit, there is none.
        assert_eq!(cost("budget: {monthlyCostUsd: 0}", None), None);
        assert_eq!(cost("", None), None);
        assert_eq!(cost("budget: {monthlyCostUsd: a lot}", None), Some(0.0));
    }

    #[test]
    fn a_mistake_is_shown_and_a_file_without_any_sense_reviews_nothing() {
        let elsewhere = read("review: {enabled: true}\ntriage: {mode: loud}");
        assert!(elsewhere.is_review_readable() && elsewhere.config().review.enabled && elsewhere.notes().len() == 1);
        for senseless in ["- a list", "{", "just words", "review: {enabled: true, maxComments: 99}", "reviews: {}"] {
            let settings = read(senseless);
            let is_on = settings.is_review_readable() || settings.config().review.enabled;
            assert!(!is_on && settings.notes().len() == 1, "{senseless}");
        }
    }
}
