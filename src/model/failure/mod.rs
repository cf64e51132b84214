//! What providers report as errors, sorted into the kinds of the project.

mod minimax;
mod redaction;
mod words;

use redaction::redacted;
use words::{BY_PHRASE, BY_WORD, SERVER_WORDS};

use serde_json::value::RawValue;

use super::http::ResponseHead;
use super::retry_after::retry_after;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, read_string};

/// The error of an answer whose status says that it failed.
pub(super) fn from_response(head: &ResponseHead, body: &str) -> Error {
    let body = body.trim_start_matches('\u{feff}').trim();
    let body = unlisted(body);
    // Gateways put it into an event of a stream.
    let event = body.lines().find_map(|line| line.strip_prefix("data:")).filter(|_| !body.starts_with('{'));
    let body = event.map_or(body, str::trim);
    match Object::parse(body) {
        Ok(object) => Report::read(&object, head).into_error(head, Some(&object)),
        Err(_) => {
            let is_page = body.starts_with('<');
            let message = if is_page || body.is_empty() { String::new() } else { shortened(body) };
            let words = head.header("x-amzn-errortype").map(normalized).into_iter().collect();
            Report { status: Some(head.status), words, message, code: None }.into_error(head, None)
        }
    }
}

/// The error that an object holds, be it an event of a stream or a whole document; `None` when it holds none.
pub(super) fn from_object(object: &Object<'_>, head: &ResponseHead) -> Option<Error> {
    let is_error = object.get("error").is_some_and(|error| !matches!(error.get(), "null" | "false" | "\"\"" | "{}"))
        || object.string("type").as_deref() == Some("error")
        || object.string("object").as_deref() == Some("error")
        || minimax::refusal(object).is_some();
    is_error.then(|| from_error_object(object, head))
}

/// The error of a document that is no answer of any wire, if it says what is wrong: gateways report with status 200.
pub(super) fn from_no_answer(document: &Object<'_>, head: &ResponseHead) -> Option<Error> {
    const ANSWERS: [&str; 6] = ["choices", "content", "output", "candidates", "promptFeedback", "usageMetadata"];
    let is_answer = ANSWERS.iter().any(|member| document.get(member).is_some());
    (!is_answer && message(document).is_some()).then(|| from_error_object(document, head))
}

/// The error that a server wrote into a stream without making it an event.
pub(super) fn from_stray(text: &str, head: &ResponseHead) -> Option<Error> {
    let text = text.trim().trim_start_matches('[').trim_end_matches([']', ',']);
    let object = Object::parse(text).ok()?;
    from_object(&object, head).or_else(|| message(&object).map(|_| from_error_object(&object, head)))
}

/// Whether an object without an answer in it tells of a failure: a sentence, and a type or a number that says so. Others tell
/// that the model is being loaded.
#[cfg(feature = "openai-chat")]
pub(super) fn is_report(object: &Object<'_>) -> bool {
    let is_error = object.string("type").is_some_and(|kind| kind.contains("error"));
    let has_code =
        ["code", "status_code", "status"].iter().any(|name| object.integer(name).is_some_and(|code| code >= 400));
    let has_word = object.string("code").is_some_and(|code| !code.is_empty());
    (is_error || has_code || has_word) && message(object).is_some()
}

/// The error of an object that is known to report one.
pub(super) fn from_error_object(object: &Object<'_>, head: &ResponseHead) -> Error {
    Report::read(object, head).into_error(head, Some(object))
}

/// The error of a code and a sentence that came in some other form.
#[cfg(feature = "bedrock")]
pub(super) fn from_words(code: &str, message: &str, head: &ResponseHead) -> Error {
    let words = vec![normalized(code)];
    Report { status: None, words, message: shortened(message), code: Some(code.to_owned()) }.into_error(head, None)
}

/// The error of words that are no JSON but came where an error is announced.
pub(super) fn from_text(text: &str, head: &ResponseHead) -> Error {
    let status = Some(head.status).filter(|status| *status >= 400);
    Report { status, words: Vec::new(), message: shortened(text), code: None }.into_error(head, None)
}

/// What a provider says about a failure, whatever shape it said it in.
struct Report {
    status: Option<u16>,
    /// Codes and types, in lower case with underscores.
    words: Vec<String>,
    message: String,
    /// The code or type as it came.
    code: Option<String>,
}

impl Report {
    fn read(object: &Object<'_>, head: &ResponseHead) -> Self {
        let mut report = Self::read_outer(object, head);
        // OpenRouter repeats what the provider behind it said, whatever that is; others put it where the sentence is.
        let inner = object.object("error");
        let metadata = inner.as_ref().unwrap_or(object).object("metadata");
        match metadata.and_then(|metadata| metadata.string("raw")).filter(|raw| !raw.trim().is_empty()) {
            Some(raw) => report.add(&raw, ": "),
            None if report.message.starts_with(['{', '[']) => {
                let message = std::mem::take(&mut report.message);
                report.add(&message, "");
            }
            None => {}
        }
        report
    }

    /// Adds what another server said, in JSON or in words.
    fn add(&mut self, text: &str, separator: &str) {
        let mut message = shortened(text.trim());
        if let Ok(object) = Object::parse(unlisted(text.trim())) {
            let inner = Self::read_outer(&object, &ResponseHead::default());
            self.status = self.status.or(inner.status);
            self.words.extend(inner.words);
            if !inner.message.is_empty() {
                message = inner.message;
            }
        }
        self.message = if self.message.is_empty() { message } else { format!("{}{separator}{message}", self.message) };
    }

    fn read_outer(object: &Object<'_>, head: &ResponseHead) -> Self {
        let inner = object.object("error");
        let error = inner.as_ref().unwrap_or(object);
        let message =
            message(error).or_else(|| message(object)).or_else(|| minimax::message(object)).unwrap_or_default();
        let mut words = Vec::new();
        let mut code = None;
        let mut status = Some(head.status).filter(|status| *status >= 400);
        let detail = object.object("detail");
        for source in [Some(error), inner.is_some().then_some(object), detail.as_ref()].into_iter().flatten() {
            for member in ["code", "type", "status", "status_code", "__type"] {
                let Some(raw) = source.get(member) else { continue };
                let word = read_string(raw.get());
                // Gateways answer 200 and put the status they mean into the body, LiteLLM as a text.
                if let Ok(number) = word.as_deref().unwrap_or(raw.get()).parse::<u16>() {
                    status = status.or(Some(number).filter(|number| (400..600).contains(number)));
                }
                // LiteLLM writes `None` for nothing.
                if let Some(word) = word.filter(|word| !matches!(word.as_str(), "" | "error" | "None" | "null")) {
                    words.push(normalized(&word));
                    code.get_or_insert(word);
                }
            }
        }
        if let Some(number) = minimax::refusal(object) {
            words.push(minimax::word(number).to_owned());
            code.get_or_insert_with(|| number.to_string());
        }
        words.extend(head.header("x-amzn-errortype").map(normalized));
        words.extend(
            error.objects("details").iter().filter_map(|detail| detail.string("reason")).map(|word| normalized(&word)),
        );
        Self { status, words, message, code }
    }

    fn into_error(self, head: &ResponseHead, object: Option<&Object<'_>>) -> Error {
        let kind = self.kind();
        let mut told = what_happened(kind).to_owned();
        let details: Vec<_> =
            self.status.map(|status| format!("HTTP {status}")).into_iter().chain(self.code.clone()).collect();
        if !details.is_empty() {
            told = format!("{told} ({})", details.join(", "));
        }
        let message = redacted(&self.message);
        if !message.is_empty() {
            told = format!("{told}: {message}");
        }
        let mut error = Error::new(kind, told);
        if let Some(status) = self.status {
            error = error.with_status(status);
        }
        if let Some(code) = self.code {
            error = error.with_code(code);
        }
        let inner = object.and_then(|object| object.object("error"));
        let wait = retry_after(head, inner.as_ref().or(object), &self.message).filter(|_| kind.is_retryable());
        match wait {
            Some(milliseconds) => error.with_retry_after(milliseconds),
            None => error,
        }
    }

    /// The provider's own word decides, then the status. The sentence only refines what these leave open, since it may
    /// speak of anything: bad keys come as 400, and a full context window as 400, 413 or 500.
    fn kind(&self) -> ErrorKind {
        if let Some((kind, _)) = BY_WORD.iter().find(|(_, words)| self.has_word(words)) {
            // "Request too large" comes with the word for a rate limit, and the other way round.
            return *kind;
        }
        let message = self.message.to_ascii_lowercase();
        let refined = BY_PHRASE
            .iter()
            .filter(|(kind, _)| self.open_kinds().contains(kind))
            .find(|(_, phrases)| phrases.iter().any(|phrase| message.contains(phrase)));
        if let Some((kind, _)) = refined {
            return *kind;
        }
        match self.status {
            Some(401 | 403) => ErrorKind::Auth,
            Some(402) => ErrorKind::Quota,
            Some(413) => ErrorKind::ContextOverflow,
            Some(429) => ErrorKind::RateLimit,
            // Gateways say 503 for every failure, with the word for what it was.
            Some(503) if self.has_word(SERVER_WORDS) => ErrorKind::Server,
            Some(498 | 503 | 529) => ErrorKind::Overloaded,
            // Amazon says 424 when the model itself failed.
            Some(408 | 424 | 500..) => ErrorKind::Server,
            Some(_) => ErrorKind::BadRequest,
            None if self.blames_request() => ErrorKind::BadRequest,
            None => ErrorKind::Server,
        }
    }

    /// The kinds that the sentence may tell apart, as far as the status and the words let it.
    fn open_kinds(&self) -> &'static [ErrorKind] {
        use ErrorKind::{Auth, ContentFilter, ContextOverflow, Overloaded, Quota, RateLimit};
        match self.status {
            _ if self.words.iter().any(|word| word.contains("not_found")) => &[],
            Some(401 | 403) => &[Quota, ContentFilter],
            Some(402 | 404 | 408 | 498) => &[],
            // Compaction destroys history, so what says "slow down" is not taken for an overflow.
            Some(413) => &[RateLimit],
            Some(429) => &[Quota, Overloaded],
            Some(500) => &[RateLimit, ContextOverflow, Overloaded],
            Some(424 | 501..) => &[RateLimit, Overloaded],
            Some(_) => &[ContextOverflow, Auth, Quota, ContentFilter],
            None if self.blames_request() => &[ContextOverflow, Auth, Quota, ContentFilter],
            None => &[RateLimit, ContextOverflow, Auth, Quota, Overloaded, ContentFilter],
        }
    }

    fn blames_request(&self) -> bool {
        let blames =
            |word: &String| word.starts_with("invalid") || word.contains("not_found") || word.starts_with("validation");
        self.words.iter().any(blames)
    }

    fn has_word(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&word.as_str()))
    }
}

/// The most characters of a provider's sentence that are repeated: enough for every one seen, too few for a page.
const MAX_MESSAGE: usize = 2000;

const fn what_happened(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Auth => "the provider did not accept the API key",
        ErrorKind::RateLimit => "the provider's rate limit is reached",
        ErrorKind::Overloaded => "the provider is overloaded",
        ErrorKind::Quota => "the account's quota or credit is used up",
        ErrorKind::ContextOverflow => "the input is longer than the model's context window",
        ErrorKind::ContentFilter => "the provider's content filter stopped the request",
        ErrorKind::BadRequest => "the provider refused the request",
        ErrorKind::MalformedToolCall => "the model wrote a tool call that the provider refused",
        _ => "the provider failed",
    }
}

fn message(object: &Object<'_>) -> Option<String> {
    message_within(object, 0)
}

/// How deep in an object a sentence is looked for; the deepest seen is at two.
const MAX_MESSAGE_DEPTH: usize = 4;

fn message_within(object: &Object<'_>, depth: usize) -> Option<String> {
    if depth > MAX_MESSAGE_DEPTH {
        return None;
    }
    for member in ["message", "error", "detail", "msg", "Message", "error_description", "errors"] {
        let Some(raw) = object.get(member) else { continue };
        if let Some(text) = read_string(raw.get()).filter(|text| !text.is_empty()) {
            return Some(shortened(&text));
        }
        // Gateways put errors into errors: `{"detail":{"error":…}}`.
        if let Some(told) = object.object(member).and_then(|inner| message_within(&inner, depth + 1)) {
            return Some(told);
        }
        // FastAPI lists what is wrong: `{"detail":[{"loc":…,"msg":…}]}`; Cloudflare does in `errors`.
        let told = |element: &RawValue| match Object::parse(element.get()) {
            Ok(element) => message_within(&element, depth + 1),
            Err(_) => read_string(element.get()),
        };
        let listed: Vec<_> = object.array(member).unwrap_or_default().into_iter().filter_map(told).collect();
        if !listed.is_empty() {
            return Some(shortened(&listed.join("; ")));
        }
    }
    None
}

/// Google wraps errors of streams in a list.
fn unlisted(body: &str) -> &str {
    body.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(body)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn normalized(word: &str) -> String {
    // Amazon writes `ThrottlingException:http://…`.
    word.split(':').next().unwrap_or(word).trim().to_ascii_lowercase().replace([' ', '-'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16) -> ResponseHead {
        ResponseHead { status, headers: Vec::new() }
    }

    #[test]
    fn overflow_is_told_from_rate_limits_and_output_limits() {
        for (status, body, expected) in [
            (400, r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#, true),
            (413, r#"{"error":{"message":"request_too_large"}}"#, true),
            (
                400,
                r#"{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}"#,
                true,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"}}"#,
                true,
            ),
            (
                400,
                r#"{"message":"Requested token count exceeds the model's maximum context length of 4096 tokens."}"#,
                true,
            ),
            (
                400,
                r#"{"error":{"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."}}"#,
                true,
            ),
            (400, r#"{"message":"Input is too long for requested model."}"#, true),
            (
                400,
                r#"{"error":{"message":"Input length 131393 exceeds the maximum allowed input length of 131040 tokens."}}"#,
                true,
            ),
            (
                400,
                r#"{"error":{"type":"exceed_context_size_error","message":"the request exceeds the available context size"}}"#,
                true,
            ),
            (429, r#"{"message":"Too many tokens, please wait before trying again."}"#, false),
            (
                429,
                r#"{"error":{"message":"Request too large for model on tokens per min (TPM): Limit 30000, Requested 40000"}}"#,
                false,
            ),
            (
                400,
                r#"{"error":{"message":"max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens"}}"#,
                false,
            ),
        ] {
            let error = from_response(&head(status), body);
            assert_eq!(error.kind() == ErrorKind::ContextOverflow, expected, "{body}: {error:?}");
        }
    }

    #[test]
    fn the_shapes_of_the_field_are_read() {
        for (status, body, kind, message) in [
            (401, r#"{"detail":"Invalid API Key"}"#, ErrorKind::Auth, "Invalid API Key"),
            (400, r#"{"code":"x","error":"Incorrect API key provided: xa***"}"#, ErrorKind::Auth, "xa***"),
            (400, r#"{"error":"no such field"}"#, ErrorKind::BadRequest, "no such field"),
            (404, r#"{"error":{"type":"not_found_error","message":"model: x"}}"#, ErrorKind::BadRequest, "model: x"),
            (429, r#"{"error":{"code":"insufficient_quota","message":"m"}}"#, ErrorKind::Quota, "m"),
            (402, r#"{"error":{"message":"Insufficient Balance"}}"#, ErrorKind::Quota, "Insufficient Balance"),
            (422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, ErrorKind::BadRequest, "field required"),
            (529, "", ErrorKind::Overloaded, "529"),
            (502, "<html>bad gateway</html>", ErrorKind::Server, "HTTP 502"),
            (403, r#"{"error":{"message":"Your input was flagged"}}"#, ErrorKind::ContentFilter, "flagged"),
            (
                400,
                r#"[{"error":{"status":"INVALID_ARGUMENT","message":"API key not valid. Please pass a valid one"}}]"#,
                ErrorKind::Auth,
                "pass a valid one",
            ),
        ] {
            let error = from_response(&head(status), body);
            assert_eq!(error.kind(), kind, "{body}");
            assert!(error.message().contains(message), "{error}");
            assert_eq!(error.status(), Some(status));
        }
    }

    #[test]
    fn a_sentence_never_outweighs_the_status_or_the_code() {
        let body = |word: &str, message: &str| format!(r#"{{"error":{{"code":"{word}","message":"{message}"}}}}"#);
        for (status, word, message, expected) in [
            (404, "model_not_found", "The model `overloaded-7b` does not exist", ErrorKind::BadRequest),
            (400, "model_not_found", "no context window, rate limit or quota for overloaded", ErrorKind::BadRequest),
            (404, "x", "unauthorized: prompt is too long, rate limit, overloaded", ErrorKind::BadRequest),
            (404, "api_error", "model 'x' not found", ErrorKind::BadRequest),
            (400, "x", "tools[0].description: the word overloaded, a rate limit of 5", ErrorKind::BadRequest),
            (400, "invalid_request_error", "rate limit must be positive", ErrorKind::BadRequest),
            (401, "x", "the key of the overloaded project: rate limit, context window", ErrorKind::Auth),
            (402, "x", "rate limit reached, overloaded", ErrorKind::Quota),
            (429, "x", "slow down, the context window is too full, unauthorized", ErrorKind::RateLimit),
            (429, "x", "the engine is currently overloaded", ErrorKind::Overloaded),
            (502, "x", "upstream said unauthorized: invalid api key, credit balance", ErrorKind::Server),
            (503, "x", "maximum context length", ErrorKind::Overloaded),
            (500, "server_error", "the request exceeds the available context size", ErrorKind::ContextOverflow),
            (500, "x", "the model is overloaded", ErrorKind::Overloaded),
        ] {
            let error = from_response(&head(status), &body(word, message));
            assert_eq!(error.kind(), expected, "{status} {word}: {message}");
        }
        for (word, message, expected) in [
            ("x", "the model is overloaded", ErrorKind::Overloaded),
            ("invalid_request_error", "the word overloaded", ErrorKind::BadRequest),
            ("invalid_request_error", "prompt is too long", ErrorKind::ContextOverflow),
            ("model_not_found", "prompt is too long", ErrorKind::BadRequest),
            ("ValidationException", "too many requests", ErrorKind::BadRequest),
        ] {
            let text = body(word, message);
            let error = from_object(&Object::parse(&text).unwrap(), &head(200)).unwrap();
            assert_eq!(error.kind(), expected, "{word}: {message}");
        }
    }

    #[test]
    fn the_status_inside_a_body_counts_when_the_real_one_says_success() {
        let read = |body| from_object(&Object::parse(body).unwrap(), &head(200));
        assert_eq!(read(r#"{"error":{"code":429,"message":"x"}}"#).unwrap().kind(), ErrorKind::RateLimit);
        assert_eq!(
            read(r#"{"error":{"message":"loading","type":"server_error","code":503}}"#).unwrap().kind(),
            ErrorKind::Server
        );
        assert_eq!(read(r#"{"error":null,"choices":[]}"#), None);
    }
}
