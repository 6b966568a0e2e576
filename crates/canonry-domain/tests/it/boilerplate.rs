//! Tests of boilerplate: what is learnt as shared text, what is not, and what remains of an item.

use canonry_domain::{
    Boilerplate, BoilerplateLearner, GateRules, ItemNumber, ItemState, ItemType, JudgeAnswer, JudgedItem, PairScores,
    Similarity, gate_answer, gate_before_judge, has_content, is_too_vague,
};
use canonry_domain::{GateCandidate, bug_feature_mismatch};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;

const FORM: &str = "<!-- Thanks for helping! -->\n### What did you do?\n\nTell us step by step, so that we can do the same.\n\n\
    ### What happened instead?\n\nPaste the error and everything around it, not a picture of it.\n\n```\n<output>\n```\n\n\
    ### Your setup\n\n- Version of the program\n- [ ] I have read the guide for reports\n";

/// Learns from bodies by different people, numbered from 1.
fn learn(bodies: &[String]) -> Boilerplate {
    let mut learner = BoilerplateLearner::default();
    for (at, body) in (1..).zip(bodies) {
        let author = format!("user{at}").parse().expect("a login");
        learner.read(number(at), Some(&author), &format!("Title {at}"), body);
    }
    learner.learn()
}

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("positive")
}

fn forms(count: usize) -> Vec<String> {
    vec![FORM.to_owned(); count]
}

#[test]
fn an_unfilled_form_has_nothing_of_its_own() {
    let learnt = learn(&forms(5));
    assert_eq!(learnt.own_body(FORM), "");
    for title in ["[Bug]: ", "Bug report", "🐛 [BUG] <title>", "Issue", ""] {
        assert!(!has_content(&learnt.own_title(title), &learnt.own_body(FORM)), "{title}");
    }
    for title in ["[Bug]: Sync stops", "Crash", "設定画面で落ちる", "Issue 12"] {
        assert!(has_content(&learnt.own_title(title), &learnt.own_body(FORM)), "{title}");
    }
    let filled = FORM.replace("### What happened instead?\n", "### What happened instead?\n\nThe exporter hangs.\n");
    assert_eq!(learnt.own_body(&filled), "The exporter hangs.");
    assert!(has_content("Bug report", &learnt.own_body(&filled)));
    let ticked = FORM.replace("- [ ] I", "- [x] I").replace('\n', "\r\n");
    assert_eq!(learnt.own_body(&ticked), "", "a ticked box and other line endings are the same form");
    let logged = FORM.replace("<output>", "error: no space left on device");
    assert_eq!(learnt.own_body(&logged), "```\nerror: no space left on device\n```");
}

#[test]
fn fewer_than_five_items_or_four_people_teach_nothing() {
    assert!(learn(&forms(4)).is_empty());
    let mut learner = BoilerplateLearner::default();
    for at in 1..=30 {
        let author = format!("user{}", at % 3).parse().expect("a login");
        learner.read(number(at), Some(&author), "Nightly build failed", FORM);
    }
    assert!(learner.learn().is_empty(), "three people");
    let mut learner = BoilerplateLearner::default();
    (1..=30).for_each(|at| learner.read(number(at), None, "Bug report", FORM));
    assert!(learner.learn().is_empty(), "nobody knows who");
}

#[test]
fn what_github_offers_to_everybody_is_known_without_learning() {
    let body = "**Describe the bug**\r\nA clear and concise description of what the bug is.\r\n\r\n**To Reproduce**\r\n\
        Steps to reproduce the behavior:\r\n1. Go to '...'\r\n2. Click on '....'\r\n\r\n - OS: [e.g. iOS]\r\n - Browser [e.g. chrome, safari]\r\n";
    assert_eq!(Boilerplate::default().own_body(body), "");
    assert!(!has_content("Bug report", &Boilerplate::default().own_body(body)));
}

/// The file is known before anybody has used the template.
#[test]
fn a_template_file_is_known_at_once() {
    let mut known = Boilerplate::default();
    known.add_template(&format!("---\nname: Bug\ntitle: \"Something is wrong: \"\n---\n\n{FORM}"));
    assert!(!has_content(&known.own_title("Something is wrong: "), &known.own_body(FORM)));
    assert!(has_content(&known.own_title("Something is wrong: the sound"), ""));
    // A later learning run keeps the template, and so do the vectors.
    let learnt = learn(&forms(2)).with_files_of(&known);
    assert_eq!(learnt.own_body(FORM), "");
    assert_ne!(learnt.stamp(), Boilerplate::default().stamp());
}

/// The same panic in thirty reports of one problem is their evidence.
#[test]
fn a_repeated_error_is_no_template() {
    let lines = [
        "thread 'main' panicked at 'read-only handle', src/db.rs:88:40",
        "error: read-only database handle cannot begin an immediate transaction",
        "TypeError: undefined is not a function",
        "    at Object.<anonymous> (/app/index.js:3:1)",
        "the write cannot begin because the handle is read-only",
        "store.begin_write() gives up",
        "rustc 1.0.0 (a59de37e9 2015-05-13)",
    ];
    for line in lines {
        for body in [format!("### Log\n\n{line}\n"), format!("### Log\n\n```\n{line}\n```\n")] {
            let learnt = learn(&vec![body.clone(); 30]);
            assert!(learnt.own_body(&body).contains(line.trim()), "{line}: {:?}", learnt.own_body(&body));
        }
    }
    // A log without any such word, in a code block.
    let body = "### Log\n\n```\nthe moon rises over the handle\n```\n".to_owned();
    assert!(learn(&vec![body.clone(); 30]).own_body(&body).contains("moon"));
}

/// One paragraph that five people sent is a text that was sent five times.
#[test]
fn one_line_is_no_template() {
    let body = "The exporter writes its summary twice to the console, at the beginning and at the end.".to_owned();
    assert!(learn(&vec![body; 30]).is_empty());
}

#[test]
fn a_former_template_is_learnt_from_the_time_when_it_was_used() {
    let mut bodies: Vec<String> = (0..3_000).map(|at| format!("Report {at} about the part {at}.")).collect();
    for body in &mut bodies[700..706] {
        body.push_str("\n\nTell us which release you have.\nTell us what you have tried.");
    }
    let learnt = learn(&bodies);
    assert_eq!(learnt.own_body(&bodies[703]), "Report 703 about the part 703.");
    // Scattered over all periods, six are too few and thirty are enough.
    for (step, is_learnt) in [(500, false), (100, true)] {
        let mut bodies: Vec<String> = (0..3_000).map(|at| format!("Report {at} about the part {at}.")).collect();
        for body in bodies.iter_mut().step_by(step) {
            body.push_str("\n\nTell us which release you have.\nTell us what you have tried.");
        }
        assert_eq!(learn(&bodies).own_body(&bodies[0]).contains("release"), !is_learnt, "{step}");
    }
}

#[test]
fn a_title_of_many_empty_forms_says_nothing() {
    let mut learner = BoilerplateLearner::default();
    for at in 1..=6 {
        let author = format!("user{at}").parse().expect("a login");
        learner.read(number(at), Some(&author), "不具合の報告", FORM);
    }
    let learnt = learner.learn();
    assert!(!has_content(&learnt.own_title("不具合の報告"), &learnt.own_body(FORM)));
    // If the reports have content, five with the same title may be one problem.
    let mut learner = BoilerplateLearner::default();
    for at in 1..=6 {
        let author = format!("user{at}").parse().expect("a login");
        learner.read(
            number(at),
            Some(&author),
            "App crashes on startup",
            &format!("On machine {at} after the update."),
        );
    }
    assert_eq!(learner.learn().own_title("App crashes on startup"), "App crashes on startup");
}

#[test]
fn what_changed_is_what_has_other_text_of_its_own() {
    let mut learner = BoilerplateLearner::default();
    let body = |at: i64| if at <= 6 { FORM.to_owned() } else { format!("Report {at} says this.") };
    for at in 1..=8 {
        let author = format!("user{at}").parse().expect("a login");
        learner.read(number(at), Some(&author), &format!("Title {at}"), &body(at));
    }
    let learnt = learner.learn();
    let first: Vec<i64> = learner.changed(None, &learnt).into_iter().map(ItemNumber::get).collect();
    assert_eq!(first, [1, 2, 3, 4, 5, 6]);
    assert!(learner.changed(Some(&learnt), &learnt).is_empty());
    assert_eq!(learner.changed(Some(&Boilerplate::default()), &learnt).len(), 6);
    assert_ne!(learnt.stamp(), Boilerplate::default().stamp());
    let stored: Boilerplate =
        serde_json::from_value(serde_json::to_value(&learnt).expect("serialises")).expect("reads back");
    assert_eq!(stored, learnt);
}

/// Lines of a template: headings, requests, check-boxes, choices, code to replace, in three languages.
fn template() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![
        "[A-Z][a-z]{3,8} [a-z]{3,8} [a-z]{3,8}".prop_map(|words| format!("### {words}")),
        "[a-z]{3,8} [a-z]{3,8} [a-z]{3,8}".prop_map(|words| format!("Please tell us {words}.")),
        "[a-z]{3,8} [a-z]{3,8}".prop_map(|words| format!("- [ ] I have {words}")),
        "[a-z]{3,8} [a-z]{3,8}".prop_map(|words| format!("**{words}:**")),
        "[a-z]{3,8}".prop_map(|word| format!("```\n<{word}>\n```")),
        "[a-z]{3,8}".prop_map(|word| format!("<!-- {word} -->")),
        select(vec![
            "### 再現手順",
            "手順を書いてください。",
            "Bitte beschreibe, was du erwartet hast.",
            "_No response_"
        ])
        .prop_map(str::to_owned),
    ];
    // A single line that is sent repeatedly is a text, not a template: `one_line_is_no_template`.
    vec(line, 2..8).prop_filter("two different lines", |lines| lines.iter().any(|line| *line != lines[0]))
}

/// Lines of an author; none of them can belong to a template.
fn own_lines() -> impl Strategy<Value = Vec<String>> {
    vec(
        prop_oneof![
            "[A-Z][a-z]{2,6} zz[a-z]{2,6} [a-z]{2,6}",
            "error: zz[a-z]{2,6} [a-z]{2,6}",
            "[a-z]{2,6} zz[a-z]{2,6} does not work",
            "[a-z]{2,6} zz[a-z]{2,6} would be nice",
        ],
        0..6,
    )
}

fn woven(template: &[String], own: &[String]) -> String {
    let mut lines = Vec::new();
    for at in 0..template.len().max(own.len()) {
        lines.extend(template.get(at).cloned());
        lines.extend(own.get(at).cloned());
    }
    lines.join("\n\n")
}

proptest! {
    /// Adding any template to both sides of a pair does not change anything that a verdict depends on.
    #[test]
    fn a_template_around_both_changes_no_verdict(
        template in template(),
        texts in vec(own_lines(), 2),
        titles in vec("[A-Z][a-z]{2,6} zz[a-z]{2,6}( crashes| would be nice)?", 2),
        confidence in 0.0..=1.0_f64,
    ) {
        let learnt = learn(&vec![template.join("\n\n"); 6]);
        let own = |at: usize| learnt.own_body(&texts[at].join("\n\n"));
        let with = |at: usize| learnt.own_body(&woven(&template, &texts[at]));
        prop_assert_eq!(with(0), own(0));
        prop_assert_eq!(with(1), own(1));
        let texts = [[own(0), own(1)], [with(0), with(1)]];
        let [without, with] = texts.each_ref().map(|texts| {
            let item = |at: usize| JudgedItem {
                number: number(at as i64 + 1),
                state: ItemState::Open,
                item_type: ItemType::Issue,
                title: &titles[at],
                body: &texts[at],
                labels: &[],
                origin: canonry_domain::ItemOrigin::default(),
            };
            let score = Similarity::new(0.95).expect("in range");
            let candidates = [GateCandidate { item: item(1), score, cluster: None }];
            let answer = Ok(JudgeAnswer {
                is_duplicate: true,
                duplicate_of: Some(number(2)),
                confidence: canonry_domain::Probability::clamped(confidence).expect("a number"),
                reasoning: String::new(),
                structure: canonry_domain::Structure::default(),
            });
            (
                gate_before_judge(&item(0), &candidates),
                gate_answer(&item(0), &candidates, &PairScores::default(), &answer, &GateRules::default()),
                is_too_vague(&titles[0], &texts[0]),
                bug_feature_mismatch(&item(0), &item(1)),
            )
        });
        prop_assert_eq!(with, without);
    }

    #[test]
    fn any_text_is_read_and_what_is_left_stays(bodies in vec(any::<String>(), 1..7), title in any::<String>()) {
        let learnt = learn(&bodies);
        for body in &bodies {
            let own = learnt.own_body(body);
            prop_assert_eq!(learnt.own_body(&own), own);
        }
        let _ = has_content(&learnt.own_title(&title), "");
        prop_assert!(learnt.own_body("").is_empty());
    }
}
