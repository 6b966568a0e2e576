//! Builds the rules of a SARIF run: one for each pattern of the findings.

use std::collections::BTreeMap;

use canonry_domain::review::{Category, Finding, Severity};
use serde_json::{Value, json};

use super::diagnostic::rule_id;

#[derive(Debug, Default)]
pub(super) struct SarifRuleTable {
    places: BTreeMap<String, usize>,
    rules: Vec<SarifRuleEntry>,
}

#[derive(Debug)]
struct SarifRuleEntry {
    id: String,
    title: String,
    severity: Severity,
    /// `None` if its findings have several categories.
    category: Option<Category>,
}

impl SarifRuleTable {
    pub(super) fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let mut rules = Self::default();
        for finding in findings {
            rules.add(finding);
        }
        rules
    }

    fn add(&mut self, finding: &Finding) {
        let id = rule_id(finding);
        match self.places.get(&id) {
            Some(at) => {
                let rule = &mut self.rules[*at];
                rule.severity = rule.severity.max(finding.severity);
                rule.category = rule.category.filter(|category| *category == finding.category);
            }
            None => {
                self.places.insert(id.clone(), self.rules.len());
                let title = finding.title.clone();
                let (severity, category) = (finding.severity, Some(finding.category));
                self.rules.push(SarifRuleEntry { id, title, severity, category });
            }
        }
    }

    pub(super) fn index_of(&self, id: &str) -> Option<usize> {
        self.places.get(id).copied()
    }

    pub(super) fn into_values(self) -> Vec<Value> {
        self.rules.into_iter().map(SarifRuleEntry::into_value).collect()
    }
}

impl SarifRuleEntry {
    fn into_value(self) -> Value {
        let mut value = json!({
            "id": self.id,
            "shortDescription": {"text": self.title},
            "defaultConfiguration": {"level": level(self.severity)},
        });
        // A tag or score that fits only some of the findings would be applied to all.
        if let Some(category) = self.category {
            value["properties"] = json!({"tags": [category.as_str()]});
            if let Some(score) = security_severity(self.severity, category) {
                value["properties"]["security-severity"] = score.into();
            }
        }
        value
    }
}

/// The SARIF level of a severity.
pub(super) fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::Major => "error",
        Severity::Medium => "warning",
        Severity::Minor => "note",
    }
}

/// The score from which GitHub derives critical, high, medium and low; only security findings have one.
pub(super) fn security_severity(severity: Severity, category: Category) -> Option<&'static str> {
    (category == Category::Security).then_some(match severity {
        Severity::Critical => "9.5",
        Severity::Major => "8.0",
        Severity::Medium => "5.5",
        Severity::Minor => "2.0",
    })
}
