//! Credentials that were pushed: removing one from the code does not make it secret again.

use crate::review::{Finding, Witness};

/// The built-in rule that reports credentials.
pub const LEAKED_CREDENTIAL_RULE: &str = "leaked-credential";

/// The names of tools that report only secrets.
const SECRET_SCANNERS: [&str; 9] = [
    "gitleaks",
    "trufflehog",
    "detect-secrets",
    "ggshield",
    "gitguardian",
    "secretlint",
    "noseyparker",
    "kingfisher",
    "betterleaks",
];

/// Weakness names for credentials, passwords and cryptographic keys in code, as other tools use them.
const CREDENTIAL_TAGS: [&str; 3] = ["cwe-798", "cwe-259", "cwe-321"];

/// The message about a credential that was pushed and then removed from the code.
const STILL_LEAKED: &str = "The credential was removed from the code, but stays readable in the branch's history, and on GitHub even \
    after a force-push. Revoke it. Then a maintainer can dismiss this finding in its thread.";

impl Finding {
    /// Whether the finding reports a credential in the code. A model alone is not enough: it may be wrong, and its
    /// finding could never become fixed.
    pub fn leaks_credential(&self) -> bool {
        let is_scanner = |one: &Witness| {
            let name = one.reviewer.as_str();
            let is_own = name == "builtin" && one.rule.as_deref() == Some(LEAKED_CREDENTIAL_RULE);
            is_own || SECRET_SCANNERS.contains(&name)
        };
        let is_tagged = CREDENTIAL_TAGS.iter().any(|tag| self.tags.contains(*tag));
        let has_tool = self.witnesses.iter().any(|one| !one.reviewer.is_model());
        self.witnesses.iter().any(is_scanner) || (is_tagged && has_tool)
    }

    /// Whether the finding reports a credential whose line was removed.
    pub fn is_removed_credential(&self) -> bool {
        self.lines.is_none() && self.code.is_some() && self.leaks_credential()
    }

    /// Replaces the message of a removed credential: it must still be revoked.
    pub(super) fn tell_removed_credential(&mut self) {
        if self.is_removed_credential() {
            self.message = STILL_LEAKED.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::review::finding::tests::finding;
    use crate::review::{Finding, ReviewerName};

    #[test]
    fn tools_and_rules_witness_a_credential_and_a_model_alone_does_not() {
        let by = |reviewer: ReviewerName, rule: Option<&str>, tags: &[&str]| {
            let mut one: Finding = finding("a.js", 3, reviewer, "Secret");
            one.witnesses[0].rule = rule.map(str::to_owned);
            one.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            one.leaks_credential()
        };
        assert!(by(ReviewerName::builtin(), Some("leaked-credential"), &[]));
        assert!(!by(ReviewerName::builtin(), Some("debug-leftover"), &[]));
        assert!(by(ReviewerName::tool("Gitleaks"), Some("aws-access-token"), &[]));
        assert!(by(ReviewerName::tool("semgrep"), Some("x"), &["cwe-798"]));
        assert!(!by(ReviewerName::tool("semgrep"), Some("leaked-credential"), &["cwe-89"]));
        assert!(!by(ReviewerName::model(), None, &["cwe-798"]));
    }
}
