//! Tests signing in with an account on the emulated GitHub.

use canonry_github::{GitHubError, OauthClient, Secret, code_challenge};
use canonry_testkit::github::{Emulator, OauthApp, World, loopback_client_builder};
use url::Url;

const CALLBACK: &str = "http://127.0.0.1:9/auth/github/callback";

async fn setting() -> (Emulator, OauthClient, Url) {
    let mut world = World::new();
    world.user("Mona");
    world.oauth = Some(OauthApp::new("Iv1.console", "the-secret", CALLBACK));
    let emulator = Emulator::start(world).await;
    let api: Url = emulator.url().parse().expect("a URL");
    let client = OauthClient::new(&api, "Iv1.console", &Secret::new("the-secret")).expect("a client");
    (emulator, client, CALLBACK.parse().expect("a URL"))
}

/// The address to which the browser is redirected.
async fn sent_back(url: &Url) -> Url {
    let browser = loopback_client_builder().redirect(reqwest::redirect::Policy::none()).user_agent("browser").build();
    let answer = browser.expect("a client").get(url.clone()).send().await.expect("an answer");
    assert_eq!(answer.status(), 302);
    answer.headers()["location"].to_str().expect("text").parse().expect("a URL")
}

fn told(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

#[tokio::test]
async fn a_person_is_known_by_the_code_they_come_back_with() {
    let (emulator, client, callback) = setting().await;
    emulator.world().oauth.as_mut().expect("set").person = Some("mona".to_owned());
    let verifier = Secret::new("a-verifier-that-only-we-know");
    let back = sent_back(&client.authorize_url(&callback, "a state", &code_challenge(&verifier))).await;
    assert_eq!(told(&back, "state").as_deref(), Some("a state"));
    let code = told(&back, "code").expect("a code");
    let token = client.exchange_code(&callback, &code, &verifier).await.expect("a token");
    let (id, login) = client.signed_in_user(&token).await.expect("an account");
    let expected = emulator.world().users["mona"].id;
    assert_eq!((id.0, login.as_str()), (i64::try_from(expected).expect("small"), "Mona"));
    let again = client.exchange_code(&callback, &code, &verifier).await.expect_err("a code is good once");
    assert!(matches!(again, GitHubError::Unauthorized { credential: "the code of this sign-in", .. }), "{again}");
    assert!(emulator.writes().is_empty(), "signing in changes nothing there");
}

#[tokio::test]
async fn what_is_wrong_with_a_sign_in_is_told() {
    let (emulator, client, callback) = setting().await;
    let verifier = Secret::new("a-verifier");
    let url = client.authorize_url(&callback, "s", &code_challenge(&verifier));
    assert_eq!(told(&sent_back(&url).await, "error").as_deref(), Some("access_denied"), "nobody agreed");
    let mut as_mona = url.clone();
    as_mona.query_pairs_mut().append_pair("as", "mona");
    let code = told(&sent_back(&as_mona).await, "code").expect("a code");
    let stolen = client.exchange_code(&callback, &code, &Secret::new("another verifier")).await;
    assert!(matches!(stolen, Err(GitHubError::Unauthorized { .. })), "{stolen:?}");
    let api: Url = emulator.url().parse().expect("a URL");
    let wrong = OauthClient::new(&api, "Iv1.console", &Secret::new("wrong")).expect("a client");
    let refused = wrong.exchange_code(&callback, "c", &verifier).await.expect_err("refused");
    assert!(refused.to_string().contains("CANONRY_OAUTH_CLIENT_SECRET"), "{refused}");
    let nobody = client.signed_in_user(&Secret::new("ghu_made_up")).await;
    assert!(matches!(nobody, Err(GitHubError::Unauthorized { .. })), "{nobody:?}");
    let gone: Url = "http://127.0.0.1:1".parse().expect("a URL");
    let lost =
        OauthClient::new(&gone, "a", &verifier).expect("a client").exchange_code(&callback, "c", &verifier).await;
    assert!(matches!(lost, Err(GitHubError::Network { .. })), "{lost:?}");
}
