//! A model's yes counts only if the model says no about unrelated texts.

use canonry_domain::{Extractor, Verdict};
use canonry_models::chat::{TokenBudget, TokenLimits};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::models::CONTROL_WORD;
use canonry_testkit::on_both_engines;

use crate::triage::setting::{ALPHA, Setting, no, yes};

async fn with_hosted_model(database: TestDatabase) -> Setting {
    let mut setting = Setting::new(database).await;
    setting.judge = Extractor::OpenAi;
    setting
}

fn questions(setting: &Setting) -> Vec<String> {
    let requests = setting.models.requests();
    requests.iter().filter(|request| request.path != "/embeddings").map(|request| request.prompt()).collect()
}

on_both_engines! {
    async fn a_yes_about_everything_is_no_verdict(database: TestDatabase) {
        let setting = with_hosted_model(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        let record = setting.records(item).await.remove(0).record;
        assert_eq!((record.verdict, record.target, record.reason.as_str()), (Verdict::NotDuplicate, None, "control_failed"));
        assert!(setting.comments(item).is_empty() && setting.labels(item).is_empty());
        let asked = questions(&setting);
        assert_eq!(asked.len(), 2, "the first unrelated text is enough");
        assert!(!asked[0].contains(CONTROL_WORD) && asked[1].contains(CONTROL_WORD), "{asked:?}");
    }

    /// The text that tells the model what to answer may be the older one.
    async fn each_of_the_two_texts_is_replaced_once(database: TestDatabase) {
        let setting = with_hosted_model(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.models.answer_by(|request| {
            let prompt = request.prompt();
            // It is told so by the original, so it says no only where the original is replaced.
            Some(if prompt.contains(CONTROL_WORD) && !prompt.contains("Original alpha") { no() } else { yes(1, 0.96) })
        });
        setting.triage(item).await;
        let record = setting.records(item).await.remove(0).record;
        assert_eq!((record.verdict, record.reason.as_str()), (Verdict::NotDuplicate, "control_failed"));
        assert_eq!(questions(&setting).len(), 3);
    }

    async fn a_model_that_reads_is_believed(database: TestDatabase) {
        let setting = with_hosted_model(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.models.answer_by(|request| {
            Some(if request.prompt().contains(CONTROL_WORD) { no() } else { yes(1, 0.96) })
        });
        setting.triage(item).await;
        let record = setting.records(item).await.remove(0).record;
        assert_eq!(
            (record.verdict, record.reason.as_str()),
            (Verdict::MaybeDuplicate, "online_strict_guardrail:unproven_judge")
        );
        assert_eq!((setting.comments(item).len(), questions(&setting).len()), (1, 3));
    }

    /// An unchecked yes counts as no answer: it is recorded, and nothing is posted.
    async fn a_yes_that_the_budget_leaves_unchecked_is_not_posted(database: TestDatabase) {
        let setting = with_hosted_model(database).await;
        let item = setting.report(ALPHA, 0.95);
        let outbox = setting.outbox().await;
        let budget = TokenBudget::new(TokenLimits { max_calls: Some(1), ..TokenLimits::default() });
        setting.triage_with(Some(&outbox), true, item, "run", budget).await.expect("triaged");
        setting.publish().await;
        assert!(setting.comments(item).is_empty() && questions(&setting).len() == 1);
        let record = setting.records(item).await.remove(0).record;
        assert_eq!(record.reason, "invalid_judge_response");
    }
}
