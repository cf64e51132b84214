mod world;

use proptest::prelude::*;

use self::world::{Ending, ISSUER, REDIRECT, SERVER, World, claims};
use super::form::query_value;
use super::*;
use crate::json::Object;

fn world() -> World {
    World::new(AuthOptions::default())
}

fn failure(ending: Ending) -> String {
    match ending {
        Ending::Failed(ErrorKind::Auth, message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_authorization_serves_all_that_wait() {
    let mut world = world();
    let tickets: Vec<_> = (0..5).map(|_| world.start("POST")).collect();
    world.run();
    assert!(tickets.iter().all(|ticket| world.endings[ticket] == Ending::Accepted));
    assert_eq!(world.pages.len(), 1);
    assert_eq!(world.sent, 10);
    assert_eq!(world.post(), Ending::Accepted);
    assert_eq!(world.sent, 11);
}

#[test]
fn the_request_for_consent_has_all_that_protects_it() {
    let mut world = world();
    assert_eq!(world.post(), Ending::Accepted);
    let page = &world.pages[0];
    assert!(page.starts_with("https://as.example/authorize?"));
    assert_eq!(query_value(page, "resource").as_deref(), Some(SERVER));
    assert_eq!(query_value(page, "redirect_uri").as_deref(), Some(REDIRECT));
    assert_eq!(query_value(page, "scope"), None);
    assert!(query_value(page, "state").unwrap().len() >= 43);
    assert!(query_value(page, "code_challenge").unwrap().len() == 43);
}

#[test]
fn a_server_that_takes_nothing_is_given_up() {
    let mut world = world();
    world.server.takes_nothing = true;
    for _ in 0..10 {
        assert_eq!(world.post(), Ending::Passed(401));
    }
    assert_eq!(world.asked.iter().filter(|url| url.ends_with("/token")).count(), 3);
    // Later it gets another chance.
    let before = world.pages.len();
    world.now = world.now.after(61_000);
    world.server.takes_nothing = false;
    world.server.tokens.clear();
    world.server.refreshable.clear();
    assert_eq!(world.post(), Ending::Accepted);
    assert_eq!(world.pages.len(), before + 1);
}

#[test]
fn more_scopes_are_asked_for_together_with_those_before_and_once() {
    let mut world = world();
    world.server.challenge = r#"Bearer scope="read""#.to_owned();
    assert_eq!(world.post(), Ending::Accepted);
    world.server.wanted_scope = Some("write".to_owned());
    assert_eq!(world.post(), Ending::Accepted);
    assert_eq!(query_value(&world.pages[1], "scope").as_deref(), Some("write read"));
    // What was asked for and not given is not asked for again.
    world.server.tokens.values_mut().for_each(|scope| scope.clear());
    assert_eq!(world.post(), Ending::Passed(403));
    assert_eq!(world.pages.len(), 2);
}

#[test]
fn tokens_are_renewed_before_they_end_and_each_refresh_token_is_used_once() {
    let mut world = world();
    assert_eq!(world.post(), Ending::Accepted);
    for _ in 0..3 {
        world.now = world.now.after(3_600_000);
        assert_eq!(world.post(), Ending::Accepted);
    }
    assert_eq!(world.pages.len(), 1);
    assert_eq!(world.server.refreshable.len(), 1);
    // One that was revoked leads to the person again.
    world.server.refreshable.clear();
    world.now = world.now.after(3_600_000);
    assert_eq!(world.post(), Ending::Accepted);
    assert_eq!(world.pages.len(), 2);
}

#[test]
fn tokens_that_end_at_once_do_not_make_it_run_in_circles() {
    let mut world = world();
    world.server.expires_in = 0;
    for _ in 0..5 {
        assert_eq!(world.post(), Ending::Accepted);
    }
    assert_eq!(world.pages.len(), 1);
}

#[test]
fn kept_tokens_and_clients_serve_the_next_process() {
    let mut world = world();
    assert_eq!(world.post(), Ending::Accepted);
    world.restart(AuthOptions::default());
    assert_eq!(world.post(), Ending::Accepted);
    assert_eq!((world.pages.len(), world.sent), (1, 3));
    // When they have ended, they are renewed with the client that was registered.
    world.now = world.now.after(7_200_000);
    world.restart(AuthOptions::default());
    assert_eq!(world.post(), Ending::Accepted);
    assert_eq!((world.pages.len(), world.server.clients.len()), (1, 1));
}

#[test]
fn another_authorization_server_sees_nothing_of_the_first() {
    let mut world = world();
    assert_eq!(world.post(), Ending::Accepted);
    world.server.issuer = "https://other.example".to_owned();
    world.server.tokens.clear();
    world.secrets.clear();
    let before = world.asked.len();
    assert_eq!(world.post(), Ending::Accepted);
    assert!(world.asked[before..].iter().all(|url| !url.starts_with(ISSUER)));
    assert_eq!(world.server.clients.len(), 2);
    let keys: Vec<_> = world.kept.keys().map(String::as_str).collect();
    assert!(keys.contains(&"tokens https://as.example https://mcp.example/mcp"), "{keys:?}");
    assert!(keys.contains(&"tokens https://other.example https://mcp.example/mcp"), "{keys:?}");
}

#[test]
fn an_answer_that_is_not_for_this_authorization_ends_it_before_the_code_is_used() {
    type Change = fn(String) -> String;
    let cases: [(Change, &str); 7] = [
        (|url| url.replace("state=", "state=x"), "another authorization"),
        (|url| format!("{url}&state=again"), "another authorization"),
        (|url| url.replace("as.example", "evil.example"), "evil.example"),
        (|url| format!("{}%2F", url), "and not from"),
        (|url| url.split("&iss=").next().unwrap().to_owned(), "does not say"),
        (|url| url.replace("127.0.0.1", "evil.example"), "another address"),
        (|url| url.replace("code=", "error=access_denied&error_description=no%0Away&x="), "access_denied: noway"),
    ];
    for (callback, expected) in cases {
        let mut world = world();
        world.server.callback = callback;
        let message = failure(world.post());
        assert!(message.contains(expected), "{message}");
        assert!(!world.asked.iter().any(|url| url.ends_with("/token")));
    }
}

#[test]
fn metadata_of_somebody_else_ends_it_before_anything_is_asked() {
    let resource = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
    let server = "https://as.example/.well-known/oauth-authorization-server";
    let endpoints = r#""authorization_endpoint":"https://as.example/a","token_endpoint":"https://as.example/token",
        "registration_endpoint":"https://as.example/register""#;
    let pkce = r#""code_challenge_methods_supported":["S256"]"#;
    for (url, document) in [
        (
            resource,
            r#"{"resource":"https://evil.example/mcp","authorization_servers":["https://as.example"]}"#.to_owned(),
        ),
        (resource, r#"{"authorization_servers":["http://169.254.169.254"]}"#.to_owned()),
        (server, format!(r#"{{"issuer":"https://as.example/tenant",{endpoints},{pkce}}}"#)),
        (server, format!("{{{endpoints},{pkce}}}")),
        // Without PKCE a stolen code is as good as a token.
        (server, format!(r#"{{"issuer":"https://as.example",{endpoints}}}"#)),
    ] {
        let mut world = world();
        world.server.documents.insert(url.to_owned(), Some(document.clone()));
        failure(world.post());
        assert_eq!(world.pages.len(), 0, "{document}");
    }
}

#[test]
fn an_issuer_may_be_written_with_the_slash_of_an_empty_path_and_without() {
    let mut world = world();
    let document = format!(r#"{{"resource":"{SERVER}","authorization_servers":["{ISSUER}/"]}}"#);
    let url = "https://mcp.example/.well-known/oauth-protected-resource/mcp".to_owned();
    world.server.documents.insert(url, Some(document));
    assert_eq!(world.post(), Ending::Accepted);
    for (one, other, expected) in [
        ("https://a.example", "https://a.example/", true),
        ("https://a.example:8/", "https://a.example:8", true),
        ("https://a.example/x", "https://a.example/x/", false),
        ("https://a.example/", "https://a.example//", false),
        ("https://a.example", "https://b.example/", false),
        ("https://a.example?", "https://a.example?/", false),
    ] {
        assert_eq!(super::metadata::is_same_issuer(one, other), expected, "{one} {other}");
    }
}

#[test]
fn tokens_may_come_with_any_status_of_success() {
    let mut world = world();
    world.server.token_status = 201;
    assert_eq!(world.post(), Ending::Accepted);
}

#[test]
fn a_refresh_token_that_was_refused_in_any_words_leads_to_the_person_and_an_outage_does_not() {
    for (status, body, is_final) in [
        (200, r#"{"error":"bad_refresh_token","error_description":"expired"}"#, true),
        (400, r#"{"error":"invalid_request"}"#, true),
        (401, r#"{"error":"invalid_token"}"#, true),
        (400, "error=invalid_grant&error_description=expired", true),
        (500, r#"{"error":"server_error"}"#, false),
        (400, r#"{"error":"temporarily_unavailable"}"#, false),
        (429, r#"{"error":"slow_down"}"#, false),
        (403, "<html>checking your browser</html>", false),
        (503, "", false),
    ] {
        let mut world = world();
        assert_eq!(world.post(), Ending::Accepted);
        world.server.refresh_refusal = Some((status, body));
        world.now = world.now.after(3_600_000);
        let ending = world.post();
        assert_eq!(ending == Ending::Accepted, is_final, "{body}: {ending:?}");
        assert_eq!(world.pages.len(), if is_final { 2 } else { 1 }, "{body}");
        // The tokens of an outage are as good as before it.
        world.server.refresh_refusal = None;
        assert_eq!(world.post(), Ending::Accepted, "{body}");
        assert_eq!(world.pages.len(), if is_final { 2 } else { 1 }, "{body}");
    }
}

#[test]
fn tokens_that_another_process_renewed_meanwhile_are_used_and_not_lost() {
    for is_expired in [false, true] {
        let mut world = world();
        assert_eq!(world.post(), Ending::Accepted);
        world.now = world.now.after(3_600_000);
        let at = world.now.after(if is_expired { 0 } else { 3_600_000 }).0;
        world.server.tokens.insert("theirs".to_owned(), String::new());
        let record = format!(r#"{{"access_token":"theirs","refresh_token":"next","expires_at":{at}}}"#);
        world.overtaken = Some(record.clone());
        let ticket = world.start("POST");
        while !world.kept.values().any(|kept| *kept == record) {
            world.effects().into_iter().for_each(|effect| world.perform(effect));
        }
        world.server.refreshable.insert("next".to_owned());
        world.run();
        assert_eq!(world.endings[&ticket], Ending::Accepted);
        assert_eq!((world.pages.len(), world.server.refreshable.contains("next")), (1, !is_expired));
        assert!(world.kept.keys().any(|key| key.starts_with("tokens ")));
    }
}

#[test]
fn what_others_may_be_keeping_is_not_forgotten() {
    let mut world = world();
    assert_eq!(world.post(), Ending::Accepted);
    world.now = world.now.after(3_600_000);
    world.server.refreshable.clear();
    world.server.callback = |url| url.replace("code=", "error=access_denied&x=");
    failure(world.post());
    assert!(world.kept.keys().any(|key| key.starts_with("tokens ")));
    // Those that have ended ask for others.
    world.server.callback = |url| url;
    world.restart(AuthOptions::default());
    assert_eq!(world.post(), Ending::Accepted);
    assert_eq!(world.pages.len(), 3);
}

#[test]
fn more_scopes_may_be_wanted_with_the_status_of_a_missing_token() {
    let mut world = world();
    world.server.challenge = r#"Bearer scope="read""#.to_owned();
    assert_eq!(world.post(), Ending::Accepted);
    world.server.challenge = r#"Bearer error="insufficient_scope", scope="write""#.to_owned();
    world.server.tokens.clear();
    assert_eq!(world.post(), Ending::Accepted);
    assert_eq!(query_value(&world.pages[1], "scope").as_deref(), Some("write read"));
}

#[test]
fn a_server_of_the_first_revision_needs_no_metadata() {
    let mut world = world();
    world.server.issuer = "https://mcp.example".to_owned();
    world.server.challenge = String::new();
    for path in ["oauth-protected-resource/mcp", "oauth-authorization-server", "openid-configuration"] {
        world.server.documents.insert(format!("https://mcp.example/.well-known/{path}"), None);
    }
    assert_eq!(world.post(), Ending::Accepted);
    assert!(world.pages[0].starts_with("https://mcp.example/authorize?"));
    assert_eq!(query_value(&world.pages[0], "resource"), None);
}

#[test]
fn a_client_that_the_server_forgot_is_registered_anew() {
    let mut world = world();
    assert_eq!(world.post(), Ending::Accepted);
    world.server.forgot_clients = true;
    world.now = world.now.after(3_600_000);
    assert_eq!(world.post(), Ending::Accepted);
    assert_eq!((world.pages.len(), world.server.clients.len()), (2, 2));
}

#[test]
fn a_client_whose_scopes_are_refused_is_registered_without_them_once() {
    let mut world = world();
    world.server.challenge = r#"Bearer scope="read""#.to_owned();
    world.server.refuses_scopes = true;
    assert_eq!(world.post(), Ending::Accepted);
    assert_eq!(query_value(&world.pages[0], "scope").as_deref(), Some("read"));
    assert_eq!(world.asked.iter().filter(|url| url.ends_with("/register")).count(), 2);
}

#[test]
fn a_client_with_another_redirect_is_registered_anew() {
    let mut world = world();
    assert_eq!(world.post(), Ending::Accepted);
    let record = world.kept.iter_mut().find(|(key, _)| key.starts_with("client ")).unwrap().1;
    *record = record.replace("4321", "9");
    world.server.tokens.clear();
    world.server.refreshable.clear();
    world.restart(AuthOptions::default());
    assert_eq!(world.post(), Ending::Accepted);
    assert_eq!(world.server.clients.len(), 2);
}

#[test]
fn a_registered_client_is_shown_to_its_own_server_only() {
    let client = RegisteredClient { id: "registered".to_owned(), ..RegisteredClient::default() };
    let options = |issuer: &str| AuthOptions {
        client: Some(RegisteredClient { issuer: Some(issuer.to_owned()), ..client.clone() }),
        ..AuthOptions::default()
    };
    assert_eq!(World::new(options(ISSUER)).post(), Ending::Accepted);
    let mut other = World::new(options("https://other.example"));
    assert!(failure(other.post()).contains("https://other.example"));
    assert_eq!(other.pages.len(), 0);
}

#[test]
fn requests_that_nobody_waits_for_ask_nobody() {
    let mut world = world();
    assert_eq!(world.post(), Ending::Accepted);
    world.server.takes_nothing = true;
    for method in ["GET", "DELETE"] {
        let ticket = world.start(method);
        world.run();
        assert_eq!(world.endings[&ticket], Ending::Passed(401));
    }
    assert_eq!(world.pages.len(), 1);
    assert_eq!(world.asked.iter().filter(|url| url.ends_with("/token")).count(), 1);
}

#[test]
fn the_stream_that_opens_a_connection_asks() {
    let mut world = world();
    let ticket = world.start("GET");
    world.run();
    assert_eq!((&world.endings[&ticket], world.pages.len()), (&Ending::Accepted, 1));
}

#[test]
fn nothing_that_is_printed_holds_a_secret() {
    let key = PrivateKey { pem: Secret::new("planted-pem"), algorithm: SigningAlgorithm::Es256, key_id: None };
    let client = RegisteredClient {
        id: "registered".to_owned(),
        secret: Some(Secret::new("planted-secret-0")),
        key: Some(key),
        issuer: None,
    };
    let with_client = AuthOptions { client: Some(client), ..AuthOptions::default() };
    for options in [AuthOptions::default(), with_client] {
        let mut world = World::new(options);
        world.post();
        world.now = world.now.after(3_600_000);
        world.post();
        // A server that repeats what it is sent.
        world.server.refuses_token = true;
        world.server.tokens.clear();
        let message = failure(world.post());
        assert!(message.contains("invalid_request: no: "), "{message}");
        assert!(world.secrets.len() > 5);
        for secret in world.secrets.iter().map(String::as_str).chain(["planted-pem", "planted-secret-0", "planted-"]) {
            assert!(!world.printed.contains(secret), "{secret}");
        }
    }
}

#[test]
fn the_client_proves_itself_with_its_key() {
    let key = PrivateKey { pem: Secret::default(), algorithm: SigningAlgorithm::EdDsa, key_id: Some("k1".into()) };
    let client = RegisteredClient { id: "registered".to_owned(), key: Some(key), ..RegisteredClient::default() };
    let options = AuthOptions { grant: Grant::ClientCredentials, client: Some(client), ..AuthOptions::default() };
    let mut world = World::new(options);
    world.start("POST");
    let mut assertion = None;
    loop {
        let effects = world.effects();
        if effects.is_empty() {
            break;
        }
        for effect in effects {
            if let Effect::Perform { work: Work::Fetch(request), .. } = &effect {
                let body = format!("http://x/?{}", String::from_utf8_lossy(&request.body));
                assertion = query_value(&body, "client_assertion").or(assertion);
            }
            world.perform(effect);
        }
    }
    let assertion = assertion.unwrap();
    assert_eq!(claims(&assertion, 0), r#"{"alg":"EdDSA","typ":"JWT","kid":"k1"}"#);
    let claims = claims(&assertion, 1);
    let claims = Object::parse(&claims).unwrap();
    for (name, expected) in [("iss", "registered"), ("sub", "registered"), ("aud", ISSUER)] {
        assert_eq!(claims.string(name).as_deref(), Some(expected), "{name}");
    }
    assert_eq!(claims.integer("exp").unwrap() - claims.integer("iat").unwrap(), 300);
    assert_eq!(world.pages.len(), 0);
}

#[test]
fn a_proof_is_about_one_request_and_its_token() {
    let proof = Proof { method: "POST", url: "https://mcp.example/mcp?a=1#b", token: Some("token"), nonce: Some("n") };
    let public_key = RawJson::parse(r#"{"kty":"EC"}"#).unwrap();
    let mut random = Random::new([1; 32]);
    let (first, second) = (
        proof.unsigned(Millis(1_700_000_000_999), &mut random, &public_key),
        proof.unsigned(Millis(1_700_000_000_999), &mut random, &public_key),
    );
    assert_ne!(first, second);
    assert_eq!(claims(&first, 0), r#"{"typ":"dpop+jwt","alg":"ES256","jwk":{"kty":"EC"}}"#);
    let claims = claims(&first, 1);
    let claims = Object::parse(&claims).unwrap();
    assert_eq!(claims.string("htu").as_deref(), Some("https://mcp.example/mcp"));
    assert_eq!(claims.string("ath").unwrap(), super::random::hash("token"));
    assert_eq!(claims.string("nonce").as_deref(), Some("n"));
    assert_eq!(claims.integer("iat"), Some(1_700_000_000));
}

proptest! {
    /// Whatever order work ends in, whatever fails, and whoever leaves: every request that stays has one ending.
    #[test]
    fn every_request_ends(
        steps in proptest::collection::vec((0..6u8, any::<prop::sample::Index>()), 1..120),
        takes_nothing: bool,
    ) {
        let mut world = world();
        world.server.takes_nothing = takes_nothing;
        world.server.expires_in = 31;
        let (mut open, mut dropped): (Vec<Effect>, Vec<Ticket>) = (Vec::new(), Vec::new());
        let mut tickets = Vec::new();
        for (step, index) in steps {
            match step {
                0 => tickets.push(world.start("POST")),
                1 if !tickets.is_empty() => {
                    let ticket = tickets.remove(index.index(tickets.len()));
                    dropped.push(ticket);
                    world.machine.handle(world.now, Input::Dropped { ticket });
                }
                2 => world.now = world.now.after(2_000),
                3 if !open.is_empty() => match open.remove(index.index(open.len())) {
                    Effect::Perform { task, .. } => {
                        let error = Error::new(ErrorKind::Network, "planted");
                        world.machine.handle(world.now, Input::Done { task, outcome: Err(error) });
                    }
                    effect => world.perform(effect),
                },
                _ if !open.is_empty() => {
                    let effect = open.remove(index.index(open.len()));
                    world.perform(effect);
                }
                _ => {}
            }
            open.extend(world.effects());
        }
        open.into_iter().for_each(|effect| world.perform(effect));
        world.run();
        prop_assert!(tickets.iter().all(|ticket| world.endings.contains_key(ticket)));
        prop_assert!(world.machine.requests.is_empty());
        prop_assert!(world.machine.flow.is_none());
    }

    /// Whatever servers answer, it ends, and nothing is sent where it must not be.
    #[test]
    fn any_document_is_read_to_its_end(bodies in proptest::collection::vec("\\PC{0,60}|\\{\"(issuer|resource|access_token|client_id|error)\":\"[a-z:/.]{0,20}\"\\}", 4), status in 199..600u16) {
        let mut world = world();
        world.start("POST");
        let mut bodies = bodies.into_iter().cycle();
        for _ in 0..200 {
            let effects = world.effects();
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                match effect {
                    Effect::Perform { task, work: Work::Fetch(request) } => {
                        prop_assert!(Address::parse(&request.url).is_some_and(|address| address.origin == "https://mcp.example" || request.url.starts_with("https://")));
                        let head = ResponseHead { status, headers: Vec::new() };
                        let outcome = Ok(Outcome::Answer { head, body: bodies.next().unwrap().into_bytes() });
                        world.machine.handle(world.now, Input::Done { task, outcome });
                    }
                    Effect::Perform { task, work: Work::AskPerson(_) } => {
                        let outcome = Ok(Outcome::Text(bodies.next()));
                        world.machine.handle(world.now, Input::Done { task, outcome });
                    }
                    effect => world.perform(effect),
                }
            }
        }
        prop_assert!(world.machine.flow.is_none());
    }
}
