//! Tests of the browser, with pages of a few lines.

use std::path::Path;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse as _};
use axum::routing::{get, post};
use canonry_testkit::browser::{self, Browser, Scheme, Viewport};

const PAGE: &str = r#"<!doctype html><html lang="en"><head><meta charset="utf-8"><title>One</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<script src="/keys.js" defer></script></head>
<body><main><h1>One</h1><p id="said">nothing</p><form method="post" action="/two"><label>Name <input name="name" autofocus></label>
<button>Send</button></form></main></body></html>"#;

const KEYS: &str = "document.addEventListener('keydown', event => { \
    if (event.target.tagName !== 'INPUT') document.getElementById('said').textContent = event.key; });";

/// Serves until the process ends, and returns the URL.
fn serve() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("tokio wants it so");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            const POLICY: &str = "default-src 'none'; script-src 'self'; form-action 'self'";
            let routes = Router::new()
                .route("/", get(|| async { ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(PAGE)).into_response() }))
                // A browser may request this at any time.
                .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
                .route("/keys.js", get(|| async { ([(header::CONTENT_TYPE, "text/javascript")], KEYS) }))
                .route("/two", post(|body: String| async move { Html(format!("<title>Two</title><p>{body}")) }))
                .route(
                    "/bad",
                    get(|| async {
                        let page = "<!doctype html><title>Bad</title><script>alert(1)</script><img src=/none.png>\
                                    <script src=/none.js></script><input><p>x";
                        ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(page)).into_response()
                    }),
                );
            // For an error with an empty body, a browser shows its own page instead.
            let routes = routes.fallback(|| async { (StatusCode::NOT_FOUND, Html("<p>There is no such page.")) });
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            axum::serve(listener, routes).await.expect("it serves");
        });
    });
    format!("http://{address}")
}

#[test]
fn a_page_is_loaded_looked_at_typed_into_and_left() {
    if browser::is_missing() {
        return;
    }
    let (address, browser) = (serve(), Browser::start());
    let page = browser.page();
    assert_eq!(page.goto(&format!("{address}/")), 200);
    assert_eq!(page.eval("document.title"), "One");
    page.eval("document.activeElement.blur()");
    for key in ["j", "A", "Escape"] {
        page.press(key);
        assert_eq!(page.eval("document.getElementById('said').textContent"), key);
    }
    page.press_all(&["k", "l", "m"]);
    assert_eq!(page.eval("document.getElementById('said').textContent"), "m");
    page.hold("n", 3);
    assert_eq!(page.eval("document.getElementById('said').textContent"), "n");
    page.click("input");
    page.press_all(&["Zoë & co", "Tab", "Shift+Tab"]);
    assert_eq!(page.eval("document.activeElement.name"), "name");
    page.follow(|page| page.press("Enter"));
    assert_eq!(page.text(), "name=Zo%C3%AB+%26+co");
    assert_eq!(page.posted(), [(format!("{address}/two"), "name=Zo%C3%AB+%26+co".to_owned())]);
    assert_eq!(page.problems(), Vec::<String>::new());
    assert_eq!(page.goto(&format!("{address}/missing")), 404);

    page.look_as(Viewport::Phone, Scheme::Dark);
    page.goto(&format!("{address}/"));
    let seen = page.eval("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]");
    assert_eq!(seen, serde_json::json!([390, true]));
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser.png");
    page.screenshot(&picture);
    assert!(std::fs::read(&picture).expect("a picture").starts_with(b"\x89PNG"));

    page.run_scripts(false);
    page.goto(&format!("{address}/"));
    page.press("j");
    page.follow(|page| page.click("button"));
    assert_eq!(page.eval("document.title"), "Two", "a form is sent without scripts");
}

#[test]
fn whatever_a_browser_complains_about_is_told() {
    if browser::is_missing() {
        return;
    }
    let (address, browser) = (serve(), Browser::start());
    let page = browser.page();
    page.goto(&format!("{address}/bad"));
    page.eval("setTimeout(() => { throw new Error('later') }, 0), new Promise(done => setTimeout(done, 20))");
    let problems = page.problems().join("\n");
    for words in ["Content Security Policy", "none.js", "Error: later"] {
        assert!(problems.contains(words), "{words:?} is not told in:\n{problems}");
    }
    assert_eq!(page.problems(), Vec::<String>::new(), "each is told once");
    if std::env::var_os(browser::AXE_VARIABLE).is_some() {
        let violations = page.violations();
        let label = violations.iter().find(|one| one.rule == "label").unwrap_or_else(|| panic!("{violations:?}"));
        assert_eq!((label.impact.as_str(), label.elements.len()), ("critical", 1));
    }
}
