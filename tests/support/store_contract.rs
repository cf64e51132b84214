//! What every store of conversations keeps to.

use crablet::ErrorKind;
use crablet::host::{Store, Stored};

/// Goes through the life of a conversation in an empty store, which is empty again afterwards. A text is long enough to be kept in parts.
pub(crate) async fn keeps_the_contract(store: &dyn Store) {
    let conflict = |outcome: Result<u64, crablet::Error>| assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Conflict);
    let read = async |id: &str| store.read(id).await.unwrap();
    assert_eq!(read("a").await, None);
    conflict(store.append("a", 1, "early\n".into()).await);
    assert_eq!(store.replace("a", 0, "{\"format\":1}\n".into()).await.unwrap(), 1);
    conflict(store.replace("a", 0, "again\n".into()).await);
    assert_eq!(store.append("a", 1, "two\n".into()).await.unwrap(), 2);
    conflict(store.append("a", 1, "second writer\n".into()).await);
    assert_eq!(store.append("a", 2, "three\n".into()).await.unwrap(), 3);
    assert_eq!(read("a").await, Some(Stored { version: 3, text: "{\"format\":1}\ntwo\nthree\n".into() }));
    let long = format!("{{\"format\":2,\"long\":\"{}\"}}\n", "a🦀ж".repeat(50_000));
    assert_eq!(store.replace("a", 3, long.clone()).await.unwrap(), 4);
    conflict(store.append("a", 3, "second writer\n".into()).await);
    conflict(store.append("a", 1, "a writer from long ago\n".into()).await);
    assert_eq!(read("a").await, Some(Stored { version: 4, text: long.clone() }));
    assert_eq!(store.append("a", 4, "five\n".into()).await.unwrap(), 5);
    assert_eq!(read("a").await, Some(Stored { version: 5, text: format!("{long}five\n") }));
    assert_eq!(store.replace("a", 5, "{\"format\":2}\n".into()).await.unwrap(), 6);
    conflict(store.append("a", 5, "second writer\n".into()).await);
    assert_eq!(read("a").await, Some(Stored { version: 6, text: "{\"format\":2}\n".into() }));

    let odd = "user:7/чат %2F ..";
    store.replace(odd, 0, "{\"format\":3}\n".into()).await.unwrap();
    assert_eq!(store.list().await.unwrap(), ["a", odd]);
    store.delete("a").await.unwrap();
    store.delete("a").await.unwrap();
    assert_eq!(read("a").await, None);
    conflict(store.append("a", 4, "it is gone\n".into()).await);
    conflict(store.append("a", 5, "it is gone\n".into()).await);
    conflict(store.append("a", 6, "it is gone\n".into()).await);
    assert_eq!(read("a").await, None, "a refused write leaves nothing");
    assert_eq!(store.list().await.unwrap(), [odd]);
    store.delete(odd).await.unwrap();
}
