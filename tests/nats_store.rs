//! The store of conversations in NATS keeps the contract of `Store` over a real nats-server, and reads what the npm package's
//! `natsStore` writes. Run by the suite `scale`.
#![cfg(feature = "nats")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

#[path = "support/nats_server.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod nats_server;
#[path = "support/store_contract.rs"]
mod store_contract;

use async_nats::jetstream;
use crablet::ErrorKind;
use crablet::agent_service::NatsStore;
use crablet::host::{Store, Stored};
use nats_server::NatsServer;
use store_contract::keeps_the_contract;

async fn context(server: &NatsServer) -> jetstream::Context {
    jetstream::new(async_nats::connect(&server.url).await.unwrap())
}

#[tokio::test]
async fn conversations_in_a_bucket_also_where_a_value_goes_in_several_revisions() {
    for config in ["", "max_payload: 65536"] {
        let server = NatsServer::start(config);
        keeps_the_contract(&NatsStore::new(context(&server).await, "conversations").unwrap()).await;
    }
}

#[tokio::test]
async fn of_two_writers_the_second_is_refused_and_goes_on_once_it_has_read() {
    let server = NatsServer::start("");
    let one = NatsStore::new(context(&server).await, "conversations").unwrap();
    let other = NatsStore::new(context(&server).await, "conversations").unwrap();
    one.replace("a", 0, "one\n".into()).await.unwrap();
    assert_eq!(other.read("a").await.unwrap().unwrap().version, 1);
    let (first, second) =
        tokio::join!(one.append("a", 1, "of one\n".into()), other.append("a", 1, "of other\n".into()));
    let refused = first.and(second.clone()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(other.read("a").await.unwrap().unwrap().version, 2);
    assert_eq!(other.append("a", 2, "of other\n".into()).await.unwrap(), 3);
}

/// Records as the npm package wrote them, of a worker that was taken over: a beginning, what was added, a fence, and the
/// beginning of a write that was not made to its end.
#[tokio::test]
async fn what_the_npm_package_wrote_goes_on_here() {
    let server = NatsServer::start("");
    let context = context(&server).await;
    let store = NatsStore::new(context.clone(), "shared").unwrap();
    assert_eq!(store.list().await.unwrap(), [""; 0]);
    for record in [
        "{\"v\":1,\"id\":\"w1\",\"kind\":\"replace\",\"version\":1,\"taken\":{\"through\":3,\"also\":[]},\"part\":0,\"parts\":1}\n{\"format\":\"crablet-session\"}\n\"two\"",
        "{\"v\":1,\"id\":\"w2\",\"kind\":\"append\",\"version\":2,\"taken\":{\"through\":3,\"also\":[7]},\"part\":0,\"parts\":1}\n\"three\"",
        "{\"v\":1,\"id\":\"w3\",\"kind\":\"fence\",\"version\":2,\"taken\":{\"through\":3,\"also\":[7]},\"part\":0,\"parts\":1}\n",
        "{\"v\":1,\"id\":\"w4\",\"kind\":\"append\",\"version\":3,\"taken\":{\"through\":9,\"also\":[]},\"part\":0,\"parts\":2}\n\"fou",
    ] {
        context.publish("$KV.shared.=dXNlcjo3", record.into()).await.unwrap().await.unwrap();
    }
    let expected = Stored { version: 2, text: "{\"format\":\"crablet-session\"}\n\"two\"\n\"three\"\n".into() };
    assert_eq!(store.read("user:7").await.unwrap(), Some(expected));
    assert_eq!(store.append("user:7", 2, "\"four\"\n".into()).await.unwrap(), 3);
    assert!(store.read("user:7").await.unwrap().unwrap().text.ends_with("\"three\"\n\"four\"\n"));
    assert_eq!(store.list().await.unwrap(), ["user:7"]);
}
