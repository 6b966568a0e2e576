//! A credential that was pushed: taking it out of the code does not take it back.

use crate::review::{Finding, Witness};

/// The built-in rule that reports credentials.
pub const LEAKED_CREDENTIAL_RULE: &str = "leaked-credential";

/// Tools that report nothing but secrets, by the names that they give themselves.
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

/// Credentials, passwords and cryptographic keys in code, as other tools name them.
const CREDENTIAL_TAGS: [&str; 3] = ["cwe-798", "cwe-259", "cwe-321"];

/// What is said of a credential that is gone from the code, and was pushed.
const STILL_LEAKED: &str = "It is gone from the code, but it was pushed: whoever saw the branch can still use it, and its commit \
    stays readable on GitHub, also after a force-push or a squash. Revoke it. Then a maintainer can dismiss this: \
    resolve its thread, or reply `not useful` to it.";

impl Finding {
    /// Whether it reports a credential in the code. A model alone is no witness of that: it may be wrong, and what it
    /// reports would never be fixed.
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

    /// Whether it reports a credential whose line is gone.
    pub fn is_removed_credential(&self) -> bool {
        self.lines.is_none() && self.code.is_some() && self.leaks_credential()
    }

    /// Says of a removed credential that it is still to be revoked.
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
