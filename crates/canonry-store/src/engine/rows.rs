//! Reads structs of domain values from rows of both engines.

use std::collections::BTreeMap;
use std::error::Error;

use canonry_domain::review::{
    Category, CodeExcerpt, CodeHash, CommitSha, Confidence, DismissalKind, Dismisser, Finding, FindingStatus,
    Fingerprint, HiddenBy, RepoPath, ReviewMode, ReviewSubject, Severity, ShownAs,
};
use canonry_domain::{
    ActionReason, AdjudicatedAnswer, AuditCandidate, AuditClass, Boilerplate, Component, ContentHash, ContentVersion,
    CurrentThreshold, DecisionOrigin, DecisionStatus, EventBy, Extractor, FixKind, GithubId, GoneReason, IssueOutcome,
    ItemNumber, ItemState, ItemType, LaneStatus, Lesson, LessonKind, Login, OutcomeKind, OverrideKind, Probability,
    PullChanges, RepoName, Similarity, SkipReason, StateReason, Structure, TargetPolicy, Threshold, ThresholdSource,
    TriageMode, Verdict, WriteKind, WriteOrigin,
};
use jiff::Timestamp;
use serde::Deserialize as _;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::types::Json;
use sqlx::{Decode, Postgres, Row as _, Sqlite, Type};

use crate::close::brakes::BrakeKind;
use crate::close::graces::GraceState;
use crate::close::objections::ObjectionKind;
use crate::close::runs::CloseMode;
use crate::corpus::maintainers::MaintainerSource;
use crate::corpus::repo_access::RepoAccess;
use crate::deliveries::log::DeliveryState;
use crate::deliveries::mentions::{MentionOutcome, MentionPlace};
use crate::duplicates::candidate_sets::{Representation, SetStatus};
use crate::duplicates::judge_decisions::DecidedCandidate;
use crate::duplicates::triage_actions::TriageActionKind;
use crate::jobs::queue::JobState;
use crate::outbox::entries::{OutboxState, WritePriority};
use crate::review::posted_findings::PostedThreadState;
use crate::review::runs::ReviewState;

/// A type that both engines can decode.
pub(crate) trait RawColumn:
    for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>
{
}

impl<T> RawColumn for T where
    T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>
{
}

/// A value in one column.
pub(crate) trait Column: Sized {
    type RawValue: RawColumn;

    fn from_raw(raw: Self::RawValue) -> Result<Self, Box<dyn Error + Send + Sync>>;
}

/// A row of either engine.
pub(crate) trait StoreRow {
    fn raw<T: RawColumn>(&self, column: &str) -> Result<T, sqlx::Error>;
    fn raw_at<T: RawColumn>(&self, index: usize) -> Result<T, sqlx::Error>;

    fn column<T: Column>(&self, column: &str) -> Result<T, sqlx::Error> {
        T::from_raw(self.raw(column)?).map_err(|error| unreadable(column, error))
    }

    fn at<T: Column>(&self, index: usize) -> Result<T, sqlx::Error> {
        T::from_raw(self.raw_at(index)?).map_err(|error| unreadable(&index.to_string(), error))
    }
}

macro_rules! store_rows {
    ($($row:ty),+) => {
        $(impl StoreRow for $row {
            fn raw<T: RawColumn>(&self, column: &str) -> Result<T, sqlx::Error> {
                self.try_get(column)
            }

            fn raw_at<T: RawColumn>(&self, index: usize) -> Result<T, sqlx::Error> {
                self.try_get(index)
            }
        }

        impl<T: ReadRow> sqlx::FromRow<'_, $row> for Read<T> {
            fn from_row(row: &$row) -> Result<Self, sqlx::Error> {
                T::read_row(row).map(Self)
            }
        }

        impl<K: Column, T: ReadRow> sqlx::FromRow<'_, $row> for Keyed<K, T> {
            fn from_row(row: &$row) -> Result<Self, sqlx::Error> {
                Ok(Self(StoreRow::column(row, "key")?, T::read_row(row)?))
            }
        })+
    };
}

store_rows!(SqliteRow, PgRow);

/// The error for a column with something that this program never writes.
pub(crate) fn unreadable(column: &str, error: impl Into<Box<dyn Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_owned(), source: error.into() }
}

/// A value in several columns.
pub(crate) trait ReadRow: Sized {
    fn read_row(row: &impl StoreRow) -> Result<Self, sqlx::Error>;
}

/// Wraps a value of another crate, for which `from_row!` cannot implement sqlx's trait.
pub(crate) struct Read<T>(pub(crate) T);

/// A value together with the column `key`.
pub(crate) struct Keyed<K, T>(pub(crate) K, pub(crate) T);

pub(crate) fn unwrap_all<T>(rows: Vec<Read<T>>) -> Vec<T> {
    rows.into_iter().map(|Read(row)| row).collect()
}

pub(crate) fn keyed<K, T>(rows: Vec<Keyed<K, T>>) -> impl Iterator<Item = (K, T)> {
    rows.into_iter().map(|Keyed(key, value)| (key, value))
}

macro_rules! tuples {
    ($($($part:ident $index:literal),+;)+) => {
        $(impl<$($part: Column),+> ReadRow for ($($part,)+) {
            fn read_row(row: &impl StoreRow) -> Result<Self, sqlx::Error> {
                Ok(($(row.at::<$part>($index)?,)+))
            }
        })+
    };
}

tuples! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
}

/// Reads a struct column by column: `from_row!(Brake { id, kind, at: "set_at", repo: flatten, code: (read_code) })`.
/// A field is the column of its name, the named column, a struct with columns in the same row, the result of a
/// function on the row, or its default.
macro_rules! from_row {
    ($type:ident { $($fields:tt)+ }) => {
        $crate::engine::rows::read_row!($type { $($fields)+ });

        impl sqlx::FromRow<'_, sqlx::sqlite::SqliteRow> for $type {
            fn from_row(row: &sqlx::sqlite::SqliteRow) -> Result<Self, sqlx::Error> {
                $crate::engine::rows::ReadRow::read_row(row)
            }
        }

        impl sqlx::FromRow<'_, sqlx::postgres::PgRow> for $type {
            fn from_row(row: &sqlx::postgres::PgRow) -> Result<Self, sqlx::Error> {
                $crate::engine::rows::ReadRow::read_row(row)
            }
        }
    };
}

/// Like `from_row!`, for a struct of another crate, which is read as [`Read`].
macro_rules! read_row {
    ($type:ident { $($field:ident $(: $how:tt)?),+ $(,)? }) => {
        impl $crate::engine::rows::ReadRow for $type {
            fn read_row(row: &impl $crate::engine::rows::StoreRow) -> Result<Self, sqlx::Error> {
                Ok(Self { $($field: $crate::engine::rows::read_field!(row, $field $(, $how)?)),+ })
            }
        }
    };
}

macro_rules! read_field {
    ($row:ident, $field:ident) => {
        $crate::engine::rows::StoreRow::column($row, stringify!($field))?
    };
    ($row:ident, $field:ident, default) => {
        Default::default()
    };
    ($row:ident, $field:ident, flatten) => {
        $crate::engine::rows::ReadRow::read_row($row)?
    };
    ($row:ident, $field:ident, $column:literal) => {
        $crate::engine::rows::StoreRow::column($row, $column)?
    };
    ($row:ident, $field:ident, ($read:expr)) => {
        $read($row)?
    };
}

pub(crate) use {from_row, read_field, read_row};

impl<T: Column> Column for Option<T> {
    type RawValue = Option<T::RawValue>;

    fn from_raw(raw: Self::RawValue) -> Result<Self, Box<dyn Error + Send + Sync>> {
        raw.map(T::from_raw).transpose()
    }
}

/// Defines how types are converted from their stored form.
macro_rules! columns {
    ($($($type:ty),+: $raw:ty = $read:expr;)+) => {
        $($(impl Column for $type {
            type RawValue = $raw;

            fn from_raw(raw: Self::RawValue) -> Result<Self, Box<dyn Error + Send + Sync>> {
                let read: fn($raw) -> Result<$type, Box<dyn Error + Send + Sync>> = $read;
                read(raw)
            }
        })+)+
    };
}

columns! {
    bool: bool = |raw| Ok(raw);
    i64: i64 = |raw| Ok(raw);
    f64: f64 = |raw| Ok(raw);
    String: String = |raw| Ok(raw);
    u32, u64: i64 = |raw| Ok(raw.try_into()?);
    Timestamp: i64 = |raw| Ok(Timestamp::from_microsecond(raw)?);
    ItemNumber: i64 = |raw| Ok(ItemNumber::new(raw)?);
    GithubId: i64 = |raw| Ok(GithubId(raw));
    ContentVersion: i64 = |raw| Ok(ContentVersion::stored(raw));
    Probability: f64 = |raw| Ok(Probability::new(raw)?);
    Similarity: f64 = |raw| Ok(Similarity::new(raw)?);
    CurrentThreshold: Option<i64> = |raw| {
        let threshold = |points: i64| Ok::<_, Box<dyn Error + Send + Sync>>(Threshold::new(points.try_into()?)?);
        Ok(raw.map(threshold).transpose()?.into())
    };
    Confidence: i64 = |raw| Ok(Confidence::deserialize(IntoDeserializer::<ValueError>::into_deserializer(u8::try_from(raw)?))?);
    // The name is part of a label, so any text is valid.
    Component: String = |raw| Ok(Component::deserialize(IntoDeserializer::<ValueError>::into_deserializer(raw))?);
    ContentHash: String = |raw| Ok(ContentHash::stored(raw));
    CodeHash: String = |raw| Ok(CodeHash::stored(raw));
    RepoPath: String = |raw| Ok(RepoPath::exact(&raw)?);
    HiddenBy: String = |raw| Ok(hidden_by(&raw)?);
    ActionReason, AdjudicatedAnswer, AuditClass, BrakeKind, Category, CloseMode, CommitSha, DecisionOrigin, DecisionStatus, DeliveryState, DismissalKind, Dismisser, Extractor,
    FindingStatus, Fingerprint, FixKind, GoneReason, GraceState, ItemState, ItemType, JobState, LaneStatus, LessonKind, Login,
    MaintainerSource, MentionOutcome, MentionPlace, ObjectionKind, OutboxState, EventBy, OutcomeKind, OverrideKind,
    RepoAccess, RepoName, Representation, ReviewMode, ReviewState, ReviewSubject, SetStatus, PostedThreadState, Severity, ShownAs,
    SkipReason, StateReason, TargetPolicy, ThresholdSource, TriageActionKind, TriageMode, Verdict,
    WriteKind, WriteOrigin, WritePriority: String = |raw| Ok(raw.parse()?);
    BTreeMap<String, f64>, Boilerplate, CodeExcerpt, Finding, IssueOutcome, Lesson, PullChanges, Structure, Value, Vec<AuditCandidate>,
    Vec<DecidedCandidate>, Vec<(ItemNumber, ItemNumber, f64)>, Vec<ItemNumber>, Vec<Login>, Vec<String>: Json<Self> = |Json(raw)| Ok(raw);
}

fn hidden_by(text: &str) -> Result<HiddenBy, String> {
    let others = [
        HiddenBy::Dismissal,
        HiddenBy::Feedback,
        HiddenBy::Area,
        HiddenBy::Severity,
        HiddenBy::Scope,
        HiddenBy::SecondReading,
    ];
    match text.strip_prefix("pattern:") {
        Some(pattern) => Ok(HiddenBy::Pattern(pattern.to_owned())),
        None => others.into_iter().find(|by| by.as_text() == text).ok_or_else(|| format!("{text:?} hides nothing")),
    }
}
