//! Lists and repeats the App's webhook deliveries: GitHub does not repeat a failed delivery by itself.

use canonry_boxed::boxed;
use jiff::Timestamp;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::pages::{PER_PAGE, Pages};
use crate::http::write::WriteError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestDelivery {
    pub id: i64,
    /// The event's id, the same for every delivery of it: the webhook's `X-GitHub-Delivery`.
    pub guid: String,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub delivered_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub redelivery: bool,
    /// The status of our answer; 0 if there was no answer.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub status_code: i64,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub event: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub action: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub installation_id: Option<i64>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub repository_id: Option<i64>,
}

impl RestDelivery {
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.status_code)
    }
}

#[boxed]
impl GitHub {
    /// The App's deliveries, newest first; GitHub keeps the last three days.
    pub fn app_deliveries(&self) -> Pages<RestDelivery> {
        Pages::new(self, Scope::App, self.url(&["app", "hook", "deliveries"], &[PER_PAGE]))
    }

    pub async fn redeliver(&self, delivery: &RestDelivery) -> Result<(), WriteError> {
        let url = self.url(&["app", "hook", "deliveries", &delivery.id.to_string(), "attempts"], &[]);
        self.write(&Scope::App, Method::POST, url, None).await.map(drop)
    }
}
