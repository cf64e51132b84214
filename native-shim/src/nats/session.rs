//! The subjects of one session, which only the shim that has its child listens to. When the session is over nobody does, and
//! NATS tells callers that at once.

use std::sync::Arc;

use async_nats::{Message, SubscribeError};
use crablet::mcp::server::http::{Posted, read_message};
use futures_util::StreamExt;

use super::call::{Place, listen, tell};
use super::front::Calls;
use super::reply::Reply;
use crate::http::child::ChildHandle;

/// Listens to the session's subjects until it is over.
pub(super) async fn open(calls: &Arc<Calls>, subject: &str, child: ChildHandle) -> Result<(), SubscribeError> {
    let mut messages = calls.client.subscribe(format!("{subject}.*")).await?;
    let calls = Arc::clone(calls);
    tokio::spawn(async move {
        loop {
            let message = tokio::select! {
                message = messages.next() => message,
                () = child.over() => None,
            };
            let Some(message) = message else { break };
            take(&calls, &child, message).await;
        }
        // A connection that is gone listens to nothing. What is on its way here is still given, and refused: nobody would tell
        // its caller else.
        if messages.drain().await.is_ok() {
            while let Some(message) = messages.next().await {
                take(&calls, &child, message).await;
            }
        }
    });
    Ok(())
}

async fn take(calls: &Arc<Calls>, child: &ChildHandle, message: Message) {
    let Message { subject, reply, payload, .. } = message;
    match subject.rsplit('.').next() {
        Some(last @ ("call" | "stream")) => {
            let place = Place::Session(child.clone());
            // In order: what follows a notification counts on it.
            match read_message(&payload) {
                Ok(Posted::Message(told)) => tell(&place, told).await,
                _ => {
                    if let Some(reply) = Reply::to(&calls.client, reply, last == "stream") {
                        calls.take(place, payload, reply);
                    }
                }
            }
        }
        Some("listen") => {
            let Some(reply) = Reply::to(&calls.client, reply, true) else { return };
            let (calls, child) = (Arc::clone(calls), child.clone());
            tokio::spawn(async move { listen(&calls, &child, &reply).await });
        }
        Some("end") => child.end().await,
        _ => {}
    }
}
