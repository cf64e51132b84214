//! What providers report as errors, sorted into the kinds of the project.

use super::http::ResponseHead;
use super::retry_after::retry_after;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, read_string};

/// The error of an answer whose status says that it failed.
pub(super) fn from_response(head: &ResponseHead, body: &str) -> Error {
    let body = body.trim_start_matches('\u{feff}').trim();
    // Google wraps errors of streams in a list.
    let body = body.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(body);
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
        || refusal_of_minimax(object).is_some();
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

/// MiniMax's own form, with status 200 (platform.minimax.io/docs, "Error codes"): the number, unless all is well.
fn refusal_of_minimax(object: &Object<'_>) -> Option<u64> {
    object.object("base_resp")?.integer("status_code").filter(|code| *code != 0)
}

/// The words of others for MiniMax's numbers.
const fn word_of_minimax(code: u64) -> &'static str {
    match code {
        1002 | 1039 | 2045 => "rate_limited",
        1004 | 2049 => "invalid_api_key",
        1008 | 2056 => "insufficient_balance",
        1026 | 1027 => "content_filter",
        1000..=1999 => "server_error",
        _ => "invalid_request",
    }
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
        let inner = object.object("error");
        let error = inner.as_ref().unwrap_or(object);
        let of_minimax = || object.object("base_resp")?.string("status_msg");
        let message = message(error).or_else(|| message(object)).or_else(of_minimax).unwrap_or_default();
        let mut words = Vec::new();
        let mut code = None;
        let mut status = Some(head.status).filter(|status| *status >= 400);
        for source in [Some(error), inner.is_some().then_some(object)].into_iter().flatten() {
            for member in ["code", "type", "status", "status_code", "__type"] {
                let Some(raw) = source.get(member) else { continue };
                if let Some(word) = read_string(raw.get()) {
                    if word != "error" && !word.is_empty() {
                        words.push(normalized(&word));
                        code.get_or_insert(word);
                    }
                } else if let Ok(number) = raw.get().parse::<u16>() {
                    // Gateways answer 200 and put the status they mean into the body.
                    status = status.or(Some(number).filter(|number| (400..600).contains(number)));
                }
            }
        }
        if let Some(number) = refusal_of_minimax(object) {
            words.push(word_of_minimax(number).to_owned());
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
        let message = self.message.to_lowercase();
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

/// The providers' own words, most telling first.
const BY_WORD: &[(ErrorKind, &[&str])] = &[
    (
        ErrorKind::Auth,
        &[
            "invalid_api_key",
            "authentication_error",
            "permission_error",
            "permission_denied",
            "unauthenticated",
            "unauthorized",
            "invalid_authentication",
            "invalid_authentication_error",
            "api_key_invalid",
            "account_deactivated",
            "accessdeniedexception",
            "unrecognizedclientexception",
            "expiredtokenexception",
            "invalidsignatureexception",
        ],
    ),
    (
        ErrorKind::Quota,
        &[
            "insufficient_quota",
            "billing_error",
            "billing_hard_limit_reached",
            "billing_not_active",
            "insufficient_balance",
            "insufficient_credits",
            "insufficient_user_quota",
            "insufficient_funds",
            "quota_exceeded",
            "usage_limit_exceeded",
            "payment_required",
            "exceeded_current_quota_error",
            "usage_limit_reached",
            "arrearage",
        ],
    ),
    (
        ErrorKind::ContextOverflow,
        &["context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "request_too_large"],
    ),
    (
        ErrorKind::RateLimit,
        &[
            "rate_limit_error",
            "rate_limit_exceeded",
            "rate_limited",
            "rate_limit",
            "rate_limit_reached_error",
            "limit_requests",
            "limit_burst_rate",
            "too_many_requests",
            "resource_exhausted",
            "throttlingexception",
            "throttling",
            "servicequotaexceededexception",
        ],
    ),
    (
        ErrorKind::Overloaded,
        &[
            "overloaded_error",
            "overloaded",
            "engine_overloaded",
            "engine_overloaded_error",
            "model_overloaded",
            "service_unavailable",
            "service_unavailable_error",
            "serviceunavailableexception",
            "modelnotreadyexception",
            "capacity_exceeded",
            "unavailable",
        ],
    ),
    (
        ErrorKind::ContentFilter,
        &[
            "content_filter",
            "content_policy_violation",
            "image_content_policy_violation",
            "moderation_blocked",
            "responsibleaipolicyviolation",
            "data_inspection_failed",
            "datainspectionfailed",
            "cyber_policy_violation",
        ],
    ),
    // Groq's word for a call that the model wrote wrongly.
    (ErrorKind::MalformedToolCall, &["tool_use_failed", "malformed_tool_use"]),
];

/// Words of a failure inside the provider. They outweigh no status but one, since gateways use them for everything.
const SERVER_WORDS: &[&str] = &[
    "api_error",
    "server_error",
    "internal",
    "internal_error",
    "internal_server_error",
    "internalserverexception",
    "internalfailure",
    "modelerrorexception",
    "modelstreamerrorexception",
    "timeout_error",
    "deadline_exceeded",
];

/// Phrases of the sentence, in lower case, for the kinds that [`Report::open_kinds`] leaves open.
const BY_PHRASE: &[(ErrorKind, &[&str])] = &[
    (ErrorKind::RateLimit, &["rate limit", "rate-limit", "too many requests", "tokens per min", "requests per min"]),
    (
        ErrorKind::ContextOverflow,
        &[
            "prompt is too long",
            "prompt too long",
            "input is too long",
            "input too long",
            "context window",
            "maximum context length",
            "max context length",
            "context length exceeded",
            "exceed context limit",
            "exceeds context limit",
            "available context size",
            "exceeds the context",
            "maximum number of tokens allowed",
            "maximum allowed input length",
            "maximum prompt length",
            "maximum input length",
            "maximum model length",
            "model's context length",
            "loaded with context length",
            "prompt exceeds max length",
            "prompt token count",
            "range of input length",
            "inputs tokens + max_new_tokens",
            "request_too_large",
            "exceeded model token limit",
            "reduce the length of the messages",
            "too many input tokens",
        ],
    ),
    (
        ErrorKind::Auth,
        &[
            "api key not valid",
            "invalid api key",
            "incorrect api key",
            "api key is invalid",
            "api key is missing",
            "no api key",
            "authentication fails",
            "invalid token",
            "unauthorized",
        ],
    ),
    (
        ErrorKind::Quota,
        &[
            "insufficient balance",
            "insufficient credits",
            "insufficient quota",
            "credit balance",
            "requires more credits",
            "run out of credits",
            "used all available credits",
            "exceeded your current quota",
            "check your plan and billing",
            "quota used up",
        ],
    ),
    (ErrorKind::Overloaded, &["overloaded", "at capacity", "currently unavailable"]),
    (
        ErrorKind::ContentFilter,
        &[
            "content filter",
            "content management policy",
            "content policy",
            "flagged",
            "safety system",
            "inappropriate content",
        ],
    ),
];

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
    for member in ["message", "error", "detail", "msg", "Message", "error_description", "errors"] {
        let Some(raw) = object.get(member) else { continue };
        if let Some(text) = read_string(raw.get()).filter(|text| !text.is_empty()) {
            return Some(shortened(&text));
        }
        // FastAPI lists what is wrong: `{"detail":[{"loc":…,"msg":…}]}`; Cloudflare does in `errors`.
        let told = |element: &Object<'_>| element.string("msg").or_else(|| element.string("message"));
        let listed: Vec<_> = object.objects(member).iter().filter_map(told).collect();
        if !listed.is_empty() {
            return Some(shortened(&listed.join("; ")));
        }
    }
    None
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn normalized(word: &str) -> String {
    // Amazon writes `ThrottlingException:http://…`.
    word.split(':').next().unwrap_or(word).trim().to_lowercase().replace([' ', '-'], "_")
}

/// Takes out what looks like a key: providers repeat the key that they refuse.
fn redacted(message: &str) -> String {
    const SEPARATORS: [char; 7] = [' ', '\n', '\t', '"', '\'', '`', '='];
    let mut result = String::with_capacity(message.len());
    let mut follows_key = false;
    for piece in message.split_inclusive(SEPARATORS) {
        let word = piece.trim_end_matches(SEPARATORS);
        let core = word.trim_matches(|character: char| !character.is_ascii_alphanumeric() && character != '*');
        if is_secret(core, follows_key) {
            result.push_str(&piece.replacen(core, "[redacted]", 1));
        } else {
            result.push_str(piece);
        }
        let lower = word.to_lowercase();
        let announces_key = ["key:", "token:", "provided:", "bearer"].iter().any(|end| lower.ends_with(end));
        follows_key = announces_key || (follows_key && word.is_empty());
    }
    result
}

fn is_secret(word: &str, follows_key: bool) -> bool {
    const PREFIXES: &[&str] =
        &["sk-", "sk_", "pk-", "xai-", "gsk_", "csk-", "hf_", "AIza", "AKIA", "ABSK", "key-", "ya29."];
    // What the provider masked itself is left: it tells which key was meant.
    if word.contains('*') {
        return false;
    }
    let is_long = word.len() >= 40
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        && word.bytes().any(|byte| byte.is_ascii_digit());
    is_long
        || (word.len() >= 12 && PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
        || (follows_key && word.len() >= 8 && word.bytes().any(|byte| byte.is_ascii_digit()))
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

    #[test]
    fn keys_that_providers_repeat_are_taken_out() {
        for (message, expected) in [
            (
                "Incorrect API key provided: sk-proj-abcdef0123456789. You can",
                "Incorrect API key provided: [redacted]. You can",
            ),
            ("Incorrect API key provided: sk-inval****-key.", "Incorrect API key provided: sk-inval****-key."),
            ("Bearer abcdef0123 is wrong", "Bearer [redacted] is wrong"),
            (
                "the model `rig/definitely-not-a-doubleword-model` does not exist",
                "the model `rig/definitely-not-a-doubleword-model` does not exist",
            ),
            ("see 0123456789abcdef0123456789abcdef0123456789", "see [redacted]"),
        ] {
            assert_eq!(redacted(message), expected);
        }
    }
}
