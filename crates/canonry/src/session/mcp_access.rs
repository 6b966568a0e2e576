//! Which repositories an agent may read at `/mcp`: those that its token may read, as for the API.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::ConnectInfo;
use canonry_mcp::{Caller, RepoAccess};
use canonry_server::{ApiAccess, ApiRefusal};
use canonry_store::Repo;
use futures_util::future::BoxFuture;

pub(crate) struct TokenAccess(pub(crate) Arc<ApiAccess>);

impl RepoAccess for TokenAccess {
    fn repo<'a>(&'a self, name: Option<&'a str>, caller: Caller<'a>) -> BoxFuture<'a, Result<Repo, String>> {
        Box::pin(async move {
            let Some(name) = name else {
                return Err("name the repository: repo is OWNER/NAME".to_owned());
            };
            let Caller::Remote(parts) = caller else {
                return Err("the request has no token".to_owned());
            };
            let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
            self.0.repo(name, &parts.headers, peer).await.map_err(|refused: ApiRefusal| refused.to_string())
        })
    }
}
