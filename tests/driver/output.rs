//! Runs that end with an object, and models that stand in for others, through the driver.

use crablet::agent::{HookQuestion, HookReply, Hooks, OutputDefinition};
use crablet::host::HookContext;
use crablet::json::RawJson;
use crablet::model::{Model, OutputSchema};
use crablet::{Error, ErrorKind};

use super::runner;
use super::support::ScriptedHost;

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Weather {
    city: String,
    degrees: i32,
}

fn weather() -> OutputSchema {
    let schema = r#"{"type":"object","required":["city","degrees"],
        "properties":{"city":{"type":"string"},"degrees":{"type":"integer"}}}"#;
    OutputSchema::new("weather", RawJson::parse(schema).unwrap())
}

#[test]
fn an_answer_is_read_into_a_type() {
    let host = ScriptedHost::new();
    let model = host.model().text("It is cold.").text(r#"{"city":"Oslo","degrees":"-4"}"#);
    let answer = host.block_on(runner(&host, &model).output(weather()).run("Weather?")).unwrap();
    let read: Weather = answer.output.unwrap().read().unwrap();
    assert_eq!(read, Weather { city: "Oslo".into(), degrees: -4 });
    assert_eq!(model.requests()[0].options.output.as_ref().unwrap().name, "weather");
}

#[test]
fn a_validator_of_the_program_is_asked() {
    let host = ScriptedHost::new();
    let model = host.model().text(r#"{"city":"Oslo","degrees":90}"#).text(r#"{"city":"Oslo","degrees":9}"#);
    let plausible = |question: HookQuestion, _context: HookContext| async move {
        let HookQuestion::ValidateOutput { output } = question else { return Ok(HookReply::Continue) };
        let weather: Weather = output.read().map_err(|error| error.to_string())?;
        if weather.degrees > 60 { Err("degrees are in Celsius".to_owned()) } else { Ok(HookReply::Continue) }
    };
    let mut runner = runner(&host, &model).hooks(Hooks::default(), plausible);
    let mut output = OutputDefinition::new(weather());
    output.has_validator = true;
    runner.agent_mut().output = Some(output);
    let answer = host.block_on(runner.run("Weather?")).unwrap();
    assert_eq!(answer.output.unwrap().read::<Weather>().unwrap().degrees, 9);
}

#[test]
fn a_run_without_its_object_is_an_error() {
    let host = ScriptedHost::new();
    let model = host.model().text("no").text("still no");
    let error = host.block_on(runner(&host, &model).output(weather()).run("Weather?")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
}

#[test]
fn another_model_answers_when_one_fails() {
    let host = ScriptedHost::new();
    let failing = host.model().fails_after("half", Error::new(ErrorKind::Quota, "no credit"));
    let other = host.model().text("whole");
    let mut runner = runner(&host, &failing).function_model("other", other.clone());
    runner.agent_mut().fallbacks = vec![Model::function("other")];
    assert_eq!(host.block_on(runner.run("hi")).unwrap().text, "whole");
    assert_eq!((failing.requests().len(), other.requests().len()), (1, 1));
}
