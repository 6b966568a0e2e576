//! The style sheet, the scripts and the icon, compiled into the program. Their names contain a hash, so that browsers
//! may cache them.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse as _;
use axum::routing::get;
use sha2::{Digest as _, Sha256};

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};

struct Asset {
    path: LazyLock<String>,
    kind: &'static str,
    bytes: &'static [u8],
}

static CSS: Asset = Asset {
    path: LazyLock::new(|| path("console", "css", CSS.bytes)),
    kind: "text/css; charset=utf-8",
    bytes: include_bytes!("../../assets/console.css"),
};
static JS: Asset = Asset {
    path: LazyLock::new(|| path("console", "js", JS.bytes)),
    kind: "text/javascript; charset=utf-8",
    bytes: include_bytes!("../../assets/console.js"),
};
static HTMX: Asset = Asset {
    path: LazyLock::new(|| path("htmx", "js", HTMX.bytes)),
    kind: "text/javascript; charset=utf-8",
    bytes: include_bytes!("../../assets/htmx-2.0.8.min.js"),
};
static ICON: Asset = Asset {
    path: LazyLock::new(|| path("icon", "svg", ICON.bytes)),
    kind: "image/svg+xml",
    bytes: include_bytes!("../../assets/icon.svg"),
};

pub(crate) fn css() -> &'static str {
    &CSS.path
}

pub(crate) fn js() -> &'static str {
    &JS.path
}

pub(crate) fn htmx() -> &'static str {
    &HTMX.path
}

pub(crate) fn icon() -> &'static str {
    &ICON.path
}

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/assets/{file}", get(show))
}

async fn show(Path(file): Path<String>) -> PageResult {
    let asked = format!("/assets/{file}");
    let asset = [&CSS, &JS, &HTMX, &ICON].into_iter().find(|asset| *asset.path == asked).ok_or(PageError::NotFound)?;
    let headers = [(CONTENT_TYPE, asset.kind), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
    Ok((headers, asset.bytes).into_response())
}

fn path(name: &str, ending: &str, bytes: &[u8]) -> String {
    let hash = canonry_domain::hex_digits(&Sha256::digest(bytes)[..6]);
    format!("/assets/{name}-{hash}.{ending}")
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::HTMX;

    #[test]
    fn htmx_is_the_published_file() {
        let hash = canonry_domain::hex_digits(Sha256::digest(HTMX.bytes));
        assert!(include_str!("../../assets/NOTICE").contains(&hash), "{hash} is not the checksum in assets/NOTICE");
    }
}
