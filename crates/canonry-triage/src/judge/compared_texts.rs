//! What two texts have in common and what only one of them contains, as a judge's prompt shows it.

use canonry_retrieval::{CommonFacts, FoundFact, TextFacts, shared_facts};

use crate::judge::redact_secrets::WithoutSecrets;

/// Facts in each list: the strongest, so that nine items still fit every model's context.
const LISTED: usize = 6;
/// Characters of a fact: enough to recognise an error line.
const FACT_LIMIT: usize = 100;

/// The facts of both texts in up to three lines; empty if neither contains any. What many items contain is not listed
/// as shared.
pub(crate) fn compared_texts(source: &WithoutSecrets, candidate: &WithoutSecrets, common: &CommonFacts) -> String {
    let facts = |item: &WithoutSecrets, is_wanted: &dyn Fn(&FoundFact<'_>) -> bool| {
        TextFacts::of_which(&format!("{}\n{}", item.title, item.body), is_wanted)
    };
    let telling = facts(source, &|found| !common.contains(found));
    let (source, candidate) = (facts(source, &|_| true), facts(candidate, &|_| true));
    let shared = shared_facts(&telling, &candidate);
    let lists = [
        ("In both", shared.iter().map(|fact| fact.text.as_str()).collect()),
        ("Only in the source", source.missing_in(&candidate)),
        ("Only in the candidate", candidate.missing_in(&source)),
    ];
    let lines = lists.into_iter().filter_map(|(name, facts): (&str, Vec<&str>)| {
        let listed: Vec<String> = facts.into_iter().take(LISTED).map(on_one_line).collect();
        (!listed.is_empty()).then(|| format!("{name}: {}", listed.join(" ; ")))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn on_one_line(fact: &str) -> String {
    fact.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(FACT_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use canonry_domain::ItemType;
    use canonry_retrieval::{CommonFacts, FactCounter, TextFacts};

    use super::compared_texts;
    use crate::judge::redact_secrets::WithoutSecrets;

    fn text(title: &str, body: &str) -> WithoutSecrets {
        let (title, body) = (title.to_owned(), body.to_owned());
        WithoutSecrets { item_type: ItemType::Issue, title, body, changes: None }
    }

    #[test]
    fn what_differs_is_listed_beside_what_is_shared() {
        let source = text("Export panics", "error: cannot open the summary file\nwith `export_all` of 1.4.0");
        let candidate = text("Export panics", "error: cannot open the summary file\nwith `import_all` of 1.5.2");
        let nothing = CommonFacts::default();
        insta::assert_snapshot!(compared_texts(&source, &candidate, &nothing), @"
        In both: error: cannot open the summary file
        Only in the source: export_all ; 1.4.0
        Only in the candidate: import_all ; 1.5.2
        ");
        assert_eq!(compared_texts(&text("It stops", ""), &text("It hangs", ""), &nothing), "");
        let mut counter = FactCounter::of_all();
        (0..9).for_each(|_| counter.count(&TextFacts::of("error: cannot open the summary file")));
        let telling = compared_texts(&source, &candidate, &counter.common());
        assert!(telling.starts_with("Only in the source: export_all"), "{telling}");
    }
}
