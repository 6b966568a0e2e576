//! The parts of a SARIF log that are read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifLog<'a> {
    #[serde(default)]
    pub(super) version: Value,
    /// One by one, so that a run that is not what it should be costs only itself.
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) runs: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifRun<'a> {
    #[serde(borrow)]
    pub(super) tool: SarifTool<'a>,
    /// One by one, so that a result that is not what it should be costs only itself.
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) results: Vec<&'a RawValue>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) artifacts: Vec<SarifArtifact>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) invocations: Vec<SarifInvocation>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) original_uri_base_ids: BTreeMap<String, ArtifactLocation>,
}

#[derive(Deserialize)]
pub(super) struct SarifTool<'a> {
    #[serde(borrow)]
    pub(super) driver: SarifComponent<'a>,
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) extensions: Vec<SarifComponent<'a>>,
}

#[derive(Deserialize)]
pub(super) struct SarifComponent<'a> {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) rules: Vec<SarifRule<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifRule<'a> {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) short_description: Option<SarifMessage>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) default_configuration: Option<SarifConfiguration>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) message_strings: BTreeMap<String, SarifMessage>,
    /// Read when it is asked for: it may hold anything, in any amount.
    #[serde(default, borrow)]
    pub(super) properties: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
pub(super) struct SarifConfiguration {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) level: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifResult<'a> {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) rule_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) rule_index: Option<i64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) rule: Option<RuleReference>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) level: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) message: SarifMessage,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) locations: Vec<SarifLocation>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) partial_fingerprints: BTreeMap<String, Value>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) fingerprints: BTreeMap<String, Value>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) suppressions: Vec<SarifSuppression>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) fixes: Vec<Fix>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) baseline_state: Option<String>,
    /// Read when it is asked for: it may hold anything, in any amount.
    #[serde(default, borrow)]
    pub(super) properties: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RuleReference {
    pub(super) id: Option<String>,
    pub(super) index: Option<i64>,
    pub(super) tool_component: Option<ComponentReference>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ComponentReference {
    pub(super) index: Option<i64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct SarifMessage {
    pub(super) text: Option<String>,
    pub(super) id: Option<String>,
    pub(super) arguments: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SarifLocation {
    pub(super) physical_location: Option<PhysicalLocation>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PhysicalLocation {
    pub(super) artifact_location: Option<ArtifactLocation>,
    pub(super) region: Option<SarifRegion>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ArtifactLocation {
    pub(super) uri: Option<String>,
    pub(super) uri_base_id: Option<String>,
    pub(super) index: Option<i64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SarifRegion {
    pub(super) start_line: Option<i64>,
    pub(super) end_line: Option<i64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct SarifArtifact {
    pub(super) location: Option<ArtifactLocation>,
    pub(super) roles: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SarifInvocation {
    pub(super) execution_successful: Option<bool>,
    pub(super) working_directory: Option<ArtifactLocation>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Fix {
    pub(super) description: Option<SarifMessage>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Properties {
    pub(super) security_severity: Value,
    pub(super) tags: Value,
}

impl Properties {
    pub(super) fn of(raw: Option<&RawValue>) -> Self {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct SarifSuppression {
    pub(super) status: Option<String>,
}

/// Null where SARIF wants a value: tools write it all the same.
fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
