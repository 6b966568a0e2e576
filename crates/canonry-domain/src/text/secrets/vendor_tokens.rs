//! Recognizes the tokens of vendors by prefix, alphabet and length.
//!
//! The formats are those that the vendors document. A row is enough to add one.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::Regex;

/// A token's name, what it begins with, and a pattern of what follows: alphabets and lengths.
type TokenFormat = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const FORMATS: &[TokenFormat] = &[
    // Code hosts, package registries, builds.
    ("GitHub token", "ghp_", GITHUB),
    ("GitHub token", "gho_", GITHUB),
    ("GitHub token", "ghu_", GITHUB),
    ("GitHub token", "ghs_", GITHUB),
    ("GitHub token", "ghr_", GITHUB),
    ("GitHub token", "github_pat_", "[A-Za-z0-9_]{22,255}"),
    ("GitLab token", "glpat-", GITLAB),
    ("GitLab token", "gldt-", GITLAB),
    ("GitLab token", "glrt-", GITLAB),
    ("GitLab token", "glrtr-", GITLAB),
    ("GitLab token", "glwt-", GITLAB),
    ("GitLab token", "glptt-", GITLAB),
    ("GitLab token", "glft-", GITLAB),
    ("GitLab token", "glcbt-", GITLAB),
    ("GitLab token", "glimt-", GITLAB),
    ("GitLab token", "glagent-", GITLAB),
    ("GitLab token", "gloas-", GITLAB),
    ("GitLab token", "glsoat-", GITLAB),
    ("GitLab token", "glffct-", GITLAB),
    ("GitLab token", "GR1348941", "[A-Za-z0-9_-]{20}"),
    ("Bitbucket token", "ATBB", "[A-Za-z0-9]{24}[A-F0-9]{8}|[A-Za-z0-9_=.-]{32}"),
    ("Bitbucket token", "ATCTT3xFfG", "[A-Za-z0-9_=-]{80,800}"),
    ("Bitbucket token", "BBDC-", "[A-Za-z0-9+/_-]{40,44}"),
    ("npm token", "npm_", "[A-Za-z0-9]{36}"),
    ("PyPI token", "pypi-AgEI", "[A-Za-z0-9_-]{40,}"),
    ("PyPI token", "pypi-", "[A-Za-z0-9_-]{85,}"),
    ("RubyGems key", "rubygems_", "[a-f0-9]{48}"),
    ("crates.io token", "cio", "[A-Za-z0-9]{32}"),
    ("NuGet key", "oy2", "[a-z0-9]{43}"),
    ("Clojars token", "CLOJARS_", "[A-Za-z0-9]{60}"),
    ("Docker token", "dckr_pat_", "[A-Za-z0-9_-]{27,32}"),
    ("Docker token", "dckr_oat_", "[A-Za-z0-9_-]{27,32}"),
    ("Docker Swarm token", "SWMTKN-1-", "[0-9a-z]{50}-[0-9a-z]{25}"),
    ("Docker Swarm key", "SWMKEY-1-", "[A-Za-z0-9+/]{43}"),
    ("Artifactory key", "AKCp", "[A-Za-z0-9_-]{69}"),
    ("Artifactory token", "cmVmdGtu", "[A-Za-z0-9_-]{56}"),
    ("CircleCI token", "CCIPAT_", "[A-Za-z0-9]{22}_[0-9a-f]{40}"),
    ("CircleCI token", "CCIPRJ_", "[A-Za-z0-9]{22}_[0-9a-f]{40}"),
    ("Buildkite token", "bkua_", "[a-z0-9]{40}"),
    ("SonarQube token", "sqp_", HEX40),
    ("SonarQube token", "squ_", HEX40),
    ("SonarQube token", "sqa_", HEX40),
    ("Sourcegraph token", "sgp_", "(?:(?:[a-f0-9]{16}|local)_)?[a-f0-9]{40}|[A-Za-z0-9]{64}"),
    ("Postman key", "PMAK-", "[a-f0-9]{24}-[a-f0-9]{34}"),
    ("Postman token", "PMAT-", "[0-9A-Z]{26}"),
    ("Pulumi token", "pul-", HEX40),
    ("Infracost key", "ico-", "[A-Za-z0-9]{32}"),
    ("Prefect key", "pnu_", "[A-Za-z0-9]{36}"),
    ("Octopus Deploy key", "API-", "[A-Z0-9]{25,26}"),
    ("Harness token", "pat.", "[A-Za-z0-9_-]{22}\\.[0-9a-f]{24}\\.[A-Za-z0-9]{20}"),
    ("Harness token", "sat.", "[A-Za-z0-9_-]{22}\\.[0-9a-f]{24}\\.[A-Za-z0-9]{20}"),
    ("WakaTime key", "waka_", UUID),
    // Clouds.
    ("Google key", "AIza", "[A-Za-z0-9_-]{35}"),
    ("Google client secret", "GOCSPX-", "[A-Za-z0-9_-]{28}"),
    ("Google access token", "ya29.", "[A-Za-z0-9_-]{22,}"),
    ("Google refresh token", "1//0", "[A-Za-z0-9_-]{40,}"),
    ("AWS key", "ABSK", "[A-Za-z0-9+/]{109,269}={0,2}"),
    ("AWS key", "bedrock-api-key-", "[A-Za-z0-9+/=]{28,}"),
    ("AWS key", "da2-", "[a-z0-9]{26}"),
    ("AWS key", "amzn.mws.", "[0-9a-z]{8}-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{12}"),
    ("Alibaba key", "LTAI", "[A-Za-z0-9]{12,26}"),
    ("Tencent key", "AKID", "[A-Za-z0-9]{32}"),
    ("Yandex key", "AQVN", "[A-Za-z0-9_-]{35,38}"),
    ("DigitalOcean token", "dop_v1_", HEX64),
    ("DigitalOcean token", "doo_v1_", HEX64),
    ("DigitalOcean token", "dor_v1_", HEX64),
    ("DigitalOcean token", "dos_v1_", HEX64),
    ("Heroku key", "HRKU-", "[A-Za-z0-9_-]{36,60}"),
    ("Cloudflare key", "v1.0-", "[a-f0-9]{24}-[a-f0-9]{146}"),
    ("Cloudflare token", "cfat_", "[A-Za-z0-9]{40}[0-9a-f]{8}"),
    ("Cloudflare token", "cfut_", "[A-Za-z0-9]{40}[0-9a-f]{8}"),
    ("Cloudflare key", "cfk_", "[A-Za-z0-9]{40}[0-9a-f]{8}"),
    ("Fly.io token", "fo1_", "[A-Za-z0-9_-]{43}"),
    ("Fly.io token", "fm1r_", "[A-Za-z0-9+/=]{100,}"),
    ("Fly.io token", "fm2_", "[A-Za-z0-9+/=]{100,}"),
    ("Netlify token", "nfp_", "[A-Za-z0-9_]{36}"),
    ("Vercel token", "vcp_", "[A-Za-z0-9_-]{56}"),
    ("Supabase token", "sbp_", "(?:v0_)?[a-f0-9]{40}"),
    ("Supabase key", "sb_secret_", "[A-Za-z0-9_-]{31}"),
    ("PlanetScale token", "pscale_tkn_", "[A-Za-z0-9_.=-]{32,64}"),
    ("PlanetScale token", "pscale_oauth_", "[A-Za-z0-9_.=-]{32,64}"),
    ("PlanetScale password", "pscale_pw_", "[A-Za-z0-9_.=-]{32,64}"),
    ("Databricks token", "dapi", "[a-f0-9]{32}(?:-\\d)?"),
    ("Aiven password", "AVNS_", "[A-Za-z0-9_-]{19}"),
    ("CockroachDB key", "CCDB1_", "[A-Za-z0-9]{22}_[A-Za-z0-9]{40}"),
    ("Vault token", "hvs.", "[A-Za-z0-9_-]{24,160}"),
    ("Vault token", "hvb.", "[A-Za-z0-9_-]{24,300}"),
    ("Vault token", "hvr.", "[A-Za-z0-9_-]{24,160}"),
    ("Tailscale key", "tskey-", "(?:api|auth|client|scim|webhook)-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{24,40}"),
    ("Doppler token", "dp.", "(?:pt|st|ct|sa|scim|audit)(?:\\.[a-z0-9_-]{2,35})?\\.[A-Za-z0-9]{40,44}"),
    ("1Password token", "ops_eyJ", "[A-Za-z0-9+/_-]{160,}={0,3}"),
    ("1Password secret key", "A3-", "[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}"),
    ("age secret key", "AGE-SECRET-KEY-1", "[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    ("OpenShift token", "sha256~", "[A-Za-z0-9_-]{43}"),
    ("Rancher token", "token-", "[a-z0-9]{5}:[a-z0-9]{54}"),
    ("Defined Networking key", "dnkey-", "[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}"),
    ("Akamai token", "akab-", "[a-z0-9]{16}-[a-z0-9]{16}"),
    // Observability.
    ("Grafana token", "glsa_", "[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    ("Grafana token", "glc_", "[A-Za-z0-9+/_-]{32,400}={0,3}"),
    ("Grafana key", "eyJrIjoi", "[A-Za-z0-9+/_-]{60,400}={0,3}"),
    ("New Relic key", "NRAK-", "[A-Z0-9]{27}"),
    ("New Relic key", "NRJS-", "[a-f0-9]{19}"),
    ("New Relic key", "NRBR-", "[a-f0-9]{19,20}"),
    ("New Relic key", "NRII-", "[A-Za-z0-9_-]{25,32}"),
    ("Dynatrace token", "dt0", "[a-z][0-9]{2}\\.[A-Z0-9]{24}\\.[A-Z0-9]{64}"),
    ("Sentry token", "sntrys_", "[A-Za-z0-9+/=_-]{60,}"),
    ("Sentry token", "sntryu_", HEX64),
    ("PostHog key", "ph", "[rsx]_[A-Za-z0-9]{40,60}"),
    ("LaunchDarkly key", "sdk-", UUID),
    ("LaunchDarkly token", "api-", UUID),
    // Models.
    ("Anthropic key", "sk-ant-", "[A-Za-z0-9_-]{24,}"),
    ("OpenRouter key", "sk-or-v1-", HEX64),
    ("Langfuse key", "sk-lf-", UUID),
    ("OpenAI key", "sk-proj-", "[A-Za-z0-9_-]{32,}"),
    ("OpenAI key", "sk-svcacct-", "[A-Za-z0-9_-]{32,}"),
    ("OpenAI key", "sk-admin-", "[A-Za-z0-9_-]{32,}"),
    // Several vendors use this form: OpenAI in its first years, DeepSeek, Stability.
    ("OpenAI key", "sk-", "[A-Za-z0-9_-]{16,160}T3BlbkFJ[A-Za-z0-9_-]{16,160}|[A-Za-z0-9]{32,64}"),
    ("Hugging Face token", "hf_", "[A-Za-z0-9]{34}"),
    ("Hugging Face token", "api_org_", "[A-Za-z]{34}"),
    ("Groq key", "gsk_", "[A-Za-z0-9_-]{52,56}"),
    ("Perplexity key", "pplx-", "[A-Za-z0-9_-]{40,64}"),
    ("Replicate token", "r8_", "[A-Za-z0-9]{37}"),
    ("xAI key", "xai-", "[A-Za-z0-9_-]{80}"),
    ("NVIDIA key", "nvapi-", "[A-Za-z0-9_-]{60,70}"),
    ("Pinecone key", "pcsk_", "[A-Za-z0-9]{5,6}_[A-Za-z0-9]{55,63}"),
    ("LangSmith key", "lsv2_", "(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("Cerebras key", "csk-", "[a-z0-9]{48}"),
    ("LlamaCloud key", "llx-", "[A-Za-z0-9_-]{48}"),
    ("Tavily key", "tvly-", "[A-Za-z0-9_-]{32,50}"),
    ("Together key", "tgp_v1_", "[A-Za-z0-9_-]{43}"),
    // Messages.
    ("Slack token", "xapp-", "[A-Za-z0-9-]{16,}"),
    ("Slack token", "xoxb-", "[A-Za-z0-9-]{16,}"),
    ("Slack token", "xoxp-", "[A-Za-z0-9-]{16,}"),
    ("Slack token", "xoxa-", "[A-Za-z0-9-]{16,}"),
    ("Slack token", "xoxr-", "[A-Za-z0-9-]{16,}"),
    ("Slack token", "xoxs-", "[A-Za-z0-9-]{16,}"),
    ("Slack token", "xoxo-", "[A-Za-z0-9-]{16,}"),
    ("Slack token", "xoxe-", "[A-Za-z0-9-]{16,}"),
    ("Slack token", "xoxe.xox", "[bp]-[A-Za-z0-9-]{16,}"),
    ("SendGrid key", "SG.", "[A-Za-z0-9_-]{16,32}\\.[A-Za-z0-9_-]{16,64}"),
    ("Mailgun key", "key-", "[a-z0-9]{32}"),
    ("Nylas key", "nyk_v0_", "[A-Za-z0-9_-]{64}"),
    ("Brevo key", "xkeysib-", "[a-f0-9]{64}-[A-Za-z0-9_-]{16}"),
    ("Twilio key", "SK", "[a-fA-F0-9]{32}"),
    ("Resend key", "re_", "[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    ("MailerSend token", "mlsn.", HEX64),
    ("Facebook token", "EAA", "[A-Za-z0-9]{80,800}"),
    ("Instagram token", "IGQ", "[A-Za-z0-9_=-]{80,}"),
    ("X token", "AAAAAAAAAAAAAAAAAAAAA", "[A-Za-z0-9%]{40,200}"),
    // Money and shops.
    ("Stripe key", "sk_", STRIPE),
    ("Stripe key", "rk_", STRIPE),
    ("Stripe webhook secret", "whsec_", "[A-Za-z0-9+/]{24,}={0,2}"),
    ("Square token", "EAAA", "[A-Za-z0-9_-]{60}"),
    ("Square token", "sq0", "(?:atp|csp)-[A-Za-z0-9_-]{22,43}"),
    ("Shopify token", "shp", "(?:at|ca|pa|ss|tka|ua)_[a-fA-F0-9]{32}"),
    ("Braintree token", "access_token$production$", "[0-9a-z]{16}\\$[0-9a-z]{32}"),
    ("Plaid token", "access-", "(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f-]{27}"),
    ("Flutterwave key", "FLWSECK", "(?:_TEST)?-[A-Za-z0-9]{12,32}(?:-X)?"),
    ("Razorpay key", "rzp_live_", "[A-Za-z0-9]{14}"),
    ("Shippo token", "shippo_", "(?:live|test)_[a-f0-9]{40}"),
    ("EasyPost key", "EZ", "[AT]K[A-Za-z0-9]{54}"),
    ("Duffel token", "duffel_", "(?:live|test)_[A-Za-z0-9_=-]{43}"),
    // Work.
    ("Atlassian token", "ATATT3", "[A-Za-z0-9_=-]{80,800}"),
    ("Airtable token", "pat", "[A-Za-z0-9]{14}\\.[a-f0-9]{64}"),
    ("Notion token", "ntn_", "[0-9]{9,11}[A-Za-z0-9_-]{35,}"),
    ("Notion token", "secret_", "[A-Za-z0-9]{43}"),
    ("Linear key", "lin_", "(?:api|oauth)_[A-Za-z0-9]{40,64}"),
    ("Figma token", "fig", "[dor]_[A-Za-z0-9_-]{40,}"),
    ("Contentful token", "CFPAT-", "[A-Za-z0-9_-]{43}"),
    ("Typeform token", "tfp_", "[A-Za-z0-9_.=-]{56,60}"),
    ("HubSpot token", "pat-", "(?:na|eu|ap)[0-9]-[0-9a-f]{8}-[0-9a-f-]{27}"),
    ("Dropbox token", "sl.", "(?:u\\.)?[A-Za-z0-9_=-]{77,}"),
    ("WunderGraph key", "cosmo_", "[a-f0-9]{32}"),
    ("Riot Games key", "RGAPI-", UUID),
    ("Adafruit key", "aio_", "[A-Za-z0-9]{28}"),
    ("ReadMe key", "rdme_", "[a-z0-9]{70}"),
];

const GITHUB: &str = "[A-Za-z0-9][A-Za-z0-9_.-]{34,254}[A-Za-z0-9]";
const GITLAB: &str = "[A-Za-z0-9_-]{20,300}(?:\\.[a-z0-9]{2}\\.[a-z0-9]{9}|\\.[a-z0-9]{9})?";
const STRIPE: &str = "(?:live|test|prod)_[A-Za-z0-9]{16,247}";
const HEX40: &str = "[a-f0-9]{40}";
const HEX64: &str = "[a-f0-9]{64}";
const UUID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

static PREFIXES: LazyLock<Regex> = LazyLock::new(|| {
    let prefixes: Vec<String> = FORMATS.iter().map(|(_, prefix, _)| regex::escape(prefix)).collect();
    Regex::new(&prefixes.join("|")).expect("invariant: constant prefixes")
});

/// The patterns of what follows a prefix; most processes meet few of them.
static BODIES: [OnceLock<Regex>; FORMATS.len()] = [const { OnceLock::new() }; FORMATS.len()];

/// The vendors' tokens in a text, each with its name.
pub(super) fn find_vendor_tokens(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(prefix) = PREFIXES.find_at(text, from) {
        let start = prefix.start();
        match token_at(text, start) {
            Some((name, range)) => {
                from = range.end;
                found.push((name, range));
            }
            None => from = start + 1,
        }
        while !text.is_char_boundary(from) {
            from += 1;
        }
    }
    found
}

fn token_at(text: &str, start: usize) -> Option<(&'static str, Range<usize>)> {
    if text[..start].ends_with(is_word) {
        return None;
    }
    let rest = &text[start..];
    FORMATS.iter().zip(&BODIES).find_map(|((name, prefix, body), compiled)| {
        let after = rest.strip_prefix(prefix)?;
        let whole = || Regex::new(&format!("^(?:{body})")).expect("invariant: a constant pattern");
        let end = compiled.get_or_init(whole).find(after)?.end();
        let is_whole = !after[end..].starts_with(is_word);
        (is_whole && is_varied(&after[..end])).then(|| (*name, start..start + prefix.len() + end))
    })
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Whether something random could look like this: words, names and runs of one character do not. Redaction prefers one
/// secret too many.
fn is_varied(body: &str) -> bool {
    let mut seen = [false; 128];
    for byte in body.bytes().filter(u8::is_ascii) {
        seen[usize::from(byte)] = true;
    }
    let has = |kind: fn(&u8) -> bool| body.bytes().any(|byte| kind(&byte));
    let is_mixed = has(u8::is_ascii_digit) || (has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase));
    is_mixed && seen.iter().filter(|seen| **seen).count() >= 4 && !is_sequence_of_words(body)
}

/// Whether a text is words joined by signs, such as a class name or a path.
fn is_sequence_of_words(body: &str) -> bool {
    let words = body.split(['-', '_', '.', '/']).filter(|part| !part.is_empty());
    let mut count = 0;
    let all = words.into_iter().all(|part| {
        count += 1;
        let letters = part.trim_end_matches(|character: char| character.is_ascii_digit());
        part.len() <= 16 && part.len() - letters.len() <= 3 && letters.bytes().all(|byte| byte.is_ascii_lowercase())
    });
    all && count >= 3
}

#[cfg(test)]
mod tests {
    use super::{FORMATS, find_vendor_tokens};
    use proptest::prelude::{any, prop_assert, proptest};
    use proptest::strategy::{Strategy as _, ValueTree as _};
    use proptest::test_runner::TestRunner;

    #[test]
    fn every_format_is_found_and_named() {
        let mut runner = TestRunner::deterministic();
        for (name, prefix, body) in FORMATS.iter().copied() {
            let bodies = proptest::string::string_regex(body).expect("a pattern");
            for _ in 0..20 {
                let token = format!("{prefix}{}", bodies.new_tree(&mut runner).expect("a value").current());
                let text = format!("x = \"{token}\"\n");
                let found = find_vendor_tokens(&text);
                let is_plain = token[prefix.len()..].chars().collect::<std::collections::BTreeSet<_>>().len() < 8;
                assert!(is_plain || found.first().is_some_and(|(_, range)| range.start == 5), "{name}: {token}");
                assert!(find_vendor_tokens(&format!("a{token}")).iter().all(|(_, range)| range.start != 1), "{token}");
            }
        }
    }

    #[test]
    fn what_only_begins_like_a_token() {
        for text in [
            "sk-learn-contrib-some-package-of-many-words",
            "key-value-store-of-the-service",
            "npm_config_registry_of_the_whole_company_1",
            "SG.getSomething.ofSomeObject",
            "API-REFERENCE-FOR-EVERYBODY",
            "sha256~aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "pat.matches.some.thing",
            "hf_hub_download_file_from_the_remote_host",
        ] {
            assert_eq!(find_vendor_tokens(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in any::<String>()) {
            for (_, range) in find_vendor_tokens(&text) {
                prop_assert!(text.get(range).is_some());
            }
        }
    }
}
