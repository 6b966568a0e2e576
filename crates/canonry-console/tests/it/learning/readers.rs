//! Who may read the learning pages.

use reqwest::StatusCode;

use crate::world::{ConsoleWorld, Who};

#[tokio::test]
async fn pages_are_for_their_readers() {
    let world = ConsoleWorld::new().await;
    world.issues(10).await;
    let audit = world.audited().await;
    let one = format!("/audits/{audit}");
    for (who, read, adjudicate) in [
        (Who::Operator, StatusCode::OK, StatusCode::OK),
        (Who::Mona, StatusCode::OK, StatusCode::OK),
        (Who::Rita, StatusCode::OK, StatusCode::FORBIDDEN),
        (Who::Stranger, StatusCode::NOT_FOUND, StatusCode::NOT_FOUND),
        (Who::Nobody, StatusCode::SEE_OTHER, StatusCode::SEE_OTHER),
    ] {
        for path in ["/learning", "/audits", one.as_str()] {
            assert_eq!(world.ask(who, path, false).await.status(), read, "{who:?} {path}");
        }
        let status = world.ask(who, "/adjudicate", false).await.status();
        assert_eq!(status, adjudicate, "{who:?}");
    }
    for path in ["/audits/4711", "/audits/x", "/adjudicate/4711", "/adjudicate/x"] {
        assert_eq!(world.ask(Who::Operator, path, false).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}
