//! A plain HTTP client, which shows exactly what the emulator answers.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use canonry_testkit::github::{Emulator, TEST_APP_PRIVATE_KEY, World, loopback_client_builder};
use reqwest::Method;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The URL of `rel="next"`.
    pub(crate) fn next(&self) -> Option<String> {
        let entry = self.header("link").split(", ").find(|entry| entry.ends_with("rel=\"next\""))?;
        Some(entry.split_once('>')?.0.trim_start_matches('<').to_owned())
    }
}

impl Client {
    pub(crate) fn new(emulator: &Emulator, token: Option<&str>) -> Self {
        let http = loopback_client_builder()
            .user_agent("canonry-testkit")
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client");
        Self { http, base: emulator.url(), token: token.map(str::to_owned) }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, None).await.expect("an answer")
    }

    pub(crate) async fn write(&self, method: &str, path: &str, body: Value) -> Reply {
        self.send(method, path, Some(body)).await.expect("an answer")
    }

    /// `None` if the connection ended without an answer.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Option<Reply> {
        self.send_with(method, path, body, &[]).await
    }

    pub(crate) async fn send_with(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Option<Reply> {
        let url = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.base) };
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.http.request(method, url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.ok()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Some(Reply { status, headers, text: response.text().await.ok()? })
    }
}

/// A JWT of the App 77, by the world's clock.
pub(crate) fn jwt(world: &World, lives: i64) -> String {
    let now = world.now.as_second();
    let claims = json!({ "iat": now - 60, "exp": now + lives, "iss": "77" });
    let [header, claims] =
        [json!({ "alg": "RS256", "typ": "JWT" }), claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let signed = format!("{header}.{claims}");
    let key = PrivateKeyDer::from_pem_slice(TEST_APP_PRIVATE_KEY.as_bytes()).expect("the test key");
    let key = any_supported_type(&key).expect("an RSA key");
    let signer = key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]).expect("an RSA key");
    let signature = signer.sign(signed.as_bytes()).expect("a signature");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}
