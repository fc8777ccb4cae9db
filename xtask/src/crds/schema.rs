//! The words that schemas are written with.

use serde_json::{Map, Value, json};

/// A schema on its way.
#[derive(Clone)]
pub struct Schema(Map<String, Value>);

/// A field of an object.
pub struct Field {
    name: &'static str,
    schema: Schema,
    required: bool,
}

/// A field that may be absent.
pub fn opt(name: &'static str, schema: Schema) -> Field {
    Field { name, schema, required: false }
}

/// A field that must be there.
pub fn req(name: &'static str, schema: Schema) -> Field {
    Field { name, schema, required: true }
}

fn of(kind: &str, about: &str) -> Schema {
    let mut map = Map::from_iter([("type".to_owned(), kind.into())]);
    if !about.is_empty() {
        map.insert("description".to_owned(), about.into());
    }
    Schema(map)
}

/// Text.
pub fn text(about: &str) -> Schema {
    of("string", about)
}

/// Yes or no.
pub fn flag(about: &str) -> Schema {
    of("boolean", about)
}

/// A whole number.
pub fn number(about: &str) -> Schema {
    of("integer", about)
}

/// A map of fields.
pub fn object(about: &str, fields: impl IntoIterator<Item = Field>) -> Schema {
    let mut schema = of("object", about);
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in fields {
        if field.required {
            required.push(Value::from(field.name));
        }
        properties.insert(field.name.to_owned(), field.schema.into());
    }
    required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    if !properties.is_empty() {
        schema = schema.with("properties", properties);
    }
    if required.is_empty() { schema } else { schema.with("required", required) }
}

/// A list.
pub fn list(about: &str, items: Schema) -> Schema {
    of("array", about).with("items", Value::from(items))
}

/// A map from text to text.
pub fn texts(about: &str) -> Schema {
    of("object", about).with("additionalProperties", json!({ "type": "string" }))
}

/// A map from text to values of one form.
pub fn map(about: &str, values: Schema) -> Schema {
    of("object", about).with("additionalProperties", Value::from(values))
}

/// A map of whatever is written.
pub fn open(about: &str) -> Schema {
    of("object", about).with("x-kubernetes-preserve-unknown-fields", true)
}

/// Text that is one of these.
pub fn choice(about: &str, words: &[&str]) -> Schema {
    text(about).with("enum", words)
}

/// A duration as Go writes it, with these words besides.
pub fn duration(about: &str, words: &[&str]) -> Schema {
    let units = ["h", "m", "s", "ms", "us", "µs", "ns"];
    let parts: Vec<String> = units.iter().map(|unit| format!("(\\d*(\\.\\d*)?{unit})")).collect();
    let mut forms = vec![format!("({})+", parts.join("|"))];
    forms.extend(words.iter().map(|word| (*word).to_owned()));
    text(about).pattern(&format!("^({})$", forms.join("|")))
}

/// A duration, or for ever.
pub fn timeout(about: &str) -> Schema {
    duration(about, &["infinity", "infinite"])
}

impl Schema {
    /// With a rule of OpenAPI.
    pub fn with(mut self, rule: &str, value: impl Into<Value>) -> Self {
        self.0.insert(rule.to_owned(), value.into());
        self
    }

    /// Text of at least so many characters.
    pub fn min_length(self, least: u32) -> Self {
        self.with("minLength", least)
    }

    /// Text of at most so many characters.
    pub fn max_length(self, most: u32) -> Self {
        self.with("maxLength", most)
    }

    /// Text that matches.
    pub fn pattern(self, pattern: &str) -> Self {
        self.with("pattern", pattern)
    }

    /// A number of at least this.
    pub fn min(self, least: i64) -> Self {
        self.with("minimum", least)
    }

    /// A number of at most this.
    pub fn max(self, most: i64) -> Self {
        self.with("maximum", most)
    }

    /// A number of 32 bits.
    pub fn int32(self) -> Self {
        self.with("format", "int32")
    }

    /// A number of 64 bits.
    pub fn int64(self) -> Self {
        self.with("format", "int64")
    }

    /// A list of at least so many.
    pub fn min_items(self, least: u32) -> Self {
        self.with("minItems", least)
    }

    /// A list of at most so many.
    pub fn max_items(self, most: u32) -> Self {
        self.with("maxItems", most)
    }

    /// What stands there where nothing was said.
    pub fn default(self, value: impl Into<Value>) -> Self {
        self.with("default", value)
    }

    /// With a rule in CEL.
    pub fn rule(self, rule: &str, message: &str) -> Self {
        self.with("x-kubernetes-validations", json!([{ "rule": rule, "message": message }]))
    }

    /// A list of which each element has another value of this field.
    pub fn map_by(self, key: &str) -> Self {
        self.with("x-kubernetes-list-map-keys", json!([key])).with("x-kubernetes-list-type", "map")
    }

    /// A list that has one owner.
    pub fn atomic(self) -> Self {
        self.with("x-kubernetes-list-type", "atomic")
    }
}

impl From<Schema> for Value {
    fn from(schema: Schema) -> Value {
        Value::Object(schema.0)
    }
}

/// What every object has besides `spec` and `status`.
pub fn root(about: &str, spec: Schema, status: Schema) -> Value {
    let api = text("The group and version of the API that the object is written for.");
    let kind = text("The kind of the object.");
    let fields = [
        opt("apiVersion", api),
        opt("kind", kind),
        req("metadata", of("object", "")),
        req("spec", spec),
        opt("status", status),
    ];
    object(about, fields).into()
}
