//! Who may read what of it.

use reqwest::StatusCode;

use crate::setting::{Setting, Who};

#[tokio::test]
async fn pages_are_for_their_readers() {
    let setting = Setting::new().await;
    setting.issues(10).await;
    let audit = setting.audited().await;
    let one = format!("/audits/{audit}");
    for (who, read, adjudicate) in [
        (Who::Operator, StatusCode::OK, StatusCode::OK),
        (Who::Mona, StatusCode::OK, StatusCode::OK),
        (Who::Rita, StatusCode::OK, StatusCode::FORBIDDEN),
        (Who::Stranger, StatusCode::NOT_FOUND, StatusCode::NOT_FOUND),
        (Who::Nobody, StatusCode::SEE_OTHER, StatusCode::SEE_OTHER),
    ] {
        for path in ["/learning", "/audits", one.as_str()] {
            assert_eq!(setting.ask(who, path, false).await.status(), read, "{who:?} {path}");
        }
        let status = setting.ask(who, "/adjudicate", false).await.status();
        assert_eq!(status, adjudicate, "{who:?}");
    }
    for path in ["/audits/4711", "/audits/x", "/adjudicate/4711", "/adjudicate/x"] {
        assert_eq!(setting.ask(Who::Operator, path, false).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}
