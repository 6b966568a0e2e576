//! A browser tab: navigation, input, content and errors.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::accessibility::{self, Violation};
use super::connection::Connection;
use super::keys;
use super::problems::problem;

/// The time limit for loading a page and for a condition to become true.
const LIMIT: Duration = Duration::from_secs(20);

/// Screenshots of longer pages are cut at this height.
const TALLEST: f64 = 4_000.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewport {
    /// 1440 by 900.
    Desktop,
    /// 390 by 844, with touch instead of clicks.
    Phone,
}

/// The colour scheme that the reader prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Light,
    Dark,
}

/// A tab with its own cookies.
#[derive(Debug)]
pub struct Page {
    connection: Arc<Connection>,
    session: String,
}

impl Page {
    pub(super) fn open(connection: &Arc<Connection>) -> Self {
        let context = connection.call(None, "Target.createBrowserContext", &json!({}))["browserContextId"].take();
        let target = json!({"url": "about:blank", "browserContextId": context});
        let target = connection.call(None, "Target.createTarget", &target)["targetId"].take();
        let attach = json!({"targetId": target, "flatten": true});
        let session = connection.call(None, "Target.attachToTarget", &attach)["sessionId"].take();
        let session = session.as_str().expect("a session has an id").to_owned();
        let page = Self { connection: Arc::clone(connection), session };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        page.call("Page.setLifecycleEventsEnabled", &json!({"enabled": true}));
        page.look_as(Viewport::Desktop, Scheme::Light);
        page
    }

    /// Loads a URL, waits until the page is complete, and returns the status.
    ///
    /// # Panics
    /// If it does not load.
    pub fn goto(&self, url: &str) -> u16 {
        let answer = self.call("Page.navigate", &json!({"url": url}));
        assert!(answer.get("errorText").is_none(), "{url}: {}", answer["errorText"]);
        // Without a loader only the part behind `#` changed.
        let Some(loader) = answer["loaderId"].as_str() else { return 200 };
        let is_loaded = |events: &[Value]| {
            events.iter().any(|event| {
                let parameters = &event["params"];
                event["method"] == "Page.lifecycleEvent"
                    && parameters["name"] == "load"
                    && parameters["loaderId"] == loader
            })
        };
        assert!(self.connection.wait_for(&self.session, LIMIT, is_loaded), "{url} was not loaded in time");
        let status = self.connection.events(&self.session, |events| {
            let answers = events.iter().filter(|event| event["method"] == "Network.responseReceived");
            let mut answers = answers.map(|event| &event["params"]);
            answers
                .find(|answer| answer["requestId"] == loader)
                .and_then(|answer| answer["response"]["status"].as_u64())
        });
        status.and_then(|status| u16::try_from(status).ok()).unwrap_or_else(|| panic!("{url} was not answered"))
    }

    /// Presses a key: a character, or `Enter`, `Shift+Tab`, `Escape` and similar.
    pub fn press(&self, key: &str) {
        for event in keys::press(key) {
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Presses keys and types all other words, as fast as the browser accepts them, without waiting in between.
    pub fn press_all(&self, keys: &[&str]) {
        let mut calls = Vec::new();
        for key in keys {
            if keys::is_key(key) {
                calls.extend(keys::press(key).map(|event| ("Input.dispatchKeyEvent", event)));
            } else {
                calls.push(("Input.insertText", json!({"text": key})));
            }
        }
        self.connection.call_all(&self.session, &calls);
    }

    /// Holds a key down until it was repeated `repeated` times.
    pub fn hold(&self, key: &str, repeated: usize) {
        let [down, up] = keys::press(key);
        let mut again = down.clone();
        again["autoRepeat"] = json!(true);
        let downs = std::iter::once(down).chain(std::iter::repeat_n(again, repeated));
        let calls: Vec<_> = downs.chain([up]).map(|event| ("Input.dispatchKeyEvent", event)).collect();
        self.connection.call_all(&self.session, &calls);
    }

    /// The POST requests since the last call of [`Self::problems`]: the URL and the fields, as sent.
    pub fn posted(&self) -> Vec<(String, String)> {
        // The browser reports earlier requests before it answers this call.
        self.eval("0");
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.connection.events(&self.session, |events| {
            let requests = events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
            let requests = requests.map(|event| &event["params"]["request"]);
            let posts = requests.filter(|request| request["method"] == "POST");
            posts.map(|request| (word(&request["url"]), word(&request["postData"]))).collect()
        })
    }

    pub fn type_text(&self, text: &str) {
        self.call("Input.insertText", &json!({"text": text}));
    }

    /// Clicks in the middle of the first element that matches a selector.
    ///
    /// # Panics
    /// If there is none.
    pub fn click(&self, selector: &str) {
        let found = self.eval(&format!(
            "(() => {{ const one = document.querySelector({}); if (!one) return null; \
             one.scrollIntoView({{block: 'center', behavior: 'instant'}}); const box = one.getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        ));
        let (Some(x), Some(y)) = (found[0].as_f64(), found[1].as_f64()) else { panic!("there is no {selector}") };
        for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// The value of an expression, as JSON; a promise is awaited.
    ///
    /// # Panics
    /// If it throws.
    pub fn eval(&self, expression: &str) -> Value {
        self.try_eval(expression).unwrap_or_else(|error| panic!("{expression}\n{error}"))
    }

    fn try_eval(&self, expression: &str) -> Result<Value, String> {
        let parameters =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true});
        let mut answer = self.connection.try_call(Some(&self.session), "Runtime.evaluate", &parameters)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(details["exception"]["description"].as_str().unwrap_or("it threw").to_owned()),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    /// Waits until an expression is true, across any number of page loads.
    ///
    /// # Panics
    /// If it does not become true in 20 seconds.
    pub fn wait_for(&self, condition: &str) {
        let patience = Instant::now() + LIMIT;
        let mut last = Err("it was never asked".to_owned());
        while Instant::now() < patience {
            // During a page change, evaluation fails; the loop tries again.
            last = self.try_eval(condition);
            if last == Ok(Value::Bool(true)) {
                return;
            }
            let heard = self.connection.events(&self.session, <[Value]>::len);
            self.connection.wait_for(&self.session, Duration::from_millis(50), |events| events.len() > heard);
        }
        let place = self.try_eval("location.href + '\\n' + document.body.innerText");
        panic!("not true in time: {condition}\n{last:?}\n{place:?}");
    }

    /// Does something that leads to another page, and waits until that page is loaded.
    ///
    /// # Panics
    /// If no other page is loaded.
    pub fn follow(&self, deed: impl FnOnce(&Self)) {
        let loads = |events: &[Value]| {
            let loaded = |event: &&Value| event["method"] == "Page.lifecycleEvent" && event["params"]["name"] == "load";
            events.iter().filter(loaded).count()
        };
        let before = self.connection.events(&self.session, loads);
        deed(self);
        let came = self.connection.wait_for(&self.session, LIMIT, |events| loads(events) > before);
        assert!(came, "no other page came; this is {:?}", self.try_eval("location.href"));
    }

    pub fn text(&self) -> String {
        self.eval("document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Sets the window's size and the preferred colour scheme.
    pub fn look_as(&self, viewport: Viewport, scheme: Scheme) {
        let (width, height, mobile) = match viewport {
            Viewport::Desktop => (1_440, 900, false),
            Viewport::Phone => (390, 844, true),
        };
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        let preferred = match scheme {
            Scheme::Light => "light",
            Scheme::Dark => "dark",
        };
        let features = json!([
            {"name": "prefers-color-scheme", "value": preferred},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.call("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Whether scripts of pages run, from the next page load on.
    pub fn run_scripts(&self, wanted: bool) {
        self.call("Emulation.setScriptExecutionDisabled", &json!({"value": !wanted}));
    }

    /// All problems that the browser has reported since the last call.
    pub fn problems(&self) -> Vec<String> {
        // What a page does right after loading is reported a moment later, but before the answer to this call.
        self.eval("0");
        let found = self.connection.events(&self.session, |events| events.iter().filter_map(problem).collect());
        self.connection.forget(&self.session);
        found
    }

    /// The accessibility rules that the page violates, according to axe-core.
    pub fn violations(&self) -> Vec<Violation> {
        self.eval(&format!("{};0", accessibility::source()));
        accessibility::violations(&self.eval(accessibility::QUESTION))
    }

    /// Writes a screenshot of the whole page as a PNG file.
    ///
    /// # Panics
    /// If it cannot be taken or written.
    pub fn screenshot(&self, path: &Path) {
        let size = self.call("Page.getLayoutMetrics", &json!({}))["cssContentSize"].take();
        let (width, height) = (size["width"].as_f64().unwrap_or(1.0), size["height"].as_f64().unwrap_or(1.0));
        self.capture(&json!({"x": 0, "y": 0, "width": width, "height": height.min(TALLEST), "scale": 1}), path);
    }

    /// Writes a screenshot of the first element that matches a selector, at twice its size, as a PNG file.
    ///
    /// # Panics
    /// If there is none, or the file cannot be written.
    pub fn screenshot_of(&self, selector: &str, path: &Path) {
        let mut clip = self.eval(&format!(
            "(() => {{ const box = document.querySelector({}).getBoundingClientRect(); \
             return {{x: box.x, y: box.y, width: box.width, height: box.height}}; }})()",
            json!(selector)
        ));
        clip["scale"] = json!(2);
        self.capture(&clip, path);
    }

    fn capture(&self, clip: &Value, path: &Path) {
        let wanted = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let picture = self.call("Page.captureScreenshot", &wanted)["data"].take();
        let bytes = STANDARD.decode(picture.as_str().unwrap_or_default()).expect("the picture is base64");
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("the folder can be made");
        fs::write(path, bytes).expect("the picture can be written");
    }

    fn call(&self, method: &str, parameters: &Value) -> Value {
        self.connection.call(Some(&self.session), method, parameters)
    }
}
