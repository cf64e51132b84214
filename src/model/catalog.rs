//! What is known of models: their limits, what they read, what they cost, and where that stands. Nothing needs it; a model
//! that is not in it works like any other.
//!
//! ```
//! use crablet::model::{Catalog, anthropic};
//!
//! let catalog = Catalog::bundled();
//! let model = catalog.describe(anthropic::model("claude-sonnet-5"));
//! assert!(model.prices.is_some());
//! let known = catalog.find("anthropic", "claude-sonnet-5").unwrap();
//! assert_eq!(known.context_window, Some(1_000_000));
//! println!("{} costs {:?}, says {}", known.id, known.prices, known.sources[0].url);
//! ```

use super::prices::Prices;
use super::request::{FileKinds, Model};
use crate::error::{Error, ErrorKind};
use crate::json::Object;

/// The catalogue that comes with crablet: `src/model/catalog.json`, which the npm package's entry `crablet/models` reads too.
const BUNDLED: &str = include_str!("catalog.json");

/// Models and what is known of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    models: Vec<ModelInfo>,
}

/// What is known of a model. What was not found is absent, and never guessed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelInfo {
    /// The provider, as [`Model::provider`] names it.
    pub provider: String,
    /// The provider's name of the model.
    pub id: String,
    /// The most tokens that a request and its answer have together.
    pub context_window: Option<u64>,
    /// The most tokens of an answer.
    pub output_limit: Option<u64>,
    /// What it reads: `text`, `image`, `audio`, `video`, `file`.
    pub input: Option<Vec<String>>,
    /// Whether it can reason before it answers.
    pub reasoning: Option<bool>,
    /// What it costs.
    pub prices: Option<Prices>,
    /// Where that stands, and when it was read there.
    pub sources: Vec<CatalogSource>,
    /// What the numbers do not say.
    pub note: Option<String>,
}

/// Where something in the catalogue stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogSource {
    /// What stands there: `prices` or `limits`.
    pub of: String,
    /// The address.
    pub url: String,
    /// When it was read there, as `YYYY-MM-DD`.
    pub date: String,
    /// Who read it there, where that was somebody else who publishes it.
    pub via: Option<String>,
}

impl Catalog {
    /// A catalogue without models, to be filled.
    pub const fn new() -> Self {
        Self { models: Vec::new() }
    }

    /// The catalogue that comes with crablet.
    pub fn bundled() -> Self {
        Self::parse(BUNDLED).unwrap_or_default()
    }

    /// Reads a catalogue: `{"models": [{"provider", "id", "contextWindow"?, "outputLimit"?, "input"?, "reasoning"?,
    /// "prices"?, "sources"?, "note"?}]}`, with prices as [`Prices::read`] reads them.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the text is no JSON object, or a model lacks its provider or id.
    pub fn parse(json: &str) -> Result<Self, Error> {
        let invalid =
            |message: String| Error::new(ErrorKind::InvalidInput, format!("the catalogue of models: {message}"));
        let object = Object::parse(json).map_err(|error| invalid(error.to_string()))?;
        let models = object.objects("models").iter().map(ModelInfo::read).collect::<Option<Vec<_>>>();
        let models = models.ok_or_else(|| invalid("each model needs a provider and an id".to_owned()))?;
        Ok(Self { models })
    }

    /// Adds a model, in the place of one of the same provider and name.
    pub fn add(&mut self, model: ModelInfo) {
        self.models.retain(|known| known.provider != model.provider || known.id != model.id);
        self.models.push(model);
    }

    /// All models.
    pub fn iter(&self) -> impl Iterator<Item = &ModelInfo> {
        self.models.iter()
    }

    /// What is known of a model. A dated name such as `gpt-5.2-2025-12-11` is found under its name without the date, and one
    /// of Bedrock also with a region before it.
    pub fn find(&self, provider: &str, id: &str) -> Option<&ModelInfo> {
        let plain = match id.split_once('.') {
            Some((region, rest)) if provider == "bedrock" && REGIONS.contains(&region) => rest,
            _ => id,
        };
        let of_provider = || self.models.iter().filter(|known| known.provider == provider);
        let named = |name: &str| of_provider().find(|known| known.id == name);
        named(plain).or_else(|| of_provider().find(|known| plain.strip_prefix(known.id.as_str()).is_some_and(is_date)))
    }

    /// The model with what is known of it: its prices, and what files it reads. What the model says itself stays.
    pub fn describe(&self, mut model: Model) -> Model {
        let Some(known) = self.find(&model.provider, &model.id) else { return model };
        model.prices = model.prices.or(known.prices);
        if let (Some(input), true) = (&known.input, model.files == FileKinds::ALL) {
            let reads = |kind: &str| input.iter().any(|known| known == kind);
            model.files = FileKinds { images: reads("image"), audio: reads("audio"), documents: reads("file") };
        }
        model
    }
}

/// What Bedrock writes before the name of a model for inference across regions.
const REGIONS: &[&str] = &["us", "eu", "apac", "jp", "au", "global"];

/// Whether a text is `-20250929` or `-2025-09-29`.
fn is_date(suffix: &str) -> bool {
    let digits = suffix.bytes().filter(u8::is_ascii_digit).count();
    digits == 8 && matches!(suffix.len(), 9 | 11) && suffix.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

impl ModelInfo {
    fn read(object: &Object<'_>) -> Option<Self> {
        let source = |source: &Object<'_>| CatalogSource {
            of: source.string("of").unwrap_or_default(),
            url: source.string("url").unwrap_or_default(),
            date: source.string("date").unwrap_or_default(),
            via: source.string("via"),
        };
        Some(Self {
            provider: object.string("provider")?,
            id: object.string("id")?,
            context_window: object.integer("contextWindow"),
            output_limit: object.integer("outputLimit"),
            input: object.read("input"),
            reasoning: object.boolean("reasoning"),
            prices: object.object("prices").and_then(|prices| Prices::read(&prices)),
            sources: object.objects("sources").iter().map(source).collect(),
            note: object.string("note"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{RawJson, Schema};

    /// What an entry of `catalog.json` looks like. No member beside these, and each model says where its numbers stand.
    const SCHEMA: &str = r##"{
        "type": "object", "required": ["version", "models"], "additionalProperties": false,
        "properties": {"version": {"const": 1}, "models": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["provider", "id", "prices", "sources"], "additionalProperties": false,
            "properties": {
                "provider": {"enum": ["anthropic", "openai", "azure", "gemini", "vertex", "bedrock", "xai", "groq", "cerebras",
                    "openrouter", "mistral", "deepseek", "minimax", "zai", "qwen"]},
                "id": {"type": "string", "minLength": 1},
                "contextWindow": {"type": "integer", "minimum": 1000},
                "outputLimit": {"type": "integer", "minimum": 1000},
                "input": {"type": "array", "uniqueItems": true, "contains": {"const": "text"},
                    "items": {"enum": ["text", "image", "audio", "video", "file"]}},
                "reasoning": {"type": "boolean"},
                "prices": {"allOf": [{"$ref": "#/$defs/prices"}], "properties": {"long": {"allOf": [{"$ref": "#/$defs/prices"}],
                    "required": ["above"]}}},
                "sources": {"type": "array", "minItems": 1, "items": {
                    "type": "object", "required": ["of", "url", "date"], "additionalProperties": false, "properties": {
                        "of": {"enum": ["prices", "limits"]}, "url": {"type": "string", "minLength": 12},
                        "date": {"type": "string", "minLength": 10, "maxLength": 10}, "via": {"type": "string"}}}},
                "note": {"type": "string"}
            }}}},
        "$defs": {"prices": {"type": "object", "required": ["input", "output"], "additionalProperties": false, "properties": {
            "input": {"type": "number", "minimum": 0}, "output": {"type": "number", "minimum": 0},
            "cacheRead": {"type": "number", "minimum": 0}, "cacheWrite": {"type": "number", "minimum": 0},
            "above": {"type": "integer", "minimum": 1000}, "long": {"type": "object"}}}}
    }"##;

    #[test]
    fn the_data_has_the_shape_that_is_documented() {
        let schema = Schema::compile(&RawJson::parse(SCHEMA).unwrap()).unwrap();
        assert_eq!(schema.unsupported(), [] as [&str; 0]);
        assert_eq!(schema.check(&RawJson::parse(BUNDLED).unwrap()), Ok(None));
    }

    #[test]
    fn every_model_is_there_once_with_prices_limits_that_fit_and_a_source_for_each() {
        let catalog = Catalog::bundled();
        assert!(catalog.iter().count() > 50);
        for model in catalog.iter() {
            let name = format!("{}/{}", model.provider, model.id);
            assert_eq!(
                catalog.iter().filter(|one| one.provider == model.provider && one.id == model.id).count(),
                1,
                "{name}"
            );
            let prices = model.prices.unwrap_or_else(|| panic!("{name} has no prices"));
            assert!(prices.input <= prices.output, "{name}: what is written never costs less");
            assert!(prices.cache_read.is_none_or(|price| price <= prices.input), "{name}");
            assert!(model.output_limit <= model.context_window, "{name}");
            let has =
                |of: &str| model.sources.iter().any(|source| source.of == of && source.url.starts_with("https://"));
            assert!(has("prices") && has("limits") == model.context_window.is_some(), "{name}");
            assert!(model.sources.iter().all(|source| source.date.starts_with("2026-")), "{name}");
        }
    }

    #[test]
    fn dated_names_and_regions_are_found() {
        let catalog = Catalog::bundled();
        let found = |provider, id| catalog.find(provider, id).map(|known| known.id.as_str());
        assert_eq!(found("anthropic", "claude-haiku-4-5-20251001"), Some("claude-haiku-4-5"));
        assert_eq!(found("openai", "gpt-5.2-2025-12-11"), Some("gpt-5.2"));
        assert_eq!(found("openai", "gpt-5.2-codex"), None, "another model, with prices of its own");
        assert_eq!(found("bedrock", "us.anthropic.claude-sonnet-4-6"), Some("anthropic.claude-sonnet-4-6"));
        assert_eq!(found("openai", "claude-sonnet-5"), None);
    }

    #[test]
    fn a_user_adds_models_and_replaces_them() {
        let mut catalog = Catalog::bundled();
        let before = catalog.iter().count();
        let text = r#"{"models":[{"provider":"azure","id":"mine","prices":{"input":1,"output":2},"input":["text"]}]}"#;
        for model in Catalog::parse(text).unwrap().iter() {
            catalog.add(model.clone());
            catalog.add(ModelInfo { reasoning: Some(true), ..model.clone() });
        }
        assert_eq!(catalog.iter().count(), before + 1);
        let known = catalog.find("azure", "mine").unwrap();
        assert_eq!((known.reasoning, known.prices.unwrap().output.to_string().as_str()), (Some(true), "2"));
        for text in ["[]", r#"{"models":[{"id":"x"}]}"#] {
            assert_eq!(Catalog::parse(text).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn a_model_keeps_what_it_says_itself() {
        let catalog = Catalog::bundled();
        let model = Model { provider: "deepseek".into(), id: "deepseek-v4-pro".into(), ..Model::function("f") };
        let described = catalog.describe(model.clone());
        assert!(described.prices.is_some() && !described.files.images);
        let own = Prices::default();
        assert_eq!(catalog.describe(model.with_prices(own)).prices, Some(own));
        let unknown = Model::function("f");
        assert_eq!(catalog.describe(unknown.clone()).prices, None);
    }
}
