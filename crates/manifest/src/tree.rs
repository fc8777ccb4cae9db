//! The parts of a manifest: documents, fields, items, and values that are known or come from settings.

use serde_json::Value;

/// One object, or several if it is repeated for each entry of a setting.
#[derive(Clone, Debug)]
pub struct Document {
    /// What stands above it.
    pub comment: String,
    /// When it is there; always if not given.
    pub when: Option<When>,
    /// For what it is repeated.
    pub each: Option<Each>,
    /// Its fields.
    pub fields: Vec<Field>,
}

impl Document {
    /// A document with these fields.
    pub fn new(comment: impl Into<String>, fields: Vec<Field>) -> Self {
        Self { comment: comment.into(), when: None, each: None, fields }
    }

    /// The same, only under a condition.
    #[must_use]
    pub fn when(self, when: When) -> Self {
        Self { when: Some(when), ..self }
    }

    /// The same, once for each entry of a setting.
    #[must_use]
    pub fn each(self, each: Each) -> Self {
        Self { each: Some(each), ..self }
    }
}

/// What a document is repeated for.
#[derive(Clone, Debug)]
pub enum Each {
    /// The items of a list; the variable has the item.
    Item {
        /// The setting that has the list.
        list: &'static str,
        /// The variable.
        variable: &'static str,
    },
    /// The entries of a map; the variables have its key and its value.
    Entry {
        /// The setting that has the map.
        map: &'static str,
        /// The variable of the key.
        key: &'static str,
        /// The variable of the value.
        value: &'static str,
    },
}

/// A condition over settings. What is false, zero or empty does not hold.
#[derive(Clone, Debug)]
pub enum When {
    /// The setting is true, or not empty.
    Set(&'static str),
    /// The setting has this value.
    Equals(&'static str, &'static str),
    /// The setting has another value.
    Differs(&'static str, &'static str),
    /// All of them hold.
    All(Vec<When>),
    /// The condition does not hold.
    Not(Box<When>),
}

/// A value in a manifest.
#[derive(Clone, Debug)]
pub enum Node {
    /// Known: a scalar, or an empty map or list.
    Literal(Value),
    /// A string in which something is filled in.
    Text(Vec<Piece>),
    /// The value of a setting, whatever it is.
    Setting(&'static str),
    /// The value of a variable.
    Variable(&'static str),
    /// The value of a setting, as YAML inside a string.
    Block(&'static str),
    /// Fields, in this order.
    Map(Vec<Field>),
    /// Items.
    List(Vec<Item>),
}

/// A piece of a string.
#[derive(Clone, Debug)]
pub enum Piece {
    /// As it is.
    Word(String),
    /// The value of a setting.
    Setting(&'static str),
    /// The items of a setting, with commas between them.
    Joined(&'static str),
    /// The namespace that is installed into.
    Namespace,
    /// The value of a variable.
    Variable(&'static str),
    /// What a helper of the chart says: its name, and what that is in plain YAML.
    Helper(&'static str, fn(&crate::Values<'_>) -> String),
}

impl From<&str> for Piece {
    fn from(word: &str) -> Self {
        Piece::Word(word.to_owned())
    }
}

impl From<String> for Piece {
    fn from(word: String) -> Self {
        Piece::Word(word)
    }
}

/// Something with a comment above it, and perhaps under a condition: a [`Field`] of a map or an [`Item`] of a list.
#[derive(Clone, Debug)]
pub struct Entry<C> {
    pub(crate) comment: String,
    pub(crate) when: Option<When>,
    pub(crate) content: C,
}

impl<C> Entry<C> {
    fn new(content: C) -> Self {
        Self { comment: String::new(), when: None, content }
    }

    /// The same, with a comment above it.
    #[must_use]
    pub fn about(self, comment: impl Into<String>) -> Self {
        Self { comment: comment.into(), ..self }
    }

    /// The same, only under a condition.
    #[must_use]
    pub fn when(self, when: When) -> Self {
        Self { when: Some(when), ..self }
    }
}

/// A field of a map, or the entries of a setting in its place.
pub type Field = Entry<FieldContent>;

/// What a field holds.
#[derive(Clone, Debug)]
pub enum FieldContent {
    /// A value under a key.
    One(String, Node),
    /// The entries of a setting.
    Entries(&'static str),
}

impl Field {
    /// All entries of a setting.
    pub fn entries(setting: &'static str) -> Self {
        Self::new(FieldContent::Entries(setting))
    }
}

/// An item of a list, or the items of a setting in its place.
pub type Item = Entry<ItemContent>;

/// What an item holds.
#[derive(Clone, Debug)]
pub enum ItemContent {
    /// A value.
    One(Node),
    /// The items of a setting.
    Items(&'static str),
}

impl Item {
    /// All items of a setting.
    pub fn items(setting: &'static str) -> Self {
        Self::new(ItemContent::Items(setting))
    }
}

impl<N: Into<Node>> From<N> for Item {
    fn from(node: N) -> Self {
        Self::new(ItemContent::One(node.into()))
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                map(fields.into_iter().map(|(key, value)| field(key, value)).collect())
            }
            Value::Array(items) if !items.is_empty() => list(items.into_iter().map(Item::from).collect()),
            scalar => Node::Literal(scalar),
        }
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Node::Literal(text.into())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Node::Literal(text.into())
    }
}

impl From<u32> for Node {
    fn from(number: u32) -> Self {
        Node::Literal(number.into())
    }
}

impl From<bool> for Node {
    fn from(value: bool) -> Self {
        Node::Literal(value.into())
    }
}

/// A field.
pub fn field(key: impl Into<String>, node: impl Into<Node>) -> Field {
    Field::new(FieldContent::One(key.into(), node.into()))
}

/// A known value.
pub fn literal(value: impl Into<Value>) -> Node {
    Node::from(value.into())
}

/// The value of a setting.
pub fn setting(path: &'static str) -> Node {
    Node::Setting(path)
}

/// The value of a setting, as YAML inside a string.
pub fn block(path: &'static str) -> Node {
    Node::Block(path)
}

/// A string of pieces.
pub fn text(pieces: Vec<Piece>) -> Node {
    Node::Text(pieces)
}

/// A map with these fields.
pub fn map(fields: Vec<Field>) -> Node {
    Node::Map(fields)
}

/// A list of these items.
pub fn list(items: Vec<Item>) -> Node {
    Node::List(items)
}
