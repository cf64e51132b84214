use std::future::Future;

use super::HttpServer;
#[cfg(feature = "oauth")]
use super::auth::Authorized;
use super::sent::Sent;
use crate::error::Error;
use crate::host::{Host, MaybeSend};
use crate::model::{HttpRequest, ResponseHead};

/// Sends the requests of one connection: with tokens where the server's options say how to obtain them.
#[derive(Clone)]
pub(super) struct Network<H: Host> {
    host: H,
    sent: Sent,
    #[cfg(feature = "oauth")]
    authorized: Option<Result<Authorized<H>, Error>>,
}

impl<H: Host> Network<H> {
    /// Takes over how the server's tokens are obtained.
    #[cfg_attr(not(feature = "oauth"), allow(unused_variables, clippy::needless_pass_by_ref_mut))]
    pub(super) fn new(host: H, server: &mut HttpServer) -> Self {
        Self {
            #[cfg(feature = "oauth")]
            authorized: server.auth.take().map(|auth| Authorized::new(host.clone(), &server.options.url, auth)),
            host,
            sent: Sent::default(),
        }
    }

    pub(super) fn host(&self) -> &H {
        &self.host
    }

    /// What the last requests carried.
    pub(super) fn sent(&self) -> &Sent {
        &self.sent
    }

    /// Whether a request may wait for tokens before it is sent.
    pub(super) fn may_ask(&self) -> bool {
        #[cfg(feature = "oauth")]
        return self.authorized.is_some();
        #[cfg(not(feature = "oauth"))]
        false
    }

    /// Whether tokens are being obtained.
    pub(super) fn is_asking(&self) -> bool {
        #[cfg(feature = "oauth")]
        return matches!(&self.authorized, Some(Ok(authorized)) if authorized.is_asking());
        #[cfg(not(feature = "oauth"))]
        false
    }

    pub(super) fn fetch(
        &self,
        request: HttpRequest,
    ) -> impl Future<Output = Result<(ResponseHead, H::Body), Error>> + MaybeSend + 'static {
        let network = self.clone();
        async move {
            let sent = network.sent.clone();
            network.answer(request).await.map_err(|mut error| {
                sent.redact(&mut error);
                error
            })
        }
    }

    async fn answer(self, request: HttpRequest) -> Result<(ResponseHead, H::Body), Error> {
        self.sent.remember(&request);
        #[cfg(feature = "oauth")]
        if let Some(authorized) = self.authorized {
            return authorized?.fetch(request, &self.sent).await;
        }
        self.host.fetch(request).await
    }
}
