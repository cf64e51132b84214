//! Decoding costs in proportion to what is decoded, whatever the shape of an answer and the size of its chunks: counted in
//! bytes that are looked at, copied or moved. And encoding a history again costs in proportion to what is new in it.

use std::sync::Arc;

use super::bedrock::frame_of_event;
use super::openai_chat::Profile;
use super::*;
use crate::work;

/// What is said again and again, and how it begins and ends.
struct Shape {
    name: &'static str,
    model: Model,
    begin: Vec<u8>,
    again: Vec<u8>,
    end: Vec<u8>,
}

/// The most work for each byte.
const MAX_WORK: u64 = 24;

/// How much more work twice as much may be.
const MAX_GROWTH: f64 = 2.2;

const MEGABYTE: usize = 1024 * 1024;

impl Shape {
    fn stream(name: &'static str, model: Model, begin: &[&str], again: &str, end: &[&str]) -> Self {
        let events = |payloads: &[&str]| payloads.iter().flat_map(|payload| event(payload)).collect();
        Self { name, model, begin: events(begin), again: event(again), end: events(end) }
    }

    fn frames(name: &'static str, begin: &[(&str, &str)], again: (&str, &str)) -> Self {
        let frames =
            |events: &[(&str, &str)]| events.iter().flat_map(|(name, payload)| frame_of_event(name, payload)).collect();
        let end = frames(&[("messageStop", r#"{"stopReason":"end_turn"}"#)]);
        Self { name, model: bedrock::model("r", "m"), begin: frames(begin), again: frames(&[again]), end }
    }

    fn bytes(&self, length: usize) -> Vec<u8> {
        let times = length / self.again.len();
        [self.begin.clone(), self.again.repeat(times), self.end.clone()].concat()
    }
}

fn event(payload: &str) -> Vec<u8> {
    format!("data: {payload}\n\n").into_bytes()
}

fn shapes() -> Vec<Shape> {
    let chat = |name, begin: &[&str], again: &str| {
        Shape::stream(name, openai_chat::model(Profile::Custom, "m"), begin, again, &["[DONE]"])
    };
    let claude = |name, begin: &[&str], again: &str| {
        Shape::stream(name, anthropic::model("m"), begin, again, &[r#"{"type":"message_stop"}"#])
    };
    let responses = |name, begin: &[&str], again: &str| {
        let end = r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
        Shape::stream(name, openai_responses::model("m"), begin, again, &[end])
    };
    let google = |name, begin: &[&str], again: &str| {
        Shape::stream(name, gemini::model("m"), begin, again, &[r#"{"candidates":[{"finishReason":"STOP"}]}"#])
    };
    let chat_call = r#"{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":"{\"k\":\""}}]}}]}"#;
    let claude_call = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"t","input":{}}}"#;
    vec![
        chat("chat text", &[], r#"{"id":"c","choices":[{"index":0,"delta":{"content":"some text"}}]}"#),
        chat(
            "chat text that is walked",
            &[],
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":"some text"}}],"x":{}}"#,
        ),
        chat(
            "chat arguments",
            &[chat_call],
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"abc"}}]}}]}"#,
        ),
        chat(
            "chat arguments with the name and another id each time",
            &[chat_call],
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"t","arguments":"abc"}}]}}]}"#,
        ),
        chat(
            "chat arguments without index and id",
            &[
                r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"t","arguments":"{\"k\":\""}}]}}]}"#,
            ],
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"t","arguments":"abc"}}]}}]}"#,
        ),
        chat(
            "chat reasoning in details",
            &[],
            r#"{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"hm","index":0}]}}]}"#,
        ),
        chat(
            "chat sources",
            &[],
            r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"citations":["https://a.example","https://b.example"]}"#,
        ),
        claude(
            "claude text",
            &[r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#],
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some text"}}"#,
        ),
        claude(
            "claude arguments",
            &[claude_call],
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"abc"}}"#,
        ),
        claude(
            "claude arguments of its own tools",
            &[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"a","name":"t","input":{}}}"#,
            ],
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"abc"}}"#,
        ),
        claude(
            "claude blocks",
            &[],
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#,
        ),
        responses(
            "responses text",
            &[],
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"some text"}"#,
        ),
        responses(
            "responses arguments",
            &[
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"t"}}"#,
            ],
            r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"abc"}"#,
        ),
        google("gemini text", &[], r#"{"candidates":[{"content":{"parts":[{"text":"some text"}]}}]}"#),
        google(
            "gemini arguments",
            &[r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"t","willContinue":true}}]}}]}"#],
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"abc"}],"willContinue":true}}]}}]}"#,
        ),
        Shape::frames(
            "bedrock text",
            &[],
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"some text"}}"#),
        ),
        Shape::frames(
            "bedrock arguments",
            &[("contentBlockStart", r#"{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"t"}}}"#)],
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"toolUse":{"input":"abc"}}}"#),
        ),
    ]
}

fn decoder(model: &Model) -> Box<dyn Decoder> {
    let Access::Http { wire, .. } = &model.access else { unreachable!("all models here have a wire") };
    wire.decoder(&ModelRequest::new(model.clone()), &ResponseHead { status: 200, headers: Vec::new() })
}

/// The work of decoding and assembling.
fn cost(model: &Model, bytes: &[u8], chunk: usize) -> u64 {
    let mut decoder = decoder(model);
    let mut assembler = Assembler::new();
    work::of(|| {
        let mut events = Vec::new();
        for chunk in bytes.chunks(chunk) {
            decoder.push(chunk, &mut events);
            events.drain(..).for_each(|event| assembler.push(&event));
        }
        decoder.finish(&mut events);
        events.drain(..).for_each(|event| assembler.push(&event));
        assembler.finish();
    })
}

fn is_in_proportion(shape: &Shape, length: usize, chunk: usize) {
    let (once, twice) = (shape.bytes(length), shape.bytes(2 * length));
    let [small, large] = [&once, &twice].map(|bytes| cost(&shape.model, bytes, chunk));
    let name = shape.name;
    assert!(large / twice.len() as u64 <= MAX_WORK, "{name}: {large} for {} bytes, {chunk} at a time", twice.len());
    let growth = large as f64 / small as f64;
    assert!(growth <= MAX_GROWTH, "{name}: {growth} times the work for twice as much, {chunk} bytes at a time");
}

#[test]
fn work_is_in_proportion_a_byte_at_a_time() {
    for shape in shapes() {
        is_in_proportion(&shape, MEGABYTE / 16, 1);
    }
}

#[test]
fn work_is_in_proportion_in_chunks_of_4_megabytes() {
    for shape in shapes() {
        is_in_proportion(&shape, 5 * MEGABYTE / 2, 4 * MEGABYTE);
    }
}

#[test]
fn one_large_event_is_in_proportion() {
    let text = "x".repeat(4 * MEGABYTE);
    let payloads = [
        (openai_chat::model(Profile::Custom, "m"), format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#)),
        (
            anthropic::model("m"),
            format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#),
        ),
        (openai_responses::model("m"), format!(r#"{{"type":"response.output_text.delta","delta":"{text}"}}"#)),
        (gemini::model("m"), format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#)),
    ];
    for (model, payload) in payloads {
        let bytes = event(&payload);
        for chunk in [64 * 1024, 4 * MEGABYTE] {
            let work = cost(&model, &bytes, chunk) / bytes.len() as u64;
            assert!(work <= MAX_WORK, "{}: {work} for each byte, {chunk} at a time", model.provider);
        }
    }
    let bytes = frame_of_event("contentBlockDelta", &format!(r#"{{"delta":{{"text":"{text}"}}}}"#));
    for chunk in [64 * 1024, 4 * MEGABYTE] {
        let work = cost(&bedrock::model("r", "m"), &bytes, chunk) / bytes.len() as u64;
        assert!(work <= MAX_WORK, "bedrock: {work} for each byte, {chunk} at a time");
    }
}

#[test]
fn a_partial_input_costs_a_pass_over_it() {
    let input = |length: usize| format!(r#"{{"a":[1,true,{{"b":"{}"#, "\\u00e9x".repeat(length / 7));
    for length in [MEGABYTE, 4 * MEGABYTE] {
        let mut assembler = Assembler::new();
        assembler.push(&ModelEvent::ToolInputStart { block: 0, id: "a".into(), name: "t".into() });
        assembler.push(&ModelEvent::ToolInputDelta { block: 0, json: input(length) });
        let work = work::of(|| assert!(assembler.partial_input(0).is_some()));
        assert!(work <= 3 * length as u64, "{work} for {length} bytes");
    }
}

/// The next turn of a conversation: a call of the model and its result.
fn turn(model: &Model, number: usize) -> [Arc<Message>; 2] {
    let call = ToolCall {
        call_id: CallId::new(format!("call_{number:06}")),
        tool_name: "t".into(),
        input: ToolInput::Malformed { text: "{".into(), reason: "cut".into() },
        replay: None,
    };
    let result = ToolResult {
        call_id: call.call_id.clone(),
        tool_name: "t".into(),
        content: vec![Content::Text("ok".into())],
        output: None,
        details: None,
        is_error: false,
    };
    let spoken = AssistantMessage {
        content: vec![Part::ToolCall(call)],
        model: model.reference(),
        stop_reason: StopReason::ToolUse,
        usage: Usage::default(),
    };
    [Body::Assistant(spoken), Body::Tool(ToolMessage { results: vec![result] })]
        .map(|body| Arc::new(Message { id: MessageId::new(number.to_string()), body }))
}

#[test]
fn a_step_costs_the_same_after_ten_turns_and_after_a_thousand() {
    let models = [
        anthropic::model("m"),
        openai_chat::model(Profile::Custom, "m"),
        openai_responses::model("m"),
        gemini::model("m"),
        bedrock::model("r", "m"),
    ];
    for model in models {
        let Access::Http { wire, .. } = &model.access else { unreachable!("all models here have a wire") };
        let mut cache = EncodedCache::default();
        let mut request = ModelRequest::new(model.clone());
        let prompt = UserMessage { content: vec![Content::Text("go".into())], origin: Origin::Prompt };
        request.messages.push(Arc::new(Message { id: MessageId::new("prompt"), body: Body::User(prompt) }));
        let mut cost_of_step = |number: usize| {
            request.messages.extend((request.messages.len() / 2..number).flat_map(|number| turn(&model, number)));
            assert!(wire.encode(&request, &mut cache).is_ok());
            request.messages.extend(turn(&model, number));
            work::of(|| assert!(wire.encode(&request, &mut cache).is_ok()))
        };
        let (early, late) = (cost_of_step(10), cost_of_step(1_000));
        assert!(early > 0 && early == late, "{}: {early} and {late}", model.provider);
    }
}

#[test]
fn an_answer_without_end_does_not_fill_the_memory() {
    // What nothing is shown of adds up too: the input of a tool that runs at the provider, or that is not whole yet.
    let names = ["chat text", "claude arguments of its own tools", "gemini arguments"];
    for shape in shapes().into_iter().filter(|shape| names.contains(&shape.name)) {
        let piece = "x".repeat(MEGABYTE);
        let again = String::from_utf8_lossy(&shape.again).replace("some text", &piece).replace("abc", &piece);
        let mut decoder = decoder(&shape.model);
        let mut events = Vec::new();
        decoder.push(&shape.begin, &mut events);
        let refused = (0..200).any(|_| {
            events.clear();
            decoder.push(again.as_bytes(), &mut events);
            matches!(events.last(), Some(ModelEvent::Failed(error)) if error.kind() == crate::ErrorKind::Limit)
        });
        assert!(refused, "{}", shape.name);
    }
}
