//! The structural keys of a judge's answer (relation, root cause, scope, path, certainty) and the vetoes that follow
//! from them.

use serde::{Deserialize, Serialize};

use crate::text_enum;

text_enum! {
    /// The relation of the source to its target.
    pub enum Relation: "a relation" {
        SameInstance = "same_instance",
        /// A problem that arose because of the target.
        RelatedFollowup = "related_followup",
        PartialOverlap = "partial_overlap",
        Different = "different",
    }
}

text_enum! {
    /// Whether one change would fix both.
    pub enum RootCauseMatch: "a root cause match" {
        Same = "same",
        Adjacent = "adjacent",
        Different = "different",
    }
}

text_enum! {
    /// The scope of the source relative to the target.
    pub enum ScopeRelation: "a scope relation" {
        SameScope = "same_scope",
        SourceSubset = "source_subset",
        SourceSuperset = "source_superset",
        PartialOverlap = "partial_overlap",
        DifferentScope = "different_scope",
    }
}

text_enum! {
    /// Whether both take the same path through the program.
    pub enum PathMatch: "a path match" {
        Same = "same",
        Different = "different",
        Unknown = "unknown",
    }
}

text_enum! {
    pub enum Certainty: "a certainty" {
        Sure = "sure",
        Unsure = "unsure",
    }
}

/// The five structural keys of an answer; `None` means absent or null.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Structure {
    pub relation: Option<Relation>,
    pub root_cause_match: Option<RootCauseMatch>,
    pub scope_relation: Option<ScopeRelation>,
    pub path_match: Option<PathMatch>,
    pub certainty: Option<Certainty>,
}

/// Why a structure contradicts the judge's yes, as `key=value`; `None` if it does not.
///
/// An absent key never vetoes by itself, but it counts as "not same" where a rule requires it.
pub fn structural_veto(structure: &Structure) -> Option<String> {
    if structure.certainty == Some(Certainty::Unsure) {
        return Some("certainty=unsure".to_owned());
    }
    let same_instance = structure.relation == Some(Relation::SameInstance);
    if let Some(relation) = structure.relation.filter(|_| !same_instance) {
        return Some(format!("relation={relation}"));
    }
    let same_cause = structure.root_cause_match == Some(RootCauseMatch::Same);
    if let Some(root_cause) = structure.root_cause_match.filter(|_| !same_cause) {
        return Some(format!("root_cause_match={root_cause}"));
    }
    // From here on, a relation or root cause that is not the same is absent.
    if let Some(scope) = structure.scope_relation
        && scope != ScopeRelation::SameScope
        && !same_cause
    {
        return Some(format!("scope_relation={scope},root_cause_match=absent"));
    }
    if structure.path_match == Some(PathMatch::Different) && !(same_instance && same_cause) {
        let absent = if same_instance { "root_cause_match" } else { "relation" };
        return Some(format!("path_match=different,{absent}=absent"));
    }
    None
}

/// The first key that does not have the value that is required before a new item is called a duplicate in public, as
/// `key=value`.
///
/// Stricter than [`structural_veto`]: same_instance, same, same_scope and sure must all be present.
pub(crate) fn strict_shortfall(structure: &Structure) -> Option<String> {
    fn short<T: Copy + PartialEq + std::fmt::Display>(key: &str, said: Option<T>, wanted: T) -> Option<String> {
        match said {
            Some(said) if said == wanted => None,
            Some(said) => Some(format!("{key}={said}")),
            None => Some(format!("{key}=absent")),
        }
    }
    short("relation", structure.relation, Relation::SameInstance)
        .or_else(|| short("root_cause_match", structure.root_cause_match, RootCauseMatch::Same))
        .or_else(|| short("scope_relation", structure.scope_relation, ScopeRelation::SameScope))
        .or_else(|| short("certainty", structure.certainty, Certainty::Sure))
}

#[cfg(test)]
mod tests {
    use super::{
        Certainty, PathMatch, Relation, RootCauseMatch, ScopeRelation, Structure, strict_shortfall, structural_veto,
    };

    const FULL: Structure = Structure {
        relation: Some(Relation::SameInstance),
        root_cause_match: Some(RootCauseMatch::Same),
        scope_relation: Some(ScopeRelation::SameScope),
        path_match: Some(PathMatch::Same),
        certainty: Some(Certainty::Sure),
    };

    fn veto(structure: Structure) -> String {
        structural_veto(&structure).unwrap_or_default()
    }

    #[test]
    fn the_first_contradiction_is_named() {
        let nothing = Structure::default();
        assert_eq!((veto(FULL), veto(nothing)), (String::new(), String::new()));
        for (structure, expected) in [
            (
                Structure {
                    certainty: Some(Certainty::Unsure),
                    relation: Some(Relation::Different),
                    root_cause_match: Some(RootCauseMatch::Different),
                    ..FULL
                },
                "certainty=unsure",
            ),
            (
                Structure {
                    relation: Some(Relation::PartialOverlap),
                    root_cause_match: Some(RootCauseMatch::Adjacent),
                    ..nothing
                },
                "relation=partial_overlap",
            ),
            (Structure { relation: Some(Relation::RelatedFollowup), ..FULL }, "relation=related_followup"),
            (Structure { relation: Some(Relation::Different), ..FULL }, "relation=different"),
            (Structure { root_cause_match: Some(RootCauseMatch::Adjacent), ..FULL }, "root_cause_match=adjacent"),
            (Structure { root_cause_match: Some(RootCauseMatch::Different), ..nothing }, "root_cause_match=different"),
            (
                Structure { scope_relation: Some(ScopeRelation::SourceSubset), ..nothing },
                "scope_relation=source_subset,root_cause_match=absent",
            ),
            (Structure { scope_relation: Some(ScopeRelation::DifferentScope), ..FULL }, ""),
            (
                Structure {
                    scope_relation: Some(ScopeRelation::PartialOverlap),
                    path_match: Some(PathMatch::Different),
                    ..nothing
                },
                "scope_relation=partial_overlap,root_cause_match=absent",
            ),
            (Structure { path_match: Some(PathMatch::Different), ..FULL }, ""),
            (Structure { path_match: Some(PathMatch::Different), ..nothing }, "path_match=different,relation=absent"),
            (
                Structure { path_match: Some(PathMatch::Different), relation: None, ..FULL },
                "path_match=different,relation=absent",
            ),
            (
                Structure { path_match: Some(PathMatch::Different), root_cause_match: None, ..FULL },
                "path_match=different,root_cause_match=absent",
            ),
            (Structure { path_match: Some(PathMatch::Unknown), ..nothing }, ""),
        ] {
            assert_eq!(veto(structure), expected, "{structure:?}");
        }
    }

    #[test]
    fn a_new_item_needs_all_four() {
        assert_eq!(strict_shortfall(&Structure { path_match: None, ..FULL }), None);
        for (structure, expected) in [
            (Structure::default(), "relation=absent"),
            (Structure { root_cause_match: None, ..FULL }, "root_cause_match=absent"),
            (Structure { scope_relation: Some(ScopeRelation::SourceSubset), ..FULL }, "scope_relation=source_subset"),
            (Structure { scope_relation: None, ..FULL }, "scope_relation=absent"),
            (Structure { certainty: None, ..FULL }, "certainty=absent"),
        ] {
            assert_eq!(strict_shortfall(&structure).as_deref(), Some(expected));
        }
    }
}
