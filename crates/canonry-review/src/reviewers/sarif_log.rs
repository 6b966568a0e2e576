//! Defines the parts of a SARIF log that are read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifLog<'a> {
    #[serde(default)]
    pub(super) version: Value,
    /// Parsed one by one, so that an invalid run does not spoil the others.
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) runs: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifRun<'a> {
    #[serde(borrow)]
    pub(super) tool: SarifTool<'a>,
    /// Parsed one by one, so that an invalid result does not spoil the others.
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub(super) results: Vec<&'a RawValue>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) artifacts: Vec<SarifArtifact>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) invocations: Vec<SarifInvocation>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) original_uri_base_ids: BTreeMap<String, ArtifactLocation>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) version_control_provenance: Vec<SarifProvenance>,
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
    pub(super) short_description: Option<SarifMessage>,
    pub(super) default_configuration: Option<SarifConfiguration>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) message_strings: BTreeMap<String, SarifMessage>,
    /// Parsed on demand: it may contain anything, in any amount.
    #[serde(default, borrow)]
    pub(super) properties: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifResult<'a> {
    pub(super) rule_id: Option<String>,
    pub(super) rule_index: Option<i64>,
    pub(super) rule: Option<RuleReference>,
    pub(super) level: Option<String>,
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
    pub(super) baseline_state: Option<String>,
    /// Parsed on demand: it may contain anything, in any amount.
    #[serde(default, borrow)]
    pub(super) properties: Option<&'a RawValue>,
}

/// Objects in which everything may be absent.
macro_rules! sarif_objects {
    ($($name:ident { $($field:ident: $type:ty),* })*) => {$(
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        pub(super) struct $name {
            $(pub(super) $field: $type),*
        }
    )*};
}

sarif_objects! {
    RuleReference { id: Option<String>, index: Option<i64>, tool_component: Option<ComponentReference> }
    ComponentReference { index: Option<i64> }
    SarifMessage { text: Option<String>, id: Option<String>, arguments: Vec<String> }
    SarifLocation { physical_location: Option<PhysicalLocation> }
    PhysicalLocation { artifact_location: Option<ArtifactLocation>, region: Option<SarifRegion> }
    ArtifactLocation { uri: Option<String>, uri_base_id: Option<String>, index: Option<i64> }
    SarifRegion { start_line: Option<i64>, end_line: Option<i64> }
    SarifArtifact { location: Option<ArtifactLocation>, roles: Vec<String> }
    SarifInvocation { execution_successful: Option<bool>, working_directory: Option<ArtifactLocation> }
    Fix { description: Option<SarifMessage> }
    SarifSuppression { status: Option<String> }
    SarifConfiguration { level: Option<String> }
    SarifProvenance { revision_id: Option<String> }
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

/// Accepts null for a value that SARIF requires: tools write it anyway.
fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
